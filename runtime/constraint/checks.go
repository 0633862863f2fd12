package constraint

import (
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"reflect"
	"regexp"
	"strconv"
	"unicode/utf8"

	"k8s.io/apimachinery/pkg/util/validation/field"
)

// compile makes the checks of a rule after all its tags were read.
func (r *tagReader) compile() error {
	out := r.rule
	switch zero := reflect.Zero(r.typ); {
	case r.class == float && r.typ.Kind() == reflect.Float32:
		compileNumber(out, r.numberOf, func(v reflect.Value) float32 { return float32(v.Float()) })
	case r.class == float:
		compileNumber(out, r.numberOf, reflect.Value.Float)
	case r.class == integer && zero.CanInt():
		compileNumber(out, r.numberOf, reflect.Value.Int)
	case r.class == integer:
		compileNumber(out, r.numberOf, reflect.Value.Uint)
	case r.class == text:
		out.compileText()
	case r.class == list:
		out.compileList()
	case r.class == mapping:
		out.compileMap()
	}
	if f, ok := formatCheck(out.Format, r.class); ok && f != nil {
		out.checks = append(out.checks, f)
	}
	return r.crossCheck()
}

// crossCheck returns an error for bounds that allow no value, and for an enumeration with values that break the other rules.
func (r *tagReader) crossCheck() error {
	for _, v := range r.rule.Enum {
		value := reflect.ValueOf(v).Convert(r.typ)
		for _, check := range r.rule.checks {
			if complain := check(value); complain != nil {
				return fmt.Errorf("tag enum: the field's other tags do not allow %v: %w", v, complain(field.NewPath("it")).ToAggregate())
			}
		}
	}
	low, high := r.rule.Minimum, r.rule.Maximum
	if low == "" || high == "" {
		return nil
	}
	a, errA := strconv.ParseFloat(string(low), 64)
	b, errB := strconv.ParseFloat(string(high), 64)
	if errA == nil && errB == nil && (a > b || a == b && (r.rule.ExclusiveMinimum || r.rule.ExclusiveMaximum)) {
		return errors.New("tags minimum and maximum: no number is both; make minimum the smaller one")
	}
	return nil
}

// numberOf returns the number in a tag as errors show it: int64, uint64, float32 or float64.
func (r *tagReader) numberOf(n json.Number) any {
	zero := reflect.Zero(r.typ)
	switch {
	case zero.CanInt():
		v, _ := strconv.ParseInt(string(n), 10, 64) // the function number made n from a value that fits
		return v
	case zero.CanUint():
		v, _ := strconv.ParseUint(string(n), 10, 64)
		return v
	case r.typ.Kind() == reflect.Float32:
		v, _ := strconv.ParseFloat(string(n), 32)
		return float32(v)
	}
	v, _ := strconv.ParseFloat(string(n), 64)
	return v
}

func compileNumber[N int64 | uint64 | float32 | float64](r *rule, parse func(json.Number) any, get func(reflect.Value) N) {
	if r.Minimum != "" {
		low, exclusive := parse(r.Minimum).(N), r.ExclusiveMinimum
		r.add(func(v reflect.Value) complaint {
			switch n := get(v); {
			case exclusive && n <= low:
				return invalid(n, "minimum", fmt.Sprintf("be greater than %v", low))
			case n < low:
				return invalid(n, "minimum", fmt.Sprintf("be greater than or equal to %v", low))
			}
			return nil
		})
	}
	if r.Maximum != "" {
		high, exclusive := parse(r.Maximum).(N), r.ExclusiveMaximum
		r.add(func(v reflect.Value) complaint {
			switch n := get(v); {
			case exclusive && n >= high:
				return invalid(n, "maximum", fmt.Sprintf("be less than %v", high))
			case n > high:
				return invalid(n, "maximum", fmt.Sprintf("be less than or equal to %v", high))
			}
			return nil
		})
	}
	if r.MultipleOf != "" {
		unit := parse(r.MultipleOf).(N)
		r.add(func(v reflect.Value) complaint {
			if n := get(v); !isMultiple(n, unit) {
				return invalid(n, "multipleOf", fmt.Sprintf("be a multiple of %v", unit))
			}
			return nil
		})
	}
	if r.Enum != nil {
		allowed := make([]N, len(r.Enum))
		names := make([]string, len(r.Enum))
		for i, v := range r.Enum {
			allowed[i], names[i] = v.(N), fmt.Sprint(v)
		}
		r.add(enumCheck(allowed, names, get))
	}
}

