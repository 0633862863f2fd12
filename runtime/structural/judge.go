package structural

import (
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"

	"github.com/keelson-dev/keelson/runtime/structural/internal/formats"
	"github.com/keelson-dev/keelson/runtime/structural/internal/jsonvalue"
	"github.com/keelson-dev/keelson/runtime/structural/internal/word"
	"k8s.io/apimachinery/pkg/util/validation/field"
	openapierrors "k8s.io/kube-openapi/pkg/validation/errors"
	"k8s.io/kube-openapi/pkg/validation/validate"
)

// Validate returns the errors of a value, nil if it is valid. path is the path of the value, nil for a whole object.
//
// The errors have the types and words of kube-apiserver, as kube-openapi's validation makes them. Each text is returned once. If
// all branches of an anyOf or oneOf fail, the errors are those of the branch in which most steps of the validation succeed
// (kube-openapi counts them). Some behavior is odd but kept, because clients see it:
//
//   - a number that does not fit the format of its type, and failures of anyOf, oneOf, allOf and not, are errors of path; the
//     text has the path of the value
//   - a list is valid as a string that has a format
//   - the value of an enum is converted to the type of each alternative before the comparison, so 65 equals "A"
//   - members of additionalProperties at the root of the value are named ".name" in the text
//
// There are differences from kube-apiserver. Errors that are in the random order of Go maps there are sorted by name here. Of
// several errors in embedded metadata kube-apiserver returns any one; here it is the first by its path. At most a thousand
// errors, or about a megabyte of them, are returned for one value. Paths longer than 8 KiB, in errors and of unknown fields, end
// with dots. If an error shows a whole schema, it shows the schema as written. Zero times in metadata are dropped at once, not
// written as null first. Unknown metadata is reported once if the root is an embedded resource too.
func (s *Schema) Validate(path *field.Path, value any) field.ErrorList {
	return s.errors(path, value, judge{}, former{})
}

// ValidateUpdate is like Validate, for a value that was old before the update. old is nil if the value did not exist. The errors
// of values that the update does not change are left out (KEP-4008), because a schema may become stricter while objects are
// stored.
//
// Values correspond to old values through properties and additionalProperties, and through lists of type map by their keys.
// Elements of other lists do not correspond, so such a list is compared as a whole. An object with members that the schema does
// not describe always counts as changed. Values inside allOf, anyOf, oneOf and not have no old values of their own, and neither
// have apiVersion and kind at the root.
func (s *Schema) ValidateUpdate(path *field.Path, value, old any) field.ErrorList {
	return s.errors(path, value, judge{comparison: comparison{}}, former{old, true})
}

// errors returns the errors of a value. It first calls allows, which is fast, because most values are valid.
func (s *Schema) errors(path *field.Path, value any, j judge, was former) field.ErrorList {
	effort := NewEffort()
	if s.allows(value, effort) && !effort.spent() {
		return nil
	}
	var found findings
	if !effort.spent() {
		j.effort = NewEffort()
		found = j.value(s, value, "", was)
		effort = j.effort
	}
	switch {
	case !effort.spent():
		return jsonvalue.FieldErrors(path, found.errs)
	case was.known && jsonvalue.Unchanged(value, was.value): // so that a finalizer can be removed
		return nil
	}
	return tooMuch(path)
}

// judge finds the errors of a value. It follows the steps of kube-openapi's validation one by one, because the errors of anyOf
// and oneOf are those of the branch that passes most steps.
type judge struct {
	// asWritten is set for defaults: unknown formats, and the type of an int-or-string, are checked as they are written, and
	// additionalProperties have no effect if nested is set, that is inside allOf, anyOf, oneOf and not.
	asWritten bool
	nested    bool

	comparison comparison // remembers comparisons in an update
	effort     *Effort    // if it is spent, the findings are incomplete and may be wrong
}

// findings are the errors of a value, and the number of steps.
type findings struct {
	errs  []error
	steps int
}

func (f *findings) add(errs ...error) {
	for _, err := range errs {
		if len(f.errs) < jsonvalue.MaxErrors {
			f.errs = append(f.errs, err)
		}
	}
}

// full reports whether no more errors are kept. It is never true inside a branch, because all steps there count.
func (f *findings) full(j judge) bool { return !j.nested && len(f.errs) >= jsonvalue.MaxErrors }

// merge adds the findings of another value.
func (f *findings) merge(other findings) {
	f.add(other.errs...)
	f.steps += other.steps
}

// check adds an error if it is not nil. It has the result type of kube-openapi's functions.
func (f *findings) check(err *openapierrors.Validation) {
	if err != nil {
		f.add(err)
	}
}

// in is the location that kube-openapi's errors name.
const in = "body"

// types returns the types that j enforces.
func (j judge) types(s *Schema) []string {
	if j.asWritten && s.Type == "" {
		return nil
	} else if j.asWritten {
		return []string{s.Type}
	}
	return s.types()
}

