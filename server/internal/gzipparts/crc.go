package gzipparts

// A CRC-32 is a polynomial over GF(2) modulo the polynomial of RFC 1952, section 8. Its bits are reflected: the most significant
// bit is the coefficient of x^0.
const (
	polynomial = 0xedb88320 // without x^32
	one        = 1 << 31    // x^0
)

// multiply returns the product of two polynomials modulo the polynomial of the CRC.
func multiply(a, b uint32) (product uint32) {
	for ; a != 0; a <<= 1 {
		product ^= b & -(a >> 31)
		b = b>>1 ^ polynomial&-(b&1)
	}
	return product
}

// shift returns x to the power of 8n. The CRC of a text is multiplied by it when n bytes follow the text. It is never 0.
func shift(n int64) uint32 {
	// x to the power of 2^k; x^(2^32) is x again.
	powers := [32]uint32{
		0x40000000, 0x20000000, 0x08000000, 0x00800000, 0x00008000, 0xedb88320, 0xb1e6b092, 0xa06a2517,
		0xed627dae, 0x88d14467, 0xd7bbfe6a, 0xec447f11, 0x8e7ea170, 0x6427800e, 0x4d47bae0, 0x09fe548f,
		0x83852d0f, 0x30362f1a, 0x7b5a9cc3, 0x31fec169, 0x9fec022a, 0x6c8dedc4, 0x15d6874d, 0x5fde7a4e,
		0xbad90e37, 0x2e4e5eef, 0x4eaba214, 0xa8a472c0, 0x429a969e, 0x148d302a, 0xc40ba6d0, 0xc4e22c3c,
	}
	power := uint32(one)
	for k := 3; n != 0; n, k = n>>1, k+1 {
		if n&1 != 0 {
			power = multiply(power, powers[k%32])
		}
	}
	return power
}

// join returns the CRC of two texts in a row, from the CRC of each and the shift of the length of the second.
func join(first, second, shift uint32) uint32 { return multiply(shift, first) ^ second }
