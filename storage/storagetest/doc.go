// Package storagetest provides the tests that define a storage backend and a storage.Interface. An implementation that passes
// them is conformant:
//
//	func TestConformance(t *testing.T) {
//		storagetest.Backend(t, func(t *testing.T) storage.Backend { return memory.New(memory.Options{}) })
//	}
//
// # The tests
//
//   - [Backend] checks every promise of storage.Backend, each in a subtest with its name. Optional abilities
//     (storage.Compactor, Healther, Readier, Loader, Raiser, TTLs, feeds that are a storage.Waker) are tested if the backend
//     has them; otherwise their subtests are skipped.
//   - [Durable] checks what a backend that outlives its process promises in addition, by closing and opening it. [Kill] kills
//     the process that has it open.
//   - [Faults] runs concurrent clients while faults that the caller defines occur and are healed: a member is killed, a
//     connection is cut, a disk is full. [Proxy] is a TCP proxy that cuts, refuses, throttles or holds connections for such
//     tests.
//   - [Interface] checks every promise of storage.Interface, for any implementation: a store, a cache, a wrapper.
//
// # How concurrent clients are checked
//
// Concurrent clients create, update, delete, read and list a few keys, while watches of every kind follow: of all keys and of
// one key, with previous values and without, slow ones, resumed ones, and ones that begin late. Then all results are
// compared. All watches must agree on one log of changes. Each change must be delivered once, in order, with the right
// previous value. Each acknowledged commit must be in the log at its revision. Each result must be what the log has at the
// revision of the result. An operation that begins after a revision was shown must not see an earlier state.
//
// In addition, the history of each key must be linearizable (https://github.com/anishathalye/porcupine, with the algorithm of
// J. Wing and C. Gong, "Testing and verifying concurrent objects", 1993). If a history is not linearizable, the test draws it in a file,
// and the failure has the name of the file. A commit that ends with ErrUnavailable or a context error may happen at any later time or
// never.
//
// # Time
//
// The tests do not measure speed. Waiting is bounded by [Timeout], which is reached only with a broken backend. On slow
// backends tests that need thousands of commits stop after some seconds. With -short all tests are shorter.
// KEELSON_SOAK=duration makes each random test run for that long: each concurrent history, each fault, each kill test.
//
// The example of [Backend] is a complete backend of 150 lines that passes the tests.
package storagetest
