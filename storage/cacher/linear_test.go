package cacher_test

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"sync"
	"testing"
	"time"

	"github.com/anishathalye/porcupine"
	"github.com/keelson-dev/keelson/storage"
	"github.com/keelson-dev/keelson/storage/cacher"
	"github.com/keelson-dev/keelson/storage/memory"
	"github.com/keelson-dev/keelson/storage/storagetest"
)

// answer is the result of a call about one key: it has a value of a revision, or none.
type answer struct {
	verb     string
	found    bool
	revision int64 // of the value, or of the deletion
	at       int64 // the list's revision; 0: unknown
}

// keyState is the state of a key: the revision of its last change, and the greatest revision at which the state was seen.
type keyState struct {
	found           bool
	revision, shown int64
}

var keyModel = porcupine.Model{
	Init: func() any { return keyState{} },
	Step: func(state, input, _ any) (bool, any) {
		s, c := state.(keyState), input.(answer) //nolint:forcetypeassert // only these types are used
		if c.verb != "read" {
			return c.revision > s.revision && c.revision > s.shown && (s.found || c.verb == "create") && (!s.found || c.verb != "create"),
				keyState{c.verb != "delete", c.revision, c.revision}
		}
		ok := c.found == s.found && (!c.found || c.revision == s.revision) && (c.at == 0 || c.at >= s.revision)
		s.shown = max(s.shown, c.at)
		return ok, s
	},
	DescribeOperation: func(input, _ any) string { return fmt.Sprintf("%+v", input) },
}

// Reads with no resource version are linearizable with writes, however late the cache receives the changes.
func TestLinearizable(t *testing.T) {
	for name, opts := range map[string]struct {
		disturb func(r *rig, rnd *rand.Rand)
		bare    bool
	}{
		"undisturbed":       {func(*rig, *rand.Rand) {}, false},
		"undisturbed, bare": {func(*rig, *rand.Rand) {}, true},
		"stalls":            {stall, false},
		"stalls, bare":      {stall, true},
		"feeds end": {func(r *rig, rnd *rand.Rand) {
			stall(r, rnd)
			r.source.fail(errOut)
		}, true},
		"void": {func(r *rig, rnd *rand.Rand) {
			stall(r, rnd)
			r.source.fail(&storage.ExpiredError{Revision: 1})
		}, true},
	} {
		t.Run(name, func(t *testing.T) {
			for n, end := 0, time.Now().Add(soak(t)); n == 0 || time.Now().Before(end) && !t.Failed(); n++ {
				linearizable(t, opts.disturb, opts.bare)
			}
		})
	}
}

func stall(r *rig, rnd *rand.Rand) {
	r.source.hold()
	time.Sleep(time.Duration(rnd.IntN(3000)) * time.Microsecond)
	r.source.release()
}

// history has the results of concurrent clients.
type history struct {
	mu    sync.Mutex // guards keys
	keys  map[string][]porcupine.Operation
	begun time.Time
}

func (h *history) note(client int, key string, c answer, began time.Duration) {
	op := porcupine.Operation{ClientId: client, Input: c, Call: int64(began), Return: int64(time.Since(h.begun))}
	h.mu.Lock()
	defer h.mu.Unlock()
	h.keys[key] = append(h.keys[key], op)
}

const linearKeys = 4

