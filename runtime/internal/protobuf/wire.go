package protobuf

import (
	"fmt"
	"io"

	"google.golang.org/protobuf/encoding/protowire"
)

// varint decodes a number as the generated methods do: bits of the tenth byte that do not fit into 64 bits are dropped, while
// protowire returns an error for them.
func varint(b []byte) (v uint64, n int, err error) {
	if len(b) > 0 && b[0] < 0x80 {
		return uint64(b[0]), 1, nil
	}
	if v, n = looseVarint(b); n > 0 {
		return v, n, nil
	}
	if len(b) >= 10 {
		return 0, 0, errOverflow
	}
	return 0, 0, io.ErrUnexpectedEOF
}

// counted returns the bytes after a length; n is the size of the length and of the bytes.
func counted(b []byte) (content []byte, n int, err error) {
	size, n, err := varint(b)
	switch {
	case err != nil:
		return nil, 0, err
	case size > uint64(len(b)-n):
		return nil, 0, io.ErrUnexpectedEOF
	}
	end := n + int(size)
	return b[n:end], end, nil
}

// skip returns the length of the field at the beginning of b. In a group, any end tag ends the innermost group.
func skip(b []byte) (int, error) {
	at, groups := 0, 0
	for at < len(b) {
		key, n, err := varint(b[at:])
		if err != nil {
			return 0, err
		}
		at += n
		switch wire := protowire.Type(key & 7); wire {
		case varintWire:
			_, n, err = varint(b[at:])
		case fixed64Wire:
			n = 8
		case bytesWire:
			_, n, err = counted(b[at:])
		case fixed32Wire:
			n = 4
		case protowire.StartGroupType:
			groups++
			n = 0
		case protowire.EndGroupType:
			if groups == 0 {
				return 0, errGroup
			}
			groups--
			n = 0
		default:
			return 0, fmt.Errorf("proto: illegal wireType %d", wire)
		}
		if err != nil {
			return 0, err
		}
		if at += n; at > len(b) {
			return 0, io.ErrUnexpectedEOF
		}
		if groups == 0 {
			return at, nil
		}
	}
	return 0, io.ErrUnexpectedEOF
}
