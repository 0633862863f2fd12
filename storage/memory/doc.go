// Package memory is a storage.Backend in the memory of the process. Nothing outlives Close.
//
//	b := memory.New(memory.Options{})
//	defer b.Close()
//
// It keeps every state of the last minutes, so that reads at an older revision and watches from one work as they
// do on a durable backend: history is kept for [Options.Window], and less when it takes more than
// [Options.WindowBytes]. History is cut as commits come; an idle backend owns no goroutine, and no timer unless
// there are keys with a TTL. Many backends in one process cost a few hundred bytes each.
//
// Values are shared, never copied: what a commit was given is what reads and watches return.
//
// # How it works
//
// An ordered tree maps a key to its versions, newest last; a log holds the commits of the window in order. A feed
// is a position in that log. A feed which has read all that concerns it is listed under its prefix as idle, and
// the next commit with that prefix notes its revision in the feed and wakes it; so a feed expires only when a
// change that it should have shown leaves the window, however much happens elsewhere.
package memory
