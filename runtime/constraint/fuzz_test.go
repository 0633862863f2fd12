package constraint_test

import (
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"reflect"
	"strings"
	"testing"
	"time"

	"github.com/keelson-dev/keelson/runtime/constraint"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/intstr"
)

// FuzzOf makes struct types with valid and invalid tags, and objects of them. Nothing may panic, setting defaults twice must have
// the same result as setting them once, and an update without a change must be valid.
func FuzzOf(f *testing.F) {
	for seed := range uint64(60) {
		f.Add(seed, uint64(0))
	}
	f.Fuzz(func(t *testing.T, a, b uint64) {
		r := rand.New(rand.NewPCG(a, b))
		typ := randomStruct(r, 3)
		rules, err := constraint.Of(typ)
		if err != nil {
			return
		}
		for range 4 {
			obj, old := reflect.New(typ), reflect.New(typ)
			fill(r, obj.Elem(), 4)
			fill(r, old.Elem(), 4)
			rules.Validate(obj.Interface())
			rules.ValidateUpdate(obj.Interface(), old.Interface())
			if errs := rules.ValidateUpdate(obj.Interface(), obj.Interface()); len(errs) > 0 {
				t.Fatalf("%v: an update without a change: %v", typ, errs)
			}
			rules.SetDefaults(obj.Interface())
			once, err := json.Marshal(obj.Interface())
			rules.SetDefaults(obj.Interface())
			if twice, _ := json.Marshal(obj.Interface()); err == nil && string(once) != string(twice) {
				t.Fatalf("%v: defaults once:\n%s\ntwice:\n%s", typ, once, twice)
			}
		}
	})
}

// TestFuzzFindsGood checks that some of the types of FuzzOf are valid.
func TestFuzzFindsGood(t *testing.T) {
	good, ruled := 0, 0
	for seed := range uint64(400) {
		rules, err := constraint.Of(randomStruct(rand.New(rand.NewPCG(seed, 0)), 3))
		if err == nil {
			good++
		}
		if !rules.IsZero() {
			ruled++
		}
	}
	if good < 60 || ruled < 30 {
		t.Errorf("of 400 types %d are accepted, %d have rules", good, ruled)
	}
}

func pick[T any](r *rand.Rand, list ...T) T { return list[r.IntN(len(list))] }

func randomStruct(r *rand.Rand, depth int) reflect.Type {
	var fields []reflect.StructField
	for i := range 1 + r.IntN(4) {
		typ := randomType(r, depth)
		fields = append(fields, reflect.StructField{Name: fmt.Sprintf("F%d", i), Type: typ, Tag: randomTag(r, i, typ)})
	}
	return reflect.StructOf(fields)
}

func randomType(r *rand.Rand, depth int) reflect.Type {
	plain := []reflect.Type{
		typeOf[int](), typeOf[int8](), typeOf[uint16](), typeOf[int64](), typeOf[float32](), typeOf[float64](), typeOf[string](), typeOf[color](),
		typeOf[bool](), typeOf[[]byte](), typeOf[any](), typeOf[metav1.Time](), typeOf[resource.Quantity](), typeOf[intstr.IntOrString](),
		typeOf[tree](), typeOf[part](), typeOf[defaultedPart](), typeOf[time.Time](), typeOf[chan int](), typeOf[json.RawMessage](),
	}
	if depth == 0 {
		return pick(r, plain...)
	}
	switch r.IntN(7) {
	case 0:
		return reflect.PointerTo(randomType(r, depth-1))
	case 1:
		return reflect.SliceOf(randomType(r, depth-1))
	case 2:
		return reflect.MapOf(pick(r, typeOf[string](), typeOf[color](), typeOf[int]()), randomType(r, depth-1))
	case 3:
		return randomStruct(r, depth-1)
	case 4:
		return reflect.ArrayOf(r.IntN(3), randomType(r, depth-1))
	}
	return pick(r, plain...)
}

