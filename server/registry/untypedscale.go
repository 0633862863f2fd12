package registry

import (
	"fmt"
	"math"
	"reflect"

	"github.com/keelson-dev/keelson/runtime"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/util/validation/field"
)

// untypedScale checks the values of untyped objects at the paths of their scale. For typed objects, the Go type ensures the same.
// kube-apiserver does this for custom resources. The zero untypedScale checks nothing.
type untypedScale struct {
	paths                                  Scale
	specReplicas, statusReplicas, selector fieldPath
}

// CheckScale returns the errors of the values of an untyped object at the paths of a scale. If statusOnly is true, only the
// values that an update of the status can change are checked. If s is nil, there are no errors.
func CheckScale(obj *unstructured.Unstructured, s *Scale, statusOnly bool) field.ErrorList {
	if s == nil {
		return nil
	}
	u, err := untypedScaleAt(*s)
	if err != nil {
		return field.ErrorList{field.InternalError(nil, err)}
	}
	return u.validate(obj, statusOnly)
}

// checkScale is CheckScale for the registry's own scale. It does nothing if the strategy has OwnScaleChecks.
func (r *Registry) checkScale(call *Call, obj runtime.Object, statusOnly bool) field.ErrorList {
	if r.strategy.ownScaleChecks || !r.scale.checks() {
		return nil
	}
	if r.converts() {
		var err error
		if obj, err = r.scheme.ToVersionContext(call.Context, obj, r.version); err != nil {
			return field.ErrorList{field.InternalError(nil, err)}
		}
	}
	return r.scale.validate(obj, statusOnly)
}

// newUntypedScale returns an error for invalid paths. For a kind with a Go type, it returns the zero value, which checks nothing.
func newUntypedScale(k *runtime.Kind, s *Scale) (untypedScale, error) {
	if s == nil || !k.Untyped() {
		return untypedScale{}, nil
	}
	return untypedScaleAt(*s)
}

func untypedScaleAt(s Scale) (u untypedScale, err error) {
	t := reflect.TypeFor[unstructured.Unstructured]()
	u.paths = s
	if u.specReplicas, err = integerPath(t, s.SpecReplicas); err == nil {
		u.statusReplicas, err = integerPath(t, s.StatusReplicas)
	}
	if err == nil && s.LabelSelector != "" {
		u.selector, err = stringPath(t, s.LabelSelector)
	}
	if err != nil {
		return u, fmt.Errorf("scale: %w", err)
	}
	return u, nil
}

func (u untypedScale) checks() bool { return u.specReplicas.names != nil }

// validate returns the errors of an object. If statusOnly is true, values that a change of the status cannot change are not
// checked.
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
