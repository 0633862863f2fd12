// Package weight estimates the memory that the values of a body take, before the body is decoded: a text of three megabytes can
// contain a million structs of a kilobyte each. It makes no values, and reads each byte a fixed number of times.
//
// The weight of a value is the memory that Go needs for it: its slot in a struct, slice, map or interface, and the memory that
// the slot points to. The bytes of strings are not included, because they are at most those of the text; but characters that JSON
// must escape are included. Decoding allocates more than the weight in all, because it copies slices when they grow, but only by
// a constant factor: see the measurements in the tests of package server.
//
// The package reads a text as far as any decoder does. It stops where the text is invalid: the decoder returns the error.
package weight

import (
	"bytes"
	"errors"
	"fmt"
	"math"
	"unicode/utf8"
)

// Limit holds limits for the weight of a body's values, and for the number of items in each list or map of its metadata: owner
// references, finalizers, managed fields, labels and annotations. 0 means no limit.
type Limit struct {
	Bytes int // the largest weight, in bytes
	Items int // the largest number of items of a list or map in the metadata
	// Weighed is called with the weight of a body within the limits. Its error is returned. It may be nil.
	Weighed func(bytes int) error
}

// none is larger than the weight of any body.
const none = math.MaxInt / 2

func (l Limit) left() int {
	if l.Bytes == 0 {
		return none
	}
	return l.Bytes
}

// LimitError is returned for a body that exceeds a limit.
type LimitError struct {
	Field string // the list or map in the metadata with too many items; "": the values weigh too much
	Most  int    // the limit, in items or in bytes
}

// Error implements error.
func (e *LimitError) Error() string {
	if e.Field != "" {
		return fmt.Sprintf("metadata.%s: must have at most %d items", e.Field, e.Most)
	}
	return fmt.Sprintf("limit is %d bytes of memory for the values in the body", e.Most)
}

// errEnd ends a text that is invalid, or nested deeper than any decoder reads.
var errEnd = errors.New("the text ends")

// mostDepth limits the nesting of values. encoding/json has the same limit.
const mostDepth = 10000

// scale adds up the weight of a body.
type scale struct {
	limit Limit
	left  int
}

func newScale(l Limit) scale { return scale{l, l.left()} }

// add counts bytes.
func (s *scale) add(bytes int) error {
	if s.left -= bytes; s.left < 0 {
		return &LimitError{Most: s.limit.Bytes}
	}
	return nil
}

// The memory of maps: a header, and groups of eight slots for a key and a value each. If there are several groups, half of the
// slots are empty (https://go.dev/blog/swisstable).
const (
	mapHead  = 48
	mapGroup = 8
)

// entry returns the weight that the n-th entry, counted from 1, adds to a map; size is that of its key and value.
func entry(n, size int) int {
	switch {
	case n == 1:
		return mapGroup * (size + 1)
	case n <= mapGroup:
		return 0
	}
	return 2 * (size + 1)
}

// The memory of untyped values in addition to their slot, which is an interface.
const (
	slot       = 16
	stringHead = 16
	sliceHead  = 24
	number     = 8
)

// escapeSize is the number of characters that JSON writes for one escaped character.
const escapeSize = 6

// escaped adds the weight of characters that JSON escapes but that text contains unescaped: decoded values are encoded again, and
// some texts would become six times as long.
func (s *scale) escaped(text []byte) error {
	n := bytes.Count(text, []byte("<")) + bytes.Count(text, []byte(">")) + bytes.Count(text, []byte("&"))
	return s.add(escapeSize * n)
}

// controls is escaped for a text that may also contain unescaped control characters and invalid UTF-8.
func (s *scale) controls(text []byte) error {
	n := 0
	for rest := text; len(rest) > 0; {
		r, size := utf8.DecodeRune(rest)
		if r < ' ' || r == utf8.RuneError && size == 1 {
			n++
		}
		rest = rest[size:]
	}
	if err := s.add(escapeSize * n); err != nil {
		return err
	}
	return s.escaped(text)
}

// done converts the error that ended a text to the result of a measurement.
func (s *scale) done(err error) error {
	switch {
	case err != nil && !errors.Is(err, errEnd):
		return err
	case s.limit.Weighed != nil:
		return s.limit.Weighed(s.limit.left() - s.left)
	}
	return nil
}
