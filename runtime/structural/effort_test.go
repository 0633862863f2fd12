package structural_test

import (
	"errors"
	"fmt"
	"reflect"
	"runtime"
	"strings"
	"testing"

	"github.com/keelson-dev/keelson/runtime/structural"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"k8s.io/apimachinery/pkg/util/json"
)

// hostile compiles the schema of an object whose field spec has the given schema.
func hostile(t *testing.T, spec string) *structural.Schema {
	t.Helper()
	props := &apiextensionsv1.JSONSchemaProps{}
	if err := json.Unmarshal([]byte(`{"type":"object","properties":{"spec":`+spec+`}}`), props); err != nil {
		t.Fatal(err)
	}
	s, err := structural.Compile(props)
	if err != nil {
		t.Fatal(err)
	}
	return s
}

// times returns n elements separated by commas.
func times(n int, element func(i int) string) string {
	all := make([]string, n)
	for i := range all {
		all[i] = element(i)
	}
	return strings.Join(all, ",")
}

func same(text string) func(int) string { return func(int) string { return text } }

// allocated returns the number of bytes that f allocates. It is bounded because it is proportional to the time.
func allocated(f func()) uint64 {
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	f()
	runtime.ReadMemStats(&after)
	return after.TotalAlloc - before.TotalAlloc
}

// TestEffort has schemas and objects whose sizes multiply. Without a bound, they would take minutes to days.
func TestEffort(t *testing.T) {
	const tooMuch = "judging it takes too long"
	for name, tt := range map[string]struct{ schema, spec, want string }{
		"alternatives": {`{"type":"array","items":{"type":"integer","anyOf":[` + times(30000, func(i int) string { return fmt.Sprintf(`{"minimum":%d}`, i+9) }) + `]}}`,
			`[` + times(60000, same("1")) + `]`, tooMuch},
		"negations": {`{"type":"array","items":{"type":"integer","not":{"anyOf":[` + times(30000, func(i int) string { return fmt.Sprintf(`{"minimum":%d}`, i+9) }) + `]}}}`,
			`[` + times(60000, same("1")) + `]`, tooMuch},
		"required fields": {`{"type":"array","items":{"type":"object","required":[` + times(20000, func(i int) string { return fmt.Sprintf(`"p%d"`, i) }) + `]}}`,
			`[` + times(60000, same("{}")) + `]`, "spec[0].p0: Required value"},
		"patterns": {`{"type":"array","items":{"type":"string","allOf":[` + times(2000, func(i int) string { return fmt.Sprintf(`{"pattern":"(x?){20}y%d"}`, i) }) + `]}}`,
			`["` + strings.Repeat("x", 100000) + `"]`, tooMuch},
		"formats": {`{"type":"array","items":{"type":"string","oneOf":[` + times(20000, same(`{"format":"email"}`)) + `]}}`,
			`["` + strings.Repeat("x", 100000) + `"]`, tooMuch},
		"numbers of an enum": {`{"type":"array","items":{"type":"integer","enum":[` + times(100000, func(i int) string { return fmt.Sprint(i + 9) }) + `]}}`,
			`[` + times(60000, same("1")) + `]`, "spec[0]: Unsupported value: 1"},
		"texts of an enum": {`{"type":"array","items":{"type":"string","enum":[` + times(100000, func(i int) string { return fmt.Sprintf(`"e%d"`, i) }) + `]}}`,
			`[` + times(60000, same(`"e99999"`)) + `]`, ""},
		"not in an enum": {`{"type":"array","items":{"type":"string","enum":[` + times(100000, func(i int) string { return fmt.Sprintf(`"e%d"`, i) }) + `]}}`,
			`[` + times(60000, same(`"x"`)) + `]`, `spec[0]: Unsupported value: "x"`},
		"errors below a long name": {`{"type":"object","additionalProperties":{"type":"array","items":{"type":"string"}}}`,
			`{"` + strings.Repeat("n", 1<<20) + `":[` + times(100000, same("1")) + `]}`, "nnn...: Invalid value"},
		"every value of a large object is wrong": {`{"type":"array","items":{"type":"string"}}`, `[` + times(200000, same("1")) + `]`, "spec[999]: Invalid value"},
	} {
		t.Run(name, func(t *testing.T) {
			s, object := hostile(t, tt.schema), map[string]any{}
			if err := json.Unmarshal([]byte(`{"spec":`+tt.spec+`}`), &object); err != nil {
				t.Fatal(err)
			}
			var text string
			took := allocated(func() { text = fmt.Sprint(s.Validate(nil, object).ToAggregate()) })
			if tt.want == "" && text != "<nil>" || !strings.Contains(text, tt.want) {
				t.Errorf("%.300s, want %q", text, tt.want)
			}
			if took > 2<<30 || len(text) > 32<<20 {
				t.Errorf("%d MiB were allocated, for a text of %d MiB", took>>20, len(text)>>20)
			}
			if tt.want != tooMuch {
				return
			}
			changed := map[string]any{"spec": object["spec"], "metadata": map[string]any{"name": "a"}}
			if errs := s.ValidateUpdate(nil, changed, object); len(errs) > 0 {
				t.Errorf("nothing changes but the metadata: %.300s", errs.ToAggregate())
			}
			changed["status"] = "new"
			if errs := s.ValidateUpdate(nil, changed, object); len(errs) == 0 {
				t.Error("a change that cannot be judged was let in")
			}
		})
	}
}

