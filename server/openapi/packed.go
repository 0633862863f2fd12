package openapi

import (
	"bytes"
	"fmt"
	"io"
	"slices"

	"github.com/klauspost/compress/gzip"
)

// packed is text kept compressed.
type packed struct {
	gzip []byte
	size int // of the text, in bytes
}

func pack(text []byte) (packed, error) {
	p := newPacker()
	if _, err := p.Write(text); err != nil {
		return packed{}, err
	}
	return p.packed()
}

// packer packs the text that is written to it.
type packer struct {
	out  *bytes.Buffer
	gzip *gzip.Writer
	size int
}

func newPacker() *packer {
	out := &bytes.Buffer{}
	return &packer{out: out, gzip: gzip.NewWriter(out)}
}

// Write implements io.Writer.
func (p *packer) Write(text []byte) (int, error) {
	n, err := p.gzip.Write(text)
	p.size += n
	return n, err
}

// packed ends the text.
func (p *packer) packed() (packed, error) {
	if err := p.gzip.Close(); err != nil {
		return packed{}, err
	}
	return packed{bytes.Clone(p.out.Bytes()), p.size}, nil
}

// text unpacks.
func (p packed) text() ([]byte, error) { return new(unpacker).text(p) }

// unpacker unpacks many texts, one after another.
type unpacker struct {
	gzip *gzip.Reader
	last []byte
}

// text unpacks one. It is good until the next call.
func (u *unpacker) text(p packed) ([]byte, error) {
	if u.gzip == nil {
		u.gzip = new(gzip.Reader)
	}
	if err := u.gzip.Reset(bytes.NewReader(p.gzip)); err != nil {
		return nil, fmt.Errorf("unpack a document: %w", err)
	}
	u.last = slices.Grow(u.last[:0], p.size)[:p.size]
	if _, err := io.ReadFull(u.gzip, u.last); err != nil {
		return nil, fmt.Errorf("unpack a document: %w", err)
	}
	return u.last, u.gzip.Close()
}
