package roundtrip

import (
	"encoding/json"
	"fmt"
	"math/rand"
	"reflect"
	"time"

	"github.com/keelson-dev/keelson/runtime"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	apiruntime "k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/intstr"
	"sigs.k8s.io/randfill"
)

// random returns the object of a kind for a seed.
func (c *checker) random(k *runtime.Kind, seed int64) (runtime.Object, error) {
	return c.fill(k, randfill.New().RandSource(rand.NewSource(seed)))
}

// fuzzed returns the object of a kind for data from a fuzzer.
func (c *checker) fuzzed(k *runtime.Kind, data []byte) (runtime.Object, error) {
	return c.fill(k, randfill.NewFromGoFuzz(data))
}

// obedience is the type of a fill function that makes an object obey the rules of its type: only fill functions get a Continue.
type obedience struct{}

func (c *checker) fill(k *runtime.Kind, f *randfill.Filler) (obj runtime.Object, err error) {
	defer func() {
		if r := recover(); r != nil {
			err = fmt.Errorf("no %s %s can be made: %v; say in Options.Fill how values of that type are made", k.GVK.GroupVersion(), k.GVK.Kind, r)
		}
	}()
	obj = k.New()
	f.NilChance(0.3).NumElements(0, 3).MaxDepth(12).Funcs(fillFuncs()...).Funcs(c.opts.Fill...).Fill(obj)
	dropNulls(reflect.ValueOf(obj))
	if k.Constraints != nil {
		f.Funcs(func(_ *obedience, more randfill.Continue) {
			(&fitter{c.rules, more}).members(reflect.ValueOf(obj).Elem())
		}).Fill(&obedience{})
	}
	obj.GetObjectKind().SetGroupVersionKind(k.GVK)
	return obj, nil
}

// fillFuncs returns the fill functions of types for which JSON does not preserve every value.
func fillFuncs() []any {
	return []any{
		func(*metav1.TypeMeta, randfill.Continue) {},
		func(m *metav1.ObjectMeta, c randfill.Continue) {
			m.Name, m.Namespace, m.UID = c.String(8), c.String(8), types.UID(c.String(8))
			m.GenerateName, m.Generation = c.String(8), c.Int63()
			c.Fill(&m.CreationTimestamp)
			c.Fill(&m.DeletionTimestamp)
			c.Fill(&m.Labels)
			c.Fill(&m.Annotations)
			c.Fill(&m.Finalizers)
			c.Fill(&m.OwnerReferences)
			c.Fill(&m.ManagedFields)
		},
		func(t *metav1.Time, c randfill.Continue) {
			if *t = metav1.Unix(c.Int63n(1<<33), 0); c.Intn(4) == 0 {
				*t = metav1.Time{}
			}
		},
		func(t *metav1.MicroTime, c randfill.Continue) {
			if *t = metav1.NewMicroTime(time.Unix(c.Int63n(1<<33), 1000*c.Int63n(1e6))); c.Intn(4) == 0 {
				*t = metav1.MicroTime{}
			}
		},
		func(d *metav1.Duration, c randfill.Continue) { d.Duration = time.Duration(c.Int63()) },
		func(q *resource.Quantity, c randfill.Continue) {
			*q = *resource.NewMilliQuantity(c.Int63n(1e12), resource.DecimalSI)
		},
		func(i *intstr.IntOrString, c randfill.Continue) {
			if *i = intstr.FromInt32(c.Int31()); c.Bool() {
				*i = intstr.FromString(c.String(8))
			}
		},
		func(f *metav1.FieldsV1, c randfill.Continue) { f.SetRawBytes(freeJSON(c)) },
		func(e *apiruntime.RawExtension, c randfill.Continue) { e.Raw = freeJSON(c) },
		func(m *json.RawMessage, c randfill.Continue) { *m = freeJSON(c) },
		func(v *any, c randfill.Continue) {
			*v = []any{nil, c.Bool(), c.String(8), c.Int63(), map[string]any{c.String(4): c.String(4)}, []any{c.Int63()}}[c.Intn(6)]
		},
		func(o *apiruntime.Object, _ randfill.Continue) { *o = nil },
	}
}

// dropNulls sets pointers to a zero time to nil: both are null in JSON, which is decoded as nil.
func dropNulls(v reflect.Value) {
	switch v.Kind() {
	case reflect.Pointer:
		switch t := v.Interface().(type) {
		case *metav1.Time:
			if t != nil && t.IsZero() && v.CanSet() {
				v.SetZero()
			}
		case *metav1.MicroTime:
			if t != nil && t.IsZero() && v.CanSet() {
				v.SetZero()
			}
		default:
			if !v.IsNil() {
				dropNulls(v.Elem())
			}
		}
	case reflect.Struct:
		for i := range v.NumField() {
			if f := v.Field(i); f.CanInterface() {
				dropNulls(f)
			}
		}
	case reflect.Slice, reflect.Array:
		for i := range v.Len() {
			dropNulls(v.Index(i))
		}
	case reflect.Map:
		for _, key := range v.MapKeys() {
			item := reflect.New(v.Type().Elem()).Elem()
			item.Set(v.MapIndex(key))
			dropNulls(item)
			v.SetMapIndex(key, item)
		}
	}
}

// freeJSON returns a JSON object with arbitrary content.
func freeJSON(c randfill.Continue) []byte {
	text, _ := json.Marshal(map[string]any{c.String(4): c.String(4), "n": c.Int31(), "list": []any{c.Bool(), nil}}) // cannot fail
	return text
}