// TestEffortOfDefaults has a default that takes too long, and schemas that share an Effort.
func TestEffortOfDefaults(t *testing.T) {
	props := &apiextensionsv1.JSONSchemaProps{}
	text := `{"type":"object","properties":{"spec":{"type":"array","default":[` + times(30000, same("1")) + `],"items":{"type":"integer","anyOf":[` +
		times(3000, func(i int) string { return fmt.Sprintf(`{"minimum":%d}`, i+9) }) + `]}}}}`
	if err := json.Unmarshal([]byte(text), props); err != nil {
		t.Fatal(err)
	}
	const want = "properties[spec].default: Invalid value: the value is too large for the conditions that its schema has: judging it takes too long"
	options := structural.Options{Effort: structural.NewEffort()}
	for range 20 { // all together take no longer than one
		if got := fmt.Sprint(structural.Check(nil, props, options).ToAggregate()); got != want {
			t.Fatalf("%.300s, want %s", got, want)
		}
	}
}

// TestManyDefaults has small objects with huge defaults.
func TestManyDefaults(t *testing.T) {
	multiplied := `{"type":"string","default":"z"}`
	for range 20 { // 50^20 strings
		multiplied = `{"type":"object","default":{},"properties":{"l":{"type":"array","default":[` + times(50, same("{}")) +
			`],"items":{"type":"object","properties":{"m":` + multiplied + `}}}}}`
	}
	for name, tt := range map[string]struct{ schema, spec string }{
		"lists in lists": {multiplied, `{}`},
		"a large text for each element": {`{"type":"array","items":{"type":"object","properties":{"a":{"type":"string","default":"` + strings.Repeat("d", 1<<20) + `"}}}}`,
			`[` + times(100000, same("{}")) + `]`},
		"a large list for each member": {`{"type":"object","additionalProperties":{"type":"object","properties":{"a":{"type":"array","items":{"type":"integer"},"default":[` +
			times(100000, same("1")) + `]}}}}`, `{` + times(10000, func(i int) string { return fmt.Sprintf(`"m%d":{}`, i) }) + `}`},
		"for each null": {`{"type":"array","items":{"type":"string","default":"` + strings.Repeat("d", 1<<20) + `"}}`, `[` + times(100000, same("null")) + `]`},
	} {
		t.Run(name, func(t *testing.T) {
			s, object := hostile(t, tt.schema), map[string]any{}
			if err := json.Unmarshal([]byte(`{"spec":`+tt.spec+`}`), &object); err != nil {
				t.Fatal(err)
			}
			var text []byte
			took := allocated(func() {
				s.SetDefaults(object)
				text, _ = json.Marshal(object)
			})
			if took > 1<<30 || len(text) > 3*structural.MaxDefaults {
				t.Errorf("%d MiB were allocated, for %d MiB", took>>20, len(text)>>20)
			}
			if len(text) < structural.MaxDefaults/32 {
				t.Errorf("only %d bytes were set", len(text))
			}
		})
	}
}

