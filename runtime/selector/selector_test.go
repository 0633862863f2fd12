package selector_test

import (
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"

	"github.com/keelson-dev/keelson/runtime/selector"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/labels"
)

// each returns n texts, joined by commas.
func each(n int, format string) string {
	texts := make([]string, n)
	for i := range texts {
		texts[i] = fmt.Sprintf(format, i)
	}
	return strings.Join(texts, ",")
}

func TestLimit(t *testing.T) {
	t.Parallel()
	for name, of := range map[string]struct {
		limit  selector.Limit
		labels string
		fields string
		want   string // in the error; "" means none
	}{
		"no text":                {},
		"label requirements":     {labels: each(400, "a%d")},
		"one more":               {labels: each(401, "a%d"), want: "the label selector is too large: it has 401 requirements, and at most 400 are allowed"},
		"values of a set":        {labels: "b,a in (" + each(4000, "v%d") + ")"},
		"one more value":         {labels: "b,a in (" + each(4001, "v%d") + ")", want: "it has 4001 values in its sets, and at most 4000"},
		"values of many sets":    {labels: each(100, "a%d notin (x,y,z,"+each(37, "v%%d")+")"), want: "bytes, and at most 102400 are allowed"},
		"field requirements":     {fields: each(400, "a!=%d")},
		"one more field":         {fields: each(401, "a!=%d"), want: "the field selector is too large: it has 401 requirements, and at most 400 are allowed"},
		"escaped commas":         {fields: "a=" + strings.Repeat(`\,`, 1000) + `\\,b=c`},
		"empty requirements":     {fields: "a=b" + strings.Repeat(",", 1000)},
		"a long value":           {fields: "a=" + strings.Repeat("x", 102_398)},
		"one byte more":          {fields: "a=" + strings.Repeat("x", 102_399), want: "the field selector is too large: it has 102401 bytes, and at most 102400 are allowed"},
		"a limit of its own":     {limit: 3, labels: "a,b,c", fields: "a=b,c=d,e=f"},
		"beyond it":              {limit: 3, labels: "a,b,c,d", want: "it has 4 requirements, and at most 3"},
		"beyond it, of fields":   {limit: 3, fields: "a=b,c=d,e=f,g=h", want: "it has 4 requirements, and at most 3"},
		"no limit":               {limit: -1, labels: each(38_000, "a%d"), fields: each(38_000, "a!=%d")},
		"what does not parse":    {labels: "a in", want: "unable to parse requirement"},
		"fields that do not":     {fields: "a", want: "can't understand 'a'"},
		"large and does not":     {labels: strings.Repeat("(,", 60_000), want: "bytes, and at most 102400"},
		"commas and parentheses": {labels: strings.Repeat("(),", 1000), want: "1001 requirements"},
	} {
		_, err1 := of.limit.ParseLabels(of.labels)
		_, err2 := of.limit.ParseFields(of.fields)
		for _, err := range []error{err1, err2} {
			if err != nil && (of.want == "" || !strings.Contains(err.Error(), of.want)) {
				t.Errorf("%s: %v, want %q", name, err, of.want)
			}
		}
		if of.want != "" && err1 == nil && err2 == nil {
			t.Errorf("%s: no error, want %q", name, of.want)
		}
	}
}

// counted counts the calls of an object's methods.
type counted struct {
	labels.Set
	fields.Fields
	asked int
}

func (c *counted) Has(name string) bool { _, ok := c.Lookup(name); return ok }

func (c *counted) Get(name string) string { v, _ := c.Lookup(name); return v }

func (c *counted) Lookup(name string) (string, bool) {
	c.asked++
	v, ok := c.Set[name]
	return v, ok
}

// ranged has the method Each.
type ranged struct{ counted }

func (r *ranged) Each(yield func(label, value string) bool) {
	for label, value := range r.Set {
		r.asked++
		if !yield(label, value) {
			return
		}
	}
}

// Each label of an object, or each field, is read once, for any number of requirements.
func TestMatchingCountsLooks(t *testing.T) {
	t.Parallel()
	for _, n := range []int{20, 400, 4_000} {
		byFields, err := selector.Limit(-1).ParseFields(each(n, "spec.color!=c%d") + ",metadata.name!=x")
		if err != nil {
			t.Fatal(err)
		}
		object := &counted{Set: labels.Set{"spec.color": "red", "metadata.name": "a"}}
		if ok := selector.Fields(byFields).Matches(object); !ok || object.asked != 2 {
			t.Errorf("%d requirements of two fields: %v after %d looks, want true after 2", n, ok, object.asked)
		}
		for _, text := range []string{each(n, "!l%d"), each(n, "l%d notin (a,b)"), "a in (b," + each(n, "v%d") + ")", each(n, "a!=v%d")} {
			byLabels, err := selector.Limit(-1).ParseLabels(text)
			if err != nil {
				t.Fatal(err)
			}
			object := &ranged{counted{Set: labels.Set{"a": "b", "c": "d", "e": "f"}}}
			if ok := selector.Labels(byLabels).Matches(object); !ok || object.asked != 3 {
				t.Errorf("%.20s... with %d requirements: %v after %d looks, want true after 3", text, n, ok, object.asked)
			}
		}
	}
}

