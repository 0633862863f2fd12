package patch_test

import (
	"fmt"
	goruntime "runtime"
	"strings"
	"testing"

	"github.com/keelson-dev/keelson/runtime"
	"github.com/keelson-dev/keelson/runtime/patch"
)

// oddManager returns a field manager for a kind with members of any type.
func oddManager(t *testing.T) *patch.FieldManager {
	t.Helper()
	scheme := runtime.NewScheme()
	if err := runtime.Register(scheme, oddKind, runtime.KindOptions[*odd]{}); err != nil {
		t.Fatal(err)
	}
	return fieldManager(t, patch.FieldManagerOptions{Scheme: scheme, Kind: oddKind})
}

// TestNumbersThatCannotBeMerged checks that the error has the path of the number.
func TestNumbersThatCannotBeMerged(t *testing.T) {
	f := oddManager(t)
	obj := &odd{}
	obj.Spec.Any = map[string]any{"a": []any{map[string]any{"b": uint64(1 << 63)}}}
	err := f.Update(nil, obj, "m")
	if want := ".spec.any.a[].b: 9223372036854775808 is larger"; err == nil || !strings.Contains(err.Error(), want) {
		t.Errorf("got %v, want %s", err, want)
	}
}

// TestDeepAndWide checks that the cost of an object does not grow with the length of all paths in it, which is the square of its
// size.
func TestDeepAndWide(t *testing.T) {
	f := oddManager(t)
	const depth, width, longName = 2000, 20000, 100
	deep := map[string]any{}
	for i := range width {
		deep[fmt.Sprint(i)] = int64(i)
	}
	for range depth {
		deep = map[string]any{strings.Repeat("n", longName): deep}
	}
	obj := &odd{}
	obj.Spec.Any = deep
	before, after := &goruntime.MemStats{}, &goruntime.MemStats{}
	goruntime.ReadMemStats(before)
	err := f.Update(nil, obj, "m")
	goruntime.ReadMemStats(after)
	if err == nil {
		t.Error("it is tracked")
	}
	const paths = depth * longName * width // bytes of the paths of all leaves
	if took := after.TotalAlloc - before.TotalAlloc; took > paths/20 {
		t.Errorf("%d MiB", took>>20)
	}
}
