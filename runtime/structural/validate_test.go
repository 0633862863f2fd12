package structural_test

import (
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/keelson-dev/keelson/runtime/structural"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"k8s.io/apimachinery/pkg/util/validation/field"
)

func messages(errs field.ErrorList) []string {
	var all []string
	for _, err := range errs {
		all = append(all, err.Error())
	}
	return all
}

// TestValidate checks the errors that clients read.
func TestValidate(t *testing.T) {
	for name, test := range map[string]struct {
		schema, value string
		want          []string
	}{
		"types": {
			`{"type":"object","properties":{"a":{"type":"integer"},"b":{"type":"string"},"c":{"type":"boolean"}}}`, `{"a":"x","b":1,"c":null}`,
			[]string{
				`a: Invalid value: "string": a in body must be of type integer: "string"`,
				`b: Invalid value: "integer": b in body must be of type string: "integer"`,
				`c: Invalid value: "null": c in body must be of type boolean: "null"`,
			},
		},
		"a missing member at the root, and deeper": {
			`{"type":"object","required":["spec"],"properties":{"x":{"type":"object","required":["y"]}}}`, `{"x":{}}`,
			[]string{`x.y: Required value`, `spec: Required value`},
		},
		"enum": {
			`{"type":"object","properties":{"a":{"type":"string","enum":["x","y"]},"b":{"type":"integer","enum":[1,2]}}}`, `{"a":"z","b":3}`,
			[]string{`a: Unsupported value: "z": supported values: "x", "y"`, `b: Unsupported value: 3: supported values: "1", "2"`},
		},
		"texts": {
			`{"type":"object","additionalProperties":{"type":"string","maxLength":2,"minLength":1,"pattern":"^a"}}`, `{"a":"","b":"aaa","c":"b"}`,
			[]string{
				`a: Invalid value: "": .a in body should be at least 1 chars long`,
				`b: Too long: may not be more than 2 bytes`,
				`c: Invalid value: "b": .c in body should match '^a'`,
			},
		},
		"numbers": {
			`{"type":"object","properties":{"a":{"type":"integer","minimum":1},"b":{"type":"number","exclusiveMaximum":true,"maximum":2.5},
				"c":{"type":"integer","format":"int32"},"d":{"type":"integer","multipleOf":3}}}`, `{"a":0,"b":2.5,"c":2147483648,"d":4}`,
			[]string{
				`a: Invalid value: 0: a in body should be greater than or equal to 1`,
				`b: Invalid value: 2.5: b in body should be less than 2.5`,
				`<nil>: Invalid value: "": Checked value must be of type integer with format int32 in c`,
				`d: Invalid value: 4: d in body should be a multiple of 3`,
			},
		},
		"format": {
			`{"type":"object","properties":{"a":{"type":"string","format":"date"},"b":{"type":"string","format":"unheard"}}}`, `{"a":"x","b":"x"}`,
			[]string{`a: Invalid value: "x": a in body must be of type date: "x"`},
		},
		"sizes": {
			`{"type":"object","maxProperties":1,"properties":{"a":{"type":"array","items":{"type":"string"},"maxItems":1},"b":{"type":"array","items":{"type":"string"},"minItems":1}}}`,
			`{"a":["x","y"],"b":[]}`,
			[]string{
				`<nil>: Too many: 2: must have at most 1 item`,
				`a: Too many: 2: must have at most 1 item`,
				`b: Invalid value: 0: b in body should have at least 1 items`,
			},
		},
		"elements": {
			`{"type":"object","properties":{"a":{"type":"array","items":{"type":"object","properties":{"b":{"type":"integer"}}}}}}`, `{"a":[{},{"b":true}]}`,
			[]string{`a[1].b: Invalid value: "boolean": a[1].b in body must be of type integer: "boolean"`},
		},
		"int or string": {
			`{"type":"object","properties":{"a":{"x-kubernetes-int-or-string":true},"b":{"x-kubernetes-int-or-string":true,"pattern":"%$"}}}`, `{"a":1.5,"b":"5"}`,
			[]string{
				`a: Invalid value: "number": a in body must be of type integer,string: "number"`,
				`b: Invalid value: "5": b in body should match '%$'`,
			},
		},
		"oneOf, none": {
			`{"type":"object","properties":{"a":{"type":"object","oneOf":[{"required":["x"]},{"required":["y"]}]}}}`, `{"a":{}}`,
			[]string{`<nil>: Invalid value: "": "a" must validate one and only one schema (oneOf). Found none valid`, `a.x: Required value`},
		},
		"oneOf, two": {
			`{"type":"object","properties":{"a":{"type":"object","oneOf":[{"required":["x"]},{"required":["y"]}]}}}`, `{"a":{"x":1,"y":2}}`,
			[]string{`<nil>: Invalid value: "": "a" must validate one and only one schema (oneOf). Found 2 valid alternatives`},
		},
		"anyOf, allOf and not": {
			`{"type":"object","properties":{"a":{"type":"string","anyOf":[{"maxLength":1},{"pattern":"^b"}]},"b":{"type":"string","allOf":[{"maxLength":1},{"pattern":"^a"}]},
				"c":{"type":"string","not":{"minLength":1}}}}`, `{"a":"aa","b":"aa","c":"x"}`,
			[]string{
				`<nil>: Invalid value: "": "a" must validate at least one schema (anyOf)`, `a: Too long: may not be more than 1 byte`,
				`b: Too long: may not be more than 1 byte`, `<nil>: Invalid value: "": "b" must validate all the schemas (allOf)`,
				`<nil>: Invalid value: "": "c" must not validate the schema (not)`,
			},
		},
		"additionalProperties: false": {
			`{"type":"object","properties":{"a":{"type":"object","additionalProperties":false}}}`, `{"a":{"x":1}}`,
			[]string{`a: Invalid value: "x": a.x in body is a forbidden property`},
		},
	} {
		t.Run(name, func(t *testing.T) {
			got := messages(mustCompile(t, test.schema).Validate(nil, decode(t, []byte(test.value))))
			if diff := cmp.Diff(test.want, got); diff != "" {
				t.Error(diff)
			}
		})
	}
}

