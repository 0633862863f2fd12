// Package gzipparts writes one gzip member of parts that were compressed at other times: a list is joined of the compressed
// blocks of its records, each of which is compressed once for all lists that have it.
//
//	z := gzipparts.NewWriter(w)
//	z.Write([]byte(`{"items":[`))
//	z.WritePart(part) // of a Compressor
//	z.Write([]byte(`]}`))
//	z.Close()
//
// # How parts are joined
//
// A member is a header, the blocks of one deflate stream, and a trailer with the CRC-32 and the length of the text
// (RFC 1952, https://www.rfc-editor.org/rfc/rfc1952). A block may refer to what is up to 32 KiB before it, and begins and
// ends at any bit (RFC 1951, https://www.rfc-editor.org/rfc/rfc1951). A [Part] is a run of blocks that refers to nothing
// before itself and ends with a sync flush, an empty stored block, which ends at a whole byte: such runs may follow one
// another in any order. None of their blocks is marked as the last one of the stream; Close adds one that is.
//
// The CRC-32 of two texts in a row follows from those of each and the length of the second: a CRC is a polynomial over
// GF(2) modulo another one, and to append n bytes is to multiply by x to the power of 8n and to add. The power is
// computed when a part is made, so that to join it costs one multiplication, whatever its length.
//
// The package knows no HTTP and reads no clock.
package gzipparts
