package bolt

import (
	"context"
	"errors"
	"fmt"
	"os"

	"github.com/keelson-dev/keelson/storage"
	"go.etcd.io/bbolt"
)

// Verify reads the whole file at path, which no process may have open, and checks it: bbolt's pages, the checksum of every
// change, that index and log agree, that every change refers to the previous one, the counters, and that the content of a
// journal continues from there. The error has up to twenty faults. The file is not changed.
func Verify(path string) error {
	if _, err := verifyFile(path); err != nil {
		return fmt.Errorf("bolt: verify %s: %w", path, explain(path, err))
	}
	return nil
}

// verifyFile is Verify for callers that explain its errors themselves. It returns the file's state.
func verifyFile(path string) (s state, err error) {
	if err := lookAt(path); err != nil {
		return s, err
	}
	f, err := openDB(path, openOptions{readOnly: true})
	if err != nil {
		return s, err
	}
	err = guard(func() error {
		return f.View(func(tx *bbolt.Tx) error {
			s, err = f.verify(tx)
			return err
		})
	})
	return s, errors.Join(err, f.Close())
}

// lookAt returns an error for a file that has no content to verify.
func lookAt(path string) error {
	info, err := os.Stat(path)
	switch {
	case err != nil:
		return err
	case info.IsDir():
		return errDirectory
	case !info.Mode().IsRegular():
		return errIrregular
	case info.Size() == 0:
		return errEmpty
	}
	return nil
}

func (f *dbFile) verify(tx *bbolt.Tx) (s state, err error) {
	var found findings
	if _, damage, err := readMetas(f.file); err != nil || damage != nil {
		_ = found.add(errors.Join(err, damage))
	}
	if err := f.whole(tx); err != nil {
		return s, err
	}
	if err := f.walk(tx, &pageWalk{report: found.add}); err != nil && !errors.Is(err, errEnough) {
		return s, err
	}
	if err := found.err(); err != nil {
		return s, err
	}
	if s, err = checkContent(tx); err != nil {
		return s, err
	}
	c := checking{findings: found, stop: func() error { return nil }}
	if err := c.run(tx, s); err != nil {
		return s, err
	}
	if err := c.journal(txn{tx: tx}, f.file); err != nil {
		return s, err
	}
	for err := range tx.Check() { // read all of them: otherwise the goroutine of Check would wait for ever
		_ = c.add(err)
	}
	return s, c.err()
}

// Verify checks the file like the function Verify, while it is in use. It checks the content as it was written when Verify
// began, without commits that are only in memory or in the journal. Commits continue meanwhile, but pages that they free are
// not used again before Verify has ended, so the file may grow.
func (b *Backend) Verify(ctx context.Context) error {
	err := b.view(func(t txn) error {
		stop := func() error { return b.interrupted(ctx) }
		var found findings
		f := &dbFile{DB: b.db, file: b.file}
		if err := f.walk(t.tx, &pageWalk{report: found.add, stop: stop}); err != nil && !errors.Is(err, errEnough) {
			return err
		}
		if err := found.err(); err != nil {
			return err
		}
		s, err := t.state()
		if err != nil {
			return err
		}
		c := checking{stop: stop}
		return errors.Join(c.run(t.tx, s), c.err())
	})
	if errors.Is(err, errDamaged) {
		return fmt.Errorf("%w: restore it from a backup", err)
	}
	return err
}

// interrupted returns the error with which a long operation should end, after ctx has ended or Close was called.
func (b *Backend) interrupted(ctx context.Context) error {
	select {
	case <-b.stopped:
		return storage.ErrClosed
	default:
		return ctx.Err()
	}
}