// TestPath checks that the paths of errors are below the path of the value, except for errors without a path of their own.
func TestPath(t *testing.T) {
	s := mustCompile(t, `{"type":"object","properties":{"a":{"type":"string"}},"required":["b"],"not":{"required":["a"]}}`)
	got := messages(s.Validate(field.NewPath("status"), decode(t, []byte(`{"a":1}`))))
	want := []string{
		`status: Invalid value: "": "" must not validate the schema (not)`,
		`status.a: Invalid value: "integer": a in body must be of type string: "integer"`, `status.b: Required value`,
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Error(diff)
	}
}

// TestRatcheting checks the promises of ValidateUpdate.
func TestRatcheting(t *testing.T) {
	const keyed = `{"type":"object","properties":{"l":{"type":"array","x-kubernetes-list-type":"map","x-kubernetes-list-map-keys":["k"],
		"items":{"type":"object","required":["k"],"properties":{"k":{"type":"string"},"v":{"type":"integer","maximum":5}}}}}}`
	const atomic = `{"type":"object","properties":{"l":{"type":"array","items":{"type":"integer","maximum":5}}}}`
	for name, test := range map[string]struct{ schema, old, value, want string }{
		"a value that stays": {`{"type":"object","properties":{"a":{"type":"integer","maximum":5},"b":{"type":"string"}}}`,
			`{"a":9,"b":"x"}`, `{"a":9,"b":"y"}`, ``},
		"a value that changes": {`{"type":"object","properties":{"a":{"type":"integer","maximum":5}}}`,
			`{"a":9}`, `{"a":8}`, `a: Invalid value: 8: a in body should be less than or equal to 5`},
		"a number of another type is another": {`{"type":"object","properties":{"a":{"type":"integer","maximum":5}}}`,
			`{"a":9.0}`, `{"a":9}`, `a: Invalid value: 9: a in body should be less than or equal to 5`},
		"a value that is new": {`{"type":"object","properties":{"a":{"type":"integer","maximum":5}}}`,
			`{}`, `{"a":9}`, `a: Invalid value: 9: a in body should be less than or equal to 5`},
		"a missing member of an object that stays": {`{"type":"object","properties":{"a":{"type":"object","required":["x"],"properties":{"y":{"type":"string"}}},"b":{"type":"string"}}}`,
			`{"a":{"y":"1"},"b":"x"}`, `{"a":{"y":"1"},"b":"y"}`, ``},
		"a missing member of an object that changes": {`{"type":"object","properties":{"a":{"type":"object","required":["x"],"properties":{"y":{"type":"string"}}}}}`,
			`{"a":{"y":"1"}}`, `{"a":{"y":"2"}}`, `a.x: Required value`},
		"an object with a member that is not described": {`{"type":"object","properties":{"a":{"type":"object","maxProperties":0,"x-kubernetes-preserve-unknown-fields":true}}}`,
			`{"a":{"y":"1"}}`, `{"a":{"y":"1"}}`, `a: Too many: 1: must have at most 0 items`},
		"an element with the same keys elsewhere": {keyed, `{"l":[{"k":"a","v":9},{"k":"b","v":1}]}`, `{"l":[{"k":"b","v":2},{"k":"a","v":9}]}`, ``},
		"an element with other keys": {keyed, `{"l":[{"k":"a","v":9}]}`, `{"l":[{"k":"c","v":9}]}`,
			`l[0].v: Invalid value: 9: l[0].v in body should be less than or equal to 5`},
		"the order of a map is no change": {strings.Replace(keyed, `"l":{`, `"l":{"maxItems":1,`, 1),
			`{"l":[{"k":"a"},{"k":"b"}]}`, `{"l":[{"k":"b"},{"k":"a"}]}`, ``},
		"a list that stays": {atomic, `{"l":[9,1]}`, `{"l":[9,1]}`, ``},
		"elements of a list that changes": {atomic, `{"l":[9,1]}`, `{"l":[9,2]}`,
			`l[0]: Invalid value: 9: l[0] in body should be less than or equal to 5`},
		"inside of allOf nothing is ratcheted by itself": {`{"type":"object","properties":{"a":{"type":"object","properties":{"x":{"type":"integer"},"y":{"type":"integer"}},
			"allOf":[{"properties":{"x":{"maximum":5}}}]}}}`, `{"a":{"x":9,"y":1}}`, `{"a":{"x":9,"y":2}}`,
			`a.x: Invalid value: 9: a.x in body should be less than or equal to 5|<nil>: Invalid value: "": "a" must validate all the schemas (allOf). None validated`},
		"kind at the root": {`{"type":"object","properties":{"kind":{"type":"string","maxLength":1}}}`, `{"kind":"abc"}`, `{"kind":"abc"}`, ``},
	} {
		t.Run(name, func(t *testing.T) {
			s := mustCompile(t, test.schema)
			value, old := decode(t, []byte(test.value)), decode(t, []byte(test.old))
			if got := strings.Join(messages(s.ValidateUpdate(nil, value, old)), "|"); got != test.want {
				t.Errorf("got %s\nwant %s", got, test.want)
			}
			if len(s.Validate(nil, value)) == 0 {
				t.Error("the value is valid anyway")
			}
		})
	}
	s := mustCompile(t, `{"type":"object","properties":{"kind":{"type":"string","maxLength":1}}}`)
	value, old := decode(t, []byte(`{"kind":"abc","x":1}`)), decode(t, []byte(`{"kind":"abc","x":2}`))
	if got := messages(s.ValidateUpdate(nil, value, old)); len(got) != 1 {
		t.Errorf("kind at the root is ratcheted: %q", got)
	}
}