// format returns the format that j enforces.
func (j judge) format(s *Schema) string {
	switch {
	case s.Values == nil:
		return ""
	case j.asWritten:
		return s.Values.Format
	}
	return s.Values.format
}

// value returns the errors of a value. at is the path of the value in the notation of kube-openapi: "" for the root,
// "spec.parts[0]" below. was is the old value.
func (j judge) value(s *Schema, v any, at string, was former) findings {
	var f findings
	if s == nil || !j.effort.spend(judgeEffort) {
		return f
	}
	if v == nil {
		f = j.null(s, at)
	} else {
		f = j.present(s, v, at, was)
	}
	if len(f.errs) > 0 && was.known && j.comparison.same(s, v, was.value) {
		f.errs = nil
	}
	return f
}

func (j judge) null(s *Schema, at string) findings {
	var f findings
	if types := j.types(s); len(types) > 0 && !s.Nullable && !slices.Contains(types, word.Null) {
		f.check(openapierrors.InvalidType(at, in, strings.Join(types, ","), word.Null))
	} else {
		f.steps++
	}
	if s.Values != nil && len(s.Values.Enum) > 0 {
		j.enumError(&f, s.Values, nil, at)
	}
	return f
}

func (j judge) present(s *Schema, v any, at string, was former) findings {
	w := s.Values
	if w == nil {
		w = &Values{}
	}
	f := findings{steps: 1}
	if len(j.types(s)) > 0 || j.format(s) != "" {
		f.steps++
		if err := j.typeOf(s, v, at); err != nil {
			f.add(err)
		} else {
			f.steps++
		}
	}
	f.steps++
	f.merge(j.branches(w, v, at))
	switch v := v.(type) {
	case string:
		f.steps++
		if !j.effort.spend(w.textEffort(v)) {
			return f
		}
		f.check(w.textError(v, at))
		if format := j.format(s); formats.IsText(format) {
			f.steps++
			if hasFormat := new(formats.Checks).Check(format); hasFormat != nil && !hasFormat(v) {
				f.check(openapierrors.InvalidType(at, in, format, v))
			}
		}
	case int64, float64:
		f.steps += 2
		f.merge(j.number(s, w, v, at))
	case []any:
		f.steps += 2
		f.merge(j.list(s, w, v, at, was))
	}
	f.steps++
	if len(w.Enum) > 0 && !w.enumerates(v, j.effort) {
		j.enumError(&f, w, v, at)
	}
	if v, ok := v.(map[string]any); ok {
		f.steps++
		f.merge(j.object(s, w, v, at, was))
	}
	return f
}

// enumError adds the error of a value that is not in an enum. The error lists the whole enum.
func (j judge) enumError(f *findings, w *Values, v any, at string) {
	if j.effort.tell(w.enumBytes) {
		f.check(openapierrors.EnumFail(at, in, v, w.Enum))
	} else {
		f.add(jsonvalue.ErrNotReported)
	}
}

// typeOf checks the type of a value that is not null.
func (j judge) typeOf(s *Schema, v any, at string) error {
	types, format := j.types(s), j.format(s)
	actual, actualFormat := jsonvalue.TypeOf(v)
	number, hasInteger := slices.Contains(types, word.Number), slices.Contains(types, word.Integer)
	fits := slices.Contains(types, actual) || actual == word.Integer && number
	if v, ok := v.(float64); ok && hasInteger && jsonvalue.IsAlmostWhole(v) {
		fits = true
	}
	textual := actual == word.String || actual == word.Array
	switch {
	case !textual && format != "" && !fits && actualFormat != format:
		return openapierrors.InvalidType(at, in, format, actualFormat)
	case !number && !hasInteger && format != "" && textual, fits:
		return nil
	}
	return openapierrors.InvalidType(at, in, strings.Join(types, ","), actual)
}

// textError returns the first error of a string.
func (w *Values) textError(v, at string) *openapierrors.Validation {
	if w.MaxLength != nil {
		if err := validate.MaxLength(at, in, v, *w.MaxLength); err != nil {
			return err
		}
	}
	if w.MinLength != nil {
		if err := validate.MinLength(at, in, v, *w.MinLength); err != nil {
			return err
		}
	}
	if w.pattern == nil {
		return nil
	}
	re, err := w.pattern.Compiled()
	switch {
	case err != nil:
		return openapierrors.FailedPattern(at, in, fmt.Sprintf("%s, but pattern is invalid: %s", w.Pattern, err), v)
	case !re.MatchString(v):
		return openapierrors.FailedPattern(at, in, w.Pattern, v)
	}
	return nil
}

