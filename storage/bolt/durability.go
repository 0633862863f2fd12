package bolt

import (
	"errors"
	"fmt"
	"time"
)

// Sync is the durability mode of a Backend.
//
// In no mode two states have the same revision. SyncInterval and NoSync reserve revisions in blocks; a block is made durable
// before any of its revisions is shown. After an unclean stop the store continues after the block, and everything before
// fails with storage.ErrCompacted: clients list again. After Close nothing is lost, and there is no gap.
type Sync int

const (
	// SyncAlways answers a commit, and shows it, when it is on the disk. Nothing that was seen is ever lost.
	//
	// A file that is written often has a journal while it is open. The journal is a region of the file itself of 5 MiB, of
	// which 3 MiB are kept for the case that the disk fills up and the content of the journal must be moved. One small write
	// to the journal and one flush make commits durable. The commits are written into the file's trees up to two seconds
	// later, many in one transaction. Close removes the journal. After an unclean stop the next Open writes the content of
	// the journal into the trees. A record that was incomplete at the stop was never answered, and is ignored. A damaged
	// record before the last one makes Open refuse the file, like all damage. Damage to the last record cannot be
	// distinguished from an incomplete write: its commits are lost.
	SyncAlways Sync = iota
	// SyncInterval answers and shows a commit at once, and writes all commits in one durable transaction every
	// Options.Interval. A crash of the process or the machine loses at most the commits after the last such transaction; the
	// file is always intact. Up to 16 MiB of commits wait in memory; beyond that, new commits wait for the disk. While the
	// file cannot be written, the commits in memory stay readable, and new ones fail with the reason. Close reports the
	// commits that could not be written. While the disk is full, commits are written at once.
	SyncInterval
	// NoSync writes commits at once and leaves it to the system when they reach the disk. A killed process loses nothing, but
	// a crash of the machine may damage the file. NoSync is for tests, and for data that can be made again.
	NoSync
)

// reserveBlock is the number of revisions that the weaker modes reserve at a time, durably, before any of them is shown.
// After an unclean stop it is unknown which of them were shown, so none of them is given again.
const reserveBlock = 100_000

func (s Sync) check(interval time.Duration) error {
	switch {
	case s < SyncAlways || s > NoSync:
		return fmt.Errorf("bolt: Sync %d is none of SyncAlways, SyncInterval and NoSync", int(s))
	case interval < 0:
		return errors.New("bolt: Interval must not be negative")
	case interval > 0 && s != SyncInterval:
		return errors.New("bolt: Interval is for SyncInterval alone")
	}
	return nil
}

// recovered returns the state after an unclean stop. It continues after the revisions that may have been shown. It has no
// history, because a part of it may be lost.
func (s state) recovered() state {
	if s.clean == 0 && s.reserved > s.revision {
		s.revision = s.reserved + 1
		s.compacted = s.revision
	}
	return s
}

// reserve reserves more revisions if necessary, so that those of this transaction may be shown.
func (a *attempt) reserve() {
	switch {
	case a.opts.Sync == NoSync && a.dirty && a.state.revision > a.durable.reserved,
		a.opts.Sync == SyncInterval && a.head+a.opts.block/2 > a.durable.reserved:
		a.state.reserved = max(a.state.revision, a.head) + a.opts.block
		a.dirty = true
	}
}

// sync flushes the file in the modes in which transactions do not.
func (b *Backend) sync() error { return b.flushed(b.db.Sync()) }

// flushed adds the file to the error of a flush.
func (b *Backend) flushed(err error) error {
	if err == nil {
		return nil
	}
	return b.fault("bolt: flush", err)
}
