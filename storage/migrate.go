package storage

import (
	"context"
	"errors"
	"fmt"
	"sync"

	"github.com/keelson-dev/keelson/runtime"
)

// MigrateOptions are the options of Migrate. The zero MigrateOptions is valid.
type MigrateOptions struct {
	// Continue is the Continue of an earlier Migrated, to continue where that ended; "" begins at the first object.
	Continue string
	// PageSize is the number of objects that are read at once, and held at most; 0 is 500. Pages of large objects have fewer.
	PageSize int
	// Writers is the number of objects that are written concurrently; 0 is 1.
	Writers int
	// MaxFailures is the maximum number of failures in the result; 0 is 100.
	MaxFailures int
	// Progress, if not nil, is called with the result so far after every page, before the next one is read. It may block: a
	// program can slow the migration down that way.
	Progress func(Migrated)
}

func (o MigrateOptions) withDefaults() (MigrateOptions, error) {
	if o.PageSize < 0 || o.Writers < 0 || o.MaxFailures < 0 {
		return o, errors.New("PageSize, Writers and MaxFailures must not be negative")
	}
	if o.PageSize == 0 {
		o.PageSize = 500
	}
	if o.Writers == 0 {
		o.Writers = 1
	}
	if o.MaxFailures == 0 {
		o.MaxFailures = 100
	}
	return o, nil
}

// Migrated is the result of a migration. Each examined object counts in one of the four fields after Examined.
type Migrated struct {
	Examined  int64 // objects examined
	Rewritten int64 // objects stored anew
	Unchanged int64 // objects that were stored correctly already
	Gone      int64 // objects that were deleted meanwhile
	Failed    int64 // objects that could not be read, converted or stored; they are unchanged

	// Failures has the first objects that failed.
	Failures []MigrateFailure
	// Revision is the revision of the state that is examined.
	Revision int64
	// Continue continues after the last page that is done. "" means the first object, or nothing left when Migrate returned
	// no error. It is valid as long as the resource exists. The counts of the continued migration begin at zero.
	Continue string
}

// MigrateFailure is an object that a migration could not rewrite.
type MigrateFailure struct {
	Key string // relative to the resource
	Err error  // why it was not rewritten
}

// Migrate stores every object of a resource anew if its stored bytes are not what would be stored for it now. Such bytes were
// written in another version than the storage version, before a change of the Go type or of its defaults, or were sealed by
// an old key. See https://kubernetes.io/docs/tasks/manage-kubernetes-objects/storage-version-migration/.
//
// Migrate reads the objects page by page, as they are at one revision, or at a later revision when the first leaves the
// retained history. Objects that are written meanwhile are stored correctly anyway. An object is written by an Update that
// does not change it. If another client changes the object at the same time, that change stays, and no write is lost. Each
// such write has its own revision and is a MODIFIED event for watchers. Objects that are stored correctly are not written. An
// object that cannot be read, converted or stored stays unchanged. It is counted and named in the result, and is no error of
// Migrate: see Failed. Where the store has a TTL (StoreOptions), the TTL of a rewritten object begins anew; a TTL that only
// its WriteOptions had is lost.
//
// An error means that Migrate could not continue: ctx has ended, or the storage is closed, full or unavailable. The objects
// done so far stay done. The same call again, or one with the result's Continue, does the rest, in another process too.
func Migrate(ctx context.Context, s Interface, o MigrateOptions) (Migrated, error) {
	if s == nil {
		return Migrated{}, errors.New("storage: migrate: a storage is needed")
	}
	o, err := o.withDefaults()
	if err != nil {
		return Migrated{}, fmt.Errorf("storage: migrate: %w", err)
	}
	m := &migration{s: s, opts: o, limit: min(o.PageSize, 64)} // the size of the objects is not known yet
	m.result.Continue = o.Continue
	if err := m.run(ctx); err != nil {
		return m.result, fmt.Errorf("storage: migrate: %w", err)
	}
	return m.result, nil
}

// migration is one Migrate in progress.
type migration struct {
	s     Interface
	opts  MigrateOptions
	limit int    // limit of the next page
	from  string // the key where the next page begins, relative to the resource
	at    int64  // revision of the next page, or AtLatest

	mu     sync.Mutex // guards result while writers are at work
	result Migrated
}

