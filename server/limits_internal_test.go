package server

import (
	"math"
	"runtime/debug"
	"testing"

	"github.com/keelson-dev/keelson/flowcontrol"
)

// What is left of Limits.Bytes follows from the memory that the process may use. Not parallel: that is the process's.
func TestBytesByDefault(t *testing.T) {
	was := debug.SetMemoryLimit(-1)
	defer debug.SetMemoryLimit(was)
	for _, c := range []struct {
		limit       int64
		given, want flowcontrol.Bounds
	}{
		{math.MaxInt64, flowcontrol.Bounds{}, flowcontrol.Bounds{All: 512 << 20, User: 256 << 20, Address: -1}},
		{512 << 20, flowcontrol.Bounds{}, flowcontrol.Bounds{All: 128 << 20, User: 64 << 20, Address: -1}},
		{512 << 20, flowcontrol.Bounds{All: 100}, flowcontrol.Bounds{All: 100, User: 50, Address: -1}},
		{512 << 20, flowcontrol.Bounds{All: -1}, flowcontrol.Bounds{All: -1, User: -1, Address: -1}},
		{512 << 20, flowcontrol.Bounds{All: 7, User: -1, Address: 3}, flowcontrol.Bounds{All: 7, User: -1, Address: 3}},
	} {
		debug.SetMemoryLimit(c.limit)
		l, err := Limits{Bytes: c.given}.complete()
		if err != nil || l.Bytes != c.want {
			t.Errorf("%+v under a limit of %d: %+v, %v; want %+v", c.given, c.limit, l.Bytes, err, c.want)
		}
	}
}
