package rules

import (
	"reflect"

	"github.com/google/cel-go/common/types"
	"github.com/google/cel-go/common/types/traits"
	"github.com/keelson-dev/keelson/runtime/cel/internal/library"
)

// maxWork is how many elements and members the rules of one object may compare, copy and sort in operations whose costs do not
// tell how large they are: objects are compared for next to nothing, and lists of type set are united. A rule that does so in a
// comprehension could take hours before it has cost too much. It is many times what rules on the largest object do that look at all
// of it once.
const maxWork = 20_000_000

// meter counts that work. Whoever has none left is stopped as if it had cost too much.
type meter struct{ left int }

func (m *meter) spend(work int) {
	if m.left -= work; m.left < 0 {
		library.Stop()
	}
}

// bytesPerWork is how many bytes of a text can be read in the time that an element takes.
const bytesPerWork = 256

// read counts the reading of a text, several times if that takes longer.
func (m *meter) read(text string, times int) { m.spend(len(text) / bytesPerWork * times) }

// compare counts the comparison of a value, if it is a text.
func (m *meter) compare(value any) {
	if text, ok := value.(string); ok {
		m.read(text, 1)
	}
}

// sizeOf is how many elements a list has.
func sizeOf(l traits.Lister) int {
	size, _ := l.Size().(types.Int)
	return int(size)
}

// same compares decoded JSON. Anything else, which a rule has made, is never the same.
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
