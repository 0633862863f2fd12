package storage

import (
	"context"
	"errors"
	"fmt"
	"iter"
	"reflect"
	"sync"
)

// CopyOptions refines Copy. The zero CopyOptions is valid.
type CopyOptions struct {
	// MaxEmptyCommits is the maximum number of empty commits that Copy may make to raise the destination's revision above the
	// source's, when the destination cannot keep revisions. 0 is 1,000,000; a negative number is none.
	MaxEmptyCommits int64
}

// CopyResult is the result of Copy.
type CopyResult struct {
	Revision int64 // the revision of the source's state that was copied
	Values   int64 // number of values copied
	Expiring int64 // number of values with a TTL, which were not copied
}

// Copy copies the values of src, as they are at one revision, into dst, which must be empty. A program can use it to move
// from one backend to another.
//
// A destination that is a [Loader] (memory, bolt) keeps the revision of every value and of the store: the resourceVersions
// that clients have stay valid. Any other destination must be a [Raiser] (etcd). Its revision is first raised above the
// source's and its history removed. So a resourceVersion of the source is expired there and never names another state. If
// that needs too many empty commits, nothing is done, and the error wraps a *RaiseError and says what can be done instead.
//
// src may be in use; changes after the copied state are not in the copy. Nobody may use dst before Copy has returned. After
// an error the content of dst is incomplete and must be discarded. Values with a TTL (events, leases of servers) are not
// copied, because the copies would never expire. bolt cannot store two values at one revision. Only a transaction of etcd
// that neither this library nor kube-apiserver made can have written such values; the error names both keys. Errors:
// ErrNotEmpty, ErrUnsupported, ErrCompacted when src removes the state while it is copied, and the errors of the two
// backends.
func Copy(ctx context.Context, dst, src Backend, opts CopyOptions) (CopyResult, error) {
	c := &copying{dst: dst, src: src, limit: firstPage}
	if err := c.copy(ctx, opts); err != nil {
		return CopyResult{}, fmt.Errorf("storage: copy: %w", err)
	}
	return c.result, nil
}

const (
	defaultEmptyCommits = 1_000_000
	firstPage           = 50
	maxPage             = 500     // a page of small values may be followed by one of large values
	pageBytes           = 4 << 20 // aimed size of a page of the source
	copyWriters         = 32      // number of concurrent commits
)

// copying is one Copy in progress. It is used by one goroutine only.
type copying struct {
	dst, src Backend
	limit    int   // limit of the next page
	count    int64 // number of the source's values at result.Revision
	read     error // the error that ended reading, nil if reading reached the end
	result   CopyResult
}

func (c *copying) copy(ctx context.Context, opts CopyOptions) error {
	loader, loads := As[Loader](c.dst)
	raiser, raises := As[Raiser](c.dst)
	switch {
	case c.dst == nil || c.src == nil:
		return errors.New("a source and a destination are needed")
	case same(c.dst, c.src):
		return fmt.Errorf("%w: it is the source", ErrNotEmpty)
	case !loads && !raises:
		return fmt.Errorf("%w: a %T can neither keep the revisions of another one (storage.Loader) nor raise its own above them (storage.Raiser)", ErrUnsupported, c.dst)
	}
	if err := c.checkEmpty(ctx); err != nil {
		return err
	}
	first, err := c.src.Range(ctx, Range{Limit: c.limit})
	if err != nil {
		return fmt.Errorf("read the source: %w", err)
	}
	c.result.Revision, c.count = first.Revision, first.Count
	if loads {
		err = loader.Load(ctx, c.result.Revision, c.values(ctx, first))
	} else if err = raise(ctx, raiser, c.result.Revision, opts.MaxEmptyCommits); err == nil {
		err = c.fill(ctx, first)
	}
	switch {
	case c.read != nil: // the reader's error counts, whatever error it became on its way
		return c.read
	case err != nil:
		return err
	}
	return c.compare(ctx)
}

// same reports whether two backends are the same one.
func same(a, b Backend) bool {
	return reflect.ValueOf(a).Comparable() && reflect.ValueOf(b).Comparable() && a == b
}

