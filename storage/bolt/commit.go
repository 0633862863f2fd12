package bolt

import (
	"context"
	"slices"

	"github.com/keelson-dev/keelson/storage"
)

// kind is the kind of a request to the writer.
type kind int

const (
	write   kind = iota // commit
	compact             // compact at request.revision
	probe               // write nothing, durably; everything shown is durable then
	borrow              // lend the file and the writer until request.returned is closed
	ready               // report whether commits that make the store grow are accepted
	expire              // delete expired keys; made by the writer itself, which does not wait for an answer
)

// request is a request to the writer.
type request struct {
	kind     kind
	commit   storage.Commit
	revision int64
	writer   *writer       // set by the answer to borrow
	returned chan struct{} // closed by the borrower

	done     chan struct{} // closed when answered
	answered bool          // used by the writer
	res      storage.CommitResult
	err      error
}

// size returns about how many bytes the request adds to the file.
func (r *request) size() int { return len(r.commit.Key) + len(r.commit.Value) }

// answer gives the result to the caller. Further calls have no effect.
func (r *request) answer(res storage.CommitResult, err error) {
	if r.answered {
		return
	}
	r.res, r.err, r.answered = res, err, true
	close(r.done)
}

// Commit implements storage.Backend.
func (b *Backend) Commit(ctx context.Context, c storage.Commit) (storage.CommitResult, error) {
	if err := checkKey(c.Key); err != nil {
		return storage.CommitResult{}, err
	}
	return b.submit(ctx, &request{kind: write, commit: c})
}

// Compact implements storage.Compactor. The history is removed from the file gradually afterwards.
func (b *Backend) Compact(ctx context.Context, revision int64) error {
	_, err := b.submit(ctx, &request{kind: compact, revision: revision})
	return err
}

// submit queues a request and waits for its answer. If ctx ends before the writer has taken the request, the request is never
// executed; after that it may be.
func (b *Backend) submit(ctx context.Context, r *request) (storage.CommitResult, error) {
	if err := ctx.Err(); err != nil {
		return storage.CommitResult{}, err
	}
	r.done = make(chan struct{})
	b.mu.Lock()
	if err := b.refuses; b.closed || err != nil {
		b.mu.Unlock()
		if err == nil {
			err = storage.ErrClosed
		}
		return storage.CommitResult{}, err
	}
	b.requests = append(b.requests, r)
	b.mu.Unlock()
	b.signal()
	select {
	case <-r.done:
		return r.res, r.err
	case <-ctx.Done():
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	if i := slices.Index(b.requests, r); i >= 0 {
		b.requests = slices.Delete(b.requests, i, i+1)
	}
	return storage.CommitResult{}, ctx.Err()
}

// signal wakes the writer.
func (b *Backend) signal() {
	select {
	case b.wake <- struct{}{}:
	default:
	}
}

// take removes from the queue the requests that the writer may put into one transaction. closed reports whether no more
// requests will follow.
func (b *Backend) take() (batch []*request, closed bool) {
	b.mu.Lock()
	defer b.mu.Unlock()
	n, size := 0, 0
	for n < len(b.requests) && n < batchChanges && size < batchBytes {
		size += b.requests[n].size()
		n++
	}
	batch, b.requests = b.requests[:n:n], b.requests[n:]
	if len(b.requests) == 0 {
		b.requests = nil
	}
	return batch, b.closed
}

func (b *Backend) setFailed(err error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.failed = err
}

func (b *Backend) setFull(err error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.full = err
}
