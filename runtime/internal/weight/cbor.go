package weight

import "encoding/binary"

// CBOR measures the values of a data item that is decoded without a Go type: https://www.rfc-editor.org/rfc/rfc8949#section-3.
func CBOR(item []byte, l Limit) error {
	s := newScale(l)
	return s.done(s.items(item))
}

func (s *scale) items(item []byte) error {
	if err := s.controls(item); err != nil {
		return err
	}
	for len(item) > 0 { // the items in an item follow its head
		major, info := item[0]>>5, item[0]&31
		arg, n, ok := argument(info, item[1:])
		if !ok {
			return nil
		}
		item = item[1+n:]
		size := slot
		switch major {
		case 2, 3: // strings
			if info != indefinite {
				if arg > uint64(len(item)) {
					return nil
				}
				item = item[arg:]
			}
			size += stringHead
		case 4:
			size += sliceHead
		case 5:
			pairs := min(arg, uint64(len(item)))
			if size += mapHead; pairs > 0 || info == indefinite {
				size += entry(1, stringHead+slot)
			}
			if pairs > mapGroup {
				size += int(pairs-mapGroup) * entry(mapGroup+1, stringHead+slot)
			}
		default:
			size += number
		}
		if err := s.add(size); err != nil {
			return err
		}
	}
	return nil
}

// indefinite is the additional information of an item that a break ends.
const indefinite = 31

// argument returns the argument of a head; n is its length in bytes. The argument of an indefinite item is 0.
func argument(info byte, rest []byte) (arg uint64, n int, ok bool) {
	switch {
	case info < 24:
		return uint64(info), 0, true
	case info == indefinite:
		return 0, 0, true
	case info > 27:
		return 0, 0, false
	}
	n = 1 << (info - 24)
	if len(rest) < n {
		return 0, 0, false
	}
	var full [8]byte
	copy(full[8-n:], rest[:n])
	return binary.BigEndian.Uint64(full[:]), n, true
}
