package canonical

// reader is a text that is being looked at.
type reader struct {
	text  []byte
	depth int // of objects, lists and maps around the place at hand
}

// facts are what omitempty and omitzero want to know of a value.
type facts uint8

// maxDepth bounds recursion. What is deeper is not looked at.
const maxDepth = 128

const (
	empty facts = 1 << iota // omitempty leaves it out
	void                    // omitzero leaves it out
	zero                    // all of it is zero

	nothing = empty | void | zero
)

// byteAt is the byte at an offset; 0, which is nowhere in JSON, after the end.
func (r *reader) byteAt(at int) byte {
	if at < len(r.text) {
		return r.text[at]
	}
	return 0
}

// has reports whether a text stands at an offset.
func (r *reader) has(at int, text string) bool {
	return len(r.text)-at >= len(text) && string(r.text[at:at+len(text)]) == text
}

// enter and leave are around what may be nested. After a no nobody looks at the depth.
func (r *reader) enter() bool {
	r.depth++
	return r.depth <= maxDepth
}

func (r *reader) leave() { r.depth-- }
