package etcd

import (
	"context"
	"errors"
	"sync/atomic"
	"time"

	"github.com/keelson-dev/keelson/storage"
)

// etcd does not answer a request for progress while it has changes to send, so one that was made is repeated. A feed
// without changes asks now and then on its own: its position has to stay in the window for a stream that is opened
// anew.
const (
	askAgain = 100 * time.Millisecond
	askIdle  = time.Minute
)

// feed is a storage.Feed. Its goroutine reads a stream of etcd and hands over one response at a time: while Next is
// not called nothing is read, and HTTP/2 flow control makes etcd wait.
type feed struct {
	b      *Backend
	w      storage.WatchRange
	start  int64           // of the first stream
	ctx    context.Context // ends with that of Watch, with Close, and when the feed cannot go on
	cancel context.CancelCauseFunc
	out    chan storage.Changes
	over   chan struct{} // closed when the feed can never go on
	err    error         // why; written before over is closed

	stream atomic.Pointer[stream] // the open one, for requests of progress; nil when there is none
	wanted atomic.Bool            // progress is asked for and not yet given
	nudge  chan struct{}          // holds one token when a waiting Next should look again

	// Used by Next alone:
	timer *time.Timer
	last  int64        // progress delivered
	seen  int64        // the revision up to which there is nothing more to deliver
	known *stream      // the last stream that Next has seen
	head  int64        // a revision that the store has reached since that was opened
	heads chan reading // what a question for the store's revision brings; holds one
	asked bool         // such a question is under way
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

// retained checks that changes after a revision are retained, which a watch of etcd would tell late. It returns the
// store's revision, 0 when that is below.
func (b *Backend) retained(ctx context.Context, from int64) (head int64, err error) {
	if from < 0 {
		return 0, b.refuse(b.expired(storage.ErrCompacted, from))
	}
	res, err := b.now(ctx, max(from, 1)) // 1 is the empty store's revision
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
			case h.revision < h.after: // etcd was restored to an older state: that is told as it is
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

// deliver notes what Next returns.
func (f *feed) deliver(c storage.Changes) storage.Changes {
	f.wanted.Store(false)
	f.last = max(f.last, c.Progress)
	c.Progress = f.last
	return c
}

// ended returns why the feed is over, nil if it is not.
func (f *feed) ended() error {
	err := f.ctx.Err() // looked at first: it ends after over was closed, too
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

// ask makes a request for progress. etcd does not answer one while its revision is below the first that the stream
// would show: then the store's revision is the answer.
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

// reopened reports whether there is a stream in the place of one that broke: then etcd may have been restored to an
// older state, which has to be asked.
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

// reading is the store's revision, 0 when it could not be read, and the progress that was delivered before it was read.
type reading struct{ revision, after int64 }

// askHead returns the store's revision, 0 when there is no answer.
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
