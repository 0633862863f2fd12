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

// linearizable decides whether what clients were told about each key could be told by a store that makes one call
// after the other, each at some instant between its begin and its end. Keys are independent of each other: each call
// is about one key, or is a read of several, of which each part must fit for itself.
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

// draw writes a picture of a history to a file that stays after the test.
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

// operations are the calls about one key. A commit of which its client does not know what became may have happened
// at any time after its begin if a watch showed it, and has not otherwise.
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

// keyState is what is under a key.
type keyState struct {
	found    bool
	value    string
	revision int64 // of the last change
	shown    int64 // the greatest revision at which this was said to be true
}

// keyModel is one key of a store that makes one call after the other.
var keyModel = porcupine.Model{
	Init: func() any { return keyState{} },
	Step: func(state, input, _ any) (bool, any) {
		s, c := state.(keyState), input.(*call) //nolint:forcetypeassert // they are ours
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

// step says whether a call could be answered as it was in this state, and which state it leaves.
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

// shows says whether an answer is what this state is.
func (s keyState) shows(c *call) bool {
	if c.found != s.found || c.revision != 0 && c.revision < s.revision {
		return false
	}
	if c.outcome == conflicted && c.kv.Revision == 0 {
		return true // it was not told what is there
	}
	return !s.found || c.kv.Revision == s.revision && string(c.kv.Value) == s.value
}
