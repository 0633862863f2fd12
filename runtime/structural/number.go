package structural

import (
	openapierrors "k8s.io/kube-openapi/pkg/validation/errors"
	"k8s.io/kube-openapi/pkg/validation/validate"
)

// number judges an int64 or float64. A bound that does not fit the type is an error of its own, and is compared as a float.
func (j judge) number(s *Schema, w *Values, v any, at string) findings {
	var f findings
	number, format := s.numberType(j.format(s))
	if j.asWritten && s.IntOrString {
		number, format = (&Schema{Type: s.Type}).numberType(j.format(s))
	}
	f.add(errorsIn(validate.IsValueValidAgainstRange(v, number, format, "Checked", at))...)
	float := asFloat(v)
	bound := func(bound *float64, name string, exact, loose func(float64) *openapierrors.Validation) {
		if bound == nil {
			return
		}
		if misfit := errorsIn(validate.IsValueValidAgainstRange(*bound, number, format, name, at)); misfit != nil {
			f.add(misfit...)
			f.check(loose(*bound))
			return
		}
		f.check(exact(*bound))
	}
	bound(w.MultipleOf, "MultipleOf",
		func(factor float64) *openapierrors.Validation {
			return validate.MultipleOfNativeType(at, in, v, factor)
		},
		func(factor float64) *openapierrors.Validation { return validate.MultipleOf(at, in, float, factor) })
	bound(w.Minimum, "Minimum boundary",
		func(limit float64) *openapierrors.Validation {
			return validate.MinimumNativeType(at, in, v, limit, w.ExclusiveMinimum)
		},
		func(limit float64) *openapierrors.Validation {
			return validate.Minimum(at, in, float, limit, w.ExclusiveMinimum)
		})
	bound(w.Maximum, "Maximum boundary",
		func(limit float64) *openapierrors.Validation {
			return validate.MaximumNativeType(at, in, v, limit, w.ExclusiveMaximum)
		},
		func(limit float64) *openapierrors.Validation {
			return validate.Maximum(at, in, float, limit, w.ExclusiveMaximum)
		})
	return f
}

func errorsIn(err error) []error {
	if err == nil {
		return nil
	}
	return []error{err}
}

func asFloat(v any) float64 {
	if v, ok := v.(int64); ok {
		return float64(v)
	}
	v2, _ := v.(float64)
	return v2
}
