package patch_test

import (
	"encoding/json"
	"errors"
	"reflect"
	"strings"
	"testing"

	"github.com/keelson-dev/keelson/runtime/patch"
	jsonpatch "gopkg.in/evanphx/json-patch.v4"
)

var documents = []string{
	widget,
	`{"a":{"b":[1,{"c":null}]},"":{"":0},"l":[[],[1]]}`,
}

func FuzzJSONPatch(f *testing.F) {
	for _, p := range []string{
		`[{"op":"add","path":"/a/b/-","value":{"x":[1]}},{"op":"move","from":"/a/b/0","path":"/l/0/0"}]`,
		`[{"op":"copy","from":"/a","path":"/l/1/-1"},{"op":"remove","path":"/a/b/-1/c"}]`,
		`[{"op":"replace","path":"","value":[1]},{"op":"add","path":"/-","value":2}]`,
		`[{"op":"replace","path":""}]`,
		`[{"op":"test","path":"/a/b/1/c","value":null},{"op":"replace","path":"//","value":null}]`,
		`[{"op":"add","path":"x/y","value":1},{"op":"remove","path":"/y"}]`,
		`[{"op":"add","path":"/~01~10","value":1.50}]`,
		`[null,{}]`, `[{"path":null,"from":null,"op":null,"value":null}]`,
	} {
		f.Add(documents[0], p)
		f.Add(documents[1], p)
	}
	f.Fuzz(func(t *testing.T, doc, p string) {
		got, err := patch.JSONPatch([]byte(doc), []byte(p))
		checkResult(t, got, err)
		if !like(doc, p) || strings.Contains(p, "test") {
			return
		}
		want, ok := reference(doc, p)
		if ok != (err == nil) {
			t.Fatalf("%s + %s: %v; the reference says %v %s", doc, p, err, ok, want)
		}
		if ok && !reflect.DeepEqual(parse(t, got), parse(t, want)) {
			t.Fatalf("%s + %s: %s; the reference says %s", doc, p, got, want)
		}
	})
}

// reference applies a JSON patch with the library that kube-apiserver uses.
func reference(doc, p string) (out []byte, ok bool) {
	defer func() {
		if recover() != nil { // it panics where a value is needed and missing
			out, ok = nil, false
		}
	}()
	operations, err := jsonpatch.DecodePatch([]byte(p))
	if err != nil {
		return nil, false
	}
	for _, o := range operations { // kube-apiserver decodes them a second time, by type
		for _, name := range []string{"op", "path", "from"} {
			var s *string
			if text := o[name]; text != nil && json.Unmarshal(*text, &s) != nil {
				return nil, false
			}
		}
		if o["path"] == nil {
			return nil, false
		}
	}
	out, err = operations.Apply([]byte(doc))
	return out, err == nil
}

func FuzzMergePatch(f *testing.F) {
	for _, p := range []string{
		`{"spec":{"size":null,"color":{"x":null}}}`, `{"a":{"b":[{"c":null}],"d":{"e":null}}}`,
		`{"":null,"l":{"x":[null,{"y":null}]}}`, `{"a":[{"b":null}]}`, `[]`, `null`, `{`,
	} {
		f.Add(documents[0], p)
		f.Add(documents[1], p)
	}
	f.Fuzz(func(t *testing.T, doc, p string) {
		got, err := patch.MergePatch([]byte(doc), []byte(p))
		checkResult(t, got, err)
		if err != nil || !like(doc, p) {
			return
		}
		want, err := jsonpatch.MergePatch([]byte(doc), []byte(p))
		if err != nil {
			t.Fatalf("%s + %s: %s; the reference says %v", doc, p, got, err)
		}
		if !reflect.DeepEqual(parse(t, got), parse(t, want)) {
			t.Fatalf("%s + %s: %s; the reference says %s", doc, p, got, want)
		}
	})
}

// like leaves out what the reference gets wrong: it sees text where there is meaning, and is strict about
// the first byte of a document.
func like(doc, p string) bool {
	for _, text := range []string{doc, p} {
		if !json.Valid([]byte(text)) || strings.Contains(text, `\`) || hasDuplicates(text) {
			return false
		}
		for _, c := range []byte(text) {
			if c < ' ' || c > '~' {
				return false
			}
		}
	}
	return strings.HasPrefix(doc, "{")
}

// hasDuplicates reports whether some object has a member twice.
func hasDuplicates(text string) bool {
	d := json.NewDecoder(strings.NewReader(text))
	type frame struct {
		seen map[string]bool
		key  bool
	}
	var stack []frame
	for {
		token, err := d.Token()
		if err != nil {
			return false
		}
		switch token {
		case json.Delim('{'):
			stack = append(stack, frame{map[string]bool{}, true})
			continue
		case json.Delim('['):
			stack = append(stack, frame{})
			continue
		case json.Delim('}'), json.Delim(']'):
			stack = stack[:len(stack)-1]
		default:
			if n := len(stack) - 1; n >= 0 && stack[n].seen != nil && stack[n].key {
				key := token.(string)
				if stack[n].seen[key] {
					return true
				}
				stack[n].seen[key], stack[n].key = true, false
				continue
			}
		}
		if n := len(stack) - 1; n >= 0 && stack[n].seen != nil {
			stack[n].key = true
		}
	}
}

func checkResult(t *testing.T, got []byte, err error) {
	t.Helper()
	var e *patch.Error
	switch {
	case err == nil && !json.Valid(got):
		t.Fatalf("no JSON: %s", got)
	case err != nil && (!errors.As(err, &e) || e.Code != 400 && e.Code != 413 && e.Code != 422 || e.Message == "" || got != nil):
		t.Fatalf("error %v, result %s", err, got)
	}
}
