package constraint_test

import (
	"encoding/json"
	"reflect"
	"testing"
	"time"

	"github.com/keelson-dev/keelson/runtime/constraint"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

type defaulted struct {
	*Lazy  `json:",inline"`
	Size   int32                   `json:"size" default:"3"`
	Share  *float64                `json:"share,omitempty" default:"0.5"`
	On     *bool                   `json:"on,omitempty" default:"true"`
	Color  color                   `json:"color,omitempty" default:"red" enum:"red,green"`
	Text   *string                 `json:"text,omitempty" default:"{}"`
	Tags   []string                `json:"tags,omitempty" default:"[\"a\"]"`
	Empty  map[string]string       `json:"empty" default:"{}"`
	Room   resource.Quantity       `json:"room,omitzero" default:"1Gi"`
	Wait   *metav1.Duration        `json:"wait,omitempty" default:"5m"`
	Since  metav1.Time             `json:"since" default:"2026-01-02T03:04:05Z"`
	Bytes  []byte                  `json:"bytes,omitempty" default:"AQI="`
	Any    any                     `json:"any,omitempty" default:"{\"n\":1}"`
	Filled *defaultedPart          `json:"filled,omitempty" default:"{}"`
	Nil    *defaultedPart          `json:"nil,omitempty"`
	List   []defaultedPart         `json:"list,omitempty"`
	Ptrs   []*defaultedPart        `json:"ptrs,omitempty"`
	Map    map[int32]defaultedPart `json:"map,omitempty"`
	Array  [2]defaultedPart        `json:"array,omitempty"`
	Whole  defaultedPart           `json:"whole,omitempty" default:"{\"mode\":\"b\"}"`
}

type defaultedPart struct {
	Mode  string          `json:"mode,omitempty" default:"a"`
	Under *defaultedPart2 `json:"under,omitempty" default:"{}"`
}

type defaultedPart2 struct {
	N int `json:"n,omitempty" default:"7"`
}

type Lazy struct {
	Late string `json:"late,omitempty" default:"x"`
}

const everything = `{"late":"x","size":3,"share":0.5,"on":true,"color":"red","text":"{}","tags":["a"],"empty":{},"room":"1Gi",` +
	`"wait":"5m0s","since":"2026-01-02T03:04:05Z","bytes":"AQI=","any":{"n":1},"filled":{"mode":"a","under":{"n":7}},` +
	`"array":[{"mode":"a","under":{"n":7}},{"mode":"a","under":{"n":7}}],"whole":{"mode":"b","under":{"n":7}}}`

func TestDefaults(t *testing.T) {
	rules := rulesOf[defaulted](t)
	if !rules.HasDefaults() || rules.IsZero() {
		t.Error("defaults are no rules")
	}
	obj := &defaulted{}
	rules.SetDefaults(obj)
	wantJSON(t, obj, everything)
	rules.SetDefaults(obj)
	wantJSON(t, obj, everything)
	wantErrors(t, rules.Validate(obj))
}

// TestDefaultsInside shows defaults inside elements of lists and maps, and that existing values stay.
func TestDefaultsInside(t *testing.T) {
	rules := rulesOf[defaulted](t)
	obj := &defaulted{}
	rules.SetDefaults(obj)
	text := `{"size":4,"share":0,"on":false,"text":"","filled":{"mode":"z"},"list":[{},{"mode":"y"}],"ptrs":[null,{}],"map":{"1":{},"2":{"mode":"x"}}}`
	obj = &defaulted{}
	if err := json.Unmarshal([]byte(text), obj); err != nil {
		t.Fatal(err)
	}
	rules.SetDefaults(obj)
	part := func(mode string) defaultedPart { return defaultedPart{mode, &defaultedPart2{7}} }
	for _, c := range []struct{ what, got, want any }{
		{"size", obj.Size, int32(4)},
		{"share", *obj.Share, 0.0},
		{"on", *obj.On, false},
		{"text", *obj.Text, ""},
		{"filled", *obj.Filled, part("z")},
		{"nil", obj.Nil, (*defaultedPart)(nil)},
		{"list", obj.List, []defaultedPart{part("a"), part("y")}},
		{"ptrs", obj.Ptrs, []*defaultedPart{nil, ptr(part("a"))}},
		{"map", obj.Map, map[int32]defaultedPart{1: part("a"), 2: part("x")}},
	} {
		if !reflect.DeepEqual(c.got, c.want) {
			t.Errorf("%v: got %+v, want %+v", c.what, c.got, c.want)
		}
	}
}

// TestDefaultsAreOwn checks that two objects share no default values.
func TestDefaultsAreOwn(t *testing.T) {
	rules := rulesOf[defaulted](t)
	a, b := &defaulted{}, &defaulted{}
	rules.SetDefaults(a)
	rules.SetDefaults(b)
	*a.Share, *a.On, *a.Text, a.Tags[0], a.Empty["x"] = 9, false, "x", "x", "x"
	a.Wait.Duration, a.Bytes[0], a.Filled.Under.N, a.Whole.Under.N = time.Hour, 9, 9, 9
	a.Any.(map[string]any)["n"] = 2
	wantJSON(t, b, everything)
}

// TestZeroIsAbsent shows the treatment of zero values that the comment of SetDefaults warns of.
func TestZeroIsAbsent(t *testing.T) {
	rules := rulesOf[struct {
		Plain   int  `json:"plain" default:"3"`
		Omitted int  `json:"omitted,omitempty" default:"3"`
		Pointer *int `json:"pointer,omitempty" default:"3"`
	}](t)
	obj := &struct {
		Plain   int  `json:"plain" default:"3"`
		Omitted int  `json:"omitted,omitempty" default:"3"`
		Pointer *int `json:"pointer,omitempty" default:"3"`
	}{Pointer: ptr(0)}
	rules.SetDefaults(obj)
	wantJSON(t, obj, `{"plain":3,"omitted":3,"pointer":0}`)
}

// TestUnsettable checks that fields behind a pointer to an unexported struct, which encoding/json cannot allocate either, are not
// set.
func TestUnsettable(t *testing.T) {
	type kind struct {
		*lazy
		A int `json:"a,omitempty" default:"1"`
	}
	rules, err := constraint.Of(reflect.TypeFor[kind]())
	if err != nil {
		t.Fatal(err)
	}
	obj := &kind{}
	rules.SetDefaults(obj)
	if obj.lazy != nil || obj.A != 1 {
		t.Errorf("got %+v", obj)
	}
}

type lazy struct {
	Late string `json:"late,omitempty" default:"x"`
}

func wantJSON(t *testing.T, obj any, want string) {
	t.Helper()
	got, err := json.Marshal(obj)
	if err != nil {
		t.Fatal(err)
	}
	if string(got) != want {
		t.Errorf("got  %s\nwant %s", got, want)
	}
}
