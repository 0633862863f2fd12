package patch_test

import (
	"encoding/json"
	"errors"
	"fmt"
	"reflect"
	"strings"
	"testing"

	"github.com/keelson-dev/keelson/runtime/patch"
)

const widget = `{"apiVersion":"example.com/v1","kind":"Widget","metadata":{"name":"a","labels":{"a/b":"1","m~n":"2"}},` +
	`"spec":{"size":9007199254740993,"ratio":1.0,"color":"red","list":[1,2,3],"nested":{"x":{"y":null}}}}`

// same compares JSON by meaning, numbers by their text.
func same(t *testing.T, got []byte, want string) {
	t.Helper()
	if g, w := parse(t, got), parse(t, []byte(want)); !reflect.DeepEqual(g, w) {
		t.Errorf("got  %s\nwant %s", got, want)
	}
}

func parse(t *testing.T, text []byte) any {
	t.Helper()
	d := json.NewDecoder(strings.NewReader(string(text)))
	d.UseNumber()
	var v any
	if err := d.Decode(&v); err != nil {
		t.Fatalf("%s: %v", text, err)
	}
	return v
}

func wantError(t *testing.T, err error, code int, message string) {
	t.Helper()
	var e *patch.Error
	if !errors.As(err, &e) {
		t.Fatalf("error %v is no *patch.Error", err)
	}
	if e.Code != code || !strings.Contains(e.Message, message) {
		t.Errorf("got %d %q, want %d %q", e.Code, e.Message, code, message)
	}
}

func TestJSONPatch(t *testing.T) {
	const doc = `{"a":{"b":1},"l":[1,2,3],"n":null,"big":9007199254740993,"a/b":{"m~n":true}}`
	for _, c := range []struct{ name, patch, want string }{
		{"nothing", `[]`, doc},
		{"null is nothing", `null`, doc},
		{"add", `[{"op":"add","path":"/a/c","value":[1]}]`, `{"a":{"b":1,"c":[1]},"l":[1,2,3],"n":null,"big":9007199254740993,"a/b":{"m~n":true}}`},
		{"add inserts", `[{"op":"add","path":"/l/1","value":9}]`, `{"a":{"b":1},"l":[1,9,2,3],"n":null,"big":9007199254740993,"a/b":{"m~n":true}}`},
		{"add appends", `[{"op":"add","path":"/l/-","value":9},{"op":"add","path":"/l/4","value":10},{"op":"add","path":"/l/-1","value":11}]`, `{"a":{"b":1},"l":[1,2,3,9,10,11],"n":null,"big":9007199254740993,"a/b":{"m~n":true}}`},
		{"add without value is null", `[{"op":"add","path":"/a"}]`, `{"a":null,"l":[1,2,3],"n":null,"big":9007199254740993,"a/b":{"m~n":true}}`},
		{"remove", `[{"op":"remove","path":"/a/b"},{"op":"remove","path":"/l/-1"},{"op":"remove","path":"/n"}]`, `{"a":{},"l":[1,2],"big":9007199254740993,"a/b":{"m~n":true}}`},
		{"replace", `[{"op":"replace","path":"/l/0","value":{"x":1}},{"op":"replace","path":"/a","value":null}]`, `{"a":null,"l":[{"x":1},2,3],"n":null,"big":9007199254740993,"a/b":{"m~n":true}}`},
		{"replace adds", `[{"op":"replace","path":"/a/new","value":1}]`, `{"a":{"b":1,"new":1},"l":[1,2,3],"n":null,"big":9007199254740993,"a/b":{"m~n":true}}`},
		{"replace all", `[{"op":"replace","path":"","value":{"x":12345678901234567890}}]`, `{"x":12345678901234567890}`},
		{"move", `[{"op":"move","from":"/a/b","path":"/l/0"},{"op":"move","from":"/n","path":"/a/n"}]`, `{"a":{"n":null},"l":[1,1,2,3],"big":9007199254740993,"a/b":{"m~n":true}}`},
		{"copy is a copy", `[{"op":"copy","from":"/a","path":"/c"},{"op":"add","path":"/c/b","value":2}]`, `{"a":{"b":1},"c":{"b":2},"l":[1,2,3],"n":null,"big":9007199254740993,"a/b":{"m~n":true}}`},
		{"escapes", `[{"op":"replace","path":"/a~1b/m~0n","value":false}]`, `{"a":{"b":1},"l":[1,2,3],"n":null,"big":9007199254740993,"a/b":{"m~n":false}}`},
		{"nested array grows", `[{"op":"add","path":"/l/0","value":[[]]},{"op":"add","path":"/l/0/0/-","value":1},{"op":"add","path":"/l/0/0/-","value":2},{"op":"remove","path":"/l/0/0/0"}]`, `{"a":{"b":1},"l":[[[2]],1,2,3],"n":null,"big":9007199254740993,"a/b":{"m~n":true}}`},
		{"test", `[{"op":"test","path":"/a","value":{"b":1}},{"op":"test","path":"/l","value":[1,2,3]},{"op":"test","path":"/n","value":null},{"op":"test","path":"/absent","value":null},{"op":"test","path":"/big","value":9007199254740993},{"op":"test","path":"","value":` + doc + `}]`, doc},
	} {
		t.Run(c.name, func(t *testing.T) {
			got, err := patch.JSONPatch([]byte(doc), []byte(c.patch))
			if err != nil {
				t.Fatal(err)
			}
			same(t, got, c.want)
		})
	}
}