// TestManyElements pairs the elements of long lists, which are indexed.
func TestManyElements(t *testing.T) {
	s := mustCompile(t, `{"type":"object","properties":{"l":{"type":"array","x-kubernetes-list-type":"map","x-kubernetes-list-map-keys":["k","n"],
		"items":{"type":"object","required":["k","n"],"properties":{"k":{"type":"string"},"n":{"type":"integer"},"v":{"type":"integer","maximum":5}}}}}}`)
	list := func(value int64, reverse bool) map[string]any {
		var l []any
		for i := range int64(100) {
			l = append(l, map[string]any{"k": strconv.Itoa(int(i) % 10), "n": i, "v": value})
		}
		if reverse {
			slices.Reverse(l)
		}
		return map[string]any{"l": l}
	}
	if errs := s.ValidateUpdate(nil, list(9, true), list(9, false)); len(errs) > 0 {
		t.Errorf("got %d errors: %v", len(errs), errs[0])
	}
	if errs := s.ValidateUpdate(nil, list(9, true), list(8, false)); len(errs) != 100 {
		t.Errorf("got %d errors", len(errs))
	}
	if errs := s.CheckLists(nil, list(1, false)); len(errs) > 0 {
		t.Errorf("got %v", errs)
	}
	twice := list(1, false)
	twice["l"] = append(twice["l"].([]any), map[string]any{"k": "3", "n": int64(13)})
	want := []string{`l[100]: Duplicate value: {"k":"3","n":13}`}
	if diff := cmp.Diff(want, messages(s.CheckLists(nil, twice))); diff != "" {
		t.Error(diff)
	}
	set := mustCompile(t, `{"type":"array","x-kubernetes-list-type":"set","items":{"type":"integer"}}`)
	var numbers []any
	for i := range int64(100) {
		numbers = append(numbers, i)
	}
	if errs := set.CheckLists(nil, numbers); len(errs) > 0 {
		t.Errorf("got %v", errs)
	}
	want = []string{`[100]: Duplicate value: 7`}
	if diff := cmp.Diff(want, messages(set.CheckLists(nil, append(numbers, int64(7))))); diff != "" {
		t.Error(diff)
	}
	if errs := s.CheckListsUpdate(nil, twice, list(1, false)); len(errs) != 1 {
		t.Errorf("a new duplicate: %v", errs)
	}
	if errs := s.CheckListsUpdate(nil, twice, twice); len(errs) != 0 {
		t.Errorf("an old duplicate: %v", errs)
	}
}

