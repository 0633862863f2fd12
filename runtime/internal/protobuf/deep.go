package protobuf

import "google.golang.org/protobuf/encoding/protowire"

// maxDepth limits the nesting of messages. encoding/json has the same limit.
const maxDepth = 10000

// tooDeep reports whether the nesting of a message could exceed most. Only the type knows which fields are messages and which are
// strings, so every field that could be a message counts as one. Parts that the generated methods skip are skipped, including
// groups and fields with numbers that are too large; inside a group everything except its ends counts as fields. Each byte is
// examined as part of at most one message, so the time is proportional to the length of the text.
func tooDeep(message []byte, most int) bool {
	if len(message) <= 2*most { // a level takes at least two bytes
		return false
	}
	var open [][]byte // the rests of the messages around the present one
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

// looseVarint decodes a number as the generated methods do: bits of the tenth byte that do not fit into 64 bits are dropped,
// while protowire returns an error for them. n is the number of bytes, and negative if there is no number.
func looseVarint(text []byte) (v uint64, n int) {
	for i := range min(len(text), 10) {
		if v |= uint64(text[i]&0x7f) << (7 * i); text[i] < 0x80 {
			return v, i + 1
		}
	}
	return 0, -1
}

// after returns text without its first n bytes, or nothing if n is negative.
func after(text []byte, n int) []byte {
	if n < 0 {
		return nil
	}
	return text[n:]
}
