package jsonvalue

import (
	"slices"
	"strconv"
	"strings"

	"k8s.io/apimachinery/pkg/util/validation/field"
)

// maxShownPath is the maximum length of the path in an error. The path of each value has the names of all objects around it.
const maxShownPath = 8 << 10

// Below returns the path of a value inside the value at at: at followed by step. A path that would be too long is cut and ends
// with dots.
func Below(at, step string) string {
	if len(at)+len(step) <= maxShownPath {
		return at + step
	}
	const more = "..."
	if strings.HasSuffix(at, more) {
		return at
	}
	room := max(maxShownPath-len(at), 0)
	return at + strings.ToValidUTF8(step[:room], "") + more
}

// Trail is the position of a walk in a value.
type Trail []Step

// Step is one step of a trail, to a member or an element.
type Step struct {
	name  string
	index int  // of an element, or -1
	key   bool // name is the key of a map, not a property
}

// Enter moves to a member.
func (t *Trail) Enter(name string) { *t = append(*t, Step{name: name, index: -1}) }

// EnterKey moves to a member that is not a property.
func (t *Trail) EnterKey(name string) { *t = append(*t, Step{name: name, index: -1, key: true}) }

// EnterIndex moves to an element.
func (t *Trail) EnterIndex(i int) { *t = append(*t, Step{index: i}) }

// Leave moves back to the value around.
func (t *Trail) Leave() { *t = (*t)[:len(*t)-1] }

// Path returns the position as a field path below root.
func (t Trail) Path(root *field.Path) *field.Path {
	for _, step := range t {
		switch {
		case step.index >= 0:
			root = root.Index(step.index)
		case step.key:
			root = root.Key(step.name)
		default:
			root = root.Child(step.name)
		}
	}
	return root
}

// String returns the position as the path of an unknown field. A path longer than maxShownPath is cut.
func (t Trail) String() string {
	var text strings.Builder
	for i, step := range t {
		if text.Len()+len(step.name) > maxShownPath {
			return Below(text.String(), "."+step.name[:min(len(step.name), maxShownPath)])
		}
		if step.index >= 0 {
			text.WriteString("[" + strconv.Itoa(step.index) + "]")
			continue
		}
		if i > 0 {
			text.WriteByte('.')
		}
		text.WriteString(step.name)
	}
	return text.String()
}

// Paths collects paths, of which only the first ones in sorted order are needed, whatever the order in which they are added.
type Paths []string

// Add adds a path. most is the number of paths that are needed.
func (p *Paths) Add(path string, most int) {
	*p = append(*p, path)
	if len(*p) >= 2*most+64 {
		*p = p.Sorted(most)
	}
}

// Sorted returns the first most paths, sorted.
func (p Paths) Sorted(most int) []string {
	slices.Sort(p)
	return p[:min(len(p), max(most, 0))]
}
