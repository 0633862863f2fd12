package etcd

import (
	"context"
	"errors"
	"sync/atomic"
	"time"

	"github.com/keelson-dev/keelson/storage"
)

// etcd does not answer a progress request while it has changes to send, so such a request is repeated. A feed without changes
// also requests progress from time to time: its position has to stay in the window for a stream that is opened anew.
const (
	askAgain = 100 * time.Millisecond
	askIdle  = time.Minute
)

// feed is a storage.Feed. Its goroutine reads a stream of etcd and hands over one response at a time. While Next is not
// called nothing is read, and HTTP/2 flow control makes etcd wait.
type feed struct {
	b      *Backend
	w      storage.WatchRange
	start  int64           // start revision of the first stream
	ctx    context.Context // ends with the context given to Watch, with Close, and when the feed cannot continue
	cancel context.CancelCauseFunc
	out    chan storage.Changes
	over   chan struct{} // closed when the feed has ended for good
	err    error         // why the feed has ended; written before over is closed

	stream atomic.Pointer[stream] // the open stream, for progress requests; nil when there is none
	wanted atomic.Bool            // progress was requested and not given yet
	nudge  chan struct{}          // holds one token when a waiting Next should look again

	// Used by Next only:
	timer *time.Timer
	last  int64        // the progress that was delivered last
	seen  int64        // the revision up to which there is nothing more to deliver
	known *stream      // the last stream that Next has seen
	head  int64        // a revision that the store has reached since that stream was opened
	heads chan reading // receives the store's revision after a request for it; holds one
	asked bool         // such a request is in progress
}

// Watch implements storage.Backend.
func (b *Backend) Watch(ctx context.Context, w storage.WatchRange) (storage.Feed, error) {
	head, err := b.retained(ctx, w.From)
	if err != nil {
		return nil, err
	}
	f := &feed{
		b: b, w: w, start: startAfter(w.From, head),
		out:   make(chan storage.Changes),
		over:  make(chan struct{}),
		nudge: make(chan struct{}, 1),
		heads: make(chan reading, 1),
		timer: time.NewTimer(askIdle),
		seen:  w.From,
	}
	f.ctx, f.cancel = context.WithCancelCause(ctx)
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.closed.Load() {
		f.cancel(storage.ErrClosed)
		return nil, storage.ErrClosed
	}
	b.feeds[f] = struct{}{}
	b.running.Go(f.run)
	return f, nil
}

// retained checks that changes after a revision are retained. A watch of etcd would report it late if they are not. It
// returns the store's revision, or 0 if the store has not reached the revision from yet.
func (b *Backend) retained(ctx context.Context, from int64) (head int64, err error) {
	if from < 0 {
		return 0, b.refuse(b.expired(storage.ErrCompacted, from))
	}
	res, err := b.now(ctx, max(from, 1)) // 1 is the revision of an empty store
	if err != nil && !errors.Is(err, storage.ErrFuture) {
		return 0, b.expired(err, from)
	}
	return res.GetHeader().GetRevision(), nil
}

// Next implements storage.Feed.
func (f *feed) Next(ctx context.Context) (storage.Changes, error) {
	for {
		if err := f.ended(); err != nil {
			return storage.Changes{}, err
		}
		if err := ctx.Err(); err != nil {
			return storage.Changes{}, err
		}
		wanted := f.wanted.Load()
		pause := askIdle
		if wanted {
			pause = askAgain
		}
		if f.reopened() || wanted {
			f.ask()
		}
		f.timer.Reset(pause)
		select {
		case c := <-f.out:
			f.seen = c.Progress
			f.head = max(f.head, c.Progress)
			if len(c.Changes) > 0 || f.wanted.Load() {
				return f.deliver(c), nil
			}
		case h := <-f.heads:
			f.asked = false
			f.head = max(f.head, h.revision)
			switch {
			case h.revision == 0:
			case h.revision < h.after: // etcd was restored to an older state: the feed reports that revision
				f.wanted.Store(false)
				f.last = h.revision
				return storage.Changes{Progress: h.revision}, nil
			case h.revision > f.seen || !f.wanted.Load():
			default:
				return f.deliver(storage.Changes{Progress: h.revision}), nil
			}
		case <-f.timer.C:
			if !wanted {
				f.ask()
			}
		case <-f.nudge:
		case <-f.over:
		case <-f.ctx.Done():
		case <-ctx.Done():
		}
	}
}

// deliver records what Next returns.
func (f *feed) deliver(c storage.Changes) storage.Changes {
	f.wanted.Store(false)
	f.last = max(f.last, c.Progress)
	c.Progress = f.last
	return c
}

// ended returns the error with which the feed has ended, nil if it has not.
func (f *feed) ended() error {
	err := f.ctx.Err() // read before over: the context ends after over was closed, too
	select {
	case <-f.over:
		return f.err
	default:
	}
	if err != nil && errors.Is(context.Cause(f.ctx), storage.ErrClosed) {
		return storage.ErrClosed
	}
	return err
}

// ask requests progress. etcd does not answer such a request while its revision is below the first one that the stream would
// show. In that case ask reads the store's revision instead.
func (f *feed) ask() {
	switch s := f.stream.Load(); {
	case s == nil || f.asked:
	case f.head > s.after:
		s.requestProgress()
	case f.b.begin() == nil:
		f.asked = true
		after := f.last
		go func() {
			defer f.b.calls.Done()
			f.heads <- reading{f.askHead(), after}
		}()
	}
}

// reopened reports whether a new stream has replaced one that broke. Then etcd may have been restored to an older state, so
// the store's revision must be read.
func (f *feed) reopened() bool {
	s := f.stream.Load()
	if s == nil || s == f.known {
		return false
	}
	first := f.known == nil
	if f.known = s; !first {
		f.head = 0
	}
	return !first
}

// reading is the store's revision, 0 when it could not be read, and the progress that had been delivered before it was read.
type reading struct{ revision, after int64 }

// askHead returns the store's revision, 0 if the read fails.
func (f *feed) askHead() int64 {
	res, err := f.b.now(f.ctx, 0)
	if err != nil {
		sleep(f.ctx, askAgain)
		return 0
	}
	return res.Header.Revision
}

// RequestProgress implements storage.Feed.
func (f *feed) RequestProgress() {
	f.wanted.Store(true)
	f.wake()
}

// Close implements storage.Feed.
func (f *feed) Close() { f.cancel(storage.ErrClosed) }
