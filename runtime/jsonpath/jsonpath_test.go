package jsonpath_test

import (
	"fmt"
	"reflect"
	"strings"
	"sync"
	"testing"

	"github.com/keelson-dev/keelson/runtime/jsonpath"
	apijson "k8s.io/apimachinery/pkg/util/json"
)

// The module server/servertest/clienttest compares the results with those of client-go, by a large corpus and a fuzz test.

const sample = `{"kind": "Widget", "metadata": {"name": "a", "labels": {"app.kubernetes.io/name": "x"}},
	"spec": {"size": 3, "ratio": 0.5, "none": null, "text": "ab", "list": [1, 2, 3, 4], "object": {"b": 2, "a": 1},
		"parts": [{"name": "p", "size": 1}, {"name": "q", "size": 2, "tags": ["x"]}]},
	"status": {"conditions": [{"type": "Ready", "status": "True"}, {"type": "Done (all)", "status": "False"}]}}`

func decoded(t testing.TB, text string) any {
	t.Helper()
	var v any
	if err := apijson.Unmarshal([]byte(text), &v); err != nil {
		t.Fatal(err)
	}
	return v
}

func TestFind(t *testing.T) {
	t.Parallel()
	object := decoded(t, sample)
	type list = []any
	for path, want := range map[string]any{
		".spec.size": list{int64(3)}, ".spec.ratio": list{0.5}, ".spec.none": list{nil}, ".spec.missing": list(nil), ".spec.size.more": list(nil),
		"$.spec['size']": list{int64(3)}, `.metadata.labels.app\.kubernetes\.io/name`: list{"x"},
		".spec.list[0]": list{int64(1)}, ".spec.list[-1]": list{int64(4)}, ".spec.list[1:3]": list{int64(2), int64(3)}, ".spec.list[::2]": list{int64(1), int64(3)},
		".spec.list[0,3]": list{int64(1), int64(4)}, ".spec.list[4]": "no element", ".spec.size[0]": "no list", ".spec.list[::0]": "step",
		".spec.object.*": list{int64(1), int64(2)}, ".spec.text.*": list{byte('a'), byte('b')}, ".spec.parts[*].name": list{"p", "q"}, "..tags[0]": list{"x"}, ".spec.list[0][0]": "no list",
		".spec.parts..size": list{int64(1), int64(2)}, ".spec['size','ratio']": list{int64(3), 0.5},
		`.status.conditions[?(@.type=="Ready")].status`: list{"True"}, `.status.conditions[?(@.type=='Done (all)')].status`: list{"False"},
		".spec.parts[?(@.size>1)].name": list{"q"}, ".spec.parts[?(@.size>=1.0)].name": "cannot be compared", ".spec.parts[?(@.tags)].name": list{"q"},
		".spec.parts[?(@.size<>1)]": "unrecognized filter operator", ".spec.object[?(@.a)]": "cannot be filtered", ".spec.parts[?(@.size==@.*)]": "one value",
		".spec.object..": list{map[string]any{"a": int64(1), "b": int64(2)}}, ".spec.parts[?(@.tags[5])].name": list{"q"}, ".spec.parts[?(@.size<=1)].name": list{"p"},
		".spec.size 'text'": list{"text"}, ".spec.size}{.spec.list[9]": "no element", ".spec.size}{.spec": list{int64(3)},
		".spec range .list": "not supported", ".spec end": "not supported", ".spec word": "unrecognized identifier",
		".spec.parts[?(range @.name)]": "not supported",
	} {
		p, err := jsonpath.Parse(path)
		if err != nil {
			t.Errorf("%s: %v", path, err)
			continue
		}
		got, err := p.Find(object)
		if text, ok := want.(string); ok {
			if err == nil || !strings.Contains(err.Error(), text) {
				t.Errorf("%s: %v, %v; want an error with %q", path, got, err, text)
			}
			continue
		}
		if err != nil || !reflect.DeepEqual(got, want) {
			t.Errorf("%s: %#v, %v; want %#v", path, got, err, want)
		}
	}
}

