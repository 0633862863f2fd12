// Package storagetest is the definition of a storage backend, as tests. A backend passes all of it:
//
//	func TestConformance(t *testing.T) {
//		storagetest.Backend(t, func(t *testing.T) storage.Backend { return memory.New(memory.Options{}) })
//	}
//
// [Backend] checks every promise of storage.Backend, [Durable] what a backend that outlives its process adds to
// them, and [Interface] every promise of storage.Interface, whatever implements it. Powers that a backend may have
// or not (storage.Compactor, TTL) are tested when it has them, and the subtest is skipped otherwise.
//
// Nothing here measures speed. Waiting is bounded by [Patience], which only a broken backend uses up.
package storagetest
