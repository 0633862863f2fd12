package canonical

import (
	"bytes"
	"testing"
)

// TestPlainRun: every byte that is not plain is found at each place of a word, also after others, and none is found where there
// is none.
func TestPlainRun(t *testing.T) {
	odd := func(c byte) bool { return c < ' ' || c >= 0x80 || bytes.IndexByte([]byte(`"\<>&`), c) >= 0 }
	for c := range 256 {
		for _, after := range []byte{'a', '"', 0x80, 0xff, ' ', 0x7f, '!', '\'', '=', ']', '%'} {
			for at := range 20 {
				text := append(bytes.Repeat([]byte{'!', '#', '%', '\'', ';', '=', '?', '[', ']', ' ', 0x7f}, 2)[:at], byte(c))
				text = append(text, bytes.Repeat([]byte{after}, 9)...)
				want := at
				for want < len(text) && !odd(text[want]) {
					want++
				}
				if got := plainRun(text, 0); got != want {
					t.Fatalf("%q: %d, want %d", text, got, want)
				}
			}
		}
	}
}
