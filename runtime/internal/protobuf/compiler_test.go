package protobuf_test

import (
	"reflect"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/keelson-dev/keelson/runtime/internal/protobuf"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// promoted has the methods of the type that it embeds, which do not handle its other field.
type promoted struct {
	metav1.ObjectMeta `protobuf:"bytes,1,opt,name=metadata"`
	Extra             string `protobuf:"bytes,2,opt,name=extra"`
}

type hidden struct {
	A string `protobuf:"bytes,1,opt,name=a"`
}

// The error for a type without a protobuf form names the reason and the correction.
func TestOfRefuses(t *testing.T) {
	type untagged struct {
		Name string `json:"name" protobuf:"bytes,2,opt,name=name"`
		Size int32  `json:"size"`
	}
	for _, c := range []struct {
		of   any
		want string
	}{
		{"", "string has no protobuf form: it is no struct"},
		{&untagged{}, "it is no struct"},
		{untagged{}, "protobuf_test.untagged has no protobuf form: field Size has no protobuf tag; write one like `protobuf:\"varint,1,opt,name=size\"`"},
		{struct {
			Spec []untagged `protobuf:"bytes,1,rep,name=spec"`
		}{}, "field Spec: protobuf_test.untagged: field Size has no protobuf tag"},
		{struct {
			A map[string]struct {
				B []untagged `protobuf:"bytes,1,rep,name=b"`
			} `protobuf:"bytes,1,rep,name=a"`
		}{}, "field Size has no protobuf tag"},
		{struct{ A map[string]any }{}, "field A has no protobuf tag; write one like `protobuf:\"bytes,1,rep,name=a\"`"},
		{struct{ A any }{}, "field A has no protobuf tag, and interface {} could not have one"},
		{struct{ *hidden }{}, "field hidden is of a type that is not exported"},
		{struct{ hidden }{}, "field hidden is of a type that is not exported"},
		{struct {
			A any `protobuf:"bytes,1,opt,name=a"`
		}{}, "field A, interface {} with the tag `protobuf:\"bytes,1,opt,name=a\"`: a value of the type interface {} cannot be written"},
		{struct {
			A [2]int32 `protobuf:"varint,1,rep,name=a"`
		}{}, "a value of the type [2]int32 cannot be written"},
		{struct {
			A map[string]any `protobuf:"bytes,1,rep,name=a"`
		}{}, "a value of the type interface {} cannot be written"},
		{struct {
			A time.Time `protobuf:"bytes,1,opt,name=a"`
		}{}, "field A: time.Time: none of its fields is exported"},
		{struct {
			A **string `protobuf:"bytes,1,opt,name=a"`
		}{}, "a pointer to a slice, a map or a pointer"},
		{struct {
			A *[]string `protobuf:"bytes,1,rep,name=a"`
		}{}, "a pointer to a slice, a map or a pointer"},
		{struct {
			A map[float64]string `protobuf:"bytes,1,rep,name=a"`
		}{}, "a float64 cannot be the key of a map"},
		{struct {
			A map[*string]string `protobuf:"bytes,1,rep,name=a"`
		}{}, "a *string cannot be the key of a map"},
		{struct {
			A map[hidden]string `protobuf:"bytes,1,rep,name=a"`
		}{}, "a protobuf_test.hidden cannot be the key of a map"},
		{struct {
			A string `protobuf:"bytes"`
		}{}, `a tag is like "varint,1,opt,name=size"`},
		{struct {
			A string `protobuf:"bytes,0,opt"`
		}{}, `"0" is no number of a field`},
		{struct {
			A string `protobuf:"bytes,536870912,opt"`
		}{}, `"536870912" is no number of a field`},
		{struct {
			A string `protobuf:"bytes,x,opt"`
		}{}, `"x" is no number of a field`},
		{struct {
			A string `protobuf:"bytes,19500,opt"`
		}{}, "the numbers 19000 to 19999 are reserved"},
		{struct {
			A string `protobuf:"group,1,opt"`
		}{}, `"group" is none of varint`},
		{struct {
			A []string `protobuf:"bytes,1,rep,packed"`
		}{}, "only a list of numbers is packed"},
		{struct {
			A string `protobuf:"bytes,1,opt"`
			B string `protobuf:"bytes,1,opt"`
		}{}, "field B, string with the tag `protobuf:\"bytes,1,opt\"`: its number 1 is that of another field"},
		{struct {
			metav1.ObjectMeta `json:"metadata"`
		}{}, "field ObjectMeta has no protobuf tag; write one like `protobuf:\"bytes,1,opt,name=metadata\"`"},
		{struct{ *corev1.ConfigMap }{}, "field ConfigMap has no protobuf tag"},
	} {
		var compiler protobuf.Compiler
		for range 2 { // the second result comes from the cache
			m, err := compiler.Of(reflect.TypeOf(c.of))
			if m != nil || err == nil || !strings.Contains(err.Error(), c.want) {
				t.Errorf("%T: %v, want %s", c.of, err, c.want)
			}
		}
	}
	if _, err := new(protobuf.Compiler).Of(nil); err == nil {
		t.Error("nil has a form")
	}
}

// After an error for a type, no incomplete tables are left in the cache.
func TestOfAfterARefusal(t *testing.T) {
	type inner struct {
		A string         `protobuf:"bytes,1,opt"`
		M map[string]any `protobuf:"bytes,2,rep"`
	}
	type good struct {
		B string `protobuf:"bytes,1,opt"`
	}
	type outer struct {
		G good  `protobuf:"bytes,1,opt"`
		I inner `protobuf:"bytes,2,opt"`
	}
	var c protobuf.Compiler
	for _, typ := range []reflect.Type{reflect.TypeFor[outer](), reflect.TypeFor[inner](), reflect.TypeFor[outer]()} {
		if _, err := c.Of(typ); err == nil {
			t.Errorf("%v has a form", typ)
		}
	}
	m, err := c.Of(reflect.TypeFor[good]())
	must(t, err)
	_, err = c.Of(reflect.TypeFor[texts]()) // contains lists of lists
	must(t, err)
	if _, err := c.Of(reflect.TypeFor[[]string]()); err == nil {
		t.Error("a slice has a form of its own")
	}
	if got, err := m.Append(nil, &good{"x"}); err != nil || string(got) != "\n\x01x" {
		t.Errorf("%q, %v", got, err)
	}
}

// The methods of a type are used if they are its own, and otherwise its tags.
func TestPromotedMethodsAreNotTaken(t *testing.T) {
	written(t, "a type with promoted methods", &promoted{Extra: "x"},
		joined(counted(1, marshal(t, &metav1.ObjectMeta{})), text(2, "x")))
	options := &metav1.DeleteOptions{DryRun: []string{"All"}} // it embeds only TypeMeta, which has methods
	written(t, "DeleteOptions", options, marshal(t, options))
	status := &metav1.Status{Message: "m"}
	written(t, "Status", status, marshal(t, status))
}

func marshal(t testing.TB, m interface{ Marshal() ([]byte, error) }) []byte {
	b, err := m.Marshal()
	must(t, err)
	return b
}

// Any number of goroutines may request types that contain each other.
func TestConcurrentUse(t *testing.T) {
	type b struct {
		T *texts `protobuf:"bytes,1,opt"`
	}
	type a struct {
		B []b                      `protobuf:"bytes,1,rep"`
		T map[string]texts         `protobuf:"bytes,2,rep"`
		M map[string]promoted      `protobuf:"bytes,3,rep"`
		P corev1.PodTemplateSpec   `protobuf:"bytes,4,opt"`
		S *corev1.PersistentVolume `protobuf:"bytes,5,opt"`
	}
	var c protobuf.Compiler
	var wg sync.WaitGroup
	for i := range 16 {
		wg.Go(func() {
			obj := any(&a{B: []b{{&texts{String: "x"}}}, T: map[string]texts{"k": {}}, M: map[string]promoted{"y": {Extra: "z"}, "x": {}}, S: &corev1.PersistentVolume{}})
			if i%2 == 0 {
				obj = &b{&texts{Inner: &texts{}}}
			}
			m, err := c.Of(reflect.TypeOf(obj).Elem())
			if err != nil {
				t.Error(err)
				return
			}
			message, err := m.Append(nil, obj)
			again := reflect.New(reflect.TypeOf(obj).Elem()).Interface()
			if err != nil || m.Unmarshal(message, again) != nil || !reflect.DeepEqual(obj, again) {
				t.Errorf("%+v, want %+v, %v", again, obj, err)
			}
		})
	}
	wg.Wait()
}
