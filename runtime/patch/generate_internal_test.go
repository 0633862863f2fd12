package patch

import (
	"fmt"
	"math/rand/v2"
	"reflect"
	"testing"
	"time"

	"github.com/keelson-dev/keelson/runtime"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	networkingv1 "k8s.io/api/networking/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	apiruntime "k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/intstr"
	"sigs.k8s.io/randfill"
)

// The kinds for the tests of trackers. A gadget is the widget of the benchmark, and a ship has every form of field.
type (
	gadgetSpec struct {
		Size     int32  `json:"size,omitempty" minimum:"0" maximum:"1000000"`
		Color    string `json:"color,omitempty" maxLength:"32"`
		Data     string `json:"data,omitempty"`
		Replicas int32  `json:"replicas,omitempty"`
	}
	gadgetStatus struct {
		Ready    bool   `json:"ready,omitempty"`
		Replicas int32  `json:"replicas,omitempty"`
		Selector string `json:"selector,omitempty"`
	}
	gadget = runtime.Resource[gadgetSpec, gadgetStatus]

	shipSpec struct {
		Name     string            `json:"name"`
		Size     *int64            `json:"size"`
		Load     uint64            `json:"load,omitempty"`
		Depth    float64           `json:"depth,omitempty"`
		Crew     []sailor          `json:"crew,omitempty" listType:"map" listMapKey:"id"`
		Posts    []post            `json:"posts" listType:"map" listMapKey:"deck,side"`
		Flags    []string          `json:"flags,omitempty" listType:"set"`
		Numbers  []int32           `json:"numbers" listType:"set"`
		Stops    []string          `json:"stops"`
		Notes    map[string]string `json:"notes"`
		Marks    map[string]*mark  `json:"marks,omitempty"`
		Paint    map[string]string `json:"paint,omitempty" mapType:"atomic"`
		Origin   *mark             `json:"origin,omitempty" structType:"atomic"`
		Key      []byte            `json:"key"`
		Built    metav1.Time       `json:"built,omitempty"`
		Seen     *metav1.MicroTime `json:"seen"`
		Port     intstr.IntOrString
		Ports    []intstr.IntOrString          `json:"ports,omitempty"`
		Limit    resource.Quantity             `json:"limit"`
		Limits   map[string]*resource.Quantity `json:"limits,omitempty"`
		Wait     metav1.Duration               `json:"wait,omitzero"`
		Quoted   int64                         `json:"quoted,omitempty,string"`
		Any      map[string]any                `json:"any,omitempty"`
		Raw      *apiruntime.RawExtension      `json:"raw,omitempty"`
		Parts    []part                        `json:"parts,omitempty"`
		Selector *metav1.LabelSelector         `json:"selector,omitempty"`
		inside   `json:",inline"`
	}
	inside struct {
		Deep  mark  `json:"deep,omitzero"`
		Other *mark `json:"other,omitempty"`
	}
	sailor struct {
		ID   int64   `json:"id"`
		Rank string  `json:"rank,omitempty"`
		Aids []mark  `json:"aids,omitempty" listType:"map" listMapKey:"x"`
		Left *sailor `json:"left,omitempty"`
	}
	post struct {
		Deck uint8  `json:"deck"`
		Side string `json:"side,omitempty" default:"port"`
		Men  bool   `json:"men,omitempty"`
	}
	mark struct {
		X bool              `json:"x"`
		Y float32           `json:"y,omitempty"`
		Z map[string]string `json:"z,omitempty"`
	}
	part struct {
		Name  string `json:"name"`
		Parts []part `json:"parts,omitempty" listType:"map" listMapKey:"name"`
	}
	ship = runtime.Resource[shipSpec, gadgetStatus]
)

var (
	gadgetKind  = schema.GroupVersionKind{Group: "bench.example.com", Version: "v1", Kind: "Gadget"}
	shipKind    = schema.GroupVersionKind{Group: "example.com", Version: "v1", Kind: "Ship"}
	untypedKind = schema.GroupVersionKind{Group: "example.com", Version: "v1", Kind: "Untyped"}
	oldShipKind = schema.GroupVersionKind{Group: "example.com", Version: "v1beta1", Kind: "Ship"}
)

