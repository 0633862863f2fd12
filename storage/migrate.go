package storage

import (
	"context"
	"errors"
	"fmt"
	"sync"

	"github.com/keelson-dev/keelson/runtime"
)

// MigrateOptions refines Migrate. The zero MigrateOptions is valid.
type MigrateOptions struct {
	// Continue is the Continue of an earlier Migrated, to go on where that ended; "" begins at the first object.
	Continue string
	// PageSize is how many objects are read at once, and at most held; 0 is 500. Pages of large objects have fewer.
	PageSize int
	// Writers is how many objects are written at the same time; 0 is 1.
	Writers int
	// MaxFailures is how many failures are named; 0 is 100.
	MaxFailures int
	// Progress is told what has been done, after every page, before the next one is read. It may block, which is how a
	// program makes a migration slow. nil tells nobody.
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

// Migrated says what a migration has done. Each object examined is one of the four that follow.
type Migrated struct {
	Examined  int64
	Rewritten int64
	Unchanged int64 // they were as they should be
	Gone      int64 // somebody has deleted them meanwhile
	Failed    int64 // they could not be read, converted or stored, and are as they were

	// Failures names the first that failed.
	Failures []MigrateFailure
	// Revision is that of the state that is examined.
	Revision int64
	// Continue goes on after the last page that is done; "" is the first object, or nothing when Migrate returned no
	// error. It is of use as long as the resource exists; the counts of what follows begin at zero.
	Continue string
}

// MigrateFailure is an object that a migration could not rewrite. Its key is relative to the resource.
type MigrateFailure struct {
	Key string
	Err error
}

// Migrate stores every object of a resource anew whose stored bytes are not what would be stored for it now: those
// written in another version than the storage version, before a change of its Go type or of its defaults, or sealed by
// an old key. It is what https://kubernetes.io/docs/tasks/manage-kubernetes-objects/storage-version-migration/ is about.
//
// It reads the objects page by page, as they are at one revision or, where that goes out of the retained history, at a
// later one; what is written meanwhile is stored as it should be without it. An object is written by an Update that does
// not change it: somebody who changes it at the same time wins, and nothing that was written is lost. Each such write has
// a revision of its own and is a MODIFIED event to those who watch; objects that are as they should be are not touched.
// An object that cannot be read, converted or stored stays as it is, is counted and named in the result, and is no error
// of Migrate: see Failed. Where the store has a TTL (StoreOptions), that of an object which is rewritten begins
// anew; one that only its WriteOptions had is lost.
//
// An error means that it could not go on: ctx has ended, or the storage is closed, full or unavailable. What is done is
// done; the same call again, or one with the result's Continue, does the rest, in another process too.
func Migrate(ctx context.Context, s Interface, o MigrateOptions) (Migrated, error) {
	if s == nil {
		return Migrated{}, errors.New("storage: migrate: a storage is needed")
	}
	o, err := o.withDefaults()
	if err != nil {
		return Migrated{}, fmt.Errorf("storage: migrate: %w", err)
	}
	m := &migration{s: s, opts: o, limit: min(o.PageSize, 64)} // how large objects are is not known yet
	m.result.Continue = o.Continue
	if err := m.run(ctx); err != nil {
		return m.result, fmt.Errorf("storage: migrate: %w", err)
	}
	return m.result, nil
}

// migration is one Migrate under way.
type migration struct {
	s     Interface
	opts  MigrateOptions
	limit int    // of the next page
	from  string // the key where the next page begins, relative to the resource
	at    int64  // its revision, or AtLatest

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
			m.opts.Progress(m.told())
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

// told is the result for others to keep.
func (m *migration) told() Migrated {
	out := m.result
	out.Failures = append([]MigrateFailure(nil), out.Failures...)
	return out
}

// next reads the page that begins at m.from. What cannot be read in it fails a list as a whole, so that is looked for
// with ever smaller pages, and passed over when it is a page of its own.
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
			m.at = AtLatest // goes on at the same key
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

// list asks for the next page: by a token, but for the first one, which has none.
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

// fit makes the next page as large as this one's objects let it be.
func (m *migration) fit(page Page) {
	const most = 8 << 20 // bytes
	size := 0
	for r := range page.Records {
		size += r.Body.Size()
	}
	m.limit = min(max(page.Count*most/max(size, 1), 1), 4*m.limit, m.opts.PageSize)
}

// rewrite does a page. The first error that ends the migration is returned, when all writers have ended.
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

// object rewrites one object. It returns the errors that end the migration.
func (m *migration) object(ctx context.Context, key string) error {
	stale := false // as it was found last
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

// failed counts an object that stays as it is. Nobody else uses m.result.
func (m *migration) failed(key string, err error) {
	m.result.Failed++
	if len(m.result.Failures) < m.opts.MaxFailures {
		m.result.Failures = append(m.result.Failures, MigrateFailure{Key: key, Err: err})
	}
}
