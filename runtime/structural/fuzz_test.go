package structural_test

import (
	"encoding/json"
	"reflect"
	"testing"

	"github.com/keelson-dev/keelson/runtime/structural"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	apiruntime "k8s.io/apimachinery/pkg/runtime"
	apijson "k8s.io/apimachinery/pkg/util/json"
	"k8s.io/apimachinery/pkg/util/validation/field"
)

// FuzzSchema checks that no schema and no value cause a panic, and the properties that walk checks.
func FuzzSchema(f *testing.F) {
	for seed := range uint64(60) {
		r := newRandom(2_000_000 + seed)
		p := r.object(4)
		if seed%2 == 0 {
			p = r.spoiled(p)
		}
		schema, err := json.Marshal(p)
		if err != nil {
			f.Fatal(err)
		}
		value := r.anything(3)
		if p.Items == nil {
			value = r.wholeObject(r.object(3), 3, 80)
		}
		f.Add(schema, asJSON(value), asJSON(r.changed(value, 10)))
	}
	f.Fuzz(func(t *testing.T, schema, value, old []byte) {
		p := &apiextensionsv1.JSONSchemaProps{}
		if json.Unmarshal(schema, p) != nil {
			return
		}
		var v, was any
		if apijson.Unmarshal(value, &v) != nil || apijson.Unmarshal(old, &was) != nil {
			return
		}
		errs := structural.Check(field.NewPath("schema"), p, structural.Options{StatusSubresource: len(value)%2 == 0})
		for _, err := range errs {
			_ = err.Error()
		}
		structural.Warnings(p)
		structural.Tolerated(p, nil)
		if _, err := structural.FingerprintOf(p); err != nil {
			t.Errorf("fingerprint: %v", err)
		}
		s, err := structural.Compile(p)
		if err != nil {
			if len(errs) == 0 {
				t.Errorf("Check accepts what Compile does not: %v", err)
			}
			return
		}
		walk(t, s, v, was)
	})
}

// TestWalk is like FuzzSchema, with values that mostly fit the schemas.
func TestWalk(t *testing.T) {
	for seed := range uint64(1200) {
		r := newRandom(4_000_000 + seed)
		p := r.object(4)
		if seed%5 == 0 {
			p = r.spoiled(p)
		}
		p = decodedProps(t, p)
		s, err := structural.Compile(p)
		if err != nil {
			continue
		}
		value := r.wholeObject(p, 4, 85)
		walk(t, s, value, r.changed(value, 10))
		if t.Failed() {
			text, _ := json.Marshal(p)
			t.Fatalf("schema %s\nvalue %s", text, asJSON(value))
		}
	}
}

// walk calls all methods with a value, and checks that a second call changes nothing more.
func walk(t *testing.T, s *structural.Schema, v, was any) {
	untouched := apiruntime.DeepCopyJSONValue(v)
	valid := len(s.Validate(nil, v)) == 0
	if texts, _ := structural.Findings(s, v); valid != (len(texts) == 0) || structural.Allows(s, v) != valid {
		t.Errorf("the quick way says %t, the slow one %q", structural.Allows(s, v), texts)
	}
	if len(s.ValidateUpdate(nil, v, was)) > 0 && valid {
		t.Error("an update is not valid though the value is")
	}
	if structural.ListsFit(s, v) && structural.ListErrors(s, v) > 0 {
		t.Error("the quick way overlooks duplicates")
	}
	s.CheckLists(nil, v)
	s.CheckListsUpdate(nil, v, was)
	s.ValidateEmbedded(nil, v)
	if !reflect.DeepEqual(v, untouched) {
		t.Error("judging changed the value")
	}
	twice(t, "Prune", v, func(v any) { s.Prune(v, 3) })
	twice(t, "DropNulls", v, s.DropNulls)
	twice(t, "SetDefaults", v, s.SetDefaults)
	twice(t, "CoerceEmbedded", v, func(v any) {
		_, _ = s.CoerceEmbedded(nil, v, structural.ConformOptions{DropInvalidMetadata: true, Report: 3}) // dropping never fails
	})
	if object, ok := v.(map[string]any); ok {
		if _, err := s.Conform(apiruntime.DeepCopyJSON(object), structural.ConformOptions{}); err == nil {
			twice(t, "Conform", v, func(v any) {
				if _, err := s.Conform(v.(map[string]any), structural.ConformOptions{}); err != nil {
					t.Error(err)
				}
			})
		}
	}
	for path, node := range s.All(field.NewPath("schema")) {
		_ = path.String()
		_ = node.Type
	}
}

// twice checks that a second call of do changes nothing more.
func twice(t *testing.T, what string, v any, do func(any)) {
	once := apiruntime.DeepCopyJSONValue(v)
	do(once)
	again := apiruntime.DeepCopyJSONValue(once)
	do(again)
	if !reflect.DeepEqual(once, again) {
		t.Errorf("%s twice: %s, once: %s", what, asJSON(again), asJSON(once))
	}
}

// FuzzPath checks that no path causes a panic.
func FuzzPath(f *testing.F) {
	for _, path := range []string{".a.b", ".a['b']", "['a']", ".a['\\n']", ".a[", "..", "", ".a.c.d", "a", ".a['b'", ".e.x", ".f.y.z"} {
		f.Add(path)
	}
	s := mustCompile(f, `{"type":"object","properties":{"a":{"type":"object","properties":{"b":{"type":"string"}}},
		"e":{"type":"object","additionalProperties":{"type":"string"}},"f":{"type":"object","additionalProperties":true}}}`)
	f.Fuzz(func(t *testing.T, path string) {
		for _, brackets := range []bool{false, true} {
			if at, node, err := s.At(path, brackets); err == nil && path != "" {
				_, _ = at.String(), node
			}
		}
	})
}

func mustProps(t testing.TB, text string) *props {
	p := &props{}
	if err := json.Unmarshal([]byte(text), p); err != nil {
		t.Fatalf("%v: %s", err, text)
	}
	return p
}

func mustCompile(t testing.TB, text string) *structural.Schema {
	s, err := structural.Compile(mustProps(t, text))
	if err != nil {
		t.Fatalf("%v: %s", err, text)
	}
	return s
}