// checkEmpty returns an error if the destination has a value.
func (c *copying) checkEmpty(ctx context.Context) error {
	res, err := c.dst.Range(ctx, Range{Limit: 1})
	switch {
	case err != nil:
		return fmt.Errorf("read the destination: %w", err)
	case len(res.KVs) > 0:
		return fmt.Errorf("%w: it has the key %q", ErrNotEmpty, res.KVs[0].Key)
	}
	return nil
}

// raise raises the destination's revision above the source's.
func raise(ctx context.Context, r Raiser, revision, limit int64) error {
	if limit == 0 {
		limit = defaultEmptyCommits
	}
	err := r.Raise(ctx, revision, max(limit, 0))
	var few *RaiseError
	if errors.As(err, &few) {
		return fmt.Errorf("%w; allow more (CopyOptions.MaxEmptyCommits), or first restore the destination, if it is etcd, from its own snapshot "+
			"by `etcdutl snapshot restore --bump-revision %d --mark-compacted`", err, few.Needed)
	}
	return err
}

// values yields the values of the source except those with a TTL. It reads page by page, all at one revision. first is the
// first page. The sequence may be walked again.
func (c *copying) values(ctx context.Context, first RangeResult) iter.Seq2[KV, error] {
	return func(yield func(KV, error) bool) {
		c.result.Values, c.result.Expiring, c.read = 0, 0, nil
		for page := first; ; {
			size := 0
			for _, kv := range page.KVs {
				size += len(kv.Key) + len(kv.Value)
				if kv.Expiring {
					c.result.Expiring++
					continue
				}
				c.result.Values++
				if !yield(kv, nil) {
					return
				}
			}
			n := len(page.KVs)
			if n == 0 || int64(n) >= page.Count {
				return
			}
			c.limit = min(max(n*pageBytes/max(size, 1), 1), 2*c.limit, maxPage)
			page, c.read = c.next(ctx, page.KVs[n-1].Key+"\x00")
			if c.read != nil {
				yield(KV{}, c.read)
				return
			}
		}
	}
}

// next reads the page that begins at a key.
func (c *copying) next(ctx context.Context, from string) (RangeResult, error) {
	page, err := c.src.Range(ctx, Range{From: from, At: c.result.Revision, Limit: c.limit, Uncounted: true})
	switch {
	case errors.Is(err, ErrCompacted):
		err = fmt.Errorf("the source has forgotten revision %d while it was copied: discard the destination and copy again, with a longer history kept or fewer changes meanwhile: %w",
			c.result.Revision, err)
	case err != nil:
		err = fmt.Errorf("read the source: %w", err)
	}
	return page, err
}

// fill commits the values to the destination, several concurrently. The first error ends it.
func (c *copying) fill(ctx context.Context, first RangeResult) error {
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	queue := make(chan KV)
	var writers sync.WaitGroup
	for range copyWriters {
		writers.Go(func() {
			for kv := range queue {
				if err := write(ctx, c.dst, kv); err != nil {
					cancel(err)
					return
				}
			}
		})
	}
	var err error
	for kv, failed := range c.values(ctx, first) {
		if err = failed; err != nil {
			break
		}
		select {
		case queue <- kv:
			continue
		case <-ctx.Done():
		}
		break
	}
	close(queue)
	writers.Wait()
	if cause := context.Cause(ctx); cause != nil {
		c.read = nil // reading was ended by this cause
		return cause
	}
	return err
}

func write(ctx context.Context, dst Backend, kv KV) error {
	_, err := dst.Commit(ctx, Commit{Key: kv.Key, Value: kv.Value})
	switch {
	case errors.Is(err, ErrConflict):
		return fmt.Errorf("%w: somebody has written the key %q", ErrNotEmpty, kv.Key)
	case err != nil:
		return fmt.Errorf("write %q: %w", kv.Key, err)
	}
	return nil
}

// compare checks that the number of values read equals the count of the source.
func (c *copying) compare(ctx context.Context) error {
	if got := c.result.Values + c.result.Expiring; got != c.count {
		return fmt.Errorf("the source has shown %d values of %d at revision %d: discard the destination", got, c.count, c.result.Revision)
	}
	res, err := c.dst.Range(ctx, Range{CountOnly: true})
	switch {
	case err != nil:
		return fmt.Errorf("read the destination: %w", err)
	case res.Count != c.result.Values:
		return fmt.Errorf("the destination has %d values, and %d were copied: discard it", res.Count, c.result.Values)
	}
	return nil
}
