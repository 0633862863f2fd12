package patch_test

import (
	"context"
	"errors"
	"fmt"
	"reflect"
	goruntime "runtime"
	"strings"
	"testing"

	"github.com/keelson-dev/keelson/runtime"
	"github.com/keelson-dev/keelson/runtime/patch"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
)

// mostAllocated is the maximum allocation for one object, whatever its content.
const mostAllocated = 150 << 20

// allocated returns the number of bytes that f allocates. It is exact only if nothing else runs.
func allocated(f func()) int {
	var before, after goruntime.MemStats
	goruntime.ReadMemStats(&before)
	f()
	goruntime.ReadMemStats(&after)
	return int(after.TotalAlloc - before.TotalAlloc) //nolint:gosec // less than the memory there is
}

// refusedWith fails the test unless err is an Error with this code.
func refusedWith(t *testing.T, name string, err error, code int) {
	t.Helper()
	var bad *patch.Error
	switch {
	case code == 0 && err != nil, code != 0 && (!errors.As(err, &bad) || bad.Code != code):
		t.Errorf("%s: %.300v; want %d", name, err, code)
	}
}

func TestPatchesAreBounded(t *testing.T) {
	numbers := func(n int) string { return `[` + strings.TrimSuffix(strings.Repeat("1,", n), ",") + `]` }
	wide := `{"l":` + numbers(200_000) + `}`
	operations := func(n int, operation string) string {
		return `[` + strings.TrimSuffix(strings.Repeat(operation+",", n), ",") + `]`
	}
	ids := func(n int) string { return joined(n, func(i int) string { return fmt.Sprintf(`{"name":"%d"}`, i) }) }
	containers := func(n int) string { return `{"spec":{"containers":[` + ids(n) + `]}}` }
	type apply = func(doc, p []byte) ([]byte, error)
	strategic := func(doc, p []byte) ([]byte, error) {
		return patch.StrategicMergePatch(doc, p, reflect.TypeFor[corev1.Pod]())
	}
	for name, c := range map[string]struct {
		apply  apply
		doc, p string
		code   int
	}{
		"moves in a short list":     {patch.JSONPatch, `{"l":` + numbers(5000) + `}`, operations(10_000, `{"op":"move","from":"/l/0","path":"/l/-"}`), 0},
		"moves in a long list":      {patch.JSONPatch, wide, operations(10_000, `{"op":"move","from":"/l/0","path":"/l/-"}`), 413},
		"inserts in a long list":    {patch.JSONPatch, wide, operations(10_000, `{"op":"add","path":"/l/0","value":1}`), 413},
		"removes from a long list":  {patch.JSONPatch, wide, operations(10_000, `{"op":"remove","path":"/l/0"}`), 413},
		"appends to a long list":    {patch.JSONPatch, wide, operations(10_000, `{"op":"add","path":"/l/-","value":1}`), 0},
		"a million operations":      {patch.JSONPatch, `{}`, operations(1_000_000, `{}`), 413},
		"a million nulls":           {patch.JSONPatch, `{}`, operations(600_000, `null`), 413},
		"a million members":         {patch.JSONPatch, `{}`, `[{` + joined(300_000, func(i int) string { return fmt.Sprintf(`"%x":1`, i) }) + `}]`, 413},
		"a path of slashes":         {patch.JSONPatch, `{}`, `[{"op":"add","path":"` + strings.Repeat("/", 3_000_000) + `","value":1}]`, 422},
		"many paths of slashes":     {patch.JSONPatch, `{"":{}}`, operations(300, `{"op":"test","path":"`+strings.Repeat("/", 9_000)+`","value":1}`), 422},
		"copies":                    {patch.JSONPatch, `{"l":` + numbers(200_000) + `}`, operations(8, `{"op":"copy","from":"/l","path":"/l/0"}`), 422},
		"a merge of many values":    {patch.MergePatch, `{}`, wide, 413},
		"a merge of empty objects":  {patch.MergePatch, `{}`, `{"l":` + operations(700_000, `{}`) + `}`, 413},
		"a merge of 90,000 values":  {patch.MergePatch, wide, `{"m":` + numbers(90_000) + `}`, 0},
		"a merge into too many":     {patch.MergePatch, `{"l":` + numbers(299_999) + `}`, `{"a":1}`, 413},
		"900 items onto 900":        {strategic, containers(900), containers(900), 0},
		"2,000 items onto 2,000":    {strategic, containers(2000), containers(2000), 413},
		"a few items onto 2,500":    {strategic, containers(2500), containers(10), 0},
		"one item onto 70,000":      {strategic, containers(70_000), containers(1), 413},
		"some beside a long list":   {strategic, `{"spec":{"tolerations":[` + ids(70_000) + `]}}`, containers(100), 0},
		"an order of many":          {strategic, containers(1), `{"spec":{"$setElementOrder/containers":[` + ids(90_000) + `],"containers":[{"name":"0"}]}}`, 413},
		"deletes of many":           {strategic, `{}`, `{"metadata":{"$deleteFromPrimitiveList/finalizers":` + operations(90_000, `"a"`) + `}}`, 413},
		"many lists in many items":  {strategic, `{}`, `{"spec":{"containers":[` + joined(100, func(i int) string { return fmt.Sprintf(`{"name":"%d","env":[%s]}`, i, ids(350)) }) + `]}}`, 413},
		"lists in items of another": {strategic, `{"spec":{"containers":[{"name":"a","env":[` + ids(70_000) + `]},{"name":"b"}]}}`, `{"spec":{"containers":[{"name":"b","env":[` + ids(200) + `]}]}}`, 0},
		"retained keys":             {strategic, `{"spec":{"volumes":[{"name":"a"}]}}`, `{"spec":{"volumes":[{"name":"a","$retainKeys":` + operations(90_000, `"a"`) + `}]}}`, 413},
	} {
		var err error
		n := allocated(func() { _, err = c.apply([]byte(c.doc), []byte(c.p)) })
		refusedWith(t, name, err, c.code)
		if n > mostAllocated {
			t.Errorf("%s: %d bytes are allocated", name, n)
		}
	}
}

