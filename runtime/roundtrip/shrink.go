package roundtrip

import (
	"cmp"
	"encoding/json"
	"fmt"
	"reflect"
	"slices"

	"github.com/keelson-dev/keelson/runtime"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// smallest checks obj, and returns the problem of the smallest object with the same problem that it finds. If
// obj obeys the rules of its type, so does that object.
func (c *checker) smallest(k *runtime.Kind, obj runtime.Object) error {
	first := c.check(k, obj)
	if first == nil {
		return nil
	}
	found := first
	valid := len(k.Constraints.Validate(obj)) == 0
	s := shrinker{tries: 2000, still: func() bool {
		if valid && len(k.Constraints.Validate(obj)) > 0 {
			return false // the same text may be about what is not valid
		}
		p := c.check(k, obj)
		if p == nil || p.what != first.what {
			return false
		}
		found = p
		return true
	}}
	s.shrink(reflect.ValueOf(obj))
	text, err := json.Marshal(obj)
	if err != nil {
		text = fmt.Appendf(nil, "%+v", obj)
	}
	return fmt.Errorf("%w\n\nThe object is %s", found, text)
}

// shrinker simplifies a value as long as it still has the problem.
type shrinker struct {
	tries int // the number of attempts that are left
	still func() bool
}

// try sets v to a simpler value, and sets it back if the problem disappears.
func (s *shrinker) try(v, simpler reflect.Value) bool {
	if s.tries == 0 {
		return false
	}
	s.tries--
	was := reflect.New(v.Type()).Elem()
	was.Set(v)
	v.Set(simpler)
	if s.still() {
		return true
	}
	v.Set(was)
	return false
}

func (s *shrinker) shrink(v reflect.Value) {
	if v.CanSet() && v.Type() != reflect.TypeFor[metav1.TypeMeta]() {
		if v.IsZero() || s.try(v, reflect.Zero(v.Type())) {
			return
		}
	}
	switch v.Kind() {
	case reflect.Pointer, reflect.Interface:
		if !v.IsNil() {
			s.shrink(v.Elem())
		}
	case reflect.Struct:
		for i := range v.NumField() {
			if f := v.Field(i); f.CanSet() && f.Type() != reflect.TypeFor[metav1.TypeMeta]() {
				s.shrink(f)
			}
		}
	case reflect.Slice:
		s.shrinkSlice(v)
	case reflect.Map:
		s.shrinkMap(v)
	case reflect.String:
		for text := v.String(); len(text) > 1 && v.CanSet(); text = v.String() {
			half := []rune(text)[:len([]rune(text))/2]
			if !s.try(v, reflect.ValueOf(string(half)).Convert(v.Type())) {
				return
			}
		}
	case reflect.Int, reflect.Int8, reflect.Int16, reflect.Int32, reflect.Int64:
		if v.CanSet() {
			s.try(v, reflect.ValueOf(1).Convert(v.Type()))
		}
	}
}

func (s *shrinker) shrinkSlice(v reflect.Value) {
	for i := v.Len() - 1; i >= 0 && v.CanSet(); i-- {
		shorter := reflect.MakeSlice(v.Type(), 0, v.Len())
		shorter = reflect.AppendSlice(shorter, v.Slice(0, i))
		s.try(v, reflect.AppendSlice(shorter, v.Slice(i+1, v.Len())))
	}
	for i := range v.Len() {
		s.shrink(v.Index(i))
	}
}

// shrinkMap removes keys in sorted order, so that the result is always the same object.
func (s *shrinker) shrinkMap(v reflect.Value) {
	keys := v.MapKeys()
	slices.SortFunc(keys, func(a, b reflect.Value) int { return cmp.Compare(fmt.Sprint(a), fmt.Sprint(b)) })
	for _, key := range keys {
		if !v.CanSet() {
			return
		}
		smaller := reflect.MakeMap(v.Type())
		for _, other := range v.MapKeys() {
			if other.Interface() != key.Interface() {
				smaller.SetMapIndex(other, v.MapIndex(other))
			}
		}
		s.try(v, smaller)
	}
}