type oldShip struct{ ship }

func (s *oldShip) DeepCopyObject() runtime.Object { return runtime.DeepCopy(s) }

func trackedScheme(t testing.TB) *runtime.Scheme {
	t.Helper()
	s := runtime.NewScheme()
	for _, err := range []error{
		runtime.Register[*gadget](s, gadgetKind, runtime.KindOptions[*gadget]{}),
		runtime.Register[*ship](s, shipKind, runtime.KindOptions[*ship]{Hub: true}),
		runtime.Register[*oldShip](s, oldShipKind, runtime.KindOptions[*oldShip]{}),
		runtime.Register(s, untypedKind, runtime.KindOptions[*unstructured.Unstructured]{}),
		runtime.AddConversion(s,
			func(in *oldShip, out *ship) error { *out = in.ship; return nil },
			func(in *ship, out *oldShip) error { out.ship = *in; return nil }),
	} {
		if err != nil {
			t.Fatal(err)
		}
	}
	for _, add := range []func(*apiruntime.Scheme) error{corev1.AddToScheme, appsv1.AddToScheme, rbacv1.AddToScheme, networkingv1.AddToScheme} {
		if _, err := s.Import(add); err != nil {
			t.Fatal(err)
		}
	}
	return s
}

var trackedKinds = []schema.GroupVersionKind{
	gadgetKind, shipKind,
	corev1.SchemeGroupVersion.WithKind("Pod"), corev1.SchemeGroupVersion.WithKind("Service"), corev1.SchemeGroupVersion.WithKind("ConfigMap"),
	corev1.SchemeGroupVersion.WithKind("Secret"), corev1.SchemeGroupVersion.WithKind("Node"), corev1.SchemeGroupVersion.WithKind("PersistentVolumeClaim"),
	appsv1.SchemeGroupVersion.WithKind("Deployment"), rbacv1.SchemeGroupVersion.WithKind("Role"), networkingv1.SchemeGroupVersion.WithKind("Ingress"),
}

// generator makes objects and changes them. If odd is set, it makes rare cases too.
type generator struct {
	r   *rand.Rand
	odd bool
	f   *randfill.Filler
}

func newGenerator(seed uint64, odd bool) *generator {
	g := &generator{r: rand.New(rand.NewPCG(seed, 1)), odd: odd}
	text := func() string {
		some := []string{"a", "b", "", "a<b>&\u2028", "x.y/z", "\x00\"\\", "long-text"}
		if g.odd && g.r.IntN(40) == 0 {
			return []string{"\xff", "\xfe", "a\xff"}[g.r.IntN(3)]
		}
		if g.r.IntN(3) == 0 {
			return some[g.r.IntN(len(some))]
		}
		return fmt.Sprint("t", g.r.IntN(1000))
	}
	rare := func() bool { return g.odd && g.r.IntN(8) == 0 }
	g.f = randfill.NewWithSeed(int64(seed)).NilChance(0.6).NumElements(0, 3).MaxDepth(12).Funcs( //nolint:gosec // any seed
		func(s *string, _ randfill.Continue) { *s = text() },
		func(m *metav1.TypeMeta, _ randfill.Continue) {},
		func(e *[]metav1.ManagedFieldsEntry, _ randfill.Continue) {},
		func(at *metav1.Time, _ randfill.Continue) {
			if g.r.IntN(3) > 0 {
				*at = metav1.Time{Time: time.Unix(1e9+int64(g.r.IntN(3)), int64(g.r.IntN(2)))}
				if g.r.IntN(2) == 0 {
					at.Time = at.UTC()
				}
			}
		},
		func(at *metav1.MicroTime, _ randfill.Continue) {
			if g.r.IntN(3) > 0 {
				*at = metav1.MicroTime{Time: time.Unix(1e9, int64(g.r.IntN(3))*1000)}
			}
		},
		func(v *intstr.IntOrString, _ randfill.Continue) {
			*v = intstr.IntOrString{Type: intstr.Type(g.r.IntN(2)), IntVal: int32(g.r.IntN(3)), StrVal: text()}
			if g.odd && g.r.IntN(30) == 0 {
				v.Type = 7
			}
		},
		func(q *resource.Quantity, _ randfill.Continue) {
			*q = resource.MustParse([]string{"1", "1000m", "1Gi", "0", "5e3"}[g.r.IntN(5)])
			if g.r.IntN(2) == 0 {
				_ = q.String()
			}
		},
		func(v *map[string]any, _ randfill.Continue) {
			if rare() {
				*v = map[string]any{"a": int64(1), "b": []any{"x", nil, 1.5}, "c": map[string]any{"d": true}}
			}
		},
		func(v *apiruntime.RawExtension, _ randfill.Continue) {
			if rare() {
				v.Raw = []byte(`{"a": 1, "b":{"c":[12345678901234567890]}}`)
			}
		},
		func(v *float64, _ randfill.Continue) { *v = []float64{0, 1, 1.5, -2e30, 1e18}[g.r.IntN(5)] },
		func(v *float32, _ randfill.Continue) { *v = []float32{0, 1, 1.5, 0.1}[g.r.IntN(4)] },
		func(v *uint64, _ randfill.Continue) {
			if *v = uint64(g.r.IntN(3)); rare() {
				*v = 1 << 63
			}
		},
		func(v *uint8, _ randfill.Continue) { *v = uint8(g.r.IntN(3)) },
		func(v *int64, _ randfill.Continue) { *v = []int64{0, 1, -5, 1<<53 + 1, 1 << 62}[g.r.IntN(5)] },
	)
	return g
}