// TestPatchesStop checks that a context that is done ends every patch, with the error of the context.
func TestPatchesStop(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	for name, apply := range map[string]func() ([]byte, error){
		"JSON": func() ([]byte, error) {
			return patch.Bounds{}.JSONPatch(ctx, []byte(`{}`), []byte(`[{"op":"add","path":"/a","value":1}]`))
		},
		"merge": func() ([]byte, error) { return patch.Bounds{}.MergePatch(ctx, []byte(`{}`), []byte(`{"a":1}`)) },
		"strategic": func() ([]byte, error) {
			return patch.Bounds{}.StrategicMergePatch(ctx, []byte(`{}`), []byte(`{"spec":{"replicas":1}}`), reflect.TypeFor[appsv1.Deployment]())
		},
	} {
		if text, err := apply(); !errors.Is(err, context.Canceled) || text != nil {
			t.Errorf("%s: %s, %v", name, text, err)
		}
	}
}

// endsLater is a context that is done after a number of calls of Err.
type endsLater struct {
	context.Context
	asked, after int
}

func (e *endsLater) Err() error {
	if e.asked++; e.asked > e.after {
		return context.DeadlineExceeded
	}
	return nil
}

// TestJSONPatchStopsBetweenOperations checks that a JSON patch stops between two operations.
func TestJSONPatchStopsBetweenOperations(t *testing.T) {
	ctx := &endsLater{Context: t.Context(), after: 5}
	p := `[` + strings.TrimSuffix(strings.Repeat(`{"op":"add","path":"/a","value":1},`, 100), ",") + `]`
	if _, err := (patch.Bounds{}).JSONPatch(ctx, []byte(`{}`), []byte(p)); !errors.Is(err, context.DeadlineExceeded) || ctx.asked != 6 {
		t.Errorf("%v, asked %d times", err, ctx.asked)
	}
}

// TestFieldsAreBounded checks that the cost of field management is bounded, and that a higher cost is refused: for applying, for
// reading the annotation, and for keeping entries.
func TestFieldsAreBounded(t *testing.T) {
	s := runtime.NewScheme()
	if err := runtime.Register(s, rowKind, runtime.KindOptions[*unstructured.Unstructured]{}); err != nil {
		t.Fatal(err)
	}
	f := fieldManager(t, patch.FieldManagerOptions{Scheme: s, Kind: rowKind})
	refused := map[string]bool{"50 fields, 900 deep": true, "50 chains, 360 deep": true, "50 fields, 300 deep": true, "100,000 in small maps": true}
	for name, spec := range fieldShapes() {
		text := `{"apiVersion":"example.com/v1","kind":"Row","metadata":{"name":"a"},"spec":` + spec + `}`
		config := func() map[string]any {
			config, err := patch.Configuration([]byte(text))
			if err != nil {
				t.Fatal(err)
			}
			return config
		}
		code := 0
		if refused[name] {
			code = 413
		}
		check := func(way string, code int, step func() error) {
			t.Helper()
			var err error
			n := allocated(func() { err = step() })
			refusedWith(t, name+", "+way, err, code)
			if n > mostAllocated {
				t.Errorf("%s, %s: %d bytes are allocated", name, way, n)
			}
		}
		check("create", code, func() error { return f.Update(nil, &unstructured.Unstructured{Object: config()}, "m") })
		var live runtime.Object
		check("apply", code, func() (err error) {
			live, err = f.Apply(nil, config(), "one", true)
			return err
		})
		if live != nil {
			live.(metav1.Object).SetUID("u")
			check("apply once more", 0, func() error { _, err := f.Apply(live, config(), "one", true); return err })
			changed := live.DeepCopyObject().(*unstructured.Unstructured)
			changed.SetLabels(map[string]string{"a": "b"})
			check("update", 0, func() error { return f.Update(live, changed, "two") })
		}
		noted := &unstructured.Unstructured{Object: map[string]any{"apiVersion": "example.com/v1", "kind": "Row", "spec": map[string]any{"zz": int64(1)}}}
		noted.SetAnnotations(map[string]string{"kubectl.kubernetes.io/last-applied-configuration": text})
		noted.SetUID("u")
		check("last applied", code, func() error {
			c, err := patch.Configuration([]byte(`{"apiVersion":"example.com/v1","kind":"Row","metadata":{"name":"a"},"spec":{"zz":1}}`))
			if err != nil {
				return err
			}
			_, err = f.Apply(noted, c, "kubectl", true)
			return err
		})
	}
}

