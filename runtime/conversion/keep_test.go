package conversion_test

import (
	"encoding/json"
	"errors"
	"fmt"
	"math/rand"
	"reflect"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
	"github.com/keelson-dev/keelson/runtime"
	"github.com/keelson-dev/keelson/runtime/conversion"
	"github.com/keelson-dev/keelson/runtime/roundtrip"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

type (
	// Ship is the hub.
	Ship = runtime.Resource[ShipSpec, shipStatus]
	// OldShip is a version that has only a part of it.
	OldShip = runtime.Resource[OldShipSpec, struct{}]

	ShipSpec struct {
		Name  string            `json:"name"`
		Least int32             `json:"least"`
		Most  int32             `json:"most"`
		Masts []Mast            `json:"masts,omitempty"`
		Crew  []Sailor          `json:"crew,omitempty" listType:"map" listMapKey:"name"`
		Ports []string          `json:"ports,omitempty"`
		Flags map[string]*int32 `json:"flags"`
		Extra map[string]any    `json:"extra,omitempty"`
		Fast  *bool             `json:"fast,omitempty"`
		Depth *float64          `json:"depth"`
		Built *metav1.Time      `json:"built,omitempty"`
		Data  []byte            `json:"data,omitempty"`
		Hull  *Hull             `json:"hull,omitempty"`
		Inner struct {
			Note string   `json:"note,omitempty"`
			Rows [][]Mast `json:"rows,omitempty"`
		} `json:"inner"`
	}
	Mast struct {
		Wood   string `json:"wood"`
		Height int64  `json:"height,omitempty"`
	}
	Sailor struct {
		Name  string           `json:"name"`
		Rank  string           `json:"rank,omitempty"`
		Tools []Mast           `json:"tools,omitempty"`
		Marks map[string]int32 `json:"marks,omitempty"`
	}
	Hull struct {
		Steel bool `json:"steel,omitempty"`
	}
	shipStatus struct {
		Speed int32 `json:"speed,omitempty"`
	}

	OldShipSpec struct {
		Name  string           `json:"name"`
		Size  int32            `json:"size"` // the least and the most
		Masts []string         `json:"masts,omitempty"`
		Crew  []OldSailor      `json:"crew,omitempty"`
		Flags map[string]int32 `json:"flags,omitempty"`
	}
	OldSailor struct {
		Name string `json:"name"`
		Rank string `json:"rank,omitempty"`
	}
)

func toHub(in *OldShip, out *Ship) error {
	out.Spec.Name, out.Spec.Least, out.Spec.Most = in.Spec.Name, in.Spec.Size, in.Spec.Size
	for _, wood := range in.Spec.Masts {
		out.Spec.Masts = append(out.Spec.Masts, Mast{Wood: wood})
	}
	for _, s := range in.Spec.Crew {
		out.Spec.Crew = append(out.Spec.Crew, Sailor{Name: s.Name, Rank: s.Rank})
	}
	if in.Spec.Flags != nil {
		out.Spec.Flags = map[string]*int32{}
	}
	for name, n := range in.Spec.Flags {
		out.Spec.Flags[name] = &n
	}
	return nil
}

func fromHub(in *Ship, out *OldShip) error {
	out.Spec.Name, out.Spec.Size = in.Spec.Name, in.Spec.Most
	for _, m := range in.Spec.Masts {
		out.Spec.Masts = append(out.Spec.Masts, m.Wood)
	}
	for _, s := range in.Spec.Crew {
		out.Spec.Crew = append(out.Spec.Crew, OldSailor{Name: s.Name, Rank: s.Rank})
	}
	for name, n := range in.Spec.Flags {
		if n != nil {
			if out.Spec.Flags == nil {
				out.Spec.Flags = map[string]int32{}
			}
			out.Spec.Flags[name] = *n
		}
	}
	return nil
}

func kind(version string) schema.GroupVersionKind {
	return schema.GroupVersionKind{Group: "sea.example.com", Version: version, Kind: "Ship"}
}

func ships(t testing.TB) *runtime.Scheme {
	t.Helper()
	s := runtime.NewScheme()
	to, from := conversion.Keep(toHub, fromHub)
	for _, err := range []error{
		runtime.Register(s, kind("v2"), runtime.KindOptions[*Ship]{SelectableFields: []string{"spec.name"}}),
		runtime.Register(s, kind("v1"), runtime.KindOptions[*OldShip]{}),
		runtime.AddConversion(s, to, from),
	} {
		if err != nil {
			t.Fatal(err)
		}
	}
	return s
}

func old(t testing.TB, s *runtime.Scheme, ship *Ship) *OldShip {
	t.Helper()
	obj, err := s.ToVersion(ship, kind("v1").GroupVersion())
	if err != nil {
		t.Fatal(err)
	}
	return obj.(*OldShip)
}

func hub(t testing.TB, s *runtime.Scheme, ship *OldShip) *Ship {
	t.Helper()
	obj, err := s.ToVersion(ship, kind("v2").GroupVersion())
	if err != nil {
		t.Fatal(err)
	}
	return obj.(*Ship)
}

// A conversion with Keep loses nothing in either direction, and the annotation needs no tolerance.
func TestNothingOfTheHubIsLost(t *testing.T) {
	roundtrip.Test(t, ships(t), roundtrip.Options{})
}

// The test above must be able to fail.
func TestWithoutKeepFieldsAreLost(t *testing.T) {
	s := runtime.NewScheme()
	for _, err := range []error{
		runtime.Register(s, kind("v2"), runtime.KindOptions[*Ship]{}),
		runtime.Register(s, kind("v1"), runtime.KindOptions[*OldShip]{}),
		runtime.AddConversion(s, toHub, fromHub),
	} {
		if err != nil {
			t.Fatal(err)
		}
	}
	if err := roundtrip.Check(s, ship(), roundtrip.Options{}); err == nil {
		t.Error("a conversion that loses fields passes")
	}
}

func ship() *Ship {
	fast, n := true, int32(3)
	s := &Ship{ObjectMeta: metav1.ObjectMeta{Name: "a", Annotations: map[string]string{"mine": "x"}}}
	s.Spec = ShipSpec{
		Name: "Argo", Least: 1, Most: 5, Masts: []Mast{{"oak", 30}, {"ash", 20}, {"oak", 10}},
		Crew:  []Sailor{{Name: "cook", Rank: "mate", Tools: []Mast{{"beech", 1}}}, {Name: "boy", Marks: map[string]int32{"zero": 0}}},
		Ports: []string{"b", "a"}, Flags: map[string]*int32{"red": &n, "none": nil}, Extra: map[string]any{"a": nil, "b": []any{}}, Fast: &fast, Hull: &Hull{},
	}
	s.Spec.Inner.Rows = [][]Mast{{{"fir", 9}}, nil}
	s.Status.Speed = 7
	return s
}

// What a client of the old version does with an object decides which fields of the hub are kept.
func TestClientsOfTheOldVersion(t *testing.T) {
	set := func(text string) func(*OldShip) {
		return func(o *OldShip) { o.Annotations = map[string]string{conversion.Annotation: text} }
	}
	lost := func(s *Ship) { // all that the old version cannot hold
		s.Annotations = nil
		s.Spec = ShipSpec{
			Name: "Argo", Least: 5, Most: 5, Masts: []Mast{{Wood: "oak"}, {Wood: "ash"}, {Wood: "oak"}},
			Crew: []Sailor{{Name: "cook", Rank: "mate"}, {Name: "boy"}}, Flags: map[string]*int32{"red": s.Spec.Flags["red"]},
		}
		s.Status = shipStatus{}
	}
	for name, c := range map[string]struct {
		change func(*OldShip)
		want   func(*Ship)
	}{
		"nothing":            {func(*OldShip) {}, func(*Ship) {}},
		"its own field":      {func(o *OldShip) { o.Spec.Name = "Calypso" }, func(s *Ship) { s.Spec.Name = "Calypso" }},
		"its own annotation": {func(o *OldShip) { o.Annotations["mine"] = "y" }, func(s *Ship) { s.Annotations["mine"] = "y" }},
		"a field that others come from": {func(o *OldShip) { o.Spec.Size = 0 }, func(s *Ship) {
			s.Spec.Least, s.Spec.Most = 0, 0 // not the least of 1, which is more than the most
		}},
		"an item that moves": {func(o *OldShip) { o.Spec.Masts = []string{"ash", "oak", "oak"} }, func(s *Ship) {
			s.Spec.Masts = []Mast{{"ash", 20}, {"oak", 30}, {"oak", 10}}
		}},
		"an item that is new": {func(o *OldShip) { o.Spec.Masts = []string{"elm", "oak", "ash", "oak"} }, func(s *Ship) {
			s.Spec.Masts = []Mast{{"elm", 0}, {"oak", 30}, {"ash", 20}, {"oak", 10}}
		}},
		"an item that goes": {func(o *OldShip) { o.Spec.Masts = []string{"ash"} }, func(s *Ship) {
			s.Spec.Masts = []Mast{{"ash", 20}}
		}},
		"an item without a key that changes": {func(o *OldShip) { o.Spec.Masts[1] = "elm" }, func(s *Ship) {
			s.Spec.Masts[1] = Mast{"elm", 0}
		}},
		"an item with a key that changes": {func(o *OldShip) { o.Spec.Crew[0].Rank = "captain" }, func(s *Ship) {
			s.Spec.Crew[0].Rank = "captain" // and he keeps his tools
		}},
		"an item with another key": {func(o *OldShip) { o.Spec.Crew[0].Name = "smith" }, func(s *Ship) {
			s.Spec.Crew[0] = Sailor{Name: "smith", Rank: "mate"}
		}},
		"all items":           {func(o *OldShip) { o.Spec.Crew = nil }, func(s *Ship) { s.Spec.Crew = nil }},
		"no annotations":      {func(o *OldShip) { o.Annotations = nil }, lost},
		"no text":             {set(""), lost},
		"no JSON":             {set("{"), lost},
		"a list":              {set("[]"), lost},
		"null":                {set("null"), lost},
		"no fields":           {set(`{"fields":{}}`), lost},
		"a field of no type":  {set(`{"fields":{"members":{"spec":{"members":{"hull":{"value":"steel"}}}}}}`), lost},
		"an unknown field":    {set(`{"fields":{"members":{"spec":{"members":{"sail":{"value":"steel"}}}}}}`), lost},
		"metadata":            {set(`{"fields":{"members":{"metadata":{"value":{"name":"b"}},"kind":{"value":"Boat"}}}}`), lost},
		"null differences":    {set(`{"fields":{"members":{"spec":{"members":{"hull":null,"masts":{"items":[null,{}]}}}}}}`), lost},
		"a value of its own":  {set(`{"fields":{"members":{"spec":{"members":{"hull":{"value":{"steel":true}}}}}}}`), func(s *Ship) { lost(s); s.Spec.Hull = &Hull{true} }},
		"a text far too long": {set(`{"fields":{"members":{"spec":{"members":{"ports":{"value":["` + strings.Repeat("a", conversion.MaxBytes) + `"]}}}}}}`), lost},
	} {
		t.Run(name, func(t *testing.T) {
			s := ships(t)
			o := old(t, s, ship())
			if o.Annotations[conversion.Annotation] == "" {
				t.Fatal("there is no annotation")
			}
			c.change(o)
			got, want := hub(t, s, o), ship()
			c.want(want)
			got.TypeMeta = metav1.TypeMeta{}
			if d := cmp.Diff(want, got, cmpopts.EquateEmpty()); d != "" {
				t.Errorf("-want +got: %s", d)
			}
			if _, shown := got.Annotations[conversion.Annotation]; shown {
				t.Error("the hub has the annotation")
			}
		})
	}
}

// An annotation that would change what the client of the old version sees has no effect at all, even with the right hash.
func TestTheFieldsOfTheOldVersionWin(t *testing.T) {
	s := ships(t)
	o := old(t, s, ship())
	o.Spec.Flags = nil // empty, so that its hash is the empty one
	o.Annotations = map[string]string{conversion.Annotation: `{"fields":{"members":{"spec":{"members":{"flags":{"value":{"blue":1}},"hull":{"value":{}}}}}}}`}
	if got := hub(t, s, o); got.Spec.Flags != nil || got.Spec.Hull != nil {
		t.Errorf("the annotation has set fields of the old version: %v, %v", got.Spec.Flags, got.Spec.Hull)
	}
}

// An object without anything to keep has no annotation, and an annotation of the hub does not come through.
func TestNoAnnotationWithoutNeed(t *testing.T) {
	s := ships(t)
	plain := &Ship{}
	plain.Spec.Name = "Argo"
	plain.Annotations = map[string]string{conversion.Annotation: `{"fields":{}}`}
	o := old(t, s, plain)
	if o.Annotations != nil {
		t.Errorf("annotations %v", o.Annotations)
	}
}

// Fields that are too large can be read but not written in the old version. A client that wants to empty them can.
func TestFieldsTooLarge(t *testing.T) {
	s := ships(t)
	large := ship()
	large.Spec.Ports = []string{strings.Repeat("x", conversion.MaxBytes)}
	o := old(t, s, large)
	if got := o.Annotations[conversion.Annotation]; got != `{"tooLarge":true}` {
		t.Errorf("the annotation is %.100s", got)
	}
	_, err := s.ToVersion(o, kind("v2").GroupVersion())
	var failed *runtime.ConversionError
	if !errors.As(err, &failed) || !strings.Contains(err.Error(), "write the object in the version of the hub, or remove the annotation") {
		t.Errorf("got %v", err)
	}
	delete(o.Annotations, conversion.Annotation)
	if got := hub(t, s, o); got.Spec.Ports != nil || got.Spec.Name != "Argo" {
		t.Errorf("got %v", got.Spec)
	}
	large.Spec.Ports[0] = large.Spec.Ports[0][2000:]
	if got := hub(t, s, old(t, s, large)); len(got.Spec.Ports) != 1 {
		t.Error("a text within the limit is not kept")
	}
}

// A conversion may copy metadata. The annotation does not come through.
func TestConversionsThatCopyMetadata(t *testing.T) {
	to, from := conversion.Keep(
		func(in *OldShip, out *Ship) error { out.ObjectMeta = in.ObjectMeta; return toHub(in, out) },
		func(in *Ship, out *OldShip) error { out.ObjectMeta = in.ObjectMeta; return fromHub(in, out) })
	in, shown, out := ship(), &OldShip{}, &Ship{}
	in.Annotations[conversion.Annotation] = "of the hub"
	if err := from(in, shown); err != nil || !json.Valid([]byte(shown.Annotations[conversion.Annotation])) {
		t.Errorf("%v, annotations %v", err, shown.Annotations)
	}
	if err := to(shown, out); err != nil || len(out.Annotations) != 1 || out.Spec.Masts[0].Height != 30 {
		t.Errorf("%v, annotations %v", err, out.Annotations)
	}
}

// A function that fails or panics for what is only an attempt changes nothing.
func TestFunctionsThatFail(t *testing.T) {
	for _, panics := range []bool{false, true} {
		fail := func(*OldShip, *Ship) error {
			if panics {
				panic("never")
			}
			return errors.New("never")
		}
		_, from := conversion.Keep(fail, fromHub)
		out := &OldShip{}
		if err := from(ship(), out); err != nil || out.Spec.Name != "Argo" || out.Annotations != nil {
			t.Errorf("got %v, %v", out, err)
		}
	}
	to, _ := conversion.Keep(toHub, func(*Ship, *OldShip) error { return errors.New("never") })
	in := &OldShip{ObjectMeta: metav1.ObjectMeta{Annotations: map[string]string{conversion.Annotation: `{"fields":{"members":{"status":{"members":{"speed":{"value":1}}}}}}`}}}
	out := &Ship{ObjectMeta: *in.ObjectMeta.DeepCopy()}
	if err := to(in, out); err != nil || out.Status.Speed != 0 {
		t.Errorf("got %v, %v", out, err)
	}
	if to, from := conversion.Keep[*OldShip, *Ship](nil, fromHub); to != nil || from == nil {
		t.Error("a nil function is replaced")
	}
}

// unharmed checks that a text in the annotation of an old ship has no effect on what the client wrote.
func unharmed(t *testing.T, s *runtime.Scheme, o *OldShip, text string) {
	t.Helper()
	o.Annotations = map[string]string{conversion.Annotation: text}
	obj, err := s.ToVersion(o, kind("v2").GroupVersion())
	if err != nil {
		if !strings.Contains(err.Error(), "remove the annotation") {
			t.Errorf("annotation %q: %v", text, err)
		}
		return
	}
	got := obj.(*Ship)
	if got.Annotations != nil {
		t.Errorf("annotation %q: the hub has annotations %v", text, got.Annotations)
	}
	plain, shown := &Ship{}, &OldShip{}
	for _, err := range []error{toHub(o, plain), fromHub(got, shown)} {
		if err != nil {
			t.Fatal(err)
		}
	}
	want := &OldShip{}
	if err := fromHub(plain, want); err != nil {
		t.Fatal(err)
	}
	if d := cmp.Diff(want.Spec, shown.Spec, cmpopts.EquateEmpty()); d != "" {
		t.Errorf("annotation %q changes what the client wrote (-want +got): %s", text, d)
	}
}

func FuzzAnnotation(f *testing.F) {
	s := ships(f)
	f.Add(old(f, s, ship()).Annotations[conversion.Annotation])
	f.Add(`{"tooLarge":true}`)
	f.Add(`{"fields":{"value":{"spec":{"name":"Odin"}},"remove":true}}`)
	f.Fuzz(func(t *testing.T, text string) { unharmed(t, s, old(t, s, ship()), text) })
}

// Annotations with random values, with parts of an honest one, have no effect on what the client wrote.
func TestRandomAnnotations(t *testing.T) {
	s := ships(t)
	honest := old(t, s, ship()).Annotations[conversion.Annotation]
	r := rand.New(rand.NewSource(1))
	values := []any{nil, true, 3.0, "", "oak", map[string]any{}, []any{}, []any{map[string]any{"wood": "elm"}}, map[string]any{"name": "b"}}
	var mutate func(v any) any
	mutate = func(v any) any {
		if r.Intn(12) == 0 {
			return values[r.Intn(len(values))]
		}
		switch v := v.(type) {
		case map[string]any:
			for name := range v {
				v[name] = mutate(v[name])
			}
			switch r.Intn(20) {
			case 0:
				v["remove"] = true
			case 1:
				delete(v, "was")
			case 2:
				v["value"] = values[r.Intn(len(values))]
			case 3:
				v[reflect.TypeFor[ShipSpec]().Field(r.Intn(9)).Tag.Get("json")] = map[string]any{"value": values[r.Intn(len(values))]}
			}
		case []any:
			for i := range v {
				v[i] = mutate(v[i])
			}
		}
		return v
	}
	for range 2000 {
		var v any
		if err := json.Unmarshal([]byte(honest), &v); err != nil {
			t.Fatal(err)
		}
		text, err := json.Marshal(mutate(v))
		if err != nil {
			t.Fatal(err)
		}
		o := old(t, s, ship())
		switch r.Intn(4) {
		case 0:
			o.Spec.Masts = append([]string{"elm"}, o.Spec.Masts...)
		case 1:
			o.Spec.Crew, o.Spec.Flags = o.Spec.Crew[1:], nil
		case 2:
			o.Spec = OldShipSpec{Name: fmt.Sprint(r.Int())}
		}
		unharmed(t, s, o, string(text))
	}
}
