package constraint_test

import (
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// TestUpdate checks which invalid values an update may leave unchanged.
func TestUpdate(t *testing.T) {
	rules := rulesOf[object](t)
	atomic := "loose[0].count: Invalid value: 50: loose[0].count in body should be less than or equal to 9"
	for name, c := range map[string]struct {
		old, obj func(*object)
		want     []string
	}{
		"unchanged values": {
			old: func(o *object) {
				o.Size, o.Color, o.Name, o.Addr = 50, "blue", ptr("A"), "x"
				o.Tags, o.Labels, o.Set = []string{"a", "a", "a", "a"}, map[string]int{"a": 1, "b": 2, "c": 3}, []color{"x", "x"}
			},
			obj: func(o *object) { o.Maybeset(1) },
		},
		"another wrong value": {
			old:  func(o *object) { o.Size = 50 },
			obj:  func(o *object) { o.Size = 51 },
			want: []string{"size: Invalid value: 51: size in body should be less than or equal to 10"},
		},
		"a list that changed": {
			old:  func(o *object) { o.Tags = []string{"a", "b", "c", "d"} },
			obj:  func(o *object) { o.Tags = []string{"a", "b", "c", "e"} },
			want: []string{"tags: Too many: 4: must have at most 3 items"},
		},
		"still missing": {
			old: func(o *object) { o.Must = nil },
			obj: func(o *object) { o.Size = 2 },
		},
		"no more there": {
			obj:  func(o *object) { o.Must = nil },
			want: []string{"must: Required value"},
		},
		"fields of an unchanged struct, in a changed one": {
			old: func(o *object) { o.Tree = tree{Label: "X", Next: &tree{Label: "Y"}} },
			obj: func(o *object) { o.Tree.Next.Next = &tree{Label: "Z"} },
			want: []string{
				`tree.next.next.label: Invalid value: "Z": tree.next.next.label in body should match '^[a-z]*$'`},
		},
		"keyed elements that moved": {
			old: func(o *object) { o.Parts = []part{{Name: "a"}, {Name: "b", Count: 50}, {Name: "c", Count: 60}} },
			obj: func(o *object) { o.Parts = []part{{Name: "c", Count: 60}, {Name: "b", Count: 50}} },
		},
		"keyed elements that are new": {
			old: func(o *object) { o.Parts = []part{{Name: "b", Count: 50}} },
			obj: func(o *object) { o.Parts = []part{{Name: "c", Count: 50}, {Name: "b", Count: 51}} },
			want: []string{
				"parts[0].count: Invalid value: 50: parts[0].count in body should be less than or equal to 9",
				"parts[1].count: Invalid value: 51: parts[1].count in body should be less than or equal to 9"},
		},
		"map values": {
			old: func(o *object) { o.ByKey = map[string]part{"a": {Name: "a", Count: 50}} },
			obj: func(o *object) { o.ByKey["b"] = part{Name: "b", Count: 50} },
			want: []string{
				"byKey[b].count: Invalid value: 50: byKey[b].count in body should be less than or equal to 9"},
		},
		"an atomic list, unchanged": {
			old: func(o *object) { o.Loose = []part{{Name: "a", Count: 50}} },
			obj: func(o *object) { o.Size = 2 },
		},
		"an atomic list, changed elsewhere": {
			old:  func(o *object) { o.Loose = []part{{Name: "a", Count: 50}, {Name: "b"}} },
			obj:  func(o *object) { o.Loose[1].Name = "c" },
			want: []string{atomic},
		},
		"lists in an atomic list": {
			old: func(o *object) { o.Grid = [][]part{{{Count: 50}}, {{Name: "a"}}} },
			obj: func(o *object) { o.Grid[1][0].Name = "b" },
			want: []string{
				`grid[0][0].name: Invalid value: "": grid[0][0].name in body should be at least 1 chars long`,
				"grid[0][0].count: Invalid value: 50: grid[0][0].count in body should be less than or equal to 9"},
		},
		"elements of a set": {
			old:  func(o *object) { o.Words = []*string{ptr("long"), ptr("a")} },
			obj:  func(o *object) { o.Words = []*string{ptr("longer"), ptr("a"), ptr("long")} },
			want: []string{"words[0]: Too long: may not be more than 3 bytes"},
		},
		"nil and empty are the same": {
			old: func(o *object) { o.Loose = []part{{Name: "a", Count: 50}}; o.Grid = nil },
			obj: func(o *object) { o.Grid = [][]part{} },
		},
		"immutable, the same": {
			old: func(o *object) { o.Fixed = "a" },
			obj: func(o *object) { o.Size = 2 },
		},
		"immutable, changed": {
			old:  func(o *object) { o.Fixed = "a" },
			obj:  func(o *object) { o.Fixed = "b" },
			want: []string{`fixed: Invalid value: "b": field is immutable`},
		},
		"immutable, removed": {
			old:  func(o *object) { o.Fixed = "a" },
			obj:  func(o *object) { o.Fixed = "" },
			want: []string{"fixed: Invalid value: null: field is immutable"},
		},
		"immutable, added later": {
			obj:  func(o *object) { o.Fixed = "a" },
			want: []string{`fixed: Invalid value: "a": field is immutable`},
		},
		"immutable, in elements": {
			old: func(o *object) { o.Parts = []part{{Name: "a", Fixed: "x"}, {Name: "b", Fixed: "x"}} },
			obj: func(o *object) { o.Parts = []part{{Name: "c", Fixed: "y"}, {Name: "b", Fixed: "y"}} },
			want: []string{
				`parts[1].fixed: Invalid value: "y": field is immutable`},
		},
		"an embedded pointer that comes": {
			obj:  func(o *object) { o.Inner = &Inner{Maybe: 6} },
			want: []string{"maybe: Invalid value: 6: maybe in body should be less than or equal to 5"},
		},
	} {
		t.Run(name, func(t *testing.T) {
			old, obj := valid(), valid()
			if c.old != nil {
				c.old(old)
				c.old(obj)
			}
			if c.obj != nil {
				c.obj(obj)
			}
			wantErrors(t, rules.ValidateUpdate(obj, old), c.want...)
			if len(c.want) > 0 && len(rules.ValidateUpdate(old, old)) > 0 {
				t.Error("an update that changes nothing is refused")
			}
		})
	}
}

func (o *object) Maybeset(n int) { o.Inner = &Inner{Maybe: n} }

// TestImmutableValues checks that a value in another notation is the same value.
func TestImmutableValues(t *testing.T) {
	type owner struct {
		Time  metav1.Time         `json:"time,omitempty" immutable:"true"`
		List  []map[string]string `json:"list" immutable:"true"`
		Any   any                 `json:"any,omitempty" immutable:"true"`
		Inner *struct {
			A *int `json:"a,omitempty"`
			b int
		} `json:"inner,omitempty" immutable:"true"`
	}
	rules := rulesOf[owner](t)
	at := time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)
	make := func() *owner {
		o := &owner{Time: metav1.NewTime(at), List: []map[string]string{{}}, Any: map[string]any{"a": []any{int64(1)}}}
		o.Inner = &struct {
			A *int `json:"a,omitempty"`
			b int
		}{A: ptr(1)}
		return o
	}
	obj := make()
	obj.Time = metav1.NewTime(at.In(time.FixedZone("", 3600)))
	obj.List[0] = nil
	obj.Inner.b = 2
	wantErrors(t, rules.ValidateUpdate(obj, make()))
	obj.Time, obj.List, obj.Any, *obj.Inner.A = metav1.NewTime(at.Add(time.Hour)), nil, map[string]any{"a": []any{int64(2)}}, 2
	wantErrors(t, rules.ValidateUpdate(obj, make()),
		`time: Invalid value: "2026-01-02T04:04:05Z": field is immutable`,
		"list: Invalid value: null: field is immutable",
		`any: Invalid value: {"a":[2]}: field is immutable`,
		`inner: Invalid value: {"a":2}: field is immutable`)
}

