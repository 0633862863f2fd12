package rules

import (
	"slices"

	"k8s.io/apimachinery/pkg/util/validation/field"
)

// Blocked returns the error that stands for all rules where an object has other errors that make rules meaningless: it has
// values of a wrong type, too large ones or ones that are not in an enum, or misses some. It is nil if the rules are to be
// evaluated. errs are all that is known of the object before.
func Blocked(errs field.ErrorList) *field.Error {
	blocking := slices.ContainsFunc(errs, func(err *field.Error) bool {
		switch err.Type {
		case field.ErrorTypeNotSupported, field.ErrorTypeRequired, field.ErrorTypeTooLong, field.ErrorTypeTooMany, field.ErrorTypeTypeInvalid:
			return true
		}
		return false
	})
	if !blocking {
		return nil
	}
	return field.Invalid(nil, nil, "some validation rules were not checked because the object was invalid; correct the existing errors to complete validation")
}
