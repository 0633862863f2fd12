package main

import (
	"context"
	"errors"
	"sync"
)

// errEnded is what watches get when the program ends.
var errEnded = errors.New("the program ends")

// feed tells every watch which widgets were written. It keeps all that it was told: a number for each write.
type feed struct {
	mu      sync.Mutex    // guards all below
	written []int         // items
	changed chan struct{} // closed, and replaced, at every write and at the end
	ended   bool
}

func newFeed() *feed { return &feed{changed: make(chan struct{})} }

// tell shows a write of an item to all.
func (f *feed) tell(item int) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.written = append(f.written, item)
	close(f.changed)
	f.changed = make(chan struct{})
}

// end ends all watches.
func (f *feed) end() error {
	f.mu.Lock()
	defer f.mu.Unlock()
	if !f.ended {
		f.ended = true
		close(f.changed)
	}
	return nil
}

// now is the position of a watch that begins now.
func (f *feed) now() int {
	f.mu.Lock()
	defer f.mu.Unlock()
	return len(f.written)
}

// next waits until there is something after a position, and returns all that is.
func (f *feed) next(ctx context.Context, after int) ([]int, error) {
	for {
		f.mu.Lock()
		written, changed, ended := f.written[after:], f.changed, f.ended
		f.mu.Unlock()
		if ended {
			return nil, errEnded
		}
		if len(written) > 0 {
			return written, nil
		}
		select {
		case <-changed:
		case <-ctx.Done():
			return nil, ctx.Err()
		}
	}
}
