package codec

import (
	"maps"
	"math/rand"
	"reflect"
	"slices"
	"testing"

	"github.com/keelson-dev/keelson/runtime"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

type gearSpec struct {
	Teeth  int32             `json:"teeth,omitempty"`
	Color  string            `json:"color,omitempty"`
	Needed string            `json:"needed"`
	Parts  []string          `json:"parts,omitempty"`
	Ratio  map[string]string `json:"ratio,omitempty"`
}

type gearStatus struct {
	Ready bool `json:"ready,omitempty"`
}

type gear = runtime.Resource[gearSpec, gearStatus]

// toothed has a default in its tags.
type toothed = runtime.Resource[struct {
	Teeth int32  `json:"teeth,omitempty" default:"12"`
	Color string `json:"color,omitempty"`
}, gearStatus]

// painted has a default that is set by the program's function.
type painted = runtime.Resource[struct {
	Color string `json:"color,omitempty"`
}, gearStatus]

// marked is a kind whose own method adds something to the usual metadata.
type marked struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata,omitempty"`
	Note              string `json:"note,omitempty"`
}

func (m *marked) DeepCopyObject() runtime.Object { return runtime.DeepCopy(m) }

func (m *marked) SetResourceVersion(v string) {
	m.ObjectMeta.SetResourceVersion(v)
	m.Note = "touched"
}

var gears = schema.GroupVersion{Group: "example.com", Version: "v1"}

func gearScheme(t testing.TB) *runtime.Scheme {
	t.Helper()
	s := runtime.NewScheme()
	for _, err := range []error{
		runtime.Register(s, gears.WithKind("Gear"), runtime.KindOptions[*gear]{}),
		runtime.Register(s, gears.WithKind("Toothed"), runtime.KindOptions[*toothed]{}),
		runtime.Register(s, gears.WithKind("Painted"), runtime.KindOptions[*painted]{Default: func(p *painted) {
			if p.Spec.Color == "" {
				p.Spec.Color = "grey"
			}
		}}),
		runtime.Register(s, gears.WithKind("Pod"), runtime.KindOptions[*corev1.Pod]{}),
		runtime.Register(s, gears.WithKind("Marked"), runtime.KindOptions[*marked]{}),
	} {
		if err != nil {
			t.Fatal(err)
		}
	}
	return s
}

// stored returns canonical documents, and whether they are recognised.
func stored() map[string]bool {
	const meta = `"metadata":{"name":"a","namespace":"n","uid":"u","generation":2,"creationTimestamp":"2026-01-02T03:04:05Z","labels":{"app":"x","b":"y"},` +
		`"managedFields":[{"manager":"m","operation":"Update","apiVersion":"example.com/v1","time":"2026-01-02T03:04:05Z","fieldsType":"FieldsV1","fieldsV1":{"f:spec":{"f:teeth":{}}}}]}`
	return map[string]bool{
		`{"kind":"Gear","apiVersion":"example.com/v1",` + meta + `,"spec":{"teeth":3,"color":"\u003cred\u003e","needed":"","parts":["a","b"],"ratio":{"a":"1"}},"status":{"ready":true}}`: true,
		`{"kind":"Gear","apiVersion":"example.com/v1","metadata":{},"spec":{"needed":"x"},"status":{}}`:                                                                                   true,
		`{"kind":"Toothed","apiVersion":"example.com/v1",` + meta + `,"spec":{"teeth":3,"color":"red"},"status":{}}`:                                                                      true,
		`{"kind":"Toothed","apiVersion":"example.com/v1","metadata":{},"spec":{"color":"red"},"status":{}}`:                                                                               false,
		`{"kind":"Painted","apiVersion":"example.com/v1",` + meta + `,"spec":{"color":"red"},"status":{}}`:                                                                                false,
		`{"kind":"Pod","apiVersion":"example.com/v1",` + meta + `,"spec":{"containers":[{"name":"c","image":"i","resources":{"limits":{"cpu":"100m"}}}]},"status":{"startTime":null}}`:    false, // startTime is left out
		`{"kind":"Pod","apiVersion":"example.com/v1",` + meta + `,"spec":{"containers":[{"name":"c","image":"i","resources":{"limits":{"cpu":"100m"}}}]},"status":{}}`:                    true,
		`{"kind":"Marked","apiVersion":"example.com/v1",` + meta + `,"note":"touched"}`:                                                                                                   false,
	}
}

// codecs returns the codec of the kind of a document, and a second codec that recognises nothing.
func codecs(t testing.TB, s *runtime.Scheme, text string) (fast, slow *Typed) {
	t.Helper()
	d, err := ParseDocument([]byte(text))
	if err != nil {
		t.Fatal(err)
	}
	gvk := gears.WithKind(d.Kind())
	for _, c := range []**Typed{&fast, &slow} {
		if *c, err = NewTyped(s, gvk); err != nil {
			t.Fatal(err)
		}
	}
	slow.recogniser.Store(&recogniser{kind: s.Lookup(gvk)})
	return fast, slow
}

