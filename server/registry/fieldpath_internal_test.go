package registry

import (
	"reflect"
	"testing"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
)

// Reading a path of an untyped object allocates nothing, whatever is at the path.
func TestFieldPathOfUntyped(t *testing.T) {
	large := make([]any, 1000)
	object := &unstructured.Unstructured{Object: map[string]any{
		"spec": map[string]any{"n": int64(3), "high": int64(1 << 40), "text": "x", "none": nil, "large": large, "float": 1.0}, "list": large,
	}}
	for path, want := range map[string]struct {
		n    int32
		ok   bool
		text string
	}{
		".spec.n": {3, true, ""}, ".spec.high": {1<<31 - 1, true, ""}, ".spec.text": {0, false, "x"}, ".spec.none": {}, ".spec.none.n": {},
		".spec.large": {}, ".spec.float": {}, ".spec": {}, ".list": {}, ".list.n": {}, ".spec.text.n": {}, ".missing.n": {},
	} {
		p, err := integerPath(reflect.TypeFor[unstructured.Unstructured](), path)
		if err != nil {
			t.Fatal(err)
		}
		n, ok := p.integer(object)
		if text := p.text(object); n != want.n || ok != want.ok || text != want.text {
			t.Errorf("%s: %d, %t, %q; want %v", path, n, ok, text, want)
		}
		if allocations := testing.AllocsPerRun(10, func() {
			p.integer(object)
			p.text(object)
		}); allocations > 0 {
			t.Errorf("%s: %v allocations", path, allocations)
		}
	}
	if n, ok := (fieldPath{}).integer(object); n != 0 || ok || (fieldPath{}).text(object) != "" {
		t.Errorf("the zero path leads to %d, %t", n, ok)
	}
}
