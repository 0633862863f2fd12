package canonical_test

import (
	"bytes"
	"encoding/json"
	"fmt"
	"math/rand"
	"reflect"
	"slices"
	"testing"
	"time"

	"github.com/keelson-dev/keelson/runtime/codec/internal/canonical"
	"github.com/keelson-dev/keelson/runtime/constraint"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	apiruntime "k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/intstr"
	kjson "sigs.k8s.io/json"
	"sigs.k8s.io/randfill"
)

// subject is a sample with its form, and with the functions that decode, set defaults and encode without the form.
type subject struct {
	sample
	form  *canonical.Form
	rules *constraint.Rules
}

func subjects(t testing.TB) []subject {
	t.Helper()
	var compiler constraint.Compiler
	var out []subject
	for _, s := range samples() {
		typ := reflect.TypeOf(s.new()).Elem()
		rules, err := compiler.Of(typ)
		if err != nil {
			t.Fatal(err)
		}
		out = append(out, subject{s, canonical.Of(typ, canonical.Options{Defaults: rules.HasDefaults()}), rules})
	}
	return out
}

// again decodes a text, sets defaults and encodes the value; it returns false if that fails.
func (s subject) again(text []byte) (again []byte, ok bool) {
	defer func() {
		if recover() != nil {
			ok = false
		}
	}()
	v := s.new()
	if err := kjson.UnmarshalCaseSensitivePreserveInts(text, v); err != nil {
		return nil, false
	}
	s.rules.SetDefaults(v)
	again, err := json.Marshal(v)
	return again, err == nil
}

// check fails if the form accepts a text that is not canonical. It reports whether the form accepts the text.
func (s subject) check(t *testing.T, text []byte) bool {
	t.Helper()
	sure := s.form.Has(text)
	if !sure {
		return false
	}
	if again, ok := s.again(text); !ok || !bytes.Equal(again, text) {
		t.Fatalf("%s: surely canonical is\n%s\nand it becomes (%v)\n%s", s.name, text, ok, again)
	}
	return true
}

// words are the strings from which random strings are chosen.
func words() []string {
	return []string{"", "", "a", "b", "some text", "größer", "日本", "\"quoted\"", `back\slash`, "a\nb\tc\rd", "<b>&amp;</b>", "x=y+z/~", "\x7f", "\U0001F600"}
}

func filler(seed int64) *randfill.Filler {
	return randfill.New().NilChance(0.4).NumElements(0, 3).MaxDepth(9).RandSource(rand.NewSource(seed)).Funcs(
		func(s *string, c randfill.Continue) { *s = words()[c.Intn(len(words()))] },
		func(s *name, c randfill.Continue) { *s = name("n" + fmt.Sprint(c.Intn(9))) },
		func(n *int64, c randfill.Continue) { *n = c.Int63() >> c.Intn(64) * int64(1-2*c.Intn(2)) },
		func(n *int32, c randfill.Continue) { *n = c.Int31() >> c.Intn(32) },
		func(b *bool, c randfill.Continue) { *b = c.Intn(2) == 0 },
		func(f *float64, c randfill.Continue) { *f = []float64{0, 1, -2.5, 1e30, 1e-9}[c.Intn(5)] },
		func(f *float32, c randfill.Continue) { *f = []float32{0, 1, -2.5, 1e30, 1e-9}[c.Intn(5)] },
		func(t *time.Time, c randfill.Continue) { *t = time.Unix(c.Int63n(1<<32), 0).UTC() },
		func(t *metav1.Time, c randfill.Continue) {
			if *t = metav1.Unix(c.Int63n(1<<33), 0); c.Intn(3) == 0 {
				*t = metav1.Time{}
			}
		},
		func(t *metav1.MicroTime, c randfill.Continue) {
			*t = metav1.NewMicroTime(time.Unix(c.Int63n(1<<32), c.Int63n(1e6)*1000))
		},
		func(q *resource.Quantity, c randfill.Continue) {
			*q = resource.MustParse([]string{"0", "1", "100m", "1536Mi", "1.5", "12e6"}[c.Intn(6)])
		},
		func(i *intstr.IntOrString, c randfill.Continue) {
			*i = []intstr.IntOrString{intstr.FromInt32(c.Int31() >> c.Intn(32)), intstr.FromString("50%"), {}, {Type: intstr.String}}[c.Intn(4)]
		},
		func(f *metav1.FieldsV1, c randfill.Continue) {
			f.SetRawBytes([]byte([]string{`{"f:spec":{},"k:{\"a\":1}":{".":{}}}`, `{}`}[c.Intn(2)]))
		},
		func(e *apiruntime.RawExtension, c randfill.Continue) {
			e.Raw = [][]byte{nil, []byte(`{"a":[{"b":"]}"},1,true,null,-2]}`), []byte(`{}`), []byte(`{"x":1.5}`), []byte(`[1]`)}[c.Intn(5)]
		},
		func(m *json.RawMessage, c randfill.Continue) {
			*m = []json.RawMessage{nil, []byte(`[1,"a"]`)}[c.Intn(2)]
		},
		func(n *json.Number, c randfill.Continue) { *n = []json.Number{"", "1", "1.5"}[c.Intn(3)] },
		func(a *any, c randfill.Continue) {
			*a = []any{nil, "s", int64(3), 2.5, true, map[string]any{"a": []any{}}}[c.Intn(6)]
		},
		func(s *selves, c randfill.Continue) { *s = []selves{nil, {{}, nil}, {}}[c.Intn(3)] },
	)
}

