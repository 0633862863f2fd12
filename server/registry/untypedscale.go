package registry

import (
	"fmt"
	"math"

	"github.com/keelson-dev/keelson/runtime"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/util/validation/field"
)

// untypedScale checks what untyped objects have at the paths of their scale, where a Go type would have the field.
// kube-apiserver does so for custom resources. The zero untypedScale checks nothing.
type untypedScale struct {
	paths                                  Scale
	specReplicas, statusReplicas, selector fieldPath
}

// newUntypedScale refuses paths that are none. Of kinds with a Go type it checks nothing.
func newUntypedScale(k *runtime.Kind, s *Scale) (u untypedScale, err error) {
	if s == nil || !k.Untyped() {
		return u, nil
	}
	u.paths = *s
	if u.specReplicas, err = integerPath(k.Type, s.SpecReplicas); err == nil {
		u.statusReplicas, err = integerPath(k.Type, s.StatusReplicas)
	}
	if err == nil && s.LabelSelector != "" {
		u.selector, err = stringPath(k.Type, s.LabelSelector)
	}
	if err != nil {
		return u, fmt.Errorf("scale: %w", err)
	}
	return u, nil
}

func (u untypedScale) checks() bool { return u.specReplicas.names != nil }

// validate returns what is wrong with an object; statusOnly leaves out what a change of the status cannot have changed.
func (u untypedScale) validate(obj runtime.Object, statusOnly bool) field.ErrorList {
	if !u.checks() {
		return nil
	}
	var errs field.ErrorList
	if !statusOnly {
		errs = append(errs, checkReplicas(obj, u.paths.SpecReplicas, u.specReplicas)...)
	}
	errs = append(errs, checkReplicas(obj, u.paths.StatusReplicas, u.statusReplicas)...)
	if u.selector.names == nil {
		return errs
	}
	if _, _, err := unstructured.NestedString(membersOf(obj), u.selector.names...); err != nil {
		errs = append(errs, field.Invalid(field.NewPath(u.paths.LabelSelector), "", err.Error()))
	}
	return errs
}

func checkReplicas(obj runtime.Object, path string, at fieldPath) field.ErrorList {
	n, _, err := unstructured.NestedInt64(membersOf(obj), at.names...)
	var detail string
	switch {
	case err != nil:
		detail = err.Error()
	case n < 0:
		detail = "should be a non-negative integer"
	case n > math.MaxInt32:
		detail = fmt.Sprintf("should be less than or equal to %v", math.MaxInt32)
	default:
		return nil
	}
	return field.ErrorList{field.Invalid(field.NewPath(path), n, detail)}
}
