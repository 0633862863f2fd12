package rules

import (
	"reflect"

	"github.com/google/cel-go/common/types"
	"github.com/google/cel-go/common/types/traits"
	"github.com/keelson-dev/keelson/runtime/cel/internal/library"
)

// maxWork bounds the work of operations whose cost does not depend on the size of their arguments: it is the number of elements
// and members that the rules of one object may compare, copy and sort in such operations. Examples are comparisons of objects,
// which cost almost nothing, and unions of lists of type set. A rule that does so in a comprehension could run for hours before
// it has cost too much. The bound is many times the work of rules that read the largest object once.
const maxWork = 20_000_000

// meter counts this work. An evaluation with no work left is stopped as if it had cost too much.
type meter struct{ left int }

func (m *meter) spend(work int) {
	if m.left -= work; m.left < 0 {
		library.Stop()
	}
}

// bytesPerWork is the number of bytes of a string that can be read in the time that one element takes.
const bytesPerWork = 256

// read counts the work of reading a string. times is a factor for operations that are slower than a plain read.
func (m *meter) read(text string, times int) { m.spend(len(text) / bytesPerWork * times) }

// compare counts the work of comparing a value, if it is a string.
func (m *meter) compare(value any) {
	if text, ok := value.(string); ok {
		m.read(text, 1)
	}
}

// sizeOf returns the number of elements of a list.
func sizeOf(l traits.Lister) int {
	size, _ := l.Size().(types.Int)
	return int(size)
}

// same compares decoded JSON. A value of any other type, which a rule has made, equals nothing.
func same(v, w any, m *meter) bool {
	m.spend(1)
	switch v := v.(type) {
	case map[string]any:
		w, ok := w.(map[string]any)
		if !ok || len(v) != len(w) {
			return false
		}
		for name, member := range v {
			if other, ok := w[name]; !ok || !same(member, other, m) {
				return false
			}
		}
		return true
	case []any:
		w, ok := w.([]any)
		if !ok || len(v) != len(w) {
			return false
		}
		for i := range v {
			if !same(v[i], w[i], m) {
				return false
			}
		}
		return true
	}
	m.compare(v)
	return reflect.DeepEqual(v, w)
}
