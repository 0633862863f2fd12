package registry

import (
	"slices"

	"github.com/keelson-dev/keelson/runtime"
	"github.com/keelson-dev/keelson/runtime/excerpt"
	"k8s.io/apimachinery/pkg/api/validate/content"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/validation/field"
)

// rules returns the kinds whose struct tags judge the objects of the gate: that of the objects, and that of the version which clients
// send if it is another one. There are none without a Scheme.
func (g Gate) rules() []*runtime.Kind {
	if g.Scheme == nil {
		return nil
	}
	var out []*runtime.Kind
	for _, gvk := range []schema.GroupVersionKind{g.Kind, g.SentKind} {
		k := g.Scheme.Lookup(gvk)
		if gvk.GroupKind() == g.Kind.GroupKind() && k != nil && !k.Constraints.IsZero() && !slices.Contains(out, k) {
			out = append(out, k)
		}
	}
	return out
}

// complete gives a new object that has a generateName and no name its name.
func (g Gate) complete(obj runtime.Object) {
	if m, ok := obj.(metav1.Object); ok && g.Scheme != nil && m.GetName() == "" && m.GetGenerateName() != "" {
		m.SetName(generateName(m.GetGenerateName()))
	}
}

// enforce returns the error of obj against the struct tags or, if old is not nil, of the change from old. The errors about the status
// of a new object are left out, as nobody can have set it yet. obj is nil in a request without an object.
func (g Gate) enforce(call *Call, obj, old runtime.Object) error {
	if g.Scheme == nil || obj == nil {
		return nil
	}
	var problems field.ErrorList
	name := ""
	if m, ok := obj.(metav1.Object); ok {
		if name = m.GetName(); name != "" && old == nil {
			for _, why := range content.IsPathSegmentName(name) {
				problems = append(problems, field.Invalid(field.NewPath("metadata", "name"), name, why))
			}
		}
	}
	var found field.ErrorList
	for _, k := range g.rules() {
		errs, err := judgeIn(call, g.Scheme, k, obj, old, true)
		if err != nil {
			return err
		}
		found = append(found, errs...)
	}
	problems = appendDistinct(problems, found)
	if len(problems) == 0 {
		return nil
	}
	return excerpt.Invalid(g.Kind.GroupKind(), name, problems)
}
