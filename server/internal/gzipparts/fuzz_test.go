package gzipparts_test

import (
	"bytes"
	"testing"

	"github.com/keelson-dev/keelson/server/internal/gzipparts"
)

// FuzzWriter writes a text in pieces. Two bytes of how are one piece: the operation, and its length.
func FuzzWriter(f *testing.F) {
	f.Add([]byte(`{"a":1},{"a":2}`), []byte{0, 3, 1, 8, 2, 0, 0, 200})
	f.Add(bytes.Repeat([]byte("abc"), 2000), []byte{1, 255, 0, 255, 0, 255, 0, 255, 2, 9, 1, 100, 3, 0})
	f.Add([]byte{}, []byte{0, 0, 1, 0, 2, 0})
	f.Fuzz(func(t *testing.T, text, how []byte) {
		var out bytes.Buffer
		var c gzipparts.Compressor
		z := gzipparts.NewWriter(&out)
		rest := text
		for ; len(how) > 1; how = how[2:] {
			n := min(4*int(how[1]), len(rest))
			var err error
			switch how[0] % 4 {
			case 0:
				_, err = z.Write(rest[:n])
			case 1:
				err = z.WritePart(c.Compress(rest[:n]))
			case 2:
				n, err = 0, z.Flush()
			case 3: // through Append and ParsePart
				var p gzipparts.Part
				if p, err = gzipparts.ParsePart(c.Append(nil, rest[:n])); err == nil {
					err = z.WritePart(p)
				}
			}
			if err != nil {
				t.Fatal(err)
			}
			rest = rest[n:]
		}
		if _, err := z.Write(rest); err != nil {
			t.Fatal(err)
		}
		if err := z.Close(); err != nil {
			t.Fatal(err)
		}
		if got := unzip(t, out.Bytes()); !bytes.Equal(got, text) {
			t.Fatalf("%d bytes became %d others", len(text), len(got))
		}
	})
}

// FuzzParsePart parses any bytes as a part: the result is an error, or a part that Append writes in the same way.
func FuzzParsePart(f *testing.F) {
	var c gzipparts.Compressor
	f.Add(c.Append(nil, []byte("text")))
	f.Add(c.Append(nil, nil))
	f.Add([]byte{})
	f.Fuzz(func(t *testing.T, b []byte) {
		p, err := gzipparts.ParsePart(b)
		if err != nil {
			return
		}
		if !bytes.Equal(p.Append(nil), b) {
			t.Error("a part that is parsed is appended otherwise")
		}
		if err := gzipparts.NewWriter(&bytes.Buffer{}).WritePart(p); err != nil {
			t.Error(err)
		}
	})
}
