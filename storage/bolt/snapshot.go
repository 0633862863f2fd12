package bolt

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"

	"github.com/keelson-dev/keelson/storage"
)

// Snapshot writes the store as it is at one revision to w, and returns the revision. The result is a file that Open and
// Restore accept. It has all commits that were answered before the call, and the history. Commits continue meanwhile. bbolt
// keeps the pages of the snapshot until it is written: with a slow w the file grows by what is committed meanwhile. A file
// that outgrows its map (4 GiB, or four times the size at Open if that is more) makes commits wait for the snapshot.
//
// The snapshot is as long as the file, free pages included; a journal in it is empty. Commits that are only in memory
// (SyncInterval) or in the journal are written to the trees first; only that needs a disk with room. If the snapshot of a
// store in a weaker mode is opened without Restore, the store continues after the reserved revisions, as after an unclean
// stop. Errors: those of w, ErrClosed when Close comes before the end, the context's.
func (b *Backend) Snapshot(ctx context.Context, w io.Writer) (revision int64, err error) {
	now, err := b.tail.see()
	if err != nil {
		return 0, err
	}
	for {
		if err := ctx.Err(); err != nil {
			return 0, err
		}
		revision, err := b.snapshot(ctx, w, now.revision)
		if !errors.Is(err, errUnsettled) {
			return revision, err
		}
		if _, err := b.submit(ctx, &request{kind: probe}); err != nil {
			return 0, fmt.Errorf("bolt: snapshot: %w", err)
		}
	}
}

// errUnsettled means that the file lacks something that the snapshot must have, or has something that is not shown yet.
var errUnsettled = errors.New("the file is behind or ahead")

// snapshot writes the file if it has at least the revision wanted, and nothing that a crash could undo.
func (b *Backend) snapshot(ctx context.Context, w io.Writer, wanted int64) (revision int64, err error) {
	err = b.view(func(t txn) error {
		s, err := t.state()
		if err != nil {
			return err
		}
		now, err := b.tail.see()
		if err != nil {
			return err
		}
		if s.revision < wanted || s.revision > now.revision {
			return errUnsettled
		}
		revision = s.revision
		j, err := findJournal(t.tx, b.file)
		if err != nil {
			return err
		}
		out := &interruptible{w: w, stop: func() error { return b.interrupted(ctx) }, journal: j}
		if _, err := t.tx.WriteTo(out); err != nil {
			return fmt.Errorf("bolt: snapshot of %s: %w", b.path, cmp.Or(out.err, err))
		}
		return nil
	})
	if err != nil {
		return 0, err
	}
	return revision, nil
}

// interruptible is a writer that can be stopped.
type interruptible struct {
	w    io.Writer
	stop func() error
	err  error // the last error; bbolt wraps some errors as text only

	written int64
	journal *journal // may be nil; it is written as empty, because it changes meanwhile and the trees have its content
	blank   []byte
}

func (i *interruptible) Write(b []byte) (n int, err error) {
	if i.err = i.stop(); i.err != nil {
		return 0, i.err
	}
	n, i.err = i.w.Write(i.without(b))
	i.written += int64(n)
	if i.err != nil && noSpace(i.err) {
		i.err = fmt.Errorf("%w: %w", storage.ErrNoSpace, i.err)
	}
	return n, i.err
}

// without returns b, the bytes to be written next, with zeros for the content of the journal.
func (i *interruptible) without(b []byte) []byte {
	if i.journal == nil {
		return b
	}
	from := max(i.journal.at-i.written, 0)
	to := min(i.journal.at+2*i.journal.half-i.written, int64(len(b)))
	if from >= to {
		return b
	}
	i.blank = append(i.blank[:0], b...)
	clear(i.blank[from:to])
	return i.blank
}
