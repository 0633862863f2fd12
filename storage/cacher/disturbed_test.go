package cacher_test

import (
	"context"
	"fmt"
	"sync"
	"sync/atomic"

	"github.com/keelson-dev/keelson/storage"
)

// errOut is the error with which feeds of an unreachable store end.
var errOut = fmt.Errorf("%w: for a test", storage.ErrUnavailable)

// disturbed is a storage.Source whose feeds can be held and ended.
type disturbed struct {
	*storage.Store

	deaf      atomic.Pointer[func() bool]  // returns true if a request for progress is to be lost
	following atomic.Pointer[func()]       // called before Follow returns
	stating   atomic.Pointer[func() error] // its error, if any, is that of State

	mu    sync.Mutex // guards below
	held  chan struct{}
	feeds map[*disturbedFeed]struct{}
}

var (
	_ storage.Source            = (*disturbed)(nil)
	_ storage.UnreadableDeleter = (*disturbed)(nil)
)

// hold delays changes for the cache until release.
func (d *disturbed) hold() {
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.held == nil {
		d.held = make(chan struct{})
	}
}

func (d *disturbed) release() {
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.held != nil {
		close(d.held)
		d.held = nil
	}
}

func (d *disturbed) holding() <-chan struct{} {
	d.mu.Lock()
	defer d.mu.Unlock()
	return d.held
}

// fail ends all feeds.
func (d *disturbed) fail(err error) {
	d.mu.Lock()
	defer d.mu.Unlock()
	for f := range d.feeds {
		f.fail(err)
	}
}

// State implements storage.Source.
func (d *disturbed) State(ctx context.Context, at int64) (storage.State, error) {
	if f := d.stating.Load(); f != nil {
		if err := (*f)(); err != nil {
			return storage.State{}, err
		}
	}
	return d.Store.State(ctx, at)
}

// Follow implements storage.Source.
func (d *disturbed) Follow(ctx context.Context, from int64) (storage.Following, error) {
	inner, err := d.Store.Follow(ctx, from)
	if err != nil {
		return nil, err
	}
	f := &disturbedFeed{Following: inner, d: d}
	f.life, f.end = context.WithCancelCause(ctx)
	d.mu.Lock()
	d.feeds[f] = struct{}{}
	d.mu.Unlock()
	if f := d.following.Load(); f != nil {
		(*f)()
	}
	if w, ok := inner.(storage.Waker); ok {
		return &wakingFeed{f, w}, nil
	}
	return f, nil
}

type disturbedFeed struct {
	storage.Following
	d    *disturbed
	life context.Context //nolint:containedctx // of the feed
	end  context.CancelCauseFunc
	kept []storage.Moves // read during a hold that has ended since
}

// wakingFeed is a disturbedFeed that is a storage.Waker.
type wakingFeed struct {
	*disturbedFeed
	inner storage.Waker
}

// Wake implements storage.Waker.
func (f *wakingFeed) Wake(again func()) bool { return len(f.kept) == 0 && f.inner.Wake(again) }

// fail ends the feed with an error. The feed below wakes the reader.
func (f *disturbedFeed) fail(err error) {
	f.end(err)
	f.Following.Close()
}

// Next implements storage.Following.
func (f *disturbedFeed) Next(ctx context.Context) (storage.Moves, error) {
	if len(f.kept) == 0 {
		m, err := f.Following.Next(ctx)
		switch {
		case f.life.Err() != nil:
			return storage.Moves{}, context.Cause(f.life)
		case err != nil:
			return storage.Moves{}, err
		}
		f.kept = append(f.kept, m)
	}
	for held := f.d.holding(); held != nil; held = f.d.holding() {
		select {
		case <-held:
		case <-ctx.Done():
			return storage.Moves{}, ctx.Err()
		case <-f.life.Done():
			return storage.Moves{}, context.Cause(f.life)
		}
	}
	m := f.kept[0]
	f.kept = nil
	return m, nil
}

// RequestProgress implements storage.Following.
func (f *disturbedFeed) RequestProgress() {
	if deaf := f.d.deaf.Load(); deaf != nil && (*deaf)() {
		return
	}
	f.Following.RequestProgress()
}

// Close implements storage.Following.
func (f *disturbedFeed) Close() {
	f.end(storage.ErrClosed)
	f.Following.Close()
	f.d.mu.Lock()
	defer f.d.mu.Unlock()
	delete(f.d.feeds, f)
}