func randomTag(r *rand.Rand, i int, typ reflect.Type) reflect.StructTag {
	tags := []string{fmt.Sprintf("json:%q", pick(r, "", "-", ",inline", fmt.Sprint("f", i), fmt.Sprintf("f%d,omitempty", i), fmt.Sprintf("f%d,omitzero", i), ",string"))}
	good := map[reflect.Kind][]string{
		reflect.Int:     {`minimum:"1"`, `maximum:"9"`, `multipleOf:"2"`, `enum:"1,2"`, `default:"2"`, `format:"int32"`},
		reflect.Float64: {`minimum:"0.5"`, `multipleOf:"0.5"`, `default:"1.5"`}, reflect.Bool: {`default:"false"`},
		reflect.String: {`minLength:"1"`, `maxLength:"3"`, `pattern:"^a"`, `enum:"a,b"`, `format:"uuid"`, `default:"ab"`},
		reflect.Slice:  {`minItems:"1"`, `maxItems:"2"`, `uniqueItems:"true"`, `listType:"set"`, `listType:"map" listMapKey:"name"`, `default:"[]"`, `items:"maxLength:\"2\""`, `items:"minimum:\"2\" enum:\"2,4\""`, `items:"maxItems:\"1\""`},
		reflect.Map:    {`minProperties:"1"`, `maxProperties:"1"`, `additionalProperties:"minLength:\"1\""`, `default:"{}"`}, reflect.Struct: {`default:"{}"`, `immutable:"true"`},
		reflect.Pointer: {`required:"true"`, `immutable:"true"`, `default:"{}"`, `default:"1"`},
	}
	for range r.IntN(3) {
		if own := good[typ.Kind()]; len(own) > 0 {
			tags = append(tags, pick(r, own...))
		}
	}
	if r.IntN(4) == 0 {
		tags = append(tags, pick(r, `immutable:"true"`, `required:"true"`, `default:"{"`, `minimum:"x"`, `pattern:"("`, `enum:",,"`, `maximum`, `default:`, "listType:\"set\"", `format:"\x00"`))
	}
	return reflect.StructTag(strings.Join(tags, pick(r, " ", "  ")))
}

// fill sets a value of any type to a random value.
func fill(r *rand.Rand, v reflect.Value, depth int) {
	if !v.CanSet() || depth == 0 || r.IntN(5) == 0 {
		return
	}
	switch v.Kind() {
	case reflect.Pointer:
		v.Set(reflect.New(v.Type().Elem()))
		fill(r, v.Elem(), depth-1)
	case reflect.Struct:
		for i := range v.NumField() {
			fill(r, v.Field(i), depth-1)
		}
	case reflect.Slice:
		v.Set(reflect.MakeSlice(v.Type(), r.IntN(4), 4))
		fallthrough
	case reflect.Array:
		for i := range v.Len() {
			fill(r, v.Index(i), depth-1)
		}
	case reflect.Map:
		v.Set(reflect.MakeMap(v.Type()))
		for range r.IntN(3) {
			key, e := reflect.New(v.Type().Key()).Elem(), reflect.New(v.Type().Elem()).Elem()
			fill(r, key, 1)
			fill(r, e, depth-1)
			v.SetMapIndex(key, e)
		}
	case reflect.Interface:
		v.Set(reflect.ValueOf(pick[any](r, 1, "a", []any{1}, map[string]any{"a": nil})))
	case reflect.String:
		v.SetString(pick(r, "", "a", "ab", "abcd"))
	case reflect.Bool:
		v.SetBool(true)
	case reflect.Float32, reflect.Float64:
		v.SetFloat(pick(r, 0, 0.5, 1.25, 1e30))
	default:
		switch {
		case v.CanInt():
			v.SetInt(r.Int64N(12) - 1)
		case v.CanUint():
			v.SetUint(r.Uint64N(12))
		}
	}
}
