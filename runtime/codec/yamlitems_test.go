package codec_test

import (
	"bytes"
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/keelson-dev/keelson/runtime/codec"
	"sigs.k8s.io/yaml"
)

// yamlTexts are strings that YAML writes in different styles: plain, quoted, in blocks, folded, escaped.
var yamlTexts = []string{
	"", "a", "yes", "null", "~", "1", "1.5", "0x1f", "1e3", "2001-01-01", "- a", "a: b", "# a", " a", "a ", "a\n", "a\nb", "a\n\nb\n\n",
	"\na", "a\n  b\n c\n", "\t", "'", `"`, "{a}", "[a", "&a", "*a", "!a", "%a", "@a", "`a", "|", ">", "?", "a: |\n  b", "---", "...", "\u00e9\u4e16",
	"\U0001f600", "\u0085", "\u2028", "\ufeff", "\u0000\u001f\u007f", "<&>", "key\\with\"both",
	strings.Repeat("long words that fold ", 12), strings.Repeat("x", 200), strings.Repeat("line of a text\n", 30),
	strings.Repeat("word ", 20) + "\n" + strings.Repeat("word ", 20), "a" + strings.Repeat(" ", 90) + "b", strings.Repeat("quoted: ", 20),
}

// randomJSON returns a random value of the types in objects, not nested deeper than depth.
func randomJSON(r *rand.Rand, depth int) any {
	kinds := 8
	if depth == 0 {
		kinds = 5
	}
	switch r.IntN(kinds) {
	case 0:
		return r.IntN(2) == 0
	case 1:
		return []any{nil, r.Int64() - 1<<62, int64(r.IntN(300)) - 20, r.Float64(), float64(r.IntN(9)), 1e21, -1e-9}[r.IntN(7)]
	case 2, 3, 4:
		return randomText(r)
	case 5:
		list := make([]any, r.IntN(4))
		for i := range list {
			list[i] = randomJSON(r, depth-1)
		}
		return list
	}
	return randomObject(r, depth-1)
}

func randomText(r *rand.Rand) string {
	text := yamlTexts[r.IntN(len(yamlTexts))]
	if r.IntN(4) == 0 {
		text += yamlTexts[r.IntN(len(yamlTexts))]
	}
	return text
}

func randomObject(r *rand.Rand, depth int) map[string]any {
	object := map[string]any{}
	for range r.IntN(5) {
		object[randomText(r)] = randomJSON(r, depth)
	}
	return object
}

func marshalJSON(t testing.TB, v any) []byte {
	text, err := json.Marshal(v)
	must(t, err)
	return text
}

// A list that is written item by item is the same as a list that is written at once, at the top level and below a member.
func TestYAMLItemsAreTheList(t *testing.T) {
	r := rand.New(rand.NewPCG(1, 2))
	for range 400 {
		items := make([]any, 1+r.IntN(4))
		var got []byte
		for i := range items {
			if items[i] = any(randomObject(r, 4)); r.IntN(5) == 0 {
				items[i] = randomJSON(r, 4)
			}
			text := marshalJSON(t, items[i])
			before := bytes.Clone(text)
			var err error
			got, err = codec.AppendYAMLItem(got, text)
			must(t, err)
			if !bytes.Equal(text, before) {
				t.Fatalf("%s was changed to %s", before, text)
			}
		}
		whole := marshalJSON(t, items)
		want, err := codec.YAML().FromJSON(whole, false)
		must(t, err)
		same(t, string(whole), string(want), string(got))
		want, err = codec.YAML().FromJSON(marshalJSON(t, map[string]any{"apiVersion": "v1", "items": items, "kind": "List"}), false)
		must(t, err)
		same(t, "below items: "+string(whole), string(want), "apiVersion: v1\nitems:\n"+string(got)+"kind: List\n")
	}
}

// An indented JSON text gives the same item.
func TestYAMLItemOfIndentedJSON(t *testing.T) {
	got, err := codec.AppendYAMLItem([]byte("items:\n"), []byte("{\n  \"b\": [\n    1\n  ],\n  \"a\": \"x\"\n}\n"))
	must(t, err)
	same(t, "item", "items:\n- a: x\n  b:\n  - 1\n", string(got))
}

// An item that would consist mostly of indentation is written on one line. The items around it are written as usual.
func TestYAMLItemThatSprawls(t *testing.T) {
	const depth = 3000
	deep := strings.Repeat(`{"a":`, depth) + "\"\u0085 \\ud83d\"" + strings.Repeat("}", depth)
	got := []byte{}
	items := []string{`{"b":1}`, deep, strings.Replace(deep, "{", "{\n", 1), `{"b":[]}`}
	for _, item := range items {
		var err error
		got, err = codec.AppendYAMLItem(got, []byte(item))
		must(t, err)
	}
	lines := strings.SplitAfter(string(got), "\n")
	if len(lines) != 5 || lines[0] != "- b: 1\n" || lines[1] != lines[2] || lines[3] != "- b: []\n" {
		t.Fatalf("%d lines: %.60q %.60q %.60q", len(lines), lines[0], lines[1], lines[2])
	}
	if len(got) > 2*len(deep)+2*depth {
		t.Errorf("%d bytes became %d", len(deep), len(got))
	}
	back, err := yaml.YAMLToJSON(got)
	must(t, err)
	var g, w any
	must(t, json.Unmarshal(back, &g))
	must(t, json.Unmarshal([]byte("["+strings.Join(items, ",")+"]"), &w))
	if diff := cmp.Diff(fmt.Sprint(w), fmt.Sprint(g)); diff != "" {
		t.Error(diff)
	}
}

func TestYAMLItemRefusesWhatIsNoValue(t *testing.T) {
	for _, item := range []string{"", "1,2", "{", "a: b", `{"a":1}}`} {
		if got, err := codec.AppendYAMLItem(nil, []byte(item)); err == nil {
			t.Errorf("%q became %q", item, got)
		}
	}
}

func FuzzYAMLItem(f *testing.F) {
	for _, text := range yamlTexts {
		f.Add(string(marshalJSON(f, map[string]any{"a": text, text: []any{text}})))
	}
	f.Fuzz(func(t *testing.T, item string) {
		got, err := codec.AppendYAMLItem(nil, []byte(item))
		if err != nil {
			return
		}
		want, err := codec.YAML().FromJSON([]byte("["+item+"]"), false)
		must(t, err)
		if !bytes.HasPrefix(want, []byte("[")) {
			same(t, item, string(want), string(got))
		}
	})
}