func TestJSONPatchRefused(t *testing.T) {
	const generic = "the server rejected our request due to an error in our request"
	deep := strings.Repeat(`{"a":`, 9990) + "1" + strings.Repeat("}", 9990)
	for _, c := range []struct {
		name, patch string
		code        int
		message     string
	}{
		{"truncated", `[{"op":"add"`, 400, "invalid JSON patch"},
		{"empty", ``, 400, "invalid JSON patch"},
		{"two values", `[] []`, 400, "invalid JSON patch"},
		{"no list", `{"op":"add"}`, 400, "error decoding patch: json: cannot unmarshal object"},
		{"no operations", `[1]`, 400, "error decoding patch: json: cannot unmarshal number"},
		{"path no string", `[{"op":"add","path":1}]`, 400, "error decoding patch: json: cannot unmarshal number"},
		{"deep nesting", strings.Repeat("[", 20000) + strings.Repeat("]", 20000), 400, "invalid JSON patch"},
		{"unknown operation", `[{"op":"frob","path":"/spec"}]`, 422, generic},
		{"no operation", `[{"path":"/spec"}]`, 422, generic},
		{"null operation", `[null]`, 422, generic},
		{"names have case", `[{"OP":"remove","Path":"/spec"}]`, 422, generic},
		{"no path", `[{"op":"add","value":1}]`, 422, generic},
		{"no from", `[{"op":"copy","path":"/spec"}]`, 422, generic},
		{"remove missing", `[{"op":"remove","path":"/spec/none"}]`, 422, generic},
		{"add below missing", `[{"op":"add","path":"/none/x","value":1}]`, 422, generic},
		{"through a scalar", `[{"op":"add","path":"/spec/color/x","value":1}]`, 422, generic},
		{"through null", `[{"op":"add","path":"/spec/nested/x/y/z","value":1}]`, 422, generic},
		{"past the end", `[{"op":"add","path":"/spec/list/4","value":1}]`, 422, generic},
		{"before the start", `[{"op":"remove","path":"/spec/list/-4"}]`, 422, generic},
		{"no index", `[{"op":"replace","path":"/spec/list/x","value":1}]`, 422, generic},
		{"add everything", `[{"op":"add","path":"","value":{}}]`, 422, generic},
		{"replace everything by null", `[{"op":"replace","path":""}]`, 422, generic},
		{"into itself", `[{"op":"move","from":"/spec","path":"/spec/x"}]`, 422, generic},
		{"test differs", `[{"op":"test","path":"/spec/color","value":"blue"}]`, 422, generic},
		{"test of type", `[{"op":"test","path":"/spec/color","value":["red"]}]`, 422, generic},
		{"test of number text", `[{"op":"test","path":"/spec/ratio","value":1}]`, 422, generic},
		{"test of big number", `[{"op":"test","path":"/spec/size","value":9007199254740992}]`, 422, generic},
		{"too many", "[" + strings.Repeat(`{"op":"test","path":"/x"},`, 10000) + `{"op":"test","path":"/x"}]`, 413, "The allowed maximum operations in a JSON patch is 10000, got 10001"},
		{"doubling", `[{"op":"add","path":"/x","value":"` + strings.Repeat("x", 1000) + `"}` + strings.Repeat(`,{"op":"copy","from":"/spec","path":"/spec/list/-"},{"op":"copy","from":"/x","path":"/spec/y"}`, 40) + `]`, 422, generic},
		{"too deep together", fmt.Sprintf(`[{"op":"add","path":"/x","value":%s},{"op":"add","path":"/y","value":{"a":{"a":{"a":{"a":{"a":{"a":{"a":{"a":{"a":{"a":{}}}}}}}}}}}},{"op":"move","from":"/x","path":"/y/a/a/a/a/a/a/a/a/a/a/a"}]`, deep), 422, generic},
	} {
		t.Run(c.name, func(t *testing.T) {
			_, err := patch.JSONPatch([]byte(widget), []byte(c.patch))
			wantError(t, err, c.code, c.message)
		})
	}
}

