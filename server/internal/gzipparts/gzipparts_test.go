package gzipparts_test

import (
	"bufio"
	"bytes"
	"compress/gzip"
	"encoding/json"
	"errors"
	"fmt"
	"hash/crc32"
	"io"
	"math/rand/v2"
	"testing"

	"github.com/keelson-dev/keelson/server/internal/gzipparts"
)

// text returns n bytes of one of several sorts: like a list, random, or one repeated byte.
func text(r *rand.Rand, n int) []byte {
	out := make([]byte, 0, n+200)
	switch sort := r.IntN(4); sort {
	case 0:
		for len(out) < n {
			out = append(out, byte(r.Uint32()))
		}
	case 1:
		out = bytes.Repeat([]byte{byte(r.Uint32())}, n)
	default:
		for len(out) < n {
			out = fmt.Appendf(out, `{"metadata":{"name":"w-%06d","labels":{"group":"%d"}},"spec":{"size":%d}},`, r.IntN(1e6), r.IntN(100), r.Uint32())
		}
	}
	return out[:n]
}

// unzip reads one member, after which there must be no bytes.
func unzip(t testing.TB, b []byte) []byte {
	t.Helper()
	in := bytes.NewReader(b)
	z, err := gzip.NewReader(in)
	if err != nil {
		t.Fatal(err)
	}
	z.Multistream(false)
	out, err := io.ReadAll(z)
	if err != nil || in.Len() != 0 {
		t.Fatalf("%d bytes of text, %d bytes follow the member: %v", len(out), in.Len(), err)
	}
	return out
}

// Text that is written in any pieces becomes one member, and after a Flush a reader gets all of the text.
func TestWriter(t *testing.T) {
	t.Parallel()
	var out bytes.Buffer
	z := gzipparts.NewWriter(io.Discard)
	var c gzipparts.Compressor
	var parts []gzipparts.Part
	var texts [][]byte
	for seed := range uint64(300) {
		r := rand.New(rand.NewPCG(seed, 1))
		out.Reset()
		z.Reset(&out)
		var want []byte
		size := func() int { return r.IntN([]int{2, 40, 600, 3000, 70_000, 300_000}[r.IntN(6)]) }
		for range r.IntN(20) {
			switch r.IntN(7) {
			case 0, 1:
				b := text(r, size())
				if n, err := z.Write(b); n != len(b) || err != nil {
					t.Fatal(n, err)
				}
				want = append(want, b...)
				clear(b) // the writer does not keep it
			case 2, 3:
				b := text(r, size())
				part := c.Compress(b)
				if r.IntN(2) == 0 {
					part = gzipparts.Part{Deflate: part.Deflate, Size: part.Size, CRC: part.CRC}
				}
				parts, texts = append(parts, part), append(texts, b)
				fallthrough
			case 4, 5: // a writer that has been used before
				if len(parts) == 0 {
					continue
				}
				i := len(parts) - 1 - r.IntN(min(len(parts), 10))
				if err := z.WritePart(parts[i]); err != nil {
					t.Fatal(err)
				}
				want = append(want, texts[i]...)
			default:
				if err := z.Flush(); err != nil {
					t.Fatal(err)
				}
				flushed(t, seed, out.Bytes(), want)
			}
		}
		for range 2 { // the second does nothing
			if err := z.Close(); err != nil {
				t.Fatal(err)
			}
		}
		if got := unzip(t, out.Bytes()); !bytes.Equal(got, want) {
			t.Fatalf("seed %d: %d bytes became %d others", seed, len(want), len(got))
		}
	}
}

// flushed checks that a reader gets all the text of these bytes, which have no end of a member.
func flushed(t *testing.T, seed uint64, b, want []byte) {
	t.Helper()
	r, w := io.Pipe()
	defer r.Close()
	go func() { _, _ = w.Write(b) }() // ends when r is closed
	z, err := gzip.NewReader(bufio.NewReaderSize(r, 16))
	if err != nil {
		t.Fatal(err)
	}
	got := make([]byte, len(want))
	if _, err := io.ReadFull(z, got); err != nil || !bytes.Equal(got, want) {
		t.Fatalf("seed %d: after a flush %d bytes are others: %v", seed, len(want), err)
	}
}