// checkEntry fails unless Entry returns the same for a value with and without recognition.
func checkEntry(t *testing.T, fast, slow *Typed, value []byte) {
	t.Helper()
	got, gotStale, gotErr := fast.Entry(value)
	want, wantStale, wantErr := slow.Entry(value)
	if gotStale != wantStale || (gotErr == nil) != (wantErr == nil) || !reflect.DeepEqual(got, want) {
		t.Fatalf("%q:\n%s, stale %v, %v\n%s, stale %v, %v", value, got.Bytes(), gotStale, gotErr, want.Bytes(), wantStale, wantErr)
	}
}

func TestRecognise(t *testing.T) {
	s := gearScheme(t)
	for text, want := range stored() {
		fast, slow := codecs(t, s, text)
		if _, got := fast.recognise([]byte(text)); got != want {
			t.Errorf("recognised is %v: %s", got, text)
		}
		checkEntry(t, fast, slow, []byte(text))
		checkEntry(t, fast, slow, []byte(text+"\n"))
		checkEntry(t, fast, slow, []byte(text+"\n\n"))
	}
}

// TestRecogniseMutated: with and without recognition, Entry returns the same for texts with a changed byte, and for texts that
// were cut and joined again.
func TestRecogniseMutated(t *testing.T) {
	const bytes = "\"\\{}[],: \n0123456789-.eEnulltruekadAzZ<>&\x00\x80\xff"
	s := gearScheme(t)
	r := rand.New(rand.NewSource(1))
	pieces := []string{`"kind":"Gear",`, `"resourceVersion":"1",`, `"metadata":{},`, `"teeth":0,`, `"teeth":3,`, `"color":"",`, `"status":{}`, `null`, `,"status":{}`, `"spec":{},`, "\n", `"a":"b",`}
	for text := range stored() {
		fast, slow := codecs(t, s, text)
		for range 3000 {
			value := []byte(text)
			at := r.Intn(len(value))
			switch r.Intn(4) {
			case 0:
				value[at] = bytes[r.Intn(len(bytes))]
			case 1:
				value = slices.Delete(value, at, min(at+1+r.Intn(2), len(value)))
			case 2:
				value = slices.Insert(value, at, bytes[r.Intn(len(bytes))])
			case 3:
				value = slices.Insert(value, at, []byte(pieces[r.Intn(len(pieces))])...)
			}
			checkEntry(t, fast, slow, value)
		}
	}
}

// TestRecogniseAnew: after a kind was removed and registered with another type, its documents are recognised by the new type.
func TestRecogniseAnew(t *testing.T) {
	const text = `{"kind":"Gear","apiVersion":"example.com/v1","metadata":{},"spec":{"needed":"x"},"status":{}}`
	s := gearScheme(t)
	fast, _ := codecs(t, s, text)
	if _, ok := fast.recognise([]byte(text)); !ok {
		t.Fatal("not recognised at first")
	}
	fast.scheme = runtime.NewScheme()
	if _, ok := fast.recognise([]byte(text)); ok {
		t.Error("recognised without the kind")
	}
	if err := runtime.Register(fast.scheme, gears.WithKind("Gear"), runtime.KindOptions[*toothed]{}); err != nil {
		t.Fatal(err)
	}
	if _, ok := fast.recognise([]byte(text)); ok {
		t.Error("recognised as what the kind was")
	}
}

func FuzzRecognise(f *testing.F) {
	s := gearScheme(f)
	texts := slices.Sorted(maps.Keys(stored())) // a sorted copy, so that the kind of each text is the same in every process
	var fast, slow []*Typed
	for _, text := range texts {
		a, b := codecs(f, s, text)
		fast, slow = append(fast, a), append(slow, b)
	}
	for _, text := range texts {
		for i := range fast {
			f.Add(uint8(i), []byte(text))
		}
	}
	f.Fuzz(func(t *testing.T, which uint8, value []byte) {
		i := int(which) % len(fast)
		checkEntry(t, fast[i], slow[i], value)
	})
}

func BenchmarkEntry(b *testing.B) {
	s := gearScheme(b)
	const text = `{"kind":"Gear","apiVersion":"example.com/v1","metadata":{"name":"w-000001","namespace":"ns-1","uid":"00000000-0000-4000-8000-000000000001","generation":1,` +
		`"creationTimestamp":"2026-01-02T03:04:05Z","labels":{"app":"bench","group":"g-01","tier":"backend"},"annotations":{"example.com/owner":"team-1@example.com"},` +
		`"managedFields":[{"manager":"bench","operation":"Update","apiVersion":"example.com/v1","time":"2026-01-02T03:04:05Z","fieldsType":"FieldsV1",` +
		`"fieldsV1":{"f:metadata":{"f:annotations":{".":{},"f:example.com/owner":{}},"f:labels":{".":{},"f:app":{},"f:group":{},"f:tier":{}}},"f:spec":{"f:color":{},"f:teeth":{}}}}]},` +
		`"spec":{"teeth":3,"color":"red","needed":"`
	value := []byte(text)
	for range 75 {
		value = append(value, "axle-1a2b3c4 "...)
	}
	value = append(value, `"},"status":{}}`...)
	fast, slow := codecs(b, s, string(value))
	for name, c := range map[string]*Typed{"recognised": fast, "decoded": slow} {
		b.Run(name, func(b *testing.B) {
			b.ReportAllocs()
			b.SetBytes(int64(len(value)))
			for b.Loop() {
				if _, stale, err := c.Entry(value); err != nil || stale {
					b.Fatal(stale, err)
				}
			}
		})
	}
}
