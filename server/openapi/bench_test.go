package openapi_test

import "testing"

// The first request for a document, and the first for the list of all.
func BenchmarkFirstAnswer(b *testing.B) {
	groups := shopGroups(b)
	for _, path := range []string{shopDocument, "/openapi/v3", "/openapi/v2"} {
		b.Run(path[1:], func(b *testing.B) {
			b.ReportAllocs()
			for b.Loop() {
				s := shopService(b)
				s.Set(groups)
				get(b, s, path)
			}
		})
	}
}