// A part is like the gzip member of its text alone: its run can be read alone, and its sums are right.
func TestPart(t *testing.T) {
	t.Parallel()
	var c gzipparts.Compressor
	r := rand.New(rand.NewPCG(2, 2))
	for _, n := range []int{0, 1, 2, 100, 32 << 10, 64 << 10, 1 << 20} {
		b := text(r, n)
		p := c.Compress(b)
		if p.Size != int64(n) || p.CRC != crc32.ChecksumIEEE(b) {
			t.Errorf("%d bytes: %d, %x", n, p.Size, p.CRC)
		}
		if n > 0 && !bytes.HasSuffix(p.Deflate, []byte{0, 0, 0xff, 0xff}) {
			t.Errorf("%d bytes: the run ends with %x", n, p.Deflate[max(0, len(p.Deflate)-6):])
		}
		kept := p.Append([]byte("before"))[len("before"):]
		if direct := c.Append([]byte("before"), b); !bytes.Equal(direct[len("before"):], kept) {
			t.Errorf("%d bytes: Compressor.Append is %d bytes, Part.Append %d", n, len(direct), len(kept))
		}
		if plain := (gzipparts.Part{Deflate: p.Deflate, Size: p.Size, CRC: p.CRC}).Append(nil); !bytes.Equal(plain, kept) {
			t.Errorf("%d bytes: a part of the same fields is kept otherwise", n)
		}
		q, err := gzipparts.ParsePart(kept)
		if err != nil || q.Size != p.Size || q.CRC != p.CRC || !bytes.Equal(q.Deflate, p.Deflate) {
			t.Errorf("%d bytes: parsed %+v, %v", n, q, err)
		}
		for cut := range min(len(kept), 40) {
			if _, err := gzipparts.ParsePart(kept[:len(kept)-1-cut]); err == nil {
				t.Errorf("%d bytes: a part without its last %d is one", n, cut+1)
			}
		}
	}
}

// A text of more than 4 GiB has its length modulo 2^32 in the trailer, and its CRC.
func TestWriterSize(t *testing.T) {
	t.Parallel()
	if testing.Short() {
		t.Skip("reads more than 4 GiB")
	}
	var c gzipparts.Compressor
	const size, parts = 256 << 20, 17
	part := c.Compress(make([]byte, size))
	r, w := io.Pipe()
	done := make(chan error)
	go func() {
		z := gzipparts.NewWriter(w)
		var err error
		for range parts {
			err = errors.Join(err, z.WritePart(part))
		}
		err = errors.Join(err, z.Close(), w.Close())
		done <- err
	}()
	z, err := gzip.NewReader(r)
	if err != nil {
		t.Fatal(err)
	}
	if n, err := io.Copy(io.Discard, z); n != parts*size || err != nil {
		t.Errorf("%d bytes: %v", n, err)
	}
	r.Close()
	if err := <-done; err != nil {
		t.Error(err)
	}
}

// failing fails after some writes.
type failing struct{ left int }

var errFailing = errors.New("no room")

func (f *failing) Write(b []byte) (int, error) {
	if f.left--; f.left < 0 {
		return 0, errFailing
	}
	return len(b), nil
}

