package gzipparts

import (
	"hash/crc32"
	"math/rand/v2"
	"testing"
)

// join returns the CRC of two texts in a row, whatever their lengths.
func TestJoin(t *testing.T) {
	t.Parallel()
	r := rand.New(rand.NewPCG(1, 1))
	text := make([]byte, 1<<20)
	for i := range text {
		text[i] = byte(r.Uint32())
	}
	for range 300 {
		n := r.IntN(1 << r.IntN(21))
		cut := r.IntN(n + 1)
		a, b := text[:cut], text[cut:n]
		got := join(crc32.ChecksumIEEE(a), crc32.ChecksumIEEE(b), shift(int64(len(b))))
		if want := crc32.ChecksumIEEE(text[:n]); got != want {
			t.Fatalf("%d bytes and %d: %08x, want %08x", len(a), len(b), got, want)
		}
	}
}

// Shifts of lengths multiply to the shift of the sum, also for lengths of which a test cannot have a text.
func TestShift(t *testing.T) {
	t.Parallel()
	for _, n := range []int64{0, 1, 1 << 28, 1<<29 - 1, 1 << 29, 1 << 32, 1<<40 + 12345, 1 << 61} {
		for _, m := range []int64{0, 1, 12345, 1 << 33} {
			got := shift(n + m)
			if want := multiply(shift(n), shift(m)); got != want || got == 0 {
				t.Errorf("%d and %d: %08x, want %08x", n, m, got, want)
			}
		}
	}
}

// BenchmarkJoin joins the CRCs of a text and of a part, whose shift is computed before, or is not.
func BenchmarkJoin(b *testing.B) {
	sum, power := uint32(0x12345678), shift(46_000)
	b.Run("kept", func(b *testing.B) {
		for b.Loop() {
			sum = join(sum, 0x9abcdef0, power)
		}
	})
	b.Run("computed", func(b *testing.B) {
		for b.Loop() {
			sum = join(sum, 0x9abcdef0, shift(46_000))
		}
	})
}
