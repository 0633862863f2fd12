package openapi

import (
	"bytes"
	"compress/gzip"
	"fmt"
	"io"
)

// packed is text kept compressed.
type packed struct {
	gzip []byte
	size int // of the text, in bytes
}

func pack(text []byte) (packed, error) {
	var out bytes.Buffer
	z := gzip.NewWriter(&out)
	if _, err := z.Write(text); err != nil {
		return packed{}, err
	}
	if err := z.Close(); err != nil {
		return packed{}, err
	}
	return packed{bytes.Clone(out.Bytes()), len(text)}, nil
}

// text unpacks.
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