// TestEntriesAreBounded checks that a request cannot bring more entries than can be kept, and that stored entries are not an
// error of the request.
func TestEntriesAreBounded(t *testing.T) {
	f := fieldManager(t, patch.FieldManagerOptions{})
	many := func(n int, version, fields string) []metav1.ManagedFieldsEntry {
		entries := make([]metav1.ManagedFieldsEntry, n)
		for i := range entries {
			entries[i] = entry(fmt.Sprint("m", i), apply, fields)
			entries[i].APIVersion = version
		}
		return entries
	}
	wide := `{"f:spec":{` + joined(9000, func(i int) string { return fmt.Sprintf(`"f:%d":{}`, i) }) + `}}`
	deep := strings.Repeat(`{"f:b":{},"f:a":`, 2000) + `{}` + strings.Repeat(`}`, 2000)
	for name, c := range map[string]struct {
		entries []metav1.ManagedFieldsEntry
		refused bool
	}{
		"990":             {many(990, "example.com/v1", `{"f:spec":{"f:name":{}}}`), false},
		"10,000":          {many(10_000, "example.com/v1", `{"f:spec":{"f:name":{}}}`), true},
		"10,000 empty":    {many(10_000, "example.com/v1", `{}`), true},
		"wide ones":       {many(20, "example.com/v1", wide), true},
		"a wide one":      {many(1, "example.com/v1", wide), false},
		"a deep one":      {many(1, "example.com/v1", deep), true},
		"a few in others": {many(20, "example.com/v1beta1", `{"f:spec":{"f:size":{}}}`), false},
	} {
		live, obj := stored(boatSpec{Size: 1}), stored(boatSpec{Size: 2}, c.entries...)
		var err error
		n := allocated(func() { err = f.Update(live, obj, "m") })
		var tooMany *patch.EntriesError
		if errors.As(err, &tooMany) != c.refused || !c.refused && err != nil {
			t.Errorf("%s: %v", name, err)
		}
		if n > mostAllocated {
			t.Errorf("%s: %d bytes are allocated", name, n)
		}
		if !c.refused {
			continue
		}
		live, obj = stored(boatSpec{Size: 1}, c.entries...), stored(boatSpec{Size: 2}, c.entries...)
		if n = allocated(func() { err = f.Update(live, obj, "m") }); err == nil || errors.As(err, &tooMany) || len(obj.ManagedFields) != len(c.entries) || n > 1<<20 {
			t.Errorf("%s, stored: %v, %d entries, %d bytes", name, err, len(obj.ManagedFields), n)
		}
		if _, err = f.Apply(live, applied(t, `{"size":3}`), "m", true); err == nil {
			t.Errorf("%s, stored: applied", name)
		}
	}
	// The object is converted for each entry of another version.
	crew := make([]boatSailor, 2000)
	for i := range crew {
		crew[i].ID = int64(i)
	}
	live := stored(boatSpec{Crew: crew}, many(900, "example.com/v1beta1", `{"f:spec":{"f:size":{}}}`)...)
	obj := live.DeepCopyObject().(*boat)
	obj.Spec.Size = 5
	var err error
	n := allocated(func() { err = f.Update(live, obj, "m") })
	refusedWith(t, "conversions", err, 413)
	if n > mostAllocated {
		t.Errorf("conversions: %d bytes are allocated", n)
	}
}

