package bolt

import (
	"errors"
	"fmt"
	"time"
)

// Sync says when a commit is durable.
type Sync int

const (
	// SyncAlways answers a commit, and shows it, when it is on the disk. Nothing that was seen is ever lost.
	SyncAlways Sync = iota
	// SyncInterval answers and shows a commit at once, and writes all that have come in one durable transaction every
	// Options.Interval. A crash of the process or the machine loses at most what came after the last one, newest
	// first; the file is always intact. Up to 16 MiB of commits wait in memory; then new ones wait for the disk. When
	// the file cannot be written, those in memory stay readable, and new ones are refused with the reason
	// until it can; Close reports what could not be written. While the disk is full commits are written at once.
	SyncInterval
	// NoSync writes commits at once and leaves it to the system when they reach the disk. A killed process loses
	// nothing, but a crash of the machine may damage the file: this is for tests, and data that can be made again.
	NoSync
)

// In the weaker modes so many revisions are reserved, durably, before any of them is shown. After an unclean stop
// nobody knows which of them were, so none is given again.
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

// recovered is the state after an unclean stop: one that goes on behind the revisions that may have been shown, and
// has no history, as part of it may be lost.
func (s state) recovered() state {
	if s.clean == 0 && s.reserved > s.revision {
		s.revision = s.reserved + 1
		s.compacted = s.revision
	}
	return s
}

// reserve makes sure that the revisions of this transaction, and some more, may be shown.
func (a *attempt) reserve() {
	switch {
	case a.opts.Sync == NoSync && a.dirty && a.state.revision > a.durable.reserved,
		a.opts.Sync == SyncInterval && a.head+a.opts.block/2 > a.durable.reserved:
		a.state.reserved = max(a.state.revision, a.head) + a.opts.block
		a.dirty = true
	}
}

// sync flushes the file where its transactions do not.
func (b *Backend) sync() error { return b.flushed(b.db.Sync()) }

// flushed names the file in the error of a flush.
func (b *Backend) flushed(err error) error {
	if err == nil {
		return nil
	}
	return b.fault("bolt: flush", err)
}
