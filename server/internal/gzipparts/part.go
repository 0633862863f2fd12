package gzipparts

import (
	"bytes"
	"encoding/binary"
	"errors"
	"hash/crc32"
	"slices"

	"github.com/klauspost/compress/flate"
)

// Part is a text compressed by itself: a deflate run without a reference before its start, ended by a sync flush. It is
// immutable, and may be written into any number of members. The zero Part is that of no text.
type Part struct {
	Deflate []byte // the run; empty for no text
	Size    int64  // of the text, in bytes
	CRC     uint32 // of the text, as RFC 1952 has it

	shift uint32 // what follows from Size; 0: not computed
}

// partHead is what Append writes before Deflate: the size, the CRC and the shift, the least significant bytes first.
const partHead = 8 + 4 + 4

// syncMark is what a sync flush ends with: the lengths of an empty stored block.
const syncMark = "\x00\x00\xff\xff"

// Append appends the part in a form that ParsePart reads, and that only this version of the package has to: it is for
// memory.
func (p Part) Append(dst []byte) []byte {
	dst = binary.LittleEndian.AppendUint64(dst, uint64(p.Size))
	dst = binary.LittleEndian.AppendUint32(dst, p.CRC)
	dst = binary.LittleEndian.AppendUint32(dst, p.power())
	return append(dst, p.Deflate...)
}

// power is what the CRC of what is before the part is multiplied by.
func (p Part) power() uint32 {
	if p.shift != 0 {
		return p.shift
	}
	return shift(p.Size)
}

// ParsePart returns the part that Append wrote. It shares b. What Append did not write is an error, as far as that can be
// seen without decompressing it.
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

// partLevel is the level of parts, which are compressed once and sent often: it takes twice the time of the fastest, which
// is about that of compress/flate's fastest, and saves a tenth of the bytes.
const partLevel = 5

// Compressor makes parts. One goroutine at a time uses it; callers pool them, for it takes some hundred KiB. The zero
// Compressor is ready.
type Compressor struct {
	deflater *flate.Writer // nil: none was needed
	out      appender      // it makes runs here, so that what is kept of them has their size
}

// appender is a slice that is written to.
type appender struct{ to []byte }

// Write implements io.Writer.
func (a *appender) Write(b []byte) (int, error) {
	a.to = append(a.to, b...)
	return len(b), nil
}

// Compress makes a part of a text, of which it keeps nothing.
func (c *Compressor) Compress(text []byte) Part {
	p, _ := ParsePart(c.Append(nil, text)) // it is what Append wrote
	return p
}

// Append appends what Part.Append would of the part of a text.
func (c *Compressor) Append(dst, text []byte) []byte {
	p := Part{Size: int64(len(text)), CRC: crc32.ChecksumIEEE(text)}
	if len(text) > 0 {
		p.Deflate = c.deflate(text)
	}
	return p.Append(slices.Grow(dst, partHead+len(p.Deflate)))
}

// deflate makes the run of a text, which is the compressor's until the next one.
func (c *Compressor) deflate(text []byte) []byte {
	const most = 1 << 20 // longer runs are left to the garbage collector
	if cap(c.out.to) > most {
		c.out.to = nil
	}
	c.out.to = c.out.to[:0]
	if c.deflater == nil {
		c.deflater, _ = flate.NewWriter(&c.out, partLevel) // the level is valid
	} else {
		c.deflater.Reset(&c.out)
	}
	_, _ = c.deflater.Write(text) // an appender never fails
	_ = c.deflater.Flush()
	return c.out.to
}