// Small selectors are returned unchanged.
func TestSmallSelectorsAreLeft(t *testing.T) {
	t.Parallel()
	byLabels, err := labels.Parse("a=b,c in (d,e)")
	if err != nil {
		t.Fatal(err)
	}
	if got := selector.Labels(byLabels); fmt.Sprintf("%T", got) != fmt.Sprintf("%T", byLabels) {
		t.Errorf("a small label selector became a %T", got)
	}
	byFields := fields.ParseSelectorOrDie("a=b,c!=d")
	if got := selector.Fields(byFields); fmt.Sprintf("%T", got) != fmt.Sprintf("%T", byFields) {
		t.Errorf("a small field selector became a %T", got)
	}
	if selector.Labels(nil) != nil || selector.Fields(nil) != nil {
		t.Error("nil became a selector")
	}
	if nothing := selector.Labels(labels.Nothing()); !labels.MatchesNothing(nothing) {
		t.Errorf("nothing became %v", nothing)
	}
}

// For all requirements and objects, the result of Matches and of all other methods is that of apimachinery.
func TestVerdicts(t *testing.T) {
	t.Parallel()
	random := rand.New(rand.NewPCG(1, 2))
	pick := func(of ...string) string { return of[random.IntN(len(of))] }
	label := func() string { return pick("a", "b", "c") }
	value := func() string {
		return pick("1", "2", "3", "x", "", "9223372036854775807")
	}
	integer := func() string {
		return pick("0", "1", "2", "9223372036854775807")
	}
	matched := 0
	for range 10_000 {
		var byLabel, byField []string
		for range random.IntN(4) {
			byLabel = append(byLabel, pick(
				label()+"="+value(), label()+"!="+value(), label(), "!"+label(), label()+">"+integer(), label()+"<"+integer(),
				label()+" in ("+value()+","+value()+","+value()+")", label()+" notin ("+value()+","+value()+")"))
			byField = append(byField, label()+pick("=", "==", "!=", "!=")+value())
		}
		for range 16 { // enough to make the selector large
			byLabel = append(byLabel, "none!=x")
			byField = append(byField, "none!=x")
		}
		wantLabels, err := labels.Parse(strings.Join(byLabel, ","))
		if err != nil {
			t.Fatal(err)
		}
		wantFields := fields.ParseSelectorOrDie(strings.Join(byField, ","))
		gotLabels, gotFields := selector.Labels(wantLabels), selector.Fields(wantFields)
		set := labels.Set{}
		for range random.IntN(4) {
			set[label()] = pick(value(), "-9223372036854775808", "0x1")
		}
		want := wantLabels.Matches(set)
		if want {
			matched++
		}
		for _, ls := range []labels.Labels{set, &counted{Set: set}, &ranged{counted{Set: set}}} {
			if got := gotLabels.Matches(ls); got != want {
				t.Fatalf("%s on %v, a %T: %v, want %v", wantLabels, set, ls, got, want)
			}
		}
		if got, want := gotFields.Matches(fields.Set(set)), wantFields.Matches(fields.Set(set)); got != want {
			t.Fatalf("%s on %v: %v, want %v", wantFields, set, got, want)
		}
		if gotLabels.String() != wantLabels.String() || gotFields.String() != wantFields.String() || gotLabels.Empty() || gotFields.Empty() {
			t.Fatalf("%s, %s, want %s, %s", gotLabels, gotFields, wantLabels, wantFields)
		}
		v1, ok1 := gotFields.RequiresExactMatch("a")
		v2, ok2 := wantFields.RequiresExactMatch("a")
		if v1 != v2 || ok1 != ok2 {
			t.Fatalf("%s requires %q, %v", gotFields, v1, ok1)
		}
	}
	if matched < 500 {
		t.Errorf("only %d objects were chosen", matched)
	}
}

func BenchmarkMatches(b *testing.B) {
	for _, n := range []int{1, 15, 16, 400, 4000} {
		set := labels.Set{"a": "b", "c": "d", "e": "f", "g": "h"}
		for name, text := range map[string]string{"set": "a in (b," + each(n, "v%d") + ")", "absent": each(n, "!l%d")} {
			s, err := labels.Parse(text)
			if err != nil {
				b.Fatal(err)
			}
			for which, s := range map[string]labels.Selector{"apimachinery": s, "hashed": selector.Labels(s)} {
				b.Run(fmt.Sprint(name, "/", n, "/", which), func(b *testing.B) {
					b.ReportAllocs()
					for b.Loop() {
						s.Matches(set)
					}
				})
			}
		}
	}
}
