package gzipparts

import (
	"encoding/binary"
	"errors"
	"hash/crc32"
	"io"

	"github.com/klauspost/compress/flate"
)

const (
	// level is the compression level of kube-apiserver's answers, the fastest, for text that is used once.
	level = flate.BestSpeed
	// smallText is the longest text between two parts that is stored without compression: compressing it would cost more than it
	// saves. It must not be more than a stored block can have, which is 64 KiB less one byte.
	smallText = 512
	// outRoom is the number of bytes that are collected before they are written.
	outRoom = 64 << 10
)

// Writer writes one gzip member. It must not be used concurrently. Make one with NewWriter, and use it again after a Reset: it
// takes 64 KiB, and some hundred KiB more after it has compressed text.
type Writer struct {
	w   io.Writer
	err error // the error of w, or errClosed; every later call returns it

	crc     uint32 // of the text so far
	size    uint32 // of the text so far, modulo 2^32 as RFC 1952 has it
	begun   bool   // the header is written
	unread  bool   // text after the last sync mark may not have reached a reader that has all bytes
	running bool   // the deflater has text, or bits, that are not in out

	small    []byte        // text that is not in out yet; empty while running
	out      appender      // bytes to be written to w
	deflater *flate.Writer // writes to out; nil: not needed yet
}

var errClosed = errors.New("gzipparts: the writer is closed; Reset begins another member")

// NewWriter returns a Writer of a member to w. It writes nothing to w until it has collected enough, or Flush or Close is called.
func NewWriter(w io.Writer) *Writer {
	return &Writer{w: w, small: make([]byte, 0, smallText), out: appender{make([]byte, 0, outRoom)}}
}

// Reset begins a new member to w. Bytes of the member before that were not written are dropped.
func (z *Writer) Reset(w io.Writer) {
	*z = Writer{w: w, small: z.small[:0], out: appender{z.out.to[:0]}, deflater: z.deflater}
}

// Write adds text. It is compressed unless it is short. After an error of the writer below, Write returns that error.
func (z *Writer) Write(text []byte) (int, error) {
	if z.err != nil {
		return 0, z.err
	}
	if len(text) == 0 {
		return 0, nil
	}
	z.begin()
	z.crc = crc32.Update(z.crc, crc32.IEEETable, text)
	z.size += uint32(len(text))
	z.unread = true
	if !z.running {
		if len(z.small)+len(text) <= smallText {
			z.small = append(z.small, text...)
			return len(text), nil
		}
		z.run()
	}
	for rest := text; len(rest) > 0; {
		n := min(len(rest), outRoom)
		_, _ = z.deflater.Write(rest[:n]) // an appender never fails
		if err := z.send(outRoom); err != nil {
			return 0, err
		}
		rest = rest[n:]
	}
	return len(text), nil
}

// WritePart adds a part as it is. It does not keep the part.
func (z *Writer) WritePart(p Part) error {
	if z.err != nil {
		return z.err
	}
	z.begin()
	z.settle()
	if len(p.Deflate) == 0 {
		return nil
	}
	z.crc = join(z.crc, p.CRC, p.power())
	z.size += uint32(p.Size)
	z.unread = false
	if len(z.out.to)+len(p.Deflate) > outRoom {
		if err := z.send(1); err != nil {
			return err
		}
		if len(p.Deflate) >= outRoom/2 {
			_, z.err = z.w.Write(p.Deflate)
			return z.err
		}
	}
	z.out.to = append(z.out.to, p.Deflate...)
	return nil
}

// Flush writes everything that was added so far, so that a reader of the bytes can get all of the text. It does not flush the
// writer below.
func (z *Writer) Flush() error {
	if z.err != nil {
		return z.err
	}
	z.begin()
	z.settle()
	if z.unread {
		// Readers return the text of a stored block only at a sync mark, or when they need the space.
		z.out.to = append(z.out.to, "\x00"+syncMark...)
		z.unread = false
	}
	return z.send(1)
}

// Close ends the member and writes the rest of it. It does not close the writer below. A second Close does nothing.
func (z *Writer) Close() error {
	if z.err != nil {
		if errors.Is(z.err, errClosed) {
			return nil
		}
		return z.err
	}
	z.begin()
	z.settle()
	z.out.to = append(z.out.to, 0x03, 0x00) // the last block: fixed codes, and no text
	z.out.to = binary.LittleEndian.AppendUint32(z.out.to, z.crc)
	z.out.to = binary.LittleEndian.AppendUint32(z.out.to, z.size)
	if err := z.send(1); err != nil {
		return err
	}
	z.err = errClosed
	return nil
}

// begin writes the header that compress/gzip writes: no name, no time, the fastest level, any system.
func (z *Writer) begin() {
	if !z.begun {
		z.begun = true
		z.out.to = append(z.out.to, "\x1f\x8b\x08\x00\x00\x00\x00\x00\x04\xff"...)
	}
}

// run begins a run of compressed text, which does not refer to anything before it. It begins with the text in small.
func (z *Writer) run() {
	if z.deflater == nil {
		z.deflater, _ = flate.NewWriter(&z.out, level) // the level is valid, so there is no error
	} else {
		z.deflater.Reset(&z.out)
	}
	z.running = true
	_, _ = z.deflater.Write(z.small)
	z.small = z.small[:0]
}

// settle moves all text to out, which then ends at a whole byte.
func (z *Writer) settle() {
	if z.running {
		_ = z.deflater.Flush() // an appender never fails
		z.running, z.unread = false, false
		return
	}
	if n := uint16(len(z.small)); n > 0 {
		z.out.to = append(z.out.to, 0x00) // a stored block that is not the last; then its length, and the inverted length
		z.out.to = binary.LittleEndian.AppendUint16(z.out.to, n)
		z.out.to = binary.LittleEndian.AppendUint16(z.out.to, ^n)
		z.out.to = append(z.out.to, z.small...)
		z.small = z.small[:0]
	}
}

// send writes the bytes in out, if there are at least so many.
func (z *Writer) send(least int) error {
	if len(z.out.to) < least {
		return nil
	}
	_, z.err = z.w.Write(z.out.to)
	z.out.to = z.out.to[:0]
	return z.err
}