func (m *migration) run(ctx context.Context) error {
	m.at = AtLatest
	if m.opts.Continue != "" {
		place, err := Scope{}.Continue(m.opts.Continue)
		if err != nil {
			return err
		}
		m.from, m.at = place.From, place.Revision
	}
	for {
		page, err := m.next(ctx)
		if err != nil {
			return err
		}
		if err := m.rewrite(ctx, page); err != nil {
			return err
		}
		m.result.Continue = page.Continue
		if m.opts.Progress != nil {
			m.opts.Progress(m.progress())
		}
		if page.Continue == "" {
			return nil
		}
		place, err := Scope{}.Continue(page.Continue)
		if err != nil {
			return err
		}
		m.from, m.at = place.From, place.Revision
	}
}

// progress returns a copy of the result that the receiver may keep.
func (m *migration) progress() Migrated {
	out := m.result
	out.Failures = append([]MigrateFailure(nil), out.Failures...)
	return out
}

// next reads the page that begins at m.from. An unreadable object makes the whole list fail. So next then tries smaller and
// smaller pages, and skips the object when it is alone in a page.
func (m *migration) next(ctx context.Context) (Page, error) {
	for {
		page, err := m.s.List(ctx, m.list())
		var unreadable *UnreadableError
		var expired *ExpiredError
		switch {
		case err == nil:
			m.result.Revision = page.Revision
			m.fit(page)
			return page, nil
		case errors.As(err, &expired) && m.at != AtLatest:
			m.at = AtLatest // continues at the same key
		case errors.As(err, &unreadable) && m.limit > 1:
			m.limit = max(m.limit/4, 1)
		case errors.As(err, &unreadable) && unreadable.Key >= m.from:
			m.result.Examined++
			m.failed(unreadable.Key, unreadable)
			m.from = unreadable.Key + "\x00"
			m.result.Continue = Scope{}.Token(Continue{Revision: m.at, From: m.from})
		default:
			return Page{}, err
		}
		if err := ctx.Err(); err != nil {
			return Page{}, err
		}
	}
}

// list returns the options for the next page. They have a token, except for the first page.
func (m *migration) list() ListOptions {
	o := ListOptions{Limit: int64(m.limit)}
	switch {
	case m.from != "":
		o.Continue = Scope{}.Token(Continue{Revision: m.at, From: m.from})
	case m.at != AtLatest:
		o.At = Read{Match: Exact, Revision: m.at}
	}
	return o
}

// fit sets the size of the next page by the size of this page's objects.
func (m *migration) fit(page Page) {
	const most = 8 << 20 // bytes
	size := 0
	for r := range page.Records {
		size += r.Body.Size()
	}
	m.limit = min(max(page.Count*most/max(size, 1), 1), 4*m.limit, m.opts.PageSize)
}

// rewrite rewrites a page. It returns the first error that ends the migration, after all writers have ended.
func (m *migration) rewrite(ctx context.Context, page Page) error {
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	queue := make(chan string)
	var writers sync.WaitGroup
	for range min(m.opts.Writers, max(page.Count, 1)) {
		writers.Go(func() {
			for key := range queue {
				if err := m.object(ctx, key); err != nil {
					cancel(err)
				}
			}
		})
	}
	unchanged := int64(0)
	for r := range page.Records {
		if ctx.Err() != nil {
			break
		}
		if !r.Stale {
			unchanged++
			continue
		}
		select {
		case queue <- r.Key:
		case <-ctx.Done():
		}
	}
	close(queue)
	writers.Wait()
	m.result.Examined += unchanged
	m.result.Unchanged += unchanged
	return context.Cause(ctx)
}

// object rewrites one object. It returns only errors that end the migration.
func (m *migration) object(ctx context.Context, key string) error {
	stale := false // whether the object was stale when it was last read
	_, err := m.s.Update(ctx, key, WriteOptions{}, func(_ context.Context, current runtime.Object, r Record) (Outcome, error) {
		stale = r.Stale
		if !r.Stale {
			return Outcome{}, nil
		}
		return Outcome{Object: current}, nil
	})
	switch {
	case err == nil || errors.Is(err, ErrNotFound):
	case ctx.Err() != nil:
		return ctx.Err()
	case errors.Is(err, ErrClosed) || errors.Is(err, ErrNoSpace) || errors.Is(err, ErrUnavailable):
		return err
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	m.result.Examined++
	switch {
	case errors.Is(err, ErrNotFound):
		m.result.Gone++
	case err != nil:
		m.failed(key, err)
	case stale:
		m.result.Rewritten++
	default:
		m.result.Unchanged++
	}
	return nil
}

// failed counts an object that stays unchanged. No other goroutine uses m.result meanwhile.
func (m *migration) failed(key string, err error) {
	m.result.Failed++
	if len(m.result.Failures) < m.opts.MaxFailures {
		m.result.Failures = append(m.result.Failures, MigrateFailure{Key: key, Err: err})
	}
}