// After an error of the writer below, every call returns that error, until a Reset.
func TestWriterErrors(t *testing.T) {
	t.Parallel()
	var c gzipparts.Compressor
	r := rand.New(rand.NewPCG(3, 3))
	noise := make([]byte, 100_000)
	for i := range noise {
		noise[i] = byte(r.Uint32())
	}
	part := c.Compress(noise)
	z := gzipparts.NewWriter(io.Discard)
	for name, call := range map[string]func() error{
		"Write":     func() error { _, err := z.Write(noise); return err },
		"WritePart": func() error { return z.WritePart(part) },
		"Flush":     z.Flush,
		"Close":     z.Close,
	} {
		z.Reset(&failing{})
		for range 2 {
			if err := call(); !errors.Is(err, errFailing) {
				t.Errorf("%s: %v", name, err)
			}
		}
		for _, err := range []error{z.Flush(), z.Close(), z.WritePart(gzipparts.Part{})} {
			if !errors.Is(err, errFailing) {
				t.Errorf("after %s: %v", name, err)
			}
		}
		var out bytes.Buffer
		z.Reset(&out)
		if err := errors.Join(call(), z.Close()); err != nil {
			t.Errorf("%s after Reset: %v", name, err)
		}
		unzip(t, out.Bytes())
		if _, err := z.Write([]byte("x")); err == nil || z.Flush() == nil || z.WritePart(part) == nil {
			t.Errorf("%s: a closed writer takes more", name)
		}
	}
}

// Short text costs little: separators and an end are stored, and empty text takes no bytes.
func TestWriterIsSmall(t *testing.T) {
	t.Parallel()
	var c gzipparts.Compressor
	part := c.Compress([]byte(`{"a":1}`))
	var out bytes.Buffer
	z := gzipparts.NewWriter(&out)
	size := func(calls ...func() error) int {
		out.Reset()
		z.Reset(&out)
		for _, call := range append(calls, z.Close) {
			if err := call(); err != nil {
				t.Fatal(err)
			}
		}
		return out.Len()
	}
	comma := func() error { _, err := z.Write([]byte(",")); return err }
	nothing := func() error { _, err := z.Write(nil); return errors.Join(err, z.WritePart(c.Compress(nil))) }
	whole := func() error { return z.WritePart(part) }
	const member = 10 + 2 + 8
	for i, tc := range []struct{ got, want int }{
		{size(), member},
		{size(nothing, nothing, z.Flush, z.Flush), member},
		{size(comma), member + 6},
		{size(comma, comma, nothing), member + 7},
		{size(whole, comma, whole), member + 6 + 2*len(part.Deflate)},
		{size(whole, z.Flush, z.Flush), member + len(part.Deflate)},
		{size(comma, z.Flush, z.Flush), member + 6 + 5},
		{size(comma, whole, z.Flush), member + 6 + len(part.Deflate)},
	} {
		if tc.got != tc.want {
			t.Errorf("case %d: %d bytes, want %d", i, tc.got, tc.want)
		}
	}
}

// Repeated use does not allocate.
func TestWriterAllocates(t *testing.T) {
	var c gzipparts.Compressor
	r := rand.New(rand.NewPCG(4, 4))
	b := text(r, 50_000)
	part := c.Compress(b)
	room := make([]byte, 0, 100_000)
	z := gzipparts.NewWriter(io.Discard)
	if n := testing.AllocsPerRun(100, func() {
		z.Reset(io.Discard)
		_, _ = z.Write(b)
		_ = z.WritePart(part)
		_, _ = z.Write(b[:10])
		_ = z.Close()
		room = c.Append(room[:0], b)
	}); n > 0 {
		t.Errorf("%v allocations", n)
	}
}

func ExampleWriter() {
	var c gzipparts.Compressor
	block := c.Compress([]byte(`{"name":"a"},{"name":"b"}`)) // compressed once for all lists that contain it
	var answer bytes.Buffer
	z := gzipparts.NewWriter(&answer)
	_, _ = z.Write([]byte(`{"items":[`))
	_ = z.WritePart(block)
	_, _ = z.Write([]byte(`]}`))
	if err := z.Close(); err != nil {
		fmt.Println(err)
		return
	}
	in, _ := gzip.NewReader(&answer)
	var list struct{ Items []struct{ Name string } }
	fmt.Println(json.NewDecoder(in).Decode(&list), list.Items)
	// Output: <nil> [{a} {b}]
}
