package jsonpath_test

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"reflect"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/keelson-dev/keelson/runtime/jsonpath"
)

func parsed(t testing.TB, path string) *jsonpath.Path {
	t.Helper()
	p, err := jsonpath.Parse(path)
	if err != nil {
		t.Fatal(err)
	}
	return p
}

// First returns the first result of Find, or its error.
func TestFirst(t *testing.T) {
	t.Parallel()
	random := rand.New(rand.NewPCG(1, 2))
	names := []string{"a", "b", "c"}
	var made func(depth int) any
	made = func(depth int) any {
		switch kind := random.IntN(8); {
		case depth > 0 && kind < 4:
			object := map[string]any{}
			for range random.IntN(4) {
				object[names[random.IntN(3)]] = made(depth - 1)
			}
			return object
		case depth > 0 && kind < 6:
			list := make([]any, random.IntN(4))
			for i := range list {
				list[i] = made(depth - 1)
			}
			return list
		}
		return []any{nil, "", "text", int64(1), 1.5, true}[random.IntN(6)]
	}
	parts := []string{".a", ".b", ".c", ".*", "..a", "..b", "..", "[*]", "[0]", "[-1]", "[0:2]", "['a','b']", "[?(@.a)]", " 'text'", " 1"}
	found := 0
	for range 5_000 {
		text := ""
		for range 1 + random.IntN(4) {
			text += parts[random.IntN(len(parts))]
		}
		p, err := jsonpath.Parse(text)
		if err != nil {
			continue
		}
		object := made(4)
		want, wantErr := p.Find(object)
		got, ok, err := jsonpath.NewBudget(1<<20).First(p, object)
		switch {
		case (err != nil) != (wantErr != nil) || ok != (len(want) > 0):
			t.Fatalf("%s in %v: %v, %t, %v; want %v, %v", text, object, got, ok, err, want, wantErr)
		case ok && !reflect.DeepEqual(got, want[0]):
			t.Fatalf("%s in %v: %v, want the first of %v", text, object, got, want)
		case ok:
			found++
		}
	}
	if found < 500 {
		t.Errorf("only %d values were found", found)
	}
	if v, ok, err := jsonpath.NewBudget(10).First(new(jsonpath.Path), "x"); v != nil || ok || err != nil {
		t.Errorf("the zero Path finds %v, %t, %v", v, ok, err)
	}
}

// nested returns an object with the given depth of nesting.
func nested(depth int) any {
	v := any(int64(1))
	for range depth {
		v = map[string]any{"b": v}
	}
	return v
}

// wide returns a list of n objects.
func wide(n int) any {
	list := make([]any, n)
	for i := range list {
		list[i] = map[string]any{"b": int64(i)}
	}
	return list
}

// The steps of a path with one .. are proportional to the number of values below it, for any depth and width. The steps of a path
// to one value are proportional to its length.
func TestStepsAreLinear(t *testing.T) {
	t.Parallel()
	for _, of := range []struct {
		path   string
		object func(n int) any
		each   int // steps for each of n; 0: independent of n
	}{
		{"..a", nested, 3}, {"..a", wide, 3}, {".spec..a", func(n int) any { return map[string]any{"spec": wide(n)} }, 3},
		{"[*].a", wide, 3}, {"[?(@.b==-1)].b", wide, 6},
		{"..b", wide, 0}, {"[0].b", wide, 0}, {".b.b.b", nested, 0},
	} {
		p := parsed(t, of.path)
		for _, n := range []int{10, 100, 10_000} {
			b := jsonpath.NewBudget(1 << 20)
			object := of.object(n)
			if _, _, err := b.First(p, object); err != nil {
				t.Fatal(err)
			}
			most := of.each*n + 20
			if of.path == "..b" { // all values in the list are counted before the first one is visited
				most += n
			}
			if steps := 1<<20 - b.Left(); steps > most {
				t.Errorf("%s: %d steps of %d values, want %d at most", of.path, steps, n, most)
			}
		}
	}
}

