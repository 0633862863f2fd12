package structural_test

import (
	"testing"

	"github.com/keelson-dev/keelson/runtime/structural"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"k8s.io/apimachinery/pkg/util/validation/field"
	"k8s.io/apimachinery/pkg/util/yaml"
)

// parsed returns a schema from its YAML.
func parsed(t *testing.T, text string) *apiextensionsv1.JSONSchemaProps {
	t.Helper()
	props := &apiextensionsv1.JSONSchemaProps{}
	if err := yaml.Unmarshal([]byte(text), props); err != nil {
		t.Fatal(err)
	}
	return props
}

// TestPairs checks which values have an old value, and when they are unchanged.
func TestPairs(t *testing.T) {
	s, err := structural.Compile(parsed(t, `
type: object
properties:
  a: {type: integer}
  l: {type: array, items: {type: integer}}
  m: {type: array, x-kubernetes-list-type: map, x-kubernetes-list-map-keys: [k], items: {type: object, properties: {k: {type: string}, v: {type: integer}}}}
  o: {type: object, additionalProperties: {type: integer}}
  free: {type: object, x-kubernetes-preserve-unknown-fields: true}
`))
	if err != nil {
		t.Fatal(err)
	}
	element := func(key string, v int64) any { return map[string]any{"k": key, "v": v} }
	value := map[string]any{
		"a": int64(1), "l": []any{int64(1)}, "m": []any{element("x", 1), element("y", 2), element("new", 3)},
		"o": map[string]any{"x": int64(1), "y": int64(2)}, "free": map[string]any{"x": int64(1)}, "unknown": int64(1),
	}
	old := map[string]any{
		"a": int64(1), "l": []any{int64(1)}, "m": []any{element("y", 3), element("x", 1)},
		"o": map[string]any{"y": int64(3), "x": int64(1)}, "free": map[string]any{"x": int64(1)}, "unknown": int64(1),
	}
	root := structural.NewPairs(s, value, old).Root()
	for name, test := range map[string]struct {
		pair        structural.Pair
		known, same bool
	}{
		"root":                   {root, true, false},
		"integer":                {root.Member("a"), true, true},
		"list":                   {root.Member("l"), true, true},
		"element":                {root.Member("l").Element(0), false, false},
		"list of type map":       {root.Member("m"), true, false},
		"element that moved":     {root.Member("m").Element(0), true, true},
		"element that changed":   {root.Member("m").Element(1), true, false},
		"new element":            {root.Member("m").Element(2), false, false},
		"no element":             {root.Member("m").Element(3), false, false},
		"in it":                  {root.Member("m").Element(1).Member("k"), true, true},
		"map":                    {root.Member("o").Member("x"), true, true},
		"map that changed":       {root.Member("o").Member("y"), true, false},
		"no member":              {root.Member("o").Member("z"), false, false},
		"not described":          {root.Member("unknown"), false, false},
		"with unknown members":   {root.Member("free"), true, false},
		"below what is no value": {root.Member("nothing").Member("x").Element(0), false, false},
	} {
		if test.pair.Known() != test.known || test.pair.Same() != test.same {
			t.Errorf("%s: known %v, same %v", name, test.pair.Known(), test.pair.Same())
		}
	}
	if same := structural.NewPairs(s, value, value).Root().Member("m").Same(); !same {
		t.Error("a value is not itself")
	}
	if structural.NewPairs(nil, value, value).Root().Known() {
		t.Error("a value without a schema has a counterpart")
	}
}

// TestPrepare checks that Prepare finds the same errors as Check, separately for defaults and keywords.
func TestPrepare(t *testing.T) {
	path := field.NewPath("schema")
	for name, test := range map[string]struct {
		schema             string
		structural         bool
		defaults, keywords int
	}{
		"fine":           {`{type: object, properties: {a: {type: integer, default: 1}}}`, true, 0, 0},
		"not structural": {`{type: object, properties: {a: {}}}`, false, 0, 0},
		"default":        {`{type: object, properties: {a: {type: integer, default: x}}}`, true, 1, 0},
		"keyword":        {`{type: object, properties: {a: {type: array, uniqueItems: true, items: {type: string}}}}`, true, 0, 1},
		"both":           {`{type: object, properties: {a: {type: array, default: x, uniqueItems: true, items: {type: string}}}}`, true, 1, 1},
		"unsupported":    {`{type: object, id: x}`, false, 0, 0},
	} {
		props := parsed(t, test.schema)
		g := structural.Prepare(path, props, structural.Options{})
		if (g.Schema != nil) != test.structural || len(g.Defaults) != test.defaults || len(g.Keywords) != test.keywords {
			t.Errorf("%s: got %+v", name, g)
		}
		if errs := structural.Check(path, props, structural.Options{}); test.structural && len(errs) != test.defaults+test.keywords {
			t.Errorf("%s: Check finds %v", name, errs)
		}
	}
	if g := structural.Prepare(path, parsed(t, `{type: object}`), structural.Options{Tolerance: structural.Tolerance{NonStructural: true}}); g.Schema != nil {
		t.Error("rules of what need not be structural are judged")
	}
	if g := structural.Prepare(path, nil, structural.Options{}); g.Schema != nil {
		t.Error("there is a schema")
	}
	g := structural.Prepare(path, parsed(t, `{type: object, properties: {l: {type: array, x-kubernetes-list-type: set, items: {type: string, nullable: true}}}}`), structural.Options{})
	if l := path.Child("properties").Key("l"); !g.Faulty[path.String()] || !g.Faulty[l.String()] || g.Faulty[l.Child("items").String()] {
		t.Errorf("a fault of a list is one of %v", g.Faulty)
	}
}
