// Package gzipparts writes one gzip member from parts that were compressed before. A list is joined from the compressed blocks of
// its records; each block is compressed once for all lists that contain it.
//
//	z := gzipparts.NewWriter(w)
//	z.Write([]byte(`{"items":[`))
//	z.WritePart(part) // of a Compressor
//	z.Write([]byte(`]}`))
//	z.Close()
//
// The package does not depend on HTTP, and does not use a clock.
//
// # How parts are joined
//
// A member is a header, the blocks of one deflate stream, and a trailer with the CRC-32 and the length of the text (RFC 1952,
// https://www.rfc-editor.org/rfc/rfc1952). A block may refer to up to 32 KiB before it, and begins and ends at any bit (RFC 1951,
// https://www.rfc-editor.org/rfc/rfc1951). A [Part] is a run of blocks that does not refer to anything before it. It ends with a
// sync flush, which is an empty stored block that ends at a whole byte. Such runs may follow one another in any order. None of
// their blocks is marked as the last block of the stream; Close adds one that is.
//
// The CRC-32 of two texts in a row can be computed from the CRC of each and the length of the second. A CRC is a polynomial over
// GF(2) modulo another polynomial. Appending n bytes means multiplying by x to the power of 8n and adding. This power is computed
// when a part is made, so that joining the part costs one multiplication, whatever its length.
package gzipparts