// joined returns the results of each for 0 to n-1, joined by commas.
func joined(n int, each func(i int) string) string {
	texts := make([]string, n)
	for i := range texts {
		texts[i] = each(i)
	}
	return strings.Join(texts, ",")
}

func member(i int) string { return fmt.Sprintf(`"f%d":1`, i*7919%100003) }

// fieldShapes returns specs whose fields are costly to manage.
func fieldShapes() map[string]string {
	return map[string]string{
		"small":               `{"a":1}`,
		"wide 10,000":         `{` + joined(9900, member) + `}`,
		"50 fields, 300 deep": strings.Repeat(`{`+joined(50, member)+`,"a":`, 300) + `{}` + strings.Repeat(`}`, 300),
		"50 fields, 900 deep": strings.Repeat(`{`+joined(50, member)+`,"a":`, 900) + `{}` + strings.Repeat(`}`, 900),
		"50 chains, 360 deep": `{` + joined(50, func(i int) string {
			return fmt.Sprintf(`"f%d":`, i) + strings.Repeat(`{"a":`, 350) + `1` + strings.Repeat(`}`, 350)
		}) + `}`,
		"100,000 in small maps": `{` + joined(316, func(i int) string { return fmt.Sprintf(`"f%d":{%s}`, i, joined(316, member)) }) + `}`,
		"25,000 in small maps":  `{` + joined(2500, func(i int) string { return fmt.Sprintf(`"f%d":{%s}`, i, joined(10, member)) }) + `}`,
		"1,000 long names":      `{` + joined(1000, func(i int) string { return fmt.Sprintf(`"%s%d":{"a":1}`, strings.Repeat("x", 1000), i) }) + `}`,
	}
}

// TestBounds checks that each bound can be lowered and removed alone.
func TestBounds(t *testing.T) {
	ctx := t.Context()
	operations := func(n int) string {
		return "[" + strings.Repeat(`{"op":"add","path":"/list/0","value":0},`, n-1) + `{"op":"test","path":"/list/0","value":0}]`
	}
	ints := func(n int) string { return "[" + joined(n, func(int) string { return "0" }) + "]" }
	ports := func(n int) string {
		return `{"spec":{"ports":[` + joined(n, func(i int) string { return fmt.Sprintf(`{"port":%d,"name":"%d"}`, i+1, i) }) + `]}}`
	}
	jsonPatch := func(doc, text string) func(b patch.Bounds) ([]byte, error) {
		return func(b patch.Bounds) ([]byte, error) { return b.JSONPatch(ctx, []byte(doc), []byte(text)) }
	}
	merge := func(doc, text string) func(b patch.Bounds) ([]byte, error) {
		return func(b patch.Bounds) ([]byte, error) { return b.MergePatch(ctx, []byte(doc), []byte(text)) }
	}
	for name, c := range map[string]struct {
		low, most, none patch.Bounds
		apply           func(b patch.Bounds) ([]byte, error)
	}{
		"operations": {patch.Bounds{Operations: 19}, patch.Bounds{Operations: 20}, patch.Bounds{Operations: -1}, jsonPatch(`{"list":[0]}`, operations(20))},
		"moved items": {patch.Bounds{MovedItems: 189}, patch.Bounds{MovedItems: 190}, patch.Bounds{MovedItems: -1},
			jsonPatch(`{"list":[0]}`, operations(20))}, // 1 + 2 + ... + 19
		"values":          {patch.Bounds{Values: 101}, patch.Bounds{Values: 102}, patch.Bounds{Values: -1}, merge(`{}`, `{"a":`+ints(100)+`}`)},
		"document values": {patch.Bounds{DocumentValues: 203}, patch.Bounds{DocumentValues: 204}, patch.Bounds{DocumentValues: -1}, merge(`{"b":`+ints(100)+`}`, `{"a":`+ints(100)+`}`)},
		"merged items": {patch.Bounds{MergedItems: 10}, patch.Bounds{MergedItems: 60}, patch.Bounds{MergedItems: -1}, func(b patch.Bounds) ([]byte, error) {
			return b.StrategicMergePatch(ctx, []byte(ports(20)), []byte(ports(20)), reflect.TypeFor[corev1.Service]())
		}},
	} {
		var refused *patch.Error
		if _, err := c.apply(c.low); !errors.As(err, &refused) || refused.Code != 413 {
			t.Errorf("%s, beyond the bound: %v", name, err)
		}
		for _, b := range []patch.Bounds{c.most, c.none, {}} {
			if _, err := c.apply(b); err != nil {
				t.Errorf("%s: %+v: %v", name, b, err)
			}
		}
	}
	if err := (patch.Bounds{Operations: 19}).Check([]byte(operations(20))); err == nil {
		t.Error("20 operations pass where 19 are the most")
	}
}
