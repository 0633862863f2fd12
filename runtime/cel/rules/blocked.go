package rules

import (
	"slices"

	"k8s.io/apimachinery/pkg/util/validation/field"
)

// Blocked returns the error that replaces the evaluation of all rules if the object has other errors that make rules meaningless:
// a value of a wrong type, a value that is too large or not in an enum, or a missing value. It returns nil if the rules are to be
// evaluated. errs are all errors of the object that were found before.
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
