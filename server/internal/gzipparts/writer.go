package gzipparts

import (
	"encoding/binary"
	"errors"
	"hash/crc32"
	"io"

	"github.com/klauspost/compress/flate"
)

const (
	// level is that of kube-apiserver's answers, the fastest: what it compresses is used once.
	level = flate.BestSpeed
	// smallText is up to which length text between two parts is stored as it is: to compress it would cost more than it
	// saves. It is at most what a stored block holds, which is 64 KiB less one byte.
	smallText = 512
	// outRoom is how much is collected before it is written.
	outRoom = 64 << 10
)

// Writer writes one gzip member. It is not for concurrent use. Make one with NewWriter, and use it again after a Reset: it
// takes 64 KiB, and some hundred KiB more once it has compressed text.
type Writer struct {
	w   io.Writer
	err error // of w, or that it is closed: what every later call returns

	crc     uint32 // of the text so far
	size    uint32 // of the text so far, modulo 2^32 as RFC 1952 has it
	begun   bool   // the header is out
	unread  bool   // what follows the last sync mark may not have reached a reader that has all bytes
	running bool   // the deflater has text, or bits, that are not out

	small    []byte        // text that waits for what follows it; empty while running
	out      appender      // what waits to be written to w
	deflater *flate.Writer // into out; nil: none was needed yet
}

var errClosed = errors.New("gzipparts: the writer is closed; Reset begins another member")

// NewWriter returns a Writer of a member to w. Nothing is written before there is enough of it, or Flush or Close is called.
func NewWriter(w io.Writer) *Writer {
	return &Writer{w: w, small: make([]byte, 0, smallText), out: appender{make([]byte, 0, outRoom)}}
}

// Reset begins a new member to w, and forgets what was not written of the one before.
func (z *Writer) Reset(w io.Writer) {
	*z = Writer{w: w, small: z.small[:0], out: appender{z.out.to[:0]}, deflater: z.deflater}
}

// Write adds text, which is compressed unless it is little. It returns the error of the writer below as soon as that has
// had one.
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

// WritePart adds a part as it is. The part is not kept.
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

// Flush writes all that was added so far, so that a reader which gets these bytes can have all of that text. It does not
// flush the writer below.
func (z *Writer) Flush() error {
	if z.err != nil {
		return z.err
	}
	z.begin()
	z.settle()
	if z.unread {
		// Readers give out the text of a stored block when they need its room, or at a sync mark.
		z.out.to = append(z.out.to, "\x00"+syncMark...)
		z.unread = false
	}
	return z.send(1)
}

// Close ends the member and writes what is left of it. It does not close the writer below. A second Close does nothing.
func (z *Writer) Close() error {
	if z.err != nil {
		if errors.Is(z.err, errClosed) {
			return nil
		}
		return z.err
	}
	z.begin()
	z.settle()
	z.out.to = append(z.out.to, 0x03, 0x00) // the last block, of fixed codes and no text
	z.out.to = binary.LittleEndian.AppendUint32(z.out.to, z.crc)
	z.out.to = binary.LittleEndian.AppendUint32(z.out.to, z.size)
	if err := z.send(1); err != nil {
		return err
	}
	z.err = errClosed
	return nil
}

// begin writes the header, as compress/gzip does: no name, no time, made at the fastest level on any system.
func (z *Writer) begin() {
	if !z.begun {
		z.begun = true
		z.out.to = append(z.out.to, "\x1f\x8b\x08\x00\x00\x00\x00\x00\x04\xff"...)
	}
}

// run begins a run of compressed text, which refers to nothing before it, with the small text that waits.
func (z *Writer) run() {
	if z.deflater == nil {
		z.deflater, _ = flate.NewWriter(&z.out, level) // the level is valid
	} else {
		z.deflater.Reset(&z.out)
	}
	z.running = true
	_, _ = z.deflater.Write(z.small)
	z.small = z.small[:0]
}

// settle puts all text into out and ends at a whole byte.
func (z *Writer) settle() {
	if z.running {
		_ = z.deflater.Flush() // an appender never fails
		z.running, z.unread = false, false
		return
	}
	if n := uint16(len(z.small)); n > 0 {
		z.out.to = append(z.out.to, 0x00) // a stored block that is not the last; then its length, and that inverted
		z.out.to = binary.LittleEndian.AppendUint16(z.out.to, n)
		z.out.to = binary.LittleEndian.AppendUint16(z.out.to, ^n)
		z.out.to = append(z.out.to, z.small...)
		z.small = z.small[:0]
	}
}

// send writes what is in out if that is at least so much.
func (z *Writer) send(least int) error {
	if len(z.out.to) < least {
		return nil
	}
	_, z.err = z.w.Write(z.out.to)
	z.out.to = z.out.to[:0]
	return z.err
}