// TestDeep ratchets an object with an error at each of many depths.
func TestDeep(t *testing.T) {
	schema := props{Type: "array", Items: &apiextensionsv1.JSONSchemaPropsOrArray{Schema: &props{Type: "integer"}}}
	deep := func() map[string]any {
		list := make([]any, 10_000)
		for i := range list {
			list[i] = int64(i)
		}
		object := map[string]any{"a": list}
		for range structural.MaxDepth - 2 {
			object = map[string]any{"a": object}
		}
		return object
	}
	for range structural.MaxDepth - 1 {
		schema = props{Type: "object", Properties: map[string]props{"a": schema}, Required: []string{"b"}}
	}
	s, err := structural.Compile(&schema)
	if err != nil {
		t.Fatal(err)
	}
	object := deep()
	if errs := s.ValidateUpdate(nil, object, deep()); len(errs) > 0 {
		t.Errorf("got %v", errs[0])
	}
	if errs := s.Validate(nil, object); len(errs) != structural.MaxDepth-1 {
		t.Errorf("got %d errors", len(errs))
	}
}

// TestManyErrors checks that the errors of one value are bounded.
func TestManyErrors(t *testing.T) {
	s := mustCompile(t, `{"type":"object","properties":{"l":{"type":"array","items":{"type":"integer"}}}}`)
	list := make([]any, 5000)
	for i := range list {
		list[i] = "x"
	}
	errs := s.Validate(nil, map[string]any{"l": list})
	if len(errs) != 1000 || errs[999].Field != "l[999]" {
		t.Errorf("got %d errors", len(errs))
	}
}