// TestStatusComesLater shows the rules of a struct that was left out before, as a status is.
func TestStatusComesLater(t *testing.T) {
	type status struct {
		Phase string `json:"phase,omitempty" required:"true" immutable:"true"`
		Count int    `json:"count,omitempty"`
	}
	type kind struct {
		Size   int    `json:"size"`
		Status status `json:"status,omitempty"`
	}
	rules := rulesOf[kind](t)
	wantErrors(t, rules.ValidateUpdate(&kind{Size: 2}, &kind{Size: 1}))
	wantErrors(t, rules.ValidateUpdate(&kind{Status: status{Phase: "a"}}, &kind{}))
	wantErrors(t, rules.ValidateUpdate(&kind{Status: status{Count: 1}}, &kind{}), "status.phase: Required value")
	wantErrors(t, rules.ValidateUpdate(&kind{Status: status{Phase: "b"}}, &kind{Status: status{Phase: "a"}}),
		`status.phase: Invalid value: "b": field is immutable`)
}

// TestMergeKeys checks that the tag patchMergeKey of Kubernetes types identifies elements, but does not require that they are
// unique.
func TestMergeKeys(t *testing.T) {
	type port struct {
		Number   int32  `json:"containerPort" maximum:"10"`
		Protocol string `json:"protocol,omitempty"`
	}
	type kind struct {
		Ports []port `json:"ports" patchStrategy:"merge" patchMergeKey:"containerPort"`
		Pairs []port `json:"pairs" listType:"map" listMapKey:"containerPort, protocol"`
	}
	rules := rulesOf[kind](t)
	old := &kind{Ports: []port{{1, ""}, {99, ""}}, Pairs: []port{{99, "a"}, {99, "b"}}}
	wantErrors(t, rules.ValidateUpdate(&kind{Ports: []port{{99, ""}, {99, "x"}}, Pairs: []port{{99, "b"}, {99, "a"}}}, old))
	wantErrors(t, rules.ValidateUpdate(&kind{Pairs: []port{{99, "c"}, {1, "c"}, {1, "c"}}}, old),
		`pairs[2]: Duplicate value: {"containerPort":1,"protocol":"c"}`,
		"pairs[0].containerPort: Invalid value: 99: pairs[0].containerPort in body should be less than or equal to 10")
}
