package storagetest

import (
	"fmt"
	"math"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/anishathalye/porcupine"
)

// linearizable checks whether the results about each key are possible for a store that executes one call after the other,
// each at some time between its begin and its end. Keys are independent of each other: a call is about one key, or is a read
// of several keys, each of which must fit by itself.
func linearizable(t *testing.T, j *verdict) {
	t.Helper()
	for i := range j.w.keys {
		key := j.w.key(i)
		result, info := porcupine.CheckOperationsVerbose(keyModel, operations(j, key), 10*time.Second)
		switch result {
		case porcupine.Unknown:
			t.Logf("%q: whether its history is linearizable could not be decided in time", key)
		case porcupine.Illegal:
			t.Errorf("the history of %q is not linearizable; see it at %s", key, draw(info))
		}
	}
}

// draw writes a picture of a history to a file that is kept after the test.
func draw(info porcupine.LinearizationInfo) string {
	dir, err := os.MkdirTemp("", "keelson-linear-")
	if err != nil {
		return err.Error()
	}
	path := filepath.Join(dir, "history.html")
	if err := porcupine.VisualizePath(keyModel, info, path); err != nil {
		return err.Error()
	}
	return path
}

// operations returns the calls about one key. A commit with an unknown outcome may have happened at any time after its begin
// if a watch showed it, and otherwise has not happened.
func operations(j *verdict, key string) (ops []porcupine.Operation) {
	for _, c := range j.calls {
		op := porcupine.Operation{ClientId: c.client, Input: c, Call: int64(c.begun), Return: int64(c.ended)}
		switch {
		case c.at != 0 || c.outcome == refused || c.outcome == unknown && c.revision == 0:
			continue
		case c.verb == verbRange:
			part := *c
			part.verb, part.key = verbGet, key
			for _, kv := range c.kvs {
				if kv.Key == key {
					part.kv, part.found = kv, true
				}
			}
			op.Input = &part
		case c.key != key:
			continue
		case c.outcome == unknown:
			op.Return = math.MaxInt64
		}
		ops = append(ops, op)
	}
	return ops
}

// keyState is the state of a key.
type keyState struct {
	found    bool
	value    string
	revision int64 // revision of the last change
	shown    int64 // the greatest revision at which the state is known to be true
}

// keyModel is one key of a store that executes one call after the other.
var keyModel = porcupine.Model{
	Init: func() any { return keyState{} },
	Step: func(state, input, _ any) (bool, any) {
		s, c := state.(keyState), input.(*call) //nolint:forcetypeassert // only these types are used
		return s.step(c)
	},
	DescribeOperation: func(input, _ any) string { return input.(*call).String() },
	DescribeState: func(state any) string {
		s := state.(keyState)
		if !s.found {
			return fmt.Sprintf("nothing since %d", s.revision)
		}
		return fmt.Sprintf("%q@%d", s.value, s.revision)
	},
}

// step reports whether a call can have its result in this state, and returns the state after the call.
func (s keyState) step(c *call) (bool, keyState) {
	met := c.met(s.found, s.revision)
	same := s
	same.shown = max(s.shown, c.revision)
	switch {
	case c.verb == verbGet:
		return s.shows(c), same
	case c.outcome == conflicted:
		return !met && s.shows(c), same
	case c.idle() && !s.found:
		return c.revision == 0 || c.revision >= s.revision, same
	}
	after := keyState{found: !c.commit.Delete, value: string(c.commit.Value), revision: c.revision, shown: c.revision}
	return met && c.revision > s.revision && c.revision > s.shown, after
}

// shows reports whether a result is this state.
func (s keyState) shows(c *call) bool {
	if c.found != s.found || c.revision != 0 && c.revision < s.revision {
		return false
	}
	if c.outcome == conflicted && c.kv.Revision == 0 {
		return true // the result does not have the state
	}
	return !s.found || c.kv.Revision == s.revision && string(c.kv.Value) == s.value
}