// isMultiple reports whether n is a multiple of unit. For fractions it allows for rounding errors.
func isMultiple[N int64 | uint64 | float32 | float64](n, unit N) bool {
	switch n := any(n).(type) {
	case int64:
		return n%any(unit).(int64) == 0
	case uint64:
		return n%any(unit).(uint64) == 0
	}
	quotient, tolerance := float64(n)/float64(unit), 1e-9
	if _, single := any(n).(float32); single {
		tolerance = 1e-6
	}
	return math.Abs(quotient-math.Round(quotient)) <= tolerance*max(1, math.Abs(quotient))
}

func enumCheck[V cmp.Ordered](allowed []V, names []string, get func(reflect.Value) V) check {
	return func(v reflect.Value) complaint {
		got := get(v)
		for _, one := range allowed {
			if got == one {
				return nil
			}
		}
		return one(func(at *field.Path) *field.Error { return field.NotSupported(at, got, names) }, "enum")
	}
}

func (r *rule) add(c check) { r.checks = append(r.checks, c) }

// compileText makes one check for length and pattern: as in Kubernetes, a text that is too long gets no second error for the
// pattern.
func (r *rule) compileText() {
	var steps []check
	if r.MaxLength != nil {
		high := *r.MaxLength
		steps = append(steps, func(v reflect.Value) complaint {
			if s := v.String(); int64(len(s)) > high && int64(utf8.RuneCountInString(s)) > high {
				return one(func(at *field.Path) *field.Error { return field.TooLong(at, "", int(high)) }, "maxLength")
			}
			return nil
		})
	}
	if r.MinLength != nil {
		low := *r.MinLength
		steps = append(steps, func(v reflect.Value) complaint {
			if s := v.String(); int64(len(s)) < low || int64(utf8.RuneCountInString(s)) < low {
				return invalid(s, "minLength", fmt.Sprintf("be at least %d chars long", low))
			}
			return nil
		})
	}
	if r.Pattern != "" {
		source, pattern := r.Pattern, regexp.MustCompile(r.Pattern) // it was compiled before
		steps = append(steps, func(v reflect.Value) complaint {
			if s := v.String(); !pattern.MatchString(s) {
				return invalid(s, "pattern", fmt.Sprintf("match '%s'", source))
			}
			return nil
		})
	}
	if steps != nil {
		r.add(func(v reflect.Value) complaint {
			for _, step := range steps {
				if complain := step(v); complain != nil {
					return complain
				}
			}
			return nil
		})
	}
	if r.Enum != nil {
		names := make([]string, len(r.Enum))
		for i, v := range r.Enum {
			names[i] = v.(string)
		}
		r.add(enumCheck(names, names, reflect.Value.String))
	}
}

func (r *rule) compileList() {
	if r.MinItems != nil {
		low := int(*r.MinItems)
		r.add(func(v reflect.Value) complaint {
			if n := v.Len(); n < low {
				return invalid(int64(n), "minItems", fmt.Sprintf("have at least %d items", low))
			}
			return nil
		})
	}
	if r.MaxItems != nil {
		r.add(atMost(int(*r.MaxItems), "maxItems"))
	}
	if r.UniqueItems {
		r.add((&match{set: true}).unique())
	}
}

func (r *rule) compileMap() {
	if r.MinProperties != nil {
		low := int(*r.MinProperties)
		r.add(func(v reflect.Value) complaint {
			if n := v.Len(); n < low {
				return invalid(int64(n), "minProperties", fmt.Sprintf("have at least %d properties", low))
			}
			return nil
		})
	}
	if r.MaxProperties != nil {
		r.add(atMost(int(*r.MaxProperties), "maxProperties"))
	}
}

func atMost(high int, origin string) check {
	return func(v reflect.Value) complaint {
		if n := v.Len(); n > high {
			return one(func(at *field.Path) *field.Error { return field.TooMany(at, n, high) }, origin)
		}
		return nil
	}
}
