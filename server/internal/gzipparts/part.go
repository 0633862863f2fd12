package gzipparts

import (
	"bytes"
	"encoding/binary"
	"errors"
	"hash/crc32"
	"slices"

	"github.com/klauspost/compress/flate"
)

// Part is a text that was compressed separately: a deflate run that does not refer to anything before it, and ends with a sync
// flush. A Part is immutable, and may be written into any number of members. The zero Part is that of the empty text.
type Part struct {
	Deflate []byte // the run; empty for the empty text
	Size    int64  // length of the text, in bytes
	CRC     uint32 // CRC-32 of the text, as in RFC 1952

	shift uint32 // shift of Size; 0: not computed
}

// partHead is the length of the head that Append writes before Deflate: the size, the CRC and the shift, in little-endian order.
const partHead = 8 + 4 + 4

// syncMark is the end of a sync flush: the lengths of an empty stored block.
const syncMark = "\x00\x00\xff\xff"

// Append appends the part in a form that ParsePart reads. The form is for use in memory: another version of this package may use
// another form.
func (p Part) Append(dst []byte) []byte {
	dst = binary.LittleEndian.AppendUint64(dst, uint64(p.Size))
	dst = binary.LittleEndian.AppendUint32(dst, p.CRC)
	dst = binary.LittleEndian.AppendUint32(dst, p.power())
	return append(dst, p.Deflate...)
}

// power returns the factor for the CRC of the text before the part.
func (p Part) power() uint32 {
	if p.shift != 0 {
		return p.shift
	}
	return shift(p.Size)
}

// ParsePart returns the part that Append wrote. The part shares b. Bytes that Append did not write are an error, as far as this
// can be seen without decompressing them.
func ParsePart(b []byte) (Part, error) {
	if len(b) < partHead {
		return Part{}, errors.New("gzipparts: a part that is shorter than its head; want what Part.Append wrote")
	}
	p := Part{
		Size:    int64(binary.LittleEndian.Uint64(b)),
		CRC:     binary.LittleEndian.Uint32(b[8:]),
		shift:   binary.LittleEndian.Uint32(b[12:]),
		Deflate: b[partHead:],
	}
	empty := len(p.Deflate) == 0
	if p.Size < 0 || p.shift == 0 || empty != (p.Size == 0) || !empty && !bytes.HasSuffix(p.Deflate, []byte(syncMark)) {
		return Part{}, errors.New("gzipparts: bytes that are no part; want what Part.Append wrote")
	}
	return p, nil
}

// partLevel is the compression level of parts, which are compressed once and sent often. It takes twice the time of the fastest
// level, which is about the time of the fastest level of compress/flate, and saves a tenth of the bytes.
const partLevel = 5

// Compressor makes parts. Only one goroutine at a time may use it. It takes some hundred KiB, so callers should pool compressors.
// The zero Compressor is ready to use.
type Compressor struct {
	deflater *flate.Writer // nil: not needed yet
	out      appender      // runs are made here, so that kept copies have exactly their size
}

// appender is a slice that Write appends to.
type appender struct{ to []byte }

// Write implements io.Writer.
func (a *appender) Write(b []byte) (int, error) {
	a.to = append(a.to, b...)
	return len(b), nil
}

// Compress returns a part of a text. It does not keep text.
func (c *Compressor) Compress(text []byte) Part {
	p, _ := ParsePart(c.Append(nil, text)) // Append wrote the bytes
	return p
}

// Append appends the bytes that Part.Append would append for the part of a text.
func (c *Compressor) Append(dst, text []byte) []byte {
	p := Part{Size: int64(len(text)), CRC: crc32.ChecksumIEEE(text)}
	if len(text) > 0 {
		p.Deflate = c.deflate(text)
	}
	return p.Append(slices.Grow(dst, partHead+len(p.Deflate)))
}

// deflate returns the run of a text. It is valid until the next call.
func (c *Compressor) deflate(text []byte) []byte {
	const most = 1 << 20 // longer runs are left to the garbage collector
	if cap(c.out.to) > most {
		c.out.to = nil
	}
	c.out.to = c.out.to[:0]
	if c.deflater == nil {
		c.deflater, _ = flate.NewWriter(&c.out, partLevel) // the level is valid, so there is no error
	} else {
		c.deflater.Reset(&c.out)
	}
	_, _ = c.deflater.Write(text) // an appender never fails
	_ = c.deflater.Flush()
	return c.out.to
}
