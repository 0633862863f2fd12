// Package memory implements a storage.Backend in the memory of the process. Its content is lost at Close.
//
//	b := memory.New(memory.Options{})
//	defer b.Close()
//
// It keeps every state of the last minutes. So reads at an older revision and watches from it work as they do on a durable
// backend. History is kept for [Options.Window], and for a shorter time when it takes more than [Options.WindowBytes]. It is
// removed when commits are made: an idle backend has no goroutine, and a timer only if there are keys with a TTL. Many
// backends in one process cost a few hundred bytes each.
//
// Values are shared and never copied: reads and watches return the slices that were given to Commit.
//
// # How it works
//
// An ordered tree maps a key to its versions, the newest last. A log has the commits of the window in order. A feed is a
// position in that log. A feed that has read all changes that concern it is idle and is listed under its prefix. The next
// commit with that prefix stores its revision in the feed and wakes it. So a feed expires only when a change that it should
// have shown leaves the window, however much happens elsewhere.
package memory