func TestParseRefuses(t *testing.T) {
	t.Parallel()
	for path, want := range map[string]string{
		".a[": "unterminated array", ".a[x]": "invalid array index", ".a[1:2:3:4]": "invalid array index", ".a[99999999999999999999]": "not a number",
		".a[?(@.b": "unterminated filter", ".a[?(@.b)": "unclosed array", ".a[?(@.b==)]": "unrecognized character", "....": "multiple recursive descent", ".a 'b": "unterminated quoted",
		".a\n": "unclosed action", ".a}{.b[": "unterminated array", "*": "unrecognized character", ".a 1.2.3": "cannot parse number", `.a '\q'`: "invalid syntax",
	} {
		if p, err := jsonpath.Parse(path); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%q: %v, %v; want an error with %q", path, p, err, want)
		}
	}
}

// A path that visits too many values soon ends with an error.
func TestFindIsBounded(t *testing.T) {
	t.Parallel()
	deep := any("x")
	for range 2000 {
		deep = map[string]any{"a": deep}
	}
	wide := make([]any, 1<<17)
	for i := range wide {
		wide[i] = int64(i)
	}
	for path, object := range map[string]any{
		"..a..a..a":                         deep,
		"..a..a..b":                         deep,
		".*[?(@..a..a)]":                    map[string]any{"list": []any{deep, deep}},
		"[*,*,*,*,*,*,*,*,*].x":             any(wide),
		"[*,*,*,*,*,*,*,*,*]":               any(wide), // the results of the last step count too
		".list['a','a'][*]":                 map[string]any{"list": map[string]any{"a": wide}},
		".list" + strings.Repeat("}{..", 9): map[string]any{"list": wide},
		"['a'" + strings.Repeat(",'a'", 8) + "][?(@.x)]": map[string]any{"a": wide},
		"['a'" + strings.Repeat(",'a'", 8) + "][?()]":    map[string]any{"a": wide},
	} {
		p, err := jsonpath.Parse(path)
		if err != nil {
			t.Fatal(err)
		}
		if found, err := p.Find(object); err == nil || !strings.Contains(err.Error(), "comes across more than") {
			t.Errorf("%s: %d values, %v", path, len(found), err)
		}
	}
	p, err := jsonpath.Parse("[-1]")
	if err != nil {
		t.Fatal(err)
	}
	if found, err := p.Find(wide); err != nil || len(found) != 1 || found[0] != int64(1<<17-1) {
		t.Errorf("%v, %v", found, err)
	}
}

func TestText(t *testing.T) {
	t.Parallel()
	for want, value := range map[string]any{
		"<no value>": nil, "a b": "a b", "3": int64(3), "1e+21": 1e21, "0.5": 0.5, "true": true,
		`{"a":1,"b":["\u003c"]}`: map[string]any{"b": []any{"<"}, "a": int64(1)}, "[]": []any{},
	} {
		if got, err := jsonpath.Text(value); err != nil || got != want {
			t.Errorf("%v: %q, %v; want %q", value, got, err, want)
		}
	}
}

// A compiled path can be used concurrently, and changes nothing.
func TestFindConcurrently(t *testing.T) {
	t.Parallel()
	p, err := jsonpath.Parse(".spec.parts[?(@.size==2)]..name")
	if err != nil {
		t.Fatal(err)
	}
	object := decoded(t, sample)
	var all sync.WaitGroup
	for range 8 {
		all.Go(func() {
			for range 100 {
				if found, err := p.Find(object); err != nil || len(found) != 1 || found[0] != "q" {
					t.Errorf("%v, %v", found, err)
				}
			}
		})
	}
	all.Wait()
	if !reflect.DeepEqual(object, decoded(t, sample)) {
		t.Error("the object was changed")
	}
	if found, err := new(jsonpath.Path).Find(object); found != nil || err != nil {
		t.Errorf("the zero Path: %v, %v", found, err)
	}
}

func ExampleParse() {
	ready, err := jsonpath.Parse(`.status.conditions[?(@.type=="Ready")].status`)
	if err != nil {
		fmt.Println(err)
		return
	}
	found, err := ready.Find(map[string]any{"status": map[string]any{"conditions": []any{
		map[string]any{"type": "Synced", "status": "False"}, map[string]any{"type": "Ready", "status": "True"},
	}}})
	fmt.Println(found, err)
	// Output: [True] <nil>
}
