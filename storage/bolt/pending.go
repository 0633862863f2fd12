package bolt

import (
	"errors"
	"math"
	"time"

	"github.com/keelson-dev/keelson/storage"
)

const (
	// changeBytes is about the memory of a pending change besides its key and value.
	changeBytes = 256
	// flushRetry is the pause after a failed flush.
	flushRetry = time.Second
)

// pending has the commits that a writer has applied in memory, on top of the file's content. One flush at a time writes the
// accumulated changes to the file. The fields belong to the writer's goroutine.
type pending struct {
	*writer
	now      state     // the state that is shown; writer.state is the durable state in the file
	changes  []*change // the changes between these two states
	size     int       // size of the changes
	overlay  *overlay  // the changes by key
	flushing chan *flush
}

func newPending(w *writer) pending {
	return pending{writer: w, now: w.state, overlay: newOverlay()}
}

// flush is one transaction that writes pending changes, executed in its own goroutine.
type flush struct {
	*attempt
	began    time.Time
	requests []*request
	partial  bool // there are more changes
	err      error
}

// flush returns a flush of all changes, which the caller starts.
func (p *pending) flush(now time.Time) *flush {
	f := &flush{attempt: p.attempt(), began: now}
	f.head = p.now.revision
	f.changes = p.changes[:len(p.changes):len(p.changes)]
	return f
}

// start runs a flush. The flush is sent to p.flushing when it has ended.
func (p *pending) start(f *flush) {
	done := make(chan *flush, 1)
	p.flushing = done
	go func() {
		f.err = p.update(f.run)
		done <- f
	}()
}

// run is the transaction. If an earlier transaction failed at its last step, the changes it has left are written once more.
func (f *flush) run(t txn) error {
	f.txn = t
	if err := f.attempt.begin(); err != nil {
		return err
	}
	there := f.state.revision
	for _, c := range f.changes {
		f.dirty = true
		if f.partial && c.revision <= there { // later changes may be there too, and must not be overwritten by an older state
			continue
		}
		if err := f.put(c); err != nil {
			return err
		}
		f.state.revision, f.state.total = c.revision, c.total
	}
	for _, r := range f.requests {
		if err := f.apply(r); err != nil {
			return err
		}
	}
	return f.end(min(2*len(f.changes)+stepChanges, max(f.step, 2*len(f.changes)+1)))
}

// drain writes all changes to the trees of a full file. It works in steps, which become smaller when one does not fit. No
// flush is in progress. heard means that Hooks.Committed was called for the changes already.
func (p *pending) drain(heard bool) error {
	for n, forgotten := len(p.changes), false; len(p.changes) > 0; {
		n = min(p.step(n), len(p.changes))
		f := p.flush(time.Now())
		f.changes, f.partial = f.changes[:n:n], n < len(f.changes)
		f.dropping = f.dropping && !f.partial
		f.err = p.update(f.run)
		switch {
		case f.err == nil:
			if p.written(f); heard {
				f.changes = nil
			}
			p.tell(f.attempt, f.began)
			n, forgotten = len(p.changes), false
		case !errors.Is(f.err, storage.ErrNoSpace):
			return f.err
		case n > 1:
			n /= 2
		case !forgotten:
			forgotten = true
			p.clear()
		case p.spendLast():
		default:
			return f.err
		}
	}
	return nil
}

// clear removes history like forget, while there are changes that the trees do not have yet.
func (p *pending) clear() {
	p.pressure.urgent = p.desperate()
	defer func() { p.pressure.urgent, p.limit = false, 0 }()
	for p.limit = stepChanges; p.limit > 0; {
		f := p.flush(time.Now())
		f.changes, f.partial, f.dropping = nil, true, false
		f.err = p.update(f.run)
		switch {
		case f.err == nil && f.scrubbed > 0:
			p.written(f)
			p.tell(f.attempt, f.began)
		case errors.Is(f.err, storage.ErrNoSpace) && p.pressure.urgent:
			p.shorten()
		default:
			return
		}
	}
}

// unsettled reports whether there is something to write.
func (p *pending) unsettled() bool { return len(p.changes) > 0 || p.due() }

// written removes the changes of a flush that has succeeded, or had nothing to write, from memory and answers its requests.
func (p *pending) written(f *flush) {
	if !errors.Is(f.err, errNothing) {
		p.state, p.dropping = f.state, p.dropping && !f.dropping
		p.now.compacted = f.state.compacted
	}
	n := 0
	for ; n < len(p.changes) && p.changes[n].revision <= p.state.revision; n++ {
		p.size -= p.changes[n].size() + changeBytes
		p.overlay.versions.Delete(p.changes[n])
		p.changes[n] = nil
	}
	p.changes = p.changes[n:]
	p.publish(nil)
	f.deliver()
}

// publish shows the changes and the new state.
func (p *pending) publish(changes []*change) {
	p.b.tail.publish(changes, shown{
		revision: p.now.revision,
		floor:    p.now.compacted,
		flushed:  p.state.revision,
		overlay:  p.overlay.published(),
	})
}

// commit applies one commit in memory. If failed is not nil, it is the error for a commit that would make a change.
func (p *pending) commit(t txn, c storage.Commit, failed error) (storage.CommitResult, error) {
	was, unflushed, err := p.current(t, c.Key)
	if err != nil {
		return storage.CommitResult{}, err
	}
	switch judge(c, was.revision) {
	case conflicts:
		return p.conflict(t, c.Key, was.revision, unflushed)
	case idle:
		return storage.CommitResult{Revision: p.now.revision}, nil
	}
	if failed != nil {
		return storage.CommitResult{}, failed
	}
	p.perform(c, was, unflushed)
	return storage.CommitResult{Revision: p.now.revision}, nil
}

// perform makes a commit whose condition is met.
func (p *pending) perform(c storage.Commit, was replaced, unflushed *change) {
	var now time.Time
	if c.TTL > 0 {
		now = p.clock.tell()
	}
	ch := p.now.next(c, was, now)
	if unflushed != nil && was.revision != 0 {
		kv, _ := unflushed.kv()
		ch.prev.Store(&kv)
	}
	p.changes = append(p.changes, ch)
	p.size += ch.size() + changeBytes
	p.overlay.versions.Set(ch)
	p.nextExpiry = sooner(p.nextExpiry, ch.expires)
}

// current returns the value that a key has. unflushed is the change that wrote or deleted it, if the file does not have that
// change yet.
func (p *pending) current(t txn, key string) (was replaced, unflushed *change, err error) {
	if c := p.overlay.version(key, math.MaxInt64); c != nil {
		if !c.deleted {
			was = replaced{c.revision, c.expires}
		}
		return was, c, nil
	}
	found, err := t.version(key, math.MaxInt64)
	if err != nil {
		return was, nil, err
	}
	was, err = t.replaced(found)
	return was, nil, err
}

// conflict makes the answer to a commit whose key is at another revision.
func (p *pending) conflict(t txn, key string, live int64, unflushed *change) (storage.CommitResult, error) {
	res := storage.CommitResult{Revision: p.now.revision, Found: live != 0}
	switch {
	case live == 0:
	case unflushed != nil:
		res.Current, _ = unflushed.kv()
	default:
		kv, err := t.kvAt(key, live)
		if err != nil {
			return storage.CommitResult{}, err
		}
		res.Current = kv
	}
	return res, storage.ErrConflict
}
