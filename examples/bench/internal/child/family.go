package child

import (
	"context"
	"errors"
	"os/exec"
	"runtime"
	"slices"
	"sync"
)

// Family owns child processes. Its methods may be called concurrently.
type Family struct {
	starts chan start // received by the thread that starts children
	wait   sync.WaitGroup

	mu       sync.Mutex
	children []*Child // guarded by mu: children that were started and have not ended
	closed   bool     // guarded by mu
}

type start struct {
	cmd  *exec.Cmd
	done chan error
}

// NewFamily returns a family without children.
func NewFamily() *Family {
	f := &Family{starts: make(chan start)}
	f.wait.Go(func() { // ends with Close
		// The death signal of a parent is sent when the thread of the parent dies. This thread lives as long as the family.
		runtime.LockOSThread()
		for s := range f.starts {
			s.done <- s.cmd.Start()
		}
	})
	return f
}

var errClosed = errors.New("no child is started any more: the family is closed")

// start starts cmd and adds c to the family.
func (f *Family) start(c *Child, cmd *exec.Cmd) error {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.closed {
		return errClosed
	}
	s := start{cmd: cmd, done: make(chan error, 1)}
	f.starts <- s
	if err := <-s.done; err != nil {
		return err
	}
	f.children = append(f.children, c)
	return nil
}

// leave removes a child that has ended.
func (f *Family) leave(c *Child) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.children = slices.DeleteFunc(f.children, func(other *Child) bool { return other == c })
}

// Close ends all children, the youngest first, and returns when they have ended. Output that they write at their end is lost.
func (f *Family) Close() {
	f.mu.Lock()
	if f.closed {
		f.mu.Unlock()
		return
	}
	f.closed = true
	close(f.starts)
	children := slices.Clone(f.children)
	f.mu.Unlock()
	for _, c := range slices.Backward(children) {
		_ = c.Stop(context.Background())
	}
	f.wait.Wait()
}