// A text of n bytes that is read costs at least n/64 steps, whatever reads it. So the default number of steps of a row is soon
// spent by paths that read the same long texts again and again.
func TestStepsCountBytes(t *testing.T) {
	t.Parallel()
	const most = 1 << 30
	for name, of := range map[string]struct {
		path   string
		object any
		steps  int // at least
	}{
		"sorted names":            {zeros(2700) + ".*", longNames(14, 100_000), 14 * 100_000 / 64},
		"sorted names below":      {zeros(2700) + "..none", longNames(14, 100_000), 14 * 100_000 / 64},
		"two sorted names":        {zeros(20_000) + ".*", longNames(2, 700_000), 2 * 700_000 / 64},
		"order of texts":          {zeros(4400) + "[?(@.a<@.b)]", longTexts(700_000), 4400 * (700_000 / 64)},
		"equal texts":             {zeros(4400) + "[?(@.a==@.b)]", longTexts(700_000), 4400 * (700_000 / 64)},
		"name in a path":          {zeros(2000) + "." + strings.Repeat("k", 100_000), longNames(1, 1), 2000 * (100_000 / 64)},
		"name in a filter":        {".l" + "[?(@." + strings.Repeat("k", 100_000) + ")]", map[string]any{"l": wide(2000)}, 2000 * (100_000 / 64)},
		"name of a direct path":   {".l.*." + strings.Repeat("k", 100_000), map[string]any{"l": wide(2000)}, 2000 * (100_000 / 64)},
		"actions that do nothing": {".l" + strings.Repeat("}{", 100_000), longNames(1, 1), 100_000},
	} {
		p := parsed(t, of.path)
		b := jsonpath.NewBudget(most)
		if _, _, err := b.First(p, of.object); err != nil {
			t.Fatal(err)
		}
		if steps := most - b.Left(); steps < of.steps {
			t.Errorf("%s: %d steps, want %d at least", name, steps, of.steps)
		}
		if v, found, err := jsonpath.NewBudget(1<<16).First(p, of.object); !errors.Is(err, jsonpath.ErrSpent) {
			t.Errorf("%s: a %T, %t, %v; want ErrSpent", name, v, found, err)
		}
	}
	b := jsonpath.NewBudget(most)
	if text, whole := b.Text([]any{strings.Repeat("x", 64_000)}, 100_000); len(text) != 64_004 || !whole || most-b.Left() < 1000 {
		t.Errorf("%d bytes of JSON, whole %t, take %d steps; want 1000 at least", len(text), whole, most-b.Left())
	}
	if text, whole := jsonpath.NewBudget(5_000).Text(longNames(14, 100_000), 1000); len(text) > 1000 || whole {
		t.Errorf("an object with names that are too long to be sorted is %q, whole %t", text, whole)
	}
	if b := jsonpath.NewBudget(10); !b.Read(63) || !b.Read(640) || b.Left() != 0 || b.Read(64) || !b.Read(63) {
		t.Errorf("Read leaves %d steps", b.Left())
	}
	// Texts of different lengths are not equal, and a short text is soon compared.
	for _, operator := range []string{"==", "!=", "<", ">="} {
		b := jsonpath.NewBudget(1000)
		_, found, err := b.First(parsed(t, ".l[0][?(@.a"+operator+"'x')]"), longTexts(700_000))
		if err != nil || found != (operator == "!=" || operator == ">=") {
			t.Errorf("%s: %t, %v", operator, found, err)
		}
	}
}

// The names of an object are sorted once for all paths of a Budget, and also within Find.
func TestNamesAreSortedOnce(t *testing.T) {
	t.Parallel()
	many := map[string]any{}
	for i := range 100 {
		many[fmt.Sprintf("name-%02d", i)] = int64(i)
	}
	for length, object := range map[int]any{70_000: longNames(14, 70_000), 0: map[string]any{"l": []any{many}}} {
		sorted, err := parsed(t, ".l[0].*").Find(object)
		if err != nil || len(sorted) < 14 {
			t.Fatal(sorted, err)
		}
		for i, v := range sorted {
			if v != int64(i) {
				t.Fatalf("value %d is %v", i, v)
			}
		}
		b := jsonpath.NewBudget(1 << 20)
		used := func(path string) int {
			before := b.Left()
			if v, found, err := b.First(parsed(t, path), object); v != int64(0) || !found || err != nil {
				t.Fatalf("%s: %v, %t, %v", path, v, found, err)
			}
			return before - b.Left()
		}
		once, again := used(".l[0].*"), used(".l[0].*")
		if want := 14 * (length / 64); once-again != want {
			t.Errorf("the first path takes %d steps and the second %d, want a difference of %d", once, again, want)
		}
		if many := used(zeros(3) + ".*"); many > 3*again {
			t.Errorf("the members of an object three times take %d steps, once %d", many, again)
		}
		if all, err := parsed(t, zeros(2)+".*").Find(object); err != nil || !reflect.DeepEqual(all, append(sorted, sorted...)) {
			t.Errorf("%v, %v", all, err)
		}
	}
}

