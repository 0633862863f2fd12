// Package cacher implements a storage.Interface that keeps one resource of another storage in memory, and serves reads and
// watches from there.
//
//	c, err := cacher.New(store, cacher.Options{Namespaced: true})
//	defer c.Close()
//
// # Reads
//
// A read of the most recent state is served from memory once the cache has reached the store's revision. A linearizable read
// of that revision is shared by concurrent readers; Get reads only the revision of the key. A state within the window is
// served from memory, an older one from the storage below. The storage below also serves reads if the last attempt to fill
// the cache has failed, or if the cache has not caught up within [Options.ReadWait].
//
// While the cache is being filled, lists and watches wait for it, and fail with a *storage.FillingError after
// [Options.FillWait]. After a start all clients come at once, and the storage below would have to read everything for each of
// them. The storage below then serves a Get, a list of a single object, and a list with a limit and without selectors.
//
// A read of any state, or of one that is not older than a revision, shows the latest state that the cache has. A read with the
// Match Acknowledged needs no revision of the store: it is served once the cache has the writes that were acknowledged through
// it. An update begins with the cached object. If the outcome is an error or no change, it is used only if that object is
// current. [Cacher.Delta] returns the changes since a revision.
//
// # Watches
//
// A watch is a position in the log of changes. A watch without unread changes that concern it stays open, however much
// happens elsewhere. A watch ends with an *ExpiredError only if an unread change that concerns it leaves the window. The
// window is bounded by time and by bytes; see [Options].
//
// # The storage below
//
// If it is a storage.Source, like a storage.Store, the cache begins with the oldest state that the Source retains, or at the
// revision that a storage.Replayer recommends, and replays the changes since. So watches resume across a restart. Unreadable
// records are kept as such: only operations that must show them fail. Over any other Interface the cache begins with the
// latest list. While that fails, for example because of an unreadable record, the storage below serves everything.
//
// The cache never shows a state that did not exist. If the store is at a lower revision than before (restored from a backup
// under a running server), all watches end with an *ExpiredError and the cache is filled anew. Meanwhile the storage below
// serves reads, and Ready returns the reason.
//
// The rules for resourceVersion are those of https://kubernetes.io/docs/reference/using-api/api-concepts/#resource-versions.
// Consistent reads from a cache are KEP-2340, lists at an exact revision KEP-4988, initial events KEP-3157.
package cacher
