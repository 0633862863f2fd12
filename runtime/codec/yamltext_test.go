package codec_test

import (
	"bytes"
	"encoding/json"
	"strconv"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/keelson-dev/keelson/runtime/codec"
	"sigs.k8s.io/yaml"
)

// TestYAMLOfAnyString: every string in JSON can be written in YAML, and is the same string there.
func TestYAMLOfAnyString(t *testing.T) {
	texts := []string{
		`"plain"`, `""`, `"\u0000\u001f\b\f\n\r\t\"\\"`, strconv.Quote("x\u00a0y"),
		"\"del \u007f c1 \u0080 nel \u0085 \u009f\"", "\"lines \u2028 \u2029\"", "\"bom \ufeff and \ufffe \uffff\"",
		`"half \ud83d and \udc00 end"`, `"pair \ud83d\ude00"`, `"two highs \ud83d\ud83d\ude00"`, `"slash \/"`, `"\u003c\u2028\uffff"`,
		"\"bad \xff utf8\"", "\"emoji \U0001F600 and \U0001FFFE\"",
	}
	for _, text := range texts {
		for _, doc := range []string{`{"k":` + text + `}`, `{` + text + `:1}`, `{"a":"<","k":[` + text + `,{"z":` + text + `}]}`} {
			in := []byte(doc)
			out, err := codec.YAML().FromJSON(in, false)
			if err != nil {
				t.Errorf("%s: %v", doc, err)
				continue
			}
			back, err := yaml.YAMLToJSON(out)
			if err != nil {
				t.Errorf("%s: written as %q: %v", doc, out, err)
				continue
			}
			var got, want any
			if err := json.Unmarshal([]byte(doc), &want); err != nil {
				t.Fatal(err)
			}
			if err := json.Unmarshal(back, &got); err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(want, got); diff != "" {
				t.Errorf("%s: written as %q: %s", doc, out, diff)
			}
			if string(in) != doc {
				t.Errorf("%s was changed", doc)
			}
		}
	}
}

// FuzzYAMLOfJSON: the JSON text of every object becomes YAML with the same value.
func FuzzYAMLOfJSON(f *testing.F) {
	f.Add("a", "b\u0085")
	f.Add("\u007f", `\ud83d`)
	f.Add("\ufeff", "- x: 1\n")
	f.Fuzz(func(t *testing.T, key, value string) {
		text, err := json.Marshal(map[string]any{key: value, "list": []string{value, key}})
		if err != nil {
			t.Fatal(err)
		}
		out, err := codec.YAML().FromJSON(text, false)
		if err != nil {
			t.Fatalf("%q: %v", text, err)
		}
		back, err := yaml.YAMLToJSON(out)
		if err != nil {
			t.Fatalf("%q: %v", out, err)
		}
		var got, want any
		if json.Unmarshal(text, &want) != nil || json.Unmarshal(back, &got) != nil || !cmp.Equal(got, want) {
			t.Fatalf("%q became %q, read as %q", text, out, back)
		}
	})
}

// TestYAMLOfLongKeys: a key may be longer than a simple key of YAML.
func TestYAMLOfLongKeys(t *testing.T) {
	for _, n := range []int{100, 160, 170, 200, 900, 1000, 1024, 1100, 50_000} {
		key := strings.Repeat("k", n)
		if n < 1000 {
			key = strings.Repeat("\u007f", n)
		}
		doc := `{"a":{"` + key + `":"v"},"` + key + `":["` + key + `"]}`
		out, err := codec.YAML().FromJSON([]byte(doc), false)
		if err != nil {
			t.Fatalf("%d: %v", n, err)
		}
		back, err := yaml.YAMLToJSON(out)
		if err != nil || string(back) != doc {
			t.Errorf("%d: read back as %.100s: %v", n, back, err)
		}
	}
}

// TestLayoutIsBounded: indentation must not make a response many times as large as the object. Ten thousand levels of nesting
// around a list of a megabyte would become twenty gigabytes.
func TestLayoutIsBounded(t *testing.T) {
	for name, c := range map[string]struct{ open, inside, end string }{
		"lists":   {"[", strings.Repeat("1,", 500_000) + "1", "]"},
		"objects": {`{"a":`, `{"x":1}`, "}"},
	} {
		text := []byte(strings.Repeat(c.open, 9000) + c.inside + strings.Repeat(c.end, 9000))
		for _, f := range []codec.Format{codec.JSON(), codec.YAML()} {
			out, err := f.FromJSON(text, true)
			if err != nil {
				t.Errorf("%s as %s: %v", name, f.MediaType(), err)
			}
			if want := string(text) + "\n"; string(out) != want {
				t.Errorf("%s as %s: %d bytes of %d", name, f.MediaType(), len(out), len(text))
			}
		}
	}
	// Nesting that is deep for an object, but not extreme, is indented.
	text := []byte(strings.Repeat(`{"a":`, 100) + `"]}[{,"` + strings.Repeat("}", 100))
	for _, f := range []codec.Format{codec.JSON(), codec.YAML()} {
		if out, err := f.FromJSON(text, true); err != nil || bytes.Count(out, []byte("\n")) < 99 {
			t.Errorf("%s: %v: %s", f.MediaType(), err, out)
		}
	}
}
