package protobuf

import "google.golang.org/protobuf/encoding/protowire"

// maxDepth is how deep messages may be nested: as deep as encoding/json reads values.
const maxDepth = 10000

// tooDeep reports whether a message could be nested more than maxDepth deep. What is a message and what a string only
// its type knows: all that could be a message counts. What the generated methods pass over is passed over, groups and
// numbers of fields that are too large included, of a group all but its ends counting as fields. Each byte is looked at
// as part of one message at most, so this takes time in proportion to the text.
func tooDeep(message []byte, most int) bool {
	if len(message) <= 2*most { // a level takes two bytes at least
		return false
	}
	var open [][]byte // what is left of the messages around the one at hand
	rest := message
	for {
		if len(rest) == 0 {
			if len(open) == 0 {
				return false
			}
			rest, open = open[len(open)-1], open[:len(open)-1]
			continue
		}
		tag, n := looseVarint(rest)
		if n < 0 {
			rest = nil
			continue
		}
		rest = rest[n:]
		switch kind := protowire.Type(tag & 7); kind {
		case protowire.BytesType:
			size, n := looseVarint(rest)
			if n < 0 || size > uint64(len(rest)-n) {
				rest = nil
				continue
			}
			end := n + int(size)
			if open = append(open, rest[end:]); len(open) > most {
				return true
			}
			rest = rest[n:end]
		case protowire.StartGroupType, protowire.EndGroupType:
		case protowire.VarintType:
			_, n := looseVarint(rest)
			rest = after(rest, n)
		default:
			rest = after(rest, protowire.ConsumeFieldValue(1, kind, rest))
		}
	}
}

// looseVarint reads a number as the generated methods do: what does not fit into 64 bits of its tenth byte is dropped,
// where protowire refuses it. n is how many bytes it takes, negative when there is none.
func looseVarint(text []byte) (v uint64, n int) {
	for i := range min(len(text), 10) {
		if v |= uint64(text[i]&0x7f) << (7 * i); text[i] < 0x80 {
			return v, i + 1
		}
	}
	return 0, -1
}

// after is text without its first n bytes; nothing when n is negative.
func after(text []byte, n int) []byte {
	if n < 0 {
		return nil
	}
	return text[n:]
}