func (j judge) list(s *Schema, w *Values, v []any, at string, was former) findings {
	var f findings
	if s.Items != nil {
		before := was.elements(s)
		for i, item := range v {
			if f.full(j) {
				break
			}
			f.merge(j.value(s.Items, item, jsonvalue.Below(at, "["+strconv.Itoa(i)+"]"), before(item)))
		}
	}
	if w.MinItems != nil {
		f.check(validate.MinItems(at, in, int64(len(v)), *w.MinItems))
	}
	if w.MaxItems != nil {
		f.check(validate.MaxItems(at, in, int64(len(v)), *w.MaxItems))
	}
	if w.UniqueItems && j.effort.spend(int64(len(v)*len(v))) {
		f.check(validate.UniqueItems(at, in, v))
	}
	return f
}

func (j judge) object(s *Schema, w *Values, v map[string]any, at string, was former) findings {
	var f findings
	if n := int64(len(v)); w.MinProperties != nil && n < *w.MinProperties {
		f.check(openapierrors.TooFewProperties(at, in, *w.MinProperties, n))
	}
	if n := int64(len(v)); w.MaxProperties != nil && n > *w.MaxProperties {
		f.check(openapierrors.TooManyProperties(at, in, *w.MaxProperties, n))
	}
	names, others := slices.Sorted(maps.Keys(v)), s.Others
	if j.asWritten && j.nested {
		others = OthersUnspecified
	}
	for _, name := range names {
		if _, ok := s.Properties[name]; ok {
			continue
		}
		if f.full(j) {
			return f
		}
		switch others {
		case OthersForbidden:
			f.check(openapierrors.PropertyNotAllowed(at, in, name))
		case OthersDescribed:
			f.merge(j.value(s.Additional, v[name], jsonvalue.Below(at, "."+name), was.member(name, at)))
		}
	}
	for _, name := range names {
		property, ok := s.Properties[name]
		if !ok {
			continue
		}
		if f.full(j) {
			return f
		}
		inside := name
		if at != "" {
			inside = jsonvalue.Below(at, "."+name)
		}
		f.merge(j.value(property, v[name], inside, was.member(name, at)))
	}
	for _, name := range w.Required {
		if _, ok := v[name]; !ok && j.effort.spend(judgeEffort) {
			f.check(openapierrors.Required(jsonvalue.Below(at, "."+name), in))
		}
	}
	return f
}

// branches checks allOf, anyOf, oneOf and not. The values inside them have no old values.
func (j judge) branches(w *Values, v any, at string) findings {
	f := findings{steps: 1}
	j.nested = true
	j.anyOf(&f, w, v, at)
	j.oneOf(&f, w, v, at)
	if valid := 0; len(w.AllOf) > 0 {
		for _, branch := range w.AllOf {
			found := j.value(branch, v, at, former{})
			if len(found.errs) == 0 {
				valid++
			}
			f.merge(found)
		}
		switch valid {
		case len(w.AllOf):
		case 0:
			f.add(composite(validate.MustValidateAllSchemasError, at, ". None validated"))
		default:
			f.add(composite(validate.MustValidateAllSchemasError, at, ""))
		}
	}
	if w.Not != nil && len(j.value(w.Not, v, at, former{}).errs) == 0 {
		f.add(composite(validate.MustNotValidateSchemaError, at))
	}
	return f
}

func (j judge) anyOf(f *findings, w *Values, v any, at string) {
	var best *findings
	for _, branch := range w.AnyOf {
		found := j.value(branch, v, at, former{})
		if len(found.errs) == 0 {
			f.merge(found)
			return
		}
		if best == nil || found.steps > best.steps {
			best = &found
		}
	}
	if best != nil {
		f.add(composite(validate.MustValidateAtLeastOneSchemaError, at))
		f.merge(*best)
	}
}

func (j judge) oneOf(f *findings, w *Values, v any, at string) {
	if len(w.OneOf) == 0 {
		return
	}
	var best, first *findings
	valid := 0
	for _, branch := range w.OneOf {
		found := j.value(branch, v, at, former{})
		switch {
		case len(found.errs) == 0:
			valid++
			if first == nil {
				first = &found
			}
		case best == nil || found.steps > best.steps:
			best = &found
		}
	}
	switch valid {
	case 0:
		f.add(composite(validate.MustValidateOnlyOneSchemaError, at, "Found none valid"))
		f.merge(*best)
	case 1:
		f.merge(*first)
	default:
		f.add(composite(validate.MustValidateOnlyOneSchemaError, at, fmt.Sprintf("Found %d valid alternatives", valid)))
	}
}

func composite(format string, args ...any) error {
	return openapierrors.New(openapierrors.CompositeErrorCode, format, args...)
}

// number checks an int64 or float64. A bound that does not fit the type is an error too, and is then compared as a float.
func (j judge) number(s *Schema, w *Values, v any, at string) findings {
	var f findings
	number, format := s.numberType(j.format(s))
	if j.asWritten && s.IntOrString {
		number, format = (&Schema{Type: s.Type}).numberType(j.format(s))
	}
	f.add(errorsIn(validate.IsValueValidAgainstRange(v, number, format, "Checked", at))...)
	float := jsonvalue.Float(v)
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
