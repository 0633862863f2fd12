package main

import (
	"context"
	"errors"
	"sync"
)

// errEnded is the error of watches when the program ends.
var errEnded = errors.New("the program ends")

// feed sends the written widgets to every watch. It stores all of them: a number for each write.
type feed struct {
	mu      sync.Mutex    // guards all fields below
	written []int         // items
	changed chan struct{} // closed and replaced at every write and at the end
	ended   bool
}

func newFeed() *feed { return &feed{changed: make(chan struct{})} }

// tell adds a write of an item.
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

// now returns the position of a watch that begins now.
func (f *feed) now() int {
	f.mu.Lock()
	defer f.mu.Unlock()
	return len(f.written)
}

// next waits until there are writes after a position, and returns all of them.
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
