// Package cacher is a storage.Interface that remembers: it keeps one resource of the storage below it in memory and
// answers reads and watches from there.
//
//	c, err := cacher.New(store, cacher.Options{Namespaced: true})
//	defer c.Close()
//
// # What it keeps
//
//   - The state: an immutable ordered tree of pages that share the records' bytes with the backend. A reader takes
//     the root and reads without a lock, however long it takes; a writer copies the path to the page that it changes.
//   - Once for all records that have them: their labels, and of their bytes the kind, the apiVersion and what managedFields
//     say but for the time (codec.Common), unless the backend holds the bytes anyway (storage.Holder).
//   - The log: the last changes in order, in segments that begin with the state before them. So every state of the
//     window can be shown: a list at an exact revision, and the pages of a list that began before other writes.
//   - With a page, once a list has asked for it: the forms that readers have made of all its records, which
//     [Options.Forms] bounds, and the ids of their label sets. A list comes in blocks of these pages (storage.Page); one by
//     labels judges each set once, and touches only the records that have one which matches. Both go with the page, when
//     a write replaces it.
//   - No decoded object, no queue per watcher, no goroutine but one that follows the storage below and one that asks
//     for its revision while readers wait for that. The first ends while nothing happens, if the feed of the storage
//     below can call who reads it (storage.Waker), and the second is not needed if it knows its revision: so a cache at
//     rest over a storage in this process costs no goroutine.
//
// # What is answered from where
//
// A read of the most recent state is answered from memory once the cache is known to have reached the revision that
// the store has by a linearizable read, which readers share. Get asks the store for the revision of the key alone. A
// state within the window comes from memory, one before it from the storage below; so does everything while the cache
// could not be filled, or has not caught up in [Options.ReadWait]. While the cache is being filled lists and watches wait for that,
// and after [Options.FillWait] are a *storage.FillingError: after a start all clients come at once, and each of them would read all once
// more. A Get, and a list that is limited and has no selectors, are then answered by the storage below. Updates begin with the cached object, and what
// they then refuse or leave as it is is believed only of the current one.
//
// A read with the Match Acknowledged needs no revision of the store: it is answered from memory once the cache has the
// writes that were acknowledged through it. [Cacher.Delta] tells what has changed since a revision, from the log.
//
// # Watches
//
// A watch is a position in the log. It is listed under what it selects (everything, a namespace, a name, a value of
// an index) until a change concerns it; then it reads on at its own pace. Only a watch that has an unread change of
// its own which leaves the window ends, with an *ExpiredError; an idle one stays, however much happens elsewhere. A
// watch that begins with the state goes on even if the window passes meanwhile: it is then sent the difference to a
// later state before the bookmark that ends its initial events.
//
// The window is bounded by time and by bytes; see [Options].
//
// # The storage below
//
// If it is a storage.Source, as a storage.Store is, the cache begins with the oldest state it retains, or one as old as
// a storage.Replayer wants it, and replays what happened since: watches resume across a restart. Records that cannot be read are kept as such: they fail
// what has to show them and nothing else. Over any other Interface the cache begins with the latest list; while that
// fails, as it does when there is an unreadable record, everything is answered by the storage below.
//
// The cache never shows a state that did not exist. If the store turns out to be at a lower revision than it was
// (restored from a backup under a running server), all watches end with an *ExpiredError and the cache is made anew;
// meanwhile reads go to the storage below, and Ready says why.
//
// The rules for resourceVersion are those of
// https://kubernetes.io/docs/reference/using-api/api-concepts/#resource-versions; consistent reads from a cache are
// KEP-2340, lists at an exact revision KEP-4988, initial events KEP-3157.
package cacher
