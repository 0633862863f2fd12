package registry

import (
	"fmt"
	"reflect"
	"strings"

	"github.com/keelson-dev/keelson/runtime"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/util/validation/field"
)

// mostProblems is how many problems of an object its error tells. Time and size of the error grow with the square of
// their number, and one request could make millions.
const mostProblems = 100

// invalid is the error for an object of the kind that has problems.
func (r *Registry) invalid(name string, problems field.ErrorList) error {
	if len(problems) > mostProblems {
		last := *problems[mostProblems-1]
		last.Detail = strings.TrimPrefix(last.Detail+"; there are more errors than these", "; ")
		problems = append(problems[:mostProblems-1:mostProblems-1], &last)
	}
	return apierrors.NewInvalid(r.kind.GVK.GroupKind(), name, problems)
}

// versionFor is what the hub's version is called for those who sent the version of the kind k.
func (r *Registry) versionFor(k *runtime.Kind) string {
	if k.GVK.Group == r.kind.GVK.Group {
		return r.kind.GVK.Version
	}
	return r.kind.GVK.GroupVersion().String()
}

// inWordsOf makes errors about obj, which is of the hub, errors for who sent the version of the kind k: a renamed
// field has its name there. Of another path at which that version does not have what the hub has there, it is said
// which version it is of. The errors are changed in place.
func (r *Registry) inWordsOf(call *Call, k *runtime.Kind, errs field.ErrorList, obj runtime.Object) {
	here := map[string]string{}
	for path, hub := range k.Renamed {
		here[hub] = path
	}
	var ofHub, ofKind any
	if there, err := call.InVersion(r.scheme, obj, k.GVK.GroupVersion()); err == nil {
		ofHub, _ = decoded(obj)
		ofKind, _ = decoded(there)
	}
	for _, e := range errs {
		if path, ok := here[e.Field]; ok {
			e.Detail = strings.ReplaceAll(e.Detail, e.Field+" in body", path+" in body")
			e.Field = path
			continue
		}
		a, within := lookUp(ofHub, e.Field)
		b, withinOther := lookUp(ofKind, e.Field)
		if !within || !withinOther || !reflect.DeepEqual(a, b) {
			e.Detail = strings.TrimPrefix(fmt.Sprintf("%s (in version %s)", e.Detail, r.versionFor(k)), " ")
		}
	}
}