func TestJSONPatchTakesTenThousand(t *testing.T) {
	p := "[" + strings.Repeat(`{"op":"add","path":"/spec/list/-","value":0},`, patch.DefaultOperations-1) + `{"op":"remove","path":"/spec"}]`
	got, err := patch.JSONPatch([]byte(widget), []byte(p))
	if err != nil {
		t.Fatal(err)
	}
	same(t, got, `{"apiVersion":"example.com/v1","kind":"Widget","metadata":{"name":"a","labels":{"a/b":"1","m~n":"2"}}}`)
}

// TestMergePatch has the examples of RFC 7386, appendix A, whose document and patch are objects, and the additions of
// kube-apiserver.
func TestMergePatch(t *testing.T) {
	for _, c := range []struct{ doc, patch, want string }{
		{`{"a":"b"}`, `{"a":"c"}`, `{"a":"c"}`},
		{`{"a":"b"}`, `{"b":"c"}`, `{"a":"b","b":"c"}`},
		{`{"a":"b"}`, `{"a":null}`, `{}`},
		{`{"a":"b","b":"c"}`, `{"a":null}`, `{"b":"c"}`},
		{`{"a":["b"]}`, `{"a":"c"}`, `{"a":"c"}`},
		{`{"a":"c"}`, `{"a":["b"]}`, `{"a":["b"]}`},
		{`{"a":{"b":"c"}}`, `{"a":{"b":"d","c":null}}`, `{"a":{"b":"d"}}`},
		{`{"a":[{"b":"c"}]}`, `{"a":[1]}`, `{"a":[1]}`},
		{`{"e":null}`, `{"a":1}`, `{"e":null,"a":1}`},
		{`{}`, `{"a":{"bb":{"ccc":null}}}`, `{"a":{"bb":{}}}`},
		{`{"a":[]}`, `{"a":{"b":null}}`, `{"a":{}}`},
		{`{"a":[]}`, `{"a":[null,{"b":null,"c":1}]}`, `{"a":[null,{"c":1}]}`},
		{`{"a":{"x":1}}`, `{"a":7}`, `{"a":7}`},
		{`{"n":9007199254740993}`, `{"m":9223372036854775807,"f":1.0}`, `{"n":9007199254740993,"m":9223372036854775807,"f":1.0}`},
		{`{"a":1}`, `{}`, `{"a":1}`},
	} {
		got, err := patch.MergePatch([]byte(c.doc), []byte(c.patch))
		if err != nil {
			t.Errorf("%s + %s: %v", c.doc, c.patch, err)
			continue
		}
		same(t, got, c.want)
	}
}

func TestMergePatchRefused(t *testing.T) {
	for _, p := range []string{``, `{`, `{"a":}`, `{} {}`, `{}x`, `[]`, `[{"a":1}]`, `"x"`, `1`, strings.Repeat(`{"a":`, 20000)} {
		_, err := patch.MergePatch([]byte(widget), []byte(p))
		wantError(t, err, 400, "error decoding patch: ")
	}
	_, err := patch.MergePatch([]byte(widget), []byte(`null`))
	wantError(t, err, 400, "Invalid JSON Patch")
	for _, doc := range []string{``, `{`, `[]`, `null`} {
		_, err := patch.MergePatch([]byte(doc), []byte(`{}`))
		wantError(t, err, 422, "")
	}
}
