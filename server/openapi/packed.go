package openapi

import (
	"bytes"
	"crypto/sha256"
	"crypto/sha512"
	"fmt"
	"hash"
	"io"

	"github.com/klauspost/compress/flate"
	"github.com/klauspost/compress/gzip"

	"github.com/keelson-dev/keelson/server/internal/gzipparts"
)

// packed is a text that is stored compressed.
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

// packer compresses the text that is written to it.
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

// packed ends the text and returns it.
func (p *packer) packed() (packed, error) {
	if err := p.gzip.Close(); err != nil {
		return packed{}, err
	}
	return packed{bytes.Clone(p.out.Bytes()), p.size}, nil
}

// text returns the decompressed text.
func (p packed) text() ([]byte, error) {
	z, err := gzip.NewReader(bytes.NewReader(p.gzip))
	if err != nil {
		return nil, fmt.Errorf("unpack a document: %w", err)
	}
	text := make([]byte, p.size)
	if _, err := io.ReadFull(z, text); err != nil {
		return nil, fmt.Errorf("unpack a document: %w", err)
	}
	return text, z.Close()
}

// block is a text that is stored compressed. It can be joined with other blocks without compressing it again.
type block struct {
	part   gzipparts.Part
	digest [sha256.Size]byte // of the text
}

func newBlock(z *gzipparts.Compressor, text []byte) block {
	return block{z.Compress(text), sha256.Sum256(text)}
}

// text returns the decompressed text.
func (b block) text() ([]byte, error) {
	text := make([]byte, b.part.Size)
	if _, err := io.ReadFull(flate.NewReader(bytes.NewReader(b.part.Deflate)), text); err != nil {
		return nil, fmt.Errorf("unpack a part of a document: %w", err)
	}
	return text, nil
}

// assembly joins blocks and other texts to a compressed text. The hash depends on the text and on its division into blocks and
// writes.
type assembly struct {
	out  bytes.Buffer
	gzip *gzipparts.Writer
	hash hash.Hash
	size int
}

func newAssembly() *assembly {
	a := &assembly{hash: sha512.New()}
	a.gzip = gzipparts.NewWriter(&a.out)
	return a
}

// Write implements io.Writer.
func (a *assembly) Write(text []byte) (int, error) {
	digest := sha256.Sum256(text)
	_, _ = a.hash.Write(digest[:])
	a.size += len(text)
	return a.gzip.Write(text)
}

// add adds a block without compressing it again.
func (a *assembly) add(b block) error {
	_, _ = a.hash.Write(b.digest[:])
	a.size += int(b.part.Size)
	return a.gzip.WritePart(b.part)
}

// packed ends the text and returns it.
func (a *assembly) packed() (packed, error) {
	if err := a.gzip.Close(); err != nil {
		return packed{}, err
	}
	return packed{bytes.Clone(a.out.Bytes()), a.size}, nil
}
