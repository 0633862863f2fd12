// Package storagetest is the definition of a storage backend, and of a storage.Interface, as tests. Whatever passes
// them is one:
//
//	func TestConformance(t *testing.T) {
//		storagetest.Backend(t, func(t *testing.T) storage.Backend { return memory.New(memory.Options{}) })
//	}
//
// # The kits
//
//   - [Backend] checks every promise of storage.Backend, each in a subtest of its name. Powers that a backend may
//     have or not (storage.Compactor, Healther, Readier, Loader, Raiser, a TTL, feeds that are a storage.Waker) are
//     tested when it has them, and the subtests skipped otherwise.
//   - [Durable] checks what a backend that outlives its process adds to them, by closing and opening it, and [Kill]
//     by killing the process that has it open.
//   - [Faults] runs concurrent clients while faults of the caller's strike and heal: a member killed, a connection
//     cut, a disk full. [Proxy] is a TCP proxy that cuts, refuses, throttles or holds connections for it.
//   - [Interface] checks every promise of storage.Interface, whatever implements it: a store, a cache, a wrapper.
//
// # How concurrency is judged
//
// Concurrent clients create, update, delete, read and list a few keys while watches of every kind follow: of all keys
// and of one, with previous values and without, slow ones, resumed ones, ones begun late. Then everything that
// anybody was told is compared. All watches must agree on one log of changes, each change delivered once, in order,
// after the value that was there before. Each acknowledged commit must be in the log at the revision it was told;
// each answer must be what the log says of the revision at which it is true; what begins after a revision was shown
// must not see less. Beside that log, the history of each key must be linearizable (https://github.com/anishathalye/porcupine,
// after Wing and Gong, "Testing and verifying concurrent objects", 1993); one that is not is drawn to a file that
// the failure names. A commit that ends with ErrUnavailable or a context error may happen at any later time or never.
//
// # Writing a backend
//
// The example of [Backend] is a whole one, in 150 lines; it passes.
//
// # Time
//
// Nothing here measures speed. Waiting is bounded by [Patience], which only a broken backend uses up; on slow
// backends what needs thousands of commits stops at some seconds. With -short everything is shorter, and
// KEELSON_SOAK=duration lets what is random go on for that long: each concurrent history, each fault, each kill test.
package storagetest