// canonicalText makes a canonical text from a seed.
func (s subject) canonicalText(t *testing.T, seed int64) []byte {
	t.Helper()
	v := s.new()
	filler(seed).Fill(v)
	text, err := json.Marshal(v)
	if err != nil {
		t.Fatal(err)
	}
	for range 4 {
		again, ok := s.again(text)
		if !ok {
			break
		}
		if bytes.Equal(again, text) {
			return text
		}
		text = again
	}
	return nil
}

// escapedKeys reports whether a name in a text has an escape: such texts are not recognised.
func escapedKeys(text []byte) bool {
	for _, siblings := range parts(text) {
		for _, p := range siblings {
			if bytes.IndexByte(text[p.start:p.from], '\\') >= 0 {
				return true
			}
		}
	}
	return false
}

// TestRecognised: canonical texts are recognised, unless the type is one that never is.
func TestRecognised(t *testing.T) {
	for _, s := range subjects(t) {
		sure, all := 0, 0
		for seed := range int64(60) {
			text := s.canonicalText(t, seed)
			if text == nil {
				continue
			}
			all++
			if s.check(t, text) {
				sure++
			} else if s.whole && !escapedKeys(text) {
				t.Errorf("%s: not recognised: %s", s.name, text)
			}
		}
		t.Logf("%s: %d of %d", s.name, sure, all)
		if s.whole && sure == 0 || s.name == "defaulted" && sure == 0 {
			t.Errorf("%s: %d of %d texts are recognised", s.name, sure, all)
		}
	}
}

// TestMutated: texts that are not canonical are not recognised, even if they differ little from canonical ones.
func TestMutated(t *testing.T) {
	rounds := 40
	if testing.Short() {
		rounds = 10
	}
	for _, s := range subjects(t) {
		r := rand.New(rand.NewSource(1))
		sure, all := 0, 0
		for seed := range int64(rounds) {
			text := s.canonicalText(t, seed)
			if text == nil {
				continue
			}
			for range 200 {
				all++
				if s.check(t, mutated(r, text)) {
					sure++
				}
			}
		}
		t.Logf("%s: %d of %d", s.name, sure, all)
	}
}

// TestReplaced: each value of a text is replaced by each other value once.
func TestReplaced(t *testing.T) {
	for _, s := range subjects(t) {
		for seed, done := int64(0), 0; seed < 60 && done < 3; seed++ {
			text := s.canonicalText(t, seed)
			if !s.form.Has(text) {
				continue
			}
			done++
			places := slices.Concat(parts(text)...)
			for _, i := range rand.New(rand.NewSource(seed)).Perm(len(places))[:min(len(places), 40)] {
				for _, value := range values() {
					p := places[i]
					s.check(t, slices.Concat(text[:p.from], []byte(value), text[p.to:]))
				}
			}
		}
	}
}

// FuzzHas does the same check for arbitrary texts.
func FuzzHas(f *testing.F) {
	all := subjects(f)
	for i := range all {
		for _, text := range []string{`{}`, `{"kind":"x","metadata":{"name":"a","creationTimestamp":null}}`, `{"int8":-128,"float32":1e-7}`, `{"a":[]}`} {
			f.Add(uint8(i), []byte(text))
		}
		v := all[i].new()
		filler(int64(i)).Fill(v)
		if text, err := json.Marshal(v); err == nil {
			f.Add(uint8(i), text)
		}
	}
	f.Fuzz(func(t *testing.T, which uint8, text []byte) {
		all[int(which)%len(all)].check(t, text)
	})
}
