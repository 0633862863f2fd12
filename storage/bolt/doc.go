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
// faster than one.
//
// A file that is written often has a journal, a region of the file itself, while it is open: one small write to it and
// one flush make commits durable, and they go into the file's trees up to two seconds later, many in one transaction.
// There is one file to copy all the same. Close leaves no journal. After an unclean stop the next Open writes what the
// journal has into the trees; a record that was being written then was never answered, and is not taken. One before it
// that is damaged is refused, as all damage is; damage to the very last cannot be told from a torn one, and takes back its
// commits.
//
// History is kept in the file for Options.Window, within limits of size, so watches and reads at an earlier
// revision go on across a restart. Times are not stored: after a restart all history found in the file counts as
// new, and is kept for one Window more.
//
// # A full disk
//
// When the disk is full, or Options.Quota is reached, a commit that makes the store grow is storage.ErrNoSpace: one of a new
// key, or of a value that is larger than the one it replaces. Reads, deletions, updates that do not grow and compaction go
// on, and Ready tells that the file is full. For them the file keeps 256 KiB, which are zeros until they are needed, and
// what is kept beside a journal. The file leaves the lesser of 64 MiB and a sixteenth of the disk to others.
//
// In a full file there is no journal, each transaction is as small as its room requires, and history is kept for a second only,
// or not at all where deletions need its room: a watch that is behind is storage.ErrCompacted then. History that is older than
// a second goes before anything is refused. When there is room for 1 MiB again, of deletions or on the disk, the file keeps
// 256 KiB anew, and everything is taken as before. A transaction of Snapshot or Verify that stays open keeps the pages that
// deletions free: there may be no room before it ends. Filesystems that never write in place keep room of their own, or none.
//
// # Weaker modes
//
// Options.Sync trades durability for speed; a file may be opened in another mode each time.
//
//   - [SyncAlways], the default, is described above.
//   - [SyncInterval] answers at once and writes what has come in one durable transaction every Options.Interval. A
//     crash takes back at most the newest commits, those since the last transaction; the file is always intact.
//   - [NoSync] writes at once and flushes nothing. A killed process loses nothing; a power failure may damage the file.
//
// No mode gives a revision to two states. The weaker ones reserve revisions in blocks, durably, before any is shown;
// after an unclean stop the store goes on behind the block, and everything before is storage.ErrCompacted: clients
// list again. After Close nothing is lost, and there is no gap.
//
// # TTLs
//
// A key with a TTL is deleted within two seconds after its time, by a commit like any other, with a revision of its own.
// What had its time while the file was closed is deleted soon after Open, as is what a snapshot that is restored late
// has. A deletion waits while the file cannot be written, and is tried again every second. Of many that are due at once,
// 512 are deleted at a time (with SyncInterval in memory first, as all commits), and other commits go in between. A key
// whose time has come is there, for reads and conditions, until it has been deleted. Without a key with a TTL there is
// nothing to wait for, and Open reads one entry to know.
//
// Times are those of the wall clock, which is never taken to go back: where it was set back, time goes on from what the
// file was told last, and no key lives longer than its TTL while the file is open. Where it was set forward, keys are
// deleted early. The timer that is set does not notice that, nor that the machine has slept; the next commit does.
//
// # Backups
//
// [Backend.Snapshot] writes a consistent copy while commits go on, [Restore] makes a new file of one after it has
// verified the whole, and [Verify] and [Backend.Verify] check a file. A restored store is older than what clients
// may have seen, so its revisions go on 1,000,000,000 above the snapshot's and its history is forgotten, unless
// RestoreOptions say otherwise. Copying the file of a running store with other tools makes a damaged file; once it
// is closed, any copy is good. A snapshot of a store in a weaker mode that is opened as it is, without Restore, goes
// on behind the revisions reserved, as after an unclean stop.
//
//	b.Snapshot(ctx, out)
//	err := bolt.Restore("new.db", in, bolt.RestoreOptions{})
//
// # What will bite
//
// One process at a time has the file open; a second one is refused after about a second. The file must be on a
// filesystem with working locks and flushes (not every network filesystem is).
//
// The file grows as needed, to two or three times the data and its history under steady writes: freed pages are used
// again, but not given back. A journal takes 5 MiB, of which 3 MiB are kept for a disk that fills up: what the journal
// has goes there. Options.Shrink makes Open copy a file that is mostly free into a compact one, which
// takes its place atomically: this needs room for the copy, and time. A file whose name ends in .keelson-shrink is
// one that was not finished, and Open removes it.
//
// A transaction that stays open, of Snapshot or Verify, keeps the pages it sees; what is committed meanwhile needs
// other ones. After Close, Open reads a few pages, whatever the size of the file. After an unclean stop it looks at every page of
// the trees once, several at a time, to find the free ones, which it lists in the file; values that have pages of their own
// are not read (BENCHMARKS.md has times). Damage to a value shows when it is read, or with Verify. A transaction that
// fails, as the one does that finds the disk full, reads the file's pages too. A file is mapped into 4 GiB of address space,
// or four times its size if that is more. This takes no memory, but a process with a limit (ulimit -v) maps less, and then
// growing waits for readers.
//
// Values that are read are copies: a Range of everything needs the memory for everything.
//
// # The file
//
// The file is a bbolt database (go.etcd.io/bbolt) with four buckets, or up to seven. Integers are 8 bytes, big endian;
// checksums are CRC-32C, 4 bytes, big endian; times are seconds since 1970.
//
//   - meta: "format" is the text keelson/bolt, "version" the integer 1, 2 or 3, "state" seven integers and their checksum:
//     the revision, the revision compacted at, the revision up to which compaction has cleaned up, the sum of sizes
//     up to that revision, the sum of sizes of all changes ever written, 1 after a clean Close, and the revision up
//     to which revisions are reserved. "clock", if it is there, is the time of the last transaction with a key that
//     expires, and its checksum. "unfinished" is there while the store is being loaded.
//   - log: revision → one change: a byte of flags (1: a deletion, 2: the value is in parts, 4: it has a TTL), the
//     revision of the value before (0: there was none), the sum of sizes up to this change, the checksum of the revision
//     and all of the change but the checksum, the time at which it expires if it has a TTL, the key with its length as
//     uvarint before it, the value; in place of one that is in parts, its size and its checksum.
//     It holds every change after the compacted revision, and those before whose value is still current.
//   - parts: revision, 4 bytes that count from 0 → 8128 bytes, or what is left, of a value larger than 16 KiB. Pages
//     that must be neighbours are few then, so that holes in the file fit again.
//   - index: key, a NUL byte, the complement of a revision → a byte of flags as in log. The versions of a key
//     stand together, the newest first, and a reader at revision R seeks the first one not newer than R.
//   - expiry: the time at which a value expires, its revision → nothing, for all current values with a TTL. In a file of
//     format version 1 there is no such bucket, and no TTL.
//   - journal, while the file is open and written often: 8 random bytes and their checksum → two halves of 1 MiB, from the
//     first multiple of 4096 in the file on. They are written in place, in turn, in records that begin at multiples of 4096:
//     the random bytes, the number of the record, its first revision, the clock, the number of changes and the size of what
//     follows (4 bytes each), the checksum of all but itself; then for each change the time at which the value before
//     expires, the size of what follows in 4 bytes, and the change as in log with its whole value. What log has already is
//     not looked at, in the middle of a record too. The records of a half are written over when log has all their changes.
//   - reserve, but in a full file: zeros for a full disk, under the bytes 0 to 7 and, beside a journal, the text "reserve".
//     A file without it takes nothing that makes it grow before it has it.
//
// A size is that of a key and its value. Where the store was not closed cleanly and revisions are reserved above its
// own, its revision is the one after them. A file is of format version 1 until the first commit with a TTL, which makes
// it one of version 2, for good: releases that know only version 1 refuse it, since they would keep for ever what is to
// expire. While it has a journal it is of version 3, and of 1 or 2 again after Close: releases that do not know the journal
// refuse a file that was not closed, or a snapshot, instead of losing what it has, and read it once this release has opened
// and closed it. All versions will be read by later releases; a file of a later version is refused.
package bolt
