package gzipparts_test

import (
	"bytes"
	stdflate "compress/flate"
	"compress/gzip"
	"fmt"
	"io"
	"math/rand/v2"
	"testing"

	"github.com/keelson-dev/keelson/server/internal/gzipparts"
	"github.com/klauspost/compress/flate"
)

// page returns the text of 24 objects of 1.7 KiB, as in a list.
func page(first int) []byte {
	var b []byte
	r := rand.New(rand.NewPCG(uint64(first), 0))
	for i := first; i < first+24; i++ {
		b = fmt.Appendf(b, `{"metadata":{"name":"w-%06d","namespace":"default","uid":"%08x-1b2c-4d3e-8f40-%012x","resourceVersion":"%d","generation":1,`,
			i, r.Uint32(), r.Uint64()>>16, 100000+i)
		b = fmt.Appendf(b, `"creationTimestamp":"2026-11-22T10:%02d:%02dZ","labels":{"app":"app%02d","group":"%02d"},"managedFields":[{"manager":"bench",`,
			r.IntN(60), r.IntN(60), i%100, i%100)
		b = fmt.Appendf(b, `"operation":"Update","apiVersion":"bench.example.com/v1","time":"2026-11-22T10:%02d:%02dZ","fieldsType":"FieldsV1",`, r.IntN(60), r.IntN(60))
		b = append(b, `"fieldsV1":{"f:metadata":{"f:labels":{".":{},"f:app":{},"f:group":{}}},"f:spec":{".":{},"f:color":{},"f:parts":{},"f:size":{}}}}]},`...)
		b = fmt.Appendf(b, `"spec":{"size":%d,"color":"color%d","parts":[`, r.IntN(1e6), r.IntN(9))
		for j := range 12 {
			b = fmt.Appendf(b, `{"name":"part-%02d","weight":%d,"image":"registry.example.com/part:%d"},`, j, r.IntN(1000), r.IntN(9))
		}
		b = append(b, `{}]},"status":{"phase":"Ready","conditions":[{"type":"Ready","status":"True","reason":"AllGood"}]}},`...)
	}
	return b
}

// BenchmarkCompress compresses a page with different compressors, and as a part.
func BenchmarkCompress(b *testing.B) {
	text := page(0)
	var out bytes.Buffer
	type deflater interface {
		io.Writer
		Flush() error
		Reset(io.Writer)
	}
	for _, level := range []int{1, 5, 6} {
		std, _ := stdflate.NewWriter(&out, level)
		fast, _ := flate.NewWriter(&out, level)
		for name, z := range map[string]deflater{"compress-flate": std, "klauspost": fast} {
			b.Run(fmt.Sprintf("%s/%d", name, level), func(b *testing.B) {
				b.SetBytes(int64(len(text)))
				for b.Loop() {
					out.Reset()
					z.Reset(&out)
					_, _ = z.Write(text)
					_ = z.Flush()
				}
				b.ReportMetric(float64(out.Len()), "bytes")
			})
		}
	}
	b.Run("part", func(b *testing.B) {
		b.SetBytes(int64(len(text)))
		b.ReportAllocs()
		var c gzipparts.Compressor
		kept := make([]byte, 0, len(text))
		for b.Loop() {
			kept = c.Append(kept[:0], text)
		}
		b.ReportMetric(float64(len(kept)), "bytes")
	})
}

// BenchmarkList writes the member of a list of 10,000 objects: from parts that exist, and with compression each time.
func BenchmarkList(b *testing.B) {
	const pages = 417
	var c gzipparts.Compressor
	var kept, texts [][]byte
	size := int64(0)
	for i := range pages {
		texts = append(texts, page(24*i))
		kept = append(kept, c.Append(nil, texts[i]))
		size += int64(len(texts[i]))
	}
	run := func(name string, z interface {
		io.WriteCloser
		Reset(io.Writer)
	}, write func(i int) error) {
		b.Run(name, func(b *testing.B) {
			b.SetBytes(size)
			b.ReportAllocs()
			for b.Loop() {
				z.Reset(io.Discard)
				_, _ = z.Write([]byte(`{"kind":"List","items":[`))
				for i := range pages {
					if err := write(i); err != nil {
						b.Fatal(err)
					}
				}
				_ = z.Close()
			}
		})
	}
	z := gzipparts.NewWriter(io.Discard)
	run("parts", z, func(i int) error {
		p, err := gzipparts.ParsePart(kept[i])
		if err != nil {
			return err
		}
		_, _ = z.Write([]byte(","))
		return z.WritePart(p)
	})
	run("text", z, func(i int) error { _, err := z.Write(texts[i]); return err })
	std, _ := gzip.NewWriterLevel(io.Discard, gzip.BestSpeed)
	run("compress-gzip", std, func(i int) error { _, err := std.Write(texts[i]); return err })
}
