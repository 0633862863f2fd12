package codec

import (
	"bytes"
	"encoding/binary"
	"strings"
)

// Common is text that many documents of typed objects share: their kind and apiVersion, and their managedFields except the times.
// It is often a quarter of an object. A program that keeps many documents can keep this text once:
//
//	parts := d.AppendParts(nil)
//	c := known[string(parts)] // NewCommon(parts) if there is none
//	d = d.Share(c)
//
// A Common is immutable.
type Common struct {
	parts  string // the argument of NewCommon; head and pieces are parts of it
	head   string // kind and apiVersion, with a comma at the end
	pieces []string
	size   int // the length of head and pieces
}

// stamp is the length of a time in managedFields, with its quotes. Kubernetes' metav1.Time has whole seconds, in UTC.
const stamp = len(`"2006-01-02T15:04:05Z"`)

// leastCommon is the smallest length of common text that is worth sharing.
const leastCommon = 64

// AppendParts appends the text of d that a Common may hold: documents for which this text is equal can share a Common. It appends
// nothing if the text is too short, or if d has a Common already.
func (d Document) AppendParts(dst []byte) []byte {
	if d.common != nil || d.sorted || d.insert >= d.managed { // also true if managed is 0
		return dst
	}
	from := len(dst)
	dst = append(dst, d.value[1:d.members]...)
	lengths := make([]byte, 0, 64)
	lengths = binary.LittleEndian.AppendUint32(lengths, uint32(d.members-1))
	d.eachPiece(func(piece []byte) {
		dst = append(dst, piece...)
		lengths = binary.LittleEndian.AppendUint32(lengths, uint32(len(piece)))
	})
	if len(dst)-from < leastCommon {
		return dst[:from]
	}
	dst = append(dst, lengths...)
	return binary.LittleEndian.AppendUint32(dst, uint32(len(lengths)))
}

// eachPiece calls f for the texts before, between and after the times in managedFields.
func (d Document) eachPiece(f func(piece []byte)) {
	const name = `"time":`
	text := d.value[d.managed : d.meta.to-1]
	piece := 0 // the offset where it begins
	for at := 0; ; {
		i := bytes.Index(text[at:], []byte(name+`"`))
		if i < 0 {
			f(text[piece:])
			return
		}
		at += i + len(name)
		if isStamp(text[at:]) {
			f(text[piece:at])
			at += stamp
			piece = at
		}
	}
}

// isStamp reports whether text begins with a string of the length of a time, without quotes or escapes in it.
func isStamp(text []byte) bool {
	return len(text) > stamp && bytes.IndexByte(text[1:], '"') == stamp-2 && bytes.IndexByte(text[:stamp], '\\') < 0
}

// NewCommon returns the Common of a text that AppendParts has appended. The text must not be empty.
func NewCommon(parts []byte) *Common {
	c := &Common{parts: string(parts)}
	n := len(parts) - 4
	lengths := parts[n-int(binary.LittleEndian.Uint32(parts[n:])) : n]
	next := func() string {
		from := c.size
		c.size += int(binary.LittleEndian.Uint32(lengths))
		lengths = lengths[4:]
		return c.parts[from:c.size]
	}
	c.head = next()
	c.pieces = make([]string, 0, len(lengths)/4)
	for len(lengths) > 0 {
		c.pieces = append(c.pieces, next())
	}
	return c
}

// Parts returns the argument of NewCommon.
func (c *Common) Parts() string { return c.parts }

// OwnSize returns the number of bytes that d does not share with other documents.
func (d Document) OwnSize() int { return len(d.value) }

// Common returns the Common of d, or nil.
func (d Document) Common() *Common { return d.common }

// Is reports whether d and o are known to be the same document: they have the same Common, and their other bytes are equal. It
// may return false for equal documents that do not have the same Common.
func (d Document) Is(o Document) bool { return d.common == o.common && bytes.Equal(d.value, o.value) }

// Share returns d with the Common c, and copies the other bytes. c must have been made of text equal to that of d.AppendParts.
func (d Document) Share(c *Common) Document {
	out, head := d, int32(len(c.head))
	out.value = make([]byte, 1, len(d.value)-c.size)
	out.value[0] = '{'
	out.value = append(out.value, d.value[d.members:d.managed]...)
	at := int(d.managed)
	for i, piece := range c.pieces {
		if i > 0 {
			out.value = append(out.value, d.value[at:at+stamp]...)
			at += stamp
		}
		at += len(piece)
	}
	out.value = append(out.value, d.value[at:]...)
	out.common = c
	out.shift(-1, -head, -int32(c.size))
	return out
}

// shift moves the offsets of d: those in the head, those between the head and managedFields, and those after managedFields.
func (d *Document) shift(head, between, behind int32) {
	d.version = span{d.version.from + head, d.version.to + head}
	d.kind = span{d.kind.from + head, d.kind.to + head}
	d.members += between
	d.insert += between
	d.managed += between
	d.meta = span{d.meta.from + between, d.meta.to + behind}
	if d.labels.to > 0 {
		d.labels = span{d.labels.from + between, d.labels.to + between}
	}
}

// appendText appends value[from:to] and the common text in that range. from must not be after managedFields, and to must not be
// before their end.
func (d Document) appendText(dst []byte, from, to int) []byte {
	if d.common == nil {
		return append(dst, d.value[from:to]...)
	}
	dst = append(dst, d.value[from:d.managed]...)
	at := int(d.managed)
	for i, piece := range d.common.pieces {
		if i > 0 {
			dst = append(dst, d.value[at:at+stamp]...)
			at += stamp
		}
		dst = append(dst, piece...)
	}
	return append(dst, d.value[at:to]...)
}

// has reports whether the field at path may be in the common text.
func (c *Common) has(path string) bool {
	member, rest, _ := strings.Cut(path, ".")
	return member == "kind" || member == "apiVersion" || member == "metadata" && strings.HasPrefix(rest, managedFields)
}