func linearizable(t *testing.T, disturb func(*rig, *rand.Rand), bare bool) {
	t.Helper()
	b := memory.New(memory.Options{})
	defer b.Close()
	var below storage.Backend = b
	if bare {
		below = struct{ storage.Backend }{b}
	}
	r := newRig(t, below, cacher.Options{WindowBytes: smallWindow, ReadWait: 5 * time.Millisecond, IndexFields: []string{"spec.color"}})
	calls := 250
	if testing.Short() {
		calls = 80
	}
	seed := rand.Uint64()
	t.Logf("seed %d", seed)
	var mu sync.Mutex // guards the next
	lossy := rand.New(rand.NewPCG(seed, 1))
	deaf := func() bool {
		mu.Lock()
		defer mu.Unlock()
		return lossy.IntN(4) == 0
	}
	r.source.deaf.Store(&deaf)
	h := &history{keys: map[string][]porcupine.Operation{}, begun: time.Now()}
	var working, disturbing sync.WaitGroup
	over := make(chan struct{})
	disturbing.Go(func() {
		rnd := rand.New(rand.NewPCG(seed, 2))
		for {
			select {
			case <-over:
				return
			case <-time.After(time.Duration(rnd.IntN(2000)) * time.Microsecond):
				disturb(r, rnd)
			}
		}
	})
	for id := range 6 {
		working.Go(func() {
			rnd := rand.New(rand.NewPCG(seed, uint64(10+id)))
			for range calls {
				h.call(t, r, id, rnd)
			}
		})
	}
	working.Wait()
	close(over)
	disturbing.Wait()
	for key, ops := range h.keys {
		result, info := porcupine.CheckOperationsVerbose(keyModel, ops, 10*time.Second)
		switch result {
		case porcupine.Unknown:
			t.Logf("%q: not decided in time", key)
		case porcupine.Illegal:
			dir, err := os.MkdirTemp("", "keelson-linear-")
			if err != nil {
				t.Fatal(err)
			}
			path := filepath.Join(dir, "history.html")
			t.Errorf("seed %d: the history of %q is not linearizable; see it at %s (%v)", seed, key, path, porcupine.VisualizePath(keyModel, info, path))
		}
	}
	r.Close()
}

// call makes a random call and records its result.
func (h *history) call(t *testing.T, r *rig, id int, rnd *rand.Rand) {
	key := fmt.Sprintf("a/k%d", rnd.IntN(linearKeys))
	began := time.Since(h.begun)
	ctx, cancel := context.WithTimeout(r.ctx, waitTime)
	defer cancel()
	switch n := rnd.IntN(10); {
	case n < 4:
		record, err := r.Get(ctx, key, storage.Read{})
		if err != nil && !errors.Is(err, storage.ErrNotFound) {
			t.Errorf("Get: %v", err)
			return
		}
		h.note(id, key, answer{"read", err == nil, record.Revision, 0}, began)
	case n < 7:
		o := storage.ListOptions{}
		if n == 6 {
			o.Selection = colored("red")
		}
		p, err := r.List(ctx, o)
		if full := new(storage.FillingError); errors.As(err, &full) {
			return // the result has no information
		}
		if err != nil {
			t.Errorf("List: %v", err)
			return
		}
		found := map[string]int64{}
		for record := range p.Records {
			found[record.Key] = record.Revision
		}
		for i := range linearKeys {
			key := fmt.Sprintf("a/k%d", i)
			h.note(id, key, answer{"read", found[key] != 0, found[key], p.Revision}, began)
		}
	case n < 8:
		record, err := r.Create(ctx, key, gadgetOf(key, "red", nil), storage.WriteOptions{})
		if err == nil {
			h.note(id, key, answer{"create", true, record.Revision, 0}, began)
		} else if !errors.Is(err, storage.ErrExists) {
			t.Errorf("Create: %v", err)
		}
	default:
		verb, change := "update", changed(func(g *storagetest.Gadget) { g.Spec.Size++ })
		if n == 9 && rnd.IntN(2) == 0 {
			verb, change = "delete", dropped
		}
		record, err := r.Update(ctx, key, storage.WriteOptions{}, change)
		switch {
		case err == nil:
			h.note(id, key, answer{verb, true, record.Revision, 0}, began)
		case errors.Is(err, storage.ErrNotFound):
			h.note(id, key, answer{"read", false, 0, 0}, began)
		default:
			t.Errorf("Update: %v", err)
		}
	}
}
