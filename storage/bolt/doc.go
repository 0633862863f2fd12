// Package bolt keeps a [storage.Backend] in one crash-safe file.
//
//	b, err := bolt.Open("hello.db", bolt.Options{})
//	...
//	defer b.Close()
//
// # What it promises
//
// A commit is answered, and seen by readers and watches, only after it is on the disk. The process may be killed,
// or the machine lose power, at any instant: the file opens again with every commit that was answered, and each
// commit is there whole or not at all. Revisions go on from where they were.
//
// Commits that arrive while the disk is busy are written together and share one flush: many writers are much
// faster than one. A commit that fails because the disk is full is storage.ErrNoSpace; reads go on, and commits
// work again when there is room.
//
// History is kept in the file for Options.Window, within limits of size, so watches and reads at an earlier
// revision go on across a restart. Times are not stored: after a restart all history found in the file counts as
// new, and is kept for one Window more.
//
// # What will bite
//
// One process at a time has the file open; a second one is refused after about a second. The file must be on a
// filesystem with working locks and flushes (not every network filesystem is). It grows as needed and never
// shrinks; room freed by deletions and compaction is used again. After an unclean stop, Open reads the whole file
// once to find its free pages, which takes time in proportion to its size; after Close it does not.
//
// Values that are read are copies: a Range of everything needs the memory for everything.
//
// # The file
//
// The file is a bbolt database (go.etcd.io/bbolt) with three buckets. Integers are 8 bytes, big endian.
//
//   - meta: "format" is the text keelson/bolt, "version" the integer 1, "state" six integers: the revision, the
//     revision compacted at, the revision up to which compaction has cleaned up, the sum of sizes up to that
//     revision, the sum of sizes of all changes ever written, and 1 after a clean Close.
//   - log: revision → one change: a byte of flags (1: a deletion), the revision of the value before (0: there was
//     none), the sum of sizes up to this change, the key with its length as uvarint before it, the value.
//     It holds every change after the compacted revision, and those before whose value is still current.
//   - index: key, a NUL byte, the complement of a revision → a byte of flags as in log. The versions of a key
//     stand together, the newest first, and a reader at revision R seeks the first one not newer than R.
//
// Format version 1 will be read by later releases; a file of a later version is refused.
package bolt
