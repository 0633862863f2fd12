package jsonvalue

import (
	"slices"
	"strconv"
	"strings"

	"k8s.io/apimachinery/pkg/util/validation/field"
)

// maxShownPath is how long the path of an error may be. Every value that is judged has one, with the names of all around it.
const maxShownPath = 8 << 10

// Below is the path of what is in a value: step comes behind at, unless the path is so long already that it ends before.
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

// Trail is where a walk is in a value.
type Trail []Step

// Step leads to a member or an element.
type Step struct {
	name  string
	index int  // of an element, or -1
	key   bool // name is the key of a map, not a property
}

// Enter goes to a member.
func (t *Trail) Enter(name string) { *t = append(*t, Step{name: name, index: -1}) }

// EnterKey goes to a member that is not a property.
func (t *Trail) EnterKey(name string) { *t = append(*t, Step{name: name, index: -1, key: true}) }

// EnterIndex goes to an element.
func (t *Trail) EnterIndex(i int) { *t = append(*t, Step{index: i}) }

// Leave goes back to what is around.
func (t *Trail) Leave() { *t = (*t)[:len(*t)-1] }

// Path is the trail as field errors write it, from a root.
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

// String is the path of an unknown field. One longer than maxShownPath ends before.
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

// Paths are the first ones of many, in sorted order, whatever the order in which they come.
type Paths []string

// Add adds a path, of which the first most are wanted.
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
