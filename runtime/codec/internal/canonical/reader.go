package canonical

// reader is a text that is being checked.
type reader struct {
	text  []byte
	depth int // the number of objects, lists and maps around the present offset
}

// facts are the properties of a value that omitempty and omitzero depend on.
type facts uint8

// maxDepth limits recursion. The answer for a value that is nested deeper is "perhaps not".
const maxDepth = 128

const (
	empty facts = 1 << iota // omitempty leaves it out
	void                    // omitzero leaves it out
	zero                    // all of its parts are zero

	nothing = empty | void | zero
)

// byteAt returns the byte at an offset. After the end it returns 0, which does not occur in JSON.
func (r *reader) byteAt(at int) byte {
	if at < len(r.text) {
		return r.text[at]
	}
	return 0
}

// has reports whether text stands at an offset.
func (r *reader) has(at int, text string) bool {
	return len(r.text)-at >= len(text) && string(r.text[at:at+len(text)]) == text
}

// enter and leave enclose the check of a nested value. The depth is not used any more after a match that returned no.
func (r *reader) enter() bool {
	r.depth++
	return r.depth <= maxDepth
}

func (r *reader) leave() { r.depth-- }