// TestLists checks the errors of duplicates.
func TestLists(t *testing.T) {
	for name, test := range map[string]struct {
		schema, value string
		want          []string
	}{
		"a set": {`{"type":"object","properties":{"l":{"type":"array","x-kubernetes-list-type":"set","items":{"type":"string"}}}}`,
			`{"l":["a","b","a","a"]}`, []string{`l[2]: Duplicate value: "a"`}},
		"numbers have types": {`{"type":"object","properties":{"l":{"type":"array","x-kubernetes-list-type":"set","items":{"type":"number"}}}}`,
			`{"l":[1,1.0]}`, nil},
		"numbers inside have none": {`{"type":"object","properties":{"l":{"type":"array","x-kubernetes-list-type":"set","items":{"type":"array","items":{"type":"number"}}}}}`,
			`{"l":[[1],[1.0]]}`, []string{`l[1]: Duplicate value: [1]`}},
		"the other way round": {`{"type":"object","properties":{"l":{"type":"array","x-kubernetes-list-type":"set","items":{"type":"array","items":{"type":"number"}}}}}`,
			`{"l":[[1.0],[1]]}`, []string{`l[1]: Duplicate value: [1]`}},
		"a map": {`{"type":"object","additionalProperties":{"type":"array","x-kubernetes-list-type":"map","x-kubernetes-list-map-keys":["k"],"items":{"type":"object"}}}`,
			`{"x.y":[{"k":1},{},{},{"k":1,"v":2}]}`, []string{`[x.y][2]: Duplicate value: {}`, `[x.y][3]: Duplicate value: {"k":1}`}},
		"no objects": {`{"type":"object","properties":{"l":{"type":"array","x-kubernetes-list-type":"map","x-kubernetes-list-map-keys":["k"],"items":{"type":"object"}}}}`,
			`{"l":[1]}`, []string{`l[0]: Invalid value: 1: must be an object for an array of list-type map`}},
		"null is a key, absence another": {`{"type":"object","properties":{"l":{"type":"array","x-kubernetes-list-type":"map","x-kubernetes-list-map-keys":["k"],"items":{"type":"object"}}}}`,
			`{"l":[{"k":null},{},{"k":1},{"k":1}]}`, []string{`l[3]: Duplicate value: {"k":1}`}},
	} {
		t.Run(name, func(t *testing.T) {
			if diff := cmp.Diff(test.want, messages(mustCompile(t, test.schema).CheckLists(nil, decode(t, []byte(test.value))))); diff != "" {
				t.Error(diff)
			}
		})
	}
}

// TestNothing checks the methods of a nil schema.
func TestNothing(t *testing.T) {
	s, err := structural.Compile(nil)
	if s != nil || err != nil {
		t.Fatalf("got %v, %v", s, err)
	}
	object := map[string]any{"apiVersion": "v1", "kind": "X", "metadata": map[string]any{"name": "a"}, "spec": map[string]any{}}
	if errs := slices.Concat(s.Validate(nil, object), s.CheckLists(nil, object), s.ValidateEmbedded(nil, object)); len(errs) > 0 {
		t.Errorf("got %v", errs)
	}
	unknown, err := s.Conform(object, structural.ConformOptions{Report: 10})
	s.SetDefaults(object)
	if err != nil || len(object) != 3 || !slices.Equal(unknown, []string{"spec"}) {
		t.Errorf("got %v, %v, %v", object, unknown, err)
	}
}
