package transport_test

import (
	"sync"
	"sync/atomic"
	"testing"

	"github.com/keelson-dev/keelson/server/internal/transport"
)

// With any number of concurrent users, empty is called once, after the last has left, and Enter returns false after Close.
func TestCount(t *testing.T) {
	for range 200 {
		var c transport.Count
		var inside, emptied atomic.Int64
		empty := func() {
			if n := inside.Load(); n != 0 {
				t.Errorf("empty with %d inside", n)
			}
			emptied.Add(1)
		}
		var all sync.WaitGroup
		for range 8 {
			all.Go(func() {
				for c.Enter() {
					inside.Add(1)
					c.Hold()
					inside.Add(1)
					inside.Add(-1)
					c.Leave()
					inside.Add(-1)
					c.Leave()
				}
			})
		}
		c.Close(empty)
		c.Close(func() { t.Error("the second Close has an effect") })
		all.Wait()
		if c.IsOpen() || c.Enter() || emptied.Load() != 1 {
			t.Fatalf("after Close: open %v, emptied %d times", c.IsOpen(), emptied.Load())
		}
	}
}

// Close of a Count without users calls empty at once.
func TestCountOfNobody(t *testing.T) {
	var c transport.Count
	emptied := false
	if c.Close(func() { emptied = true }); !emptied {
		t.Error("Close did not call empty")
	}
}