// TestDefaultsAreCounted checks that grows is called a few times with the number of bytes, and that it can stop the work.
func TestDefaultsAreCounted(t *testing.T) {
	text := strings.Repeat("d", 1000)
	many := `{"type":"array","items":{"type":"object","properties":{"a":{"type":"string","default":"` + text + `"}}}}`
	once := `{"type":"object","default":{},"properties":{"a":{"type":"string","default":"` + strings.Repeat("d", 100_000) + `"}}}`
	for name, tt := range map[string]struct {
		schema, object string
		least, most    int // the last number that grows is called with
		calls          int
	}{
		"one":            {many, `{"spec":[{}]}`, 0, 0, 0},
		"few":            {many, `{"spec":[` + times(20, same("{}")) + `]}`, 16 << 10, 40_000, 1},
		"many":           {many, `{"spec":[` + times(5000, same("{}")) + `]}`, 2_500_000, 5_200_000, 9},
		"a large one":    {once, `{}`, 100_000, 101_000, 1},
		"all there were": {once, `{"spec":{"a":""}}`, 100_000, 101_000, 1}, // the total is known only afterwards
	} {
		object := func() (o map[string]any) {
			if err := json.Unmarshal([]byte(tt.object), &o); err != nil {
				t.Fatal(err)
			}
			return o
		}
		s, calls := hostile(t, tt.schema), []int{}
		got := object()
		if err := s.SetDefaultsWithin(got, func(bytes int) error { calls = append(calls, bytes); return nil }); err != nil {
			t.Errorf("%s: %v", name, err)
		}
		if want := object(); true {
			s.SetDefaults(want)
			if !reflect.DeepEqual(got, want) {
				t.Errorf("%s: other defaults when they are counted", name)
			}
		}
		if len(calls) != tt.calls || tt.calls > 0 && (calls[len(calls)-1] < tt.least || calls[len(calls)-1] > tt.most) {
			t.Errorf("%s: told of %d", name, calls)
		}
		refused := errors.New("no room")
		got = object()
		if err := s.SetDefaultsWithin(got, func(int) error { return refused }); tt.calls > 0 && !errors.Is(err, refused) {
			t.Errorf("%s: %v", name, err)
		}
		if left, err := json.Marshal(got); err != nil || len(left) > len(tt.object)+17<<10 {
			t.Errorf("%s: %d bytes when there is no room, %v", name, len(left), err)
		}
	}
}

// TestManyPatterns has regular expressions that would take gigabytes. Those beyond the bound match nothing, and the errors say
// why.
func TestManyPatterns(t *testing.T) {
	s := hostile(t, `{"type":"object","properties":{`+times(30000, func(i int) string { return fmt.Sprintf(`"p%05d":{"type":"string","pattern":"x{1000}"}`, i) })+`}}`)
	object := map[string]any{}
	if err := json.Unmarshal([]byte(`{"spec":{`+times(30000, func(i int) string { return fmt.Sprintf(`"p%05d":"x"`, i) })+`}}`), &object); err != nil {
		t.Fatal(err)
	}
	var text string
	if took := allocated(func() { text = fmt.Sprint(s.Validate(nil, object).ToAggregate()) }); took > 1<<30 {
		t.Errorf("%d MiB were allocated", took>>20)
	}
	const want = "at most 500000 instructions"
	if !strings.Contains(text, want) {
		t.Errorf("%.300s, want %s", text, want)
	}
	if n := s.PatternBytes(); n < 15<<20 || n > 25<<20 {
		t.Errorf("the expressions are said to take %d bytes", n)
	}
}

// TestManyDuplicates has a set and a list of type map in which each element occurs twice, below a long name.
func TestManyDuplicates(t *testing.T) {
	name := strings.Repeat("n", 1<<20)
	for kind, schema := range map[string]string{
		"set": `{"type":"array","x-kubernetes-list-type":"set","items":{"type":"object","x-kubernetes-map-type":"atomic","x-kubernetes-preserve-unknown-fields":true}}`,
		"map": `{"type":"array","x-kubernetes-list-type":"map","x-kubernetes-list-map-keys":["k"],"items":{"type":"object","required":["k"],"properties":{"k":{"type":"string"}}}}`,
	} {
		s, object := hostile(t, `{"type":"object","additionalProperties":`+schema+`}`), map[string]any{}
		if err := json.Unmarshal([]byte(`{"spec":{"`+name+`":[`+times(100000, func(i int) string { return fmt.Sprintf(`{"k":"%d"}`, i/2) })+`]}}`), &object); err != nil {
			t.Fatal(err)
		}
		var n int
		if took := allocated(func() { n = len(s.CheckLists(nil, object)) }); took > 1<<30 {
			t.Errorf("%s: %d MiB were allocated", kind, took>>20)
		}
		if n == 0 {
			t.Errorf("%s: nothing was found", kind)
		}
	}
}

// TestUnknownBelowLongName has many unknown fields below a long name.
func TestUnknownBelowLongName(t *testing.T) {
	s := hostile(t, `{"type":"object","additionalProperties":{"type":"object","properties":{"a":{"type":"string"}}}}`)
	object := map[string]any{}
	if err := json.Unmarshal([]byte(`{"spec":{"`+strings.Repeat("n", 1<<20)+`":{`+times(50000, func(i int) string { return fmt.Sprintf(`"u%d":1`, i) })+`}}}`), &object); err != nil {
		t.Fatal(err)
	}
	var unknown []string
	took := allocated(func() { unknown = s.Prune(object, 100) })
	if len(unknown) != 100 || len(unknown[0]) > 9<<10 {
		t.Errorf("%d paths, the first of which has %d bytes", len(unknown), len(unknown[0]))
	}
	if took > 1<<30 {
		t.Errorf("%d MiB were allocated", took>>20)
	}
}