// object returns a new object.
func (g *generator) object(k *runtime.Kind) runtime.Object {
	obj := k.New()
	g.f.Fill(obj)
	if s, ok := obj.(*ship); ok && !g.odd {
		s.Spec.Any, s.Spec.Raw, s.Spec.Quoted = nil, nil, 0
	}
	obj.GetObjectKind().SetGroupVersionKind(k.GVK)
	return obj
}

// change changes a part of v. other is a value of the same type.
func (g *generator) change(v, other reflect.Value) {
	if g.r.IntN(6) == 0 {
		if g.r.IntN(4) == 0 {
			v.SetZero()
		} else {
			v.Set(other)
		}
		return
	}
	switch v.Kind() {
	case reflect.Pointer:
		if v.IsNil() || other.IsNil() {
			v.Set(other)
			return
		}
		g.change(v.Elem(), other.Elem())
	case reflect.Struct:
		switch v.Type() {
		case reflect.TypeFor[metav1.Time](), reflect.TypeFor[metav1.MicroTime](), reflect.TypeFor[resource.Quantity](), reflect.TypeFor[intstr.IntOrString]():
			v.Set(other)
			return
		}
		for range 5 {
			i := g.r.IntN(v.NumField())
			if f := v.Type().Field(i); f.IsExported() && f.Type != reflect.TypeFor[metav1.TypeMeta]() && f.Name != "ManagedFields" {
				g.change(v.Field(i), other.Field(i))
				return
			}
		}
	case reflect.Map:
		for key, member := range other.Seq2() {
			if v.IsNil() {
				v.Set(reflect.MakeMap(v.Type()))
			}
			v.SetMapIndex(key, member)
			break
		}
		for key := range v.Seq() {
			if g.r.IntN(3) == 0 {
				v.SetMapIndex(key, reflect.Value{})
			}
			break
		}
	case reflect.Slice:
		switch n := v.Len(); {
		case n > 0 && other.Len() > 0 && g.r.IntN(2) == 0:
			g.change(v.Index(g.r.IntN(n)), other.Index(0))
		case n > 1 && g.r.IntN(3) == 0:
			v.Set(reflect.AppendSlice(v.Slice(1, n), v.Slice(0, 1))) // another order
		case n > 0 && g.r.IntN(2) == 0:
			v.Set(v.Slice(1, n))
		case other.Len() > 0:
			v.Set(reflect.Append(v, other.Index(0)))
		}
	default:
		v.Set(other)
	}
}