// All paths share a Budget, and expensive paths leave enough steps for cheap ones.
func TestBudget(t *testing.T) {
	t.Parallel()
	object := map[string]any{"spec": wide(10_000), "metadata": map[string]any{"name": "a"}, "conditions": []any{map[string]any{"type": "Ready", "status": "True"}}}
	b := jsonpath.NewBudget(40_000)
	spent := 0
	for range 50 {
		if _, _, err := b.First(parsed(t, ".spec..a"), object); errors.Is(err, jsonpath.ErrSpent) {
			spent++
		} else if err != nil {
			t.Fatal(err)
		}
	}
	if spent != 50 && spent != 49 || b.Left() < 4_000 || b.Left() > 10_000 {
		t.Errorf("%d of 50 paths were cut short, and %d steps of 40,000 are left", spent, b.Left())
	}
	for path, want := range map[string]any{".metadata.name": "a", `.conditions[?(@.type=="Ready")].status`: "True"} {
		if got, ok, err := b.First(parsed(t, path), object); got != want || !ok || err != nil {
			t.Errorf("%s: %v, %t, %v; want %v", path, got, ok, err, want)
		}
	}
	for range 10_000 {
		_, _, _ = b.First(parsed(t, ".metadata.name"), object)
	}
	if _, _, err := b.First(parsed(t, ".metadata.name"), object); !errors.Is(err, jsonpath.ErrSpent) || b.Left() != 0 {
		t.Errorf("%v with %d steps left, want ErrSpent with none", err, b.Left())
	}
	if _, _, err := new(jsonpath.Budget).First(parsed(t, ".a"), object); !errors.Is(err, jsonpath.ErrSpent) {
		t.Errorf("the zero Budget: %v", err)
	}
}

// Budget.Text returns the result of Text, or its beginning up to the limit.
func TestBudgetText(t *testing.T) {
	t.Parallel()
	object := decoded(t, sample)
	for _, value := range []any{
		nil, "", "text", "ünï", int64(3), 1e21, 0.5, true, []any{}, map[string]any{}, object, wide(100), nested(100), []any{nil, "<&>", "\xff", "\u2028"},
		map[string]any{"ü\"": []any{map[string]any{}, "long " + strings.Repeat("ü", 300)}},
	} {
		want, err := jsonpath.Text(value)
		if err != nil {
			t.Fatal(err)
		}
		for most := range len(want) + 2 {
			got, whole := jsonpath.NewBudget(1<<20).Text(value, most)
			if whole != (most >= len(want)) || !strings.HasPrefix(want, got) || len(got) > most || len(got) < min(most, len(want))-3 || !utf8.ValidString(got) {
				t.Fatalf("%d bytes of %q are %q, whole %t", most, want, got, whole)
			}
		}
		if text, whole := new(jsonpath.Budget).Text(value, 1000); strings.ContainsAny(want[:min(1, len(want))], "[{") && (whole && len(want) > 2 || len(text) > 2) {
			t.Errorf("without steps %q is %q, whole %t", want, text, whole)
		}
	}
	b := jsonpath.NewBudget(1 << 20)
	if text, whole := b.Text(wide(100_000), 100); len(text) != 100 || whole || 1<<20-b.Left() > 100 {
		t.Errorf("100 bytes of a long list take %d steps: %q", 1<<20-b.Left(), text)
	}
	large := map[string]any{}
	for i := range 10_000 {
		large[fmt.Sprint(i)] = i
	}
	if text, whole := jsonpath.NewBudget(1_000).Text([]any{int64(1), large}, 100); text != "[1," || whole {
		t.Errorf("an object whose members are too many to be sorted is %q, %t", text, whole)
	}
}

// BenchmarkRow evaluates 50 paths in an object of about 800 KB, with one Budget, and also each path with Find.
func BenchmarkRow(b *testing.B) {
	list := make([]any, 20_000)
	for i := range list {
		list[i] = map[string]any{"b": map[string]any{"c": int64(i), "d": "x"}}
	}
	object := map[string]any{"spec": map[string]any{"list": list}}
	for _, path := range []string{".spec..a", ".spec..c", ".spec", ".spec.list[*].b.c"} {
		p := parsed(b, path)
		b.Run(path+"/budget", func(b *testing.B) {
			b.ReportAllocs()
			for b.Loop() {
				budget := jsonpath.NewBudget(1 << 16)
				for range 50 {
					if v, ok, err := budget.First(p, object); ok && err == nil {
						budget.Text(v, 16<<10)
					}
				}
			}
		})
		b.Run(path+"/find", func(b *testing.B) {
			b.ReportAllocs()
			for b.Loop() {
				for range 50 {
					if found, err := p.Find(object); err == nil && len(found) > 0 {
						_, _ = jsonpath.Text(found[0])
					}
				}
			}
		})
	}
}
