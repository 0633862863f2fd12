// Package bolt implements a [storage.Backend] in one crash-safe file.
//
//	b, err := bolt.Open("hello.db", bolt.Options{})
//	...
//	defer b.Close()
//
// # Durability
//
// A commit succeeds, and is visible to readers and watches, only after it is on the disk. The process may be killed, or the
// machine may lose power, at any time: the file then opens with every commit that succeeded, and each commit is present as a
// whole or not at all. Revisions continue from their last value. [Sync] describes two faster modes that promise less.
//
// Commits that arrive while the disk is busy are written together with one flush. So many concurrent writers are much faster
// than one. A file that is written often also has a journal while it is open, see [SyncAlways].
//
// History is kept in the file for Options.Window, within limits of size. So watches and reads at an earlier revision continue
// across a restart. Times are not stored: after a restart all history in the file counts as new, and is kept for one more
// Window.
//
// # Limits
//
// Only one process at a time can have the file open. The file must be on a filesystem with working locks and flushes, which
// not every network filesystem has. [Open] describes what it costs to open a file, [Options] what happens when the disk is
// full.
//
// The file grows to two or three times the size of the data and its history under steady writes. Freed pages are used again,
// but are not returned to the filesystem; see Options.Shrink. A journal takes 5 MiB.
//
// Returned values are copies: a Range of everything needs memory for all values.
//
// [Backend] describes TTLs. [Backend.Snapshot], [Restore] and [Verify] are for backups. Do not copy the file of a running
// store with other tools: such a copy is damaged. Any copy of a closed file is good.
//
// The file is a bbolt database (go.etcd.io/bbolt). layout.go describes its format.
package bolt
