// Package weight tells, before a body is decoded, about how many bytes of memory its values take: a text of three megabytes
// can ask for a million structs of a kilobyte each. It makes nothing of the values, and looks at each byte a fixed number of
// times.
//
// What a value weighs is what Go takes for it: the slot that it has in a struct, slice, map or interface, and what the slot
// points to. The bytes of strings do not count, as there are not more of them than the text has, but for those that JSON has to
// escape. What it weighs is less than
// what decoding allocates in all, which makes slices larger step by step and copies, but by no more than a factor: see the
// measurements in package server's tests.
//
// Texts are followed as far as any decoder follows them. Where a text is broken it ends: the decoder says what is wrong.
package weight

import (
	"bytes"
	"errors"
	"fmt"
	"math"
	"unicode/utf8"
)

// Limit is what the values of a body may weigh, and how many items a list or map of its metadata may have: owner references,
// finalizers, managed fields, labels and annotations. 0 is no limit.
type Limit struct {
	Bytes int
	Items int
	// Weighed is told what a body within the limits weighs, and may refuse it; nil is nobody.
	Weighed func(bytes int) error
}

// none is enough for any body.
const none = math.MaxInt / 2

func (l Limit) left() int {
	if l.Bytes == 0 {
		return none
	}
	return l.Bytes
}

// LimitError is returned for a body that is beyond a limit.
type LimitError struct {
	Field string // the list or map in the metadata that has too many items; "": the values weigh too much
	Most  int    // of items, or of bytes
}

func (e *LimitError) Error() string {
	if e.Field != "" {
		return fmt.Sprintf("metadata.%s: must have at most %d items", e.Field, e.Most)
	}
	return fmt.Sprintf("limit is %d bytes of memory for the values in the body", e.Most)
}

// errEnd ends a text that is broken, or nested deeper than any decoder reads.
var errEnd = errors.New("the text ends")

// mostDepth is how deep values may be nested: as deep as encoding/json reads them.
const mostDepth = 10000

// scale counts what a body weighs.
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

// What maps take: a header, and groups of eight slots for a key and a value each, of which half are empty when there are
// several (https://go.dev/blog/swisstable).
const (
	mapHead  = 48
	mapGroup = 8
)

// entry is what the entry of a map adds that is its n-th, counted from 1, whose key and value take size bytes.
func entry(n, size int) int {
	switch {
	case n == 1:
		return mapGroup * (size + 1)
	case n <= mapGroup:
		return 0
	}
	return 2 * (size + 1)
}

// What untyped values take beside their slot, which is an interface.
const (
	slot       = 16
	stringHead = 16
	sliceHead  = 24
	number     = 8
)

// escapeSize is how many characters JSON makes of one that it escapes.
const escapeSize = 6

// escaped counts the characters that become six in JSON, where a text has them as they are: what is decoded is encoded again,
// and some texts would be six times as long.
func (s *scale) escaped(text []byte) error {
	n := bytes.Count(text, []byte("<")) + bytes.Count(text, []byte(">")) + bytes.Count(text, []byte("&"))
	return s.add(escapeSize * n)
}

// controls is escaped for a text that also has characters below the space as they are, and what is no UTF-8.
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

// done makes what ended a text the result for a caller.
func (s *scale) done(err error) error {
	switch {
	case err != nil && !errors.Is(err, errEnd):
		return err
	case s.limit.Weighed != nil:
		return s.limit.Weighed(s.limit.left() - s.left)
	}
	return nil
}
