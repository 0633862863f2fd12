package storagetest_test

import (
	"context"
	"math/rand/v2"
	"os"
	"sync"
	"testing"

	"github.com/keelson-dev/keelson/storage"
	"github.com/keelson-dev/keelson/storage/memory"
	"github.com/keelson-dev/keelson/storage/storagetest"
)

// troubled is a backend that can be made unavailable, or whose device can be made full. If it has a flaw, it then breaks a
// promise.
type troubled struct {
	*memory.Backend
	flaw string

	mu     sync.Mutex // guards all below
	mode   trouble
	lost   bool          // something was lost already
	healed chan struct{} // closed when mode is none
}

type trouble int

const (
	none    trouble = iota
	cut             // nothing works, and commits may or may not be made
	full            // commits find no space
	forever         // like cut, but Heal does not end it
)

func newTroubled(flaw string) *troubled {
	healed := make(chan struct{})
	close(healed)
	return &troubled{Backend: memory.New(memory.Options{}), flaw: flaw, healed: healed}
}

func (b *troubled) strike(mode trouble) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.mode, b.healed = mode, make(chan struct{})
}

func (b *troubled) heal() {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.mode != forever {
		b.mode = none
		close(b.healed)
	}
}

func (b *troubled) now() (trouble, chan struct{}) {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.mode, b.healed
}

// lose reports, once, that something is to be lost now.
func (b *troubled) lose(flaw string) bool {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.flaw != flaw || b.lost || b.mode == none {
		return false
	}
	b.lost = true
	return true
}

func (b *troubled) Get(ctx context.Context, key string, at int64) (storage.GetResult, error) {
	if mode, _ := b.now(); mode >= cut && mode != full {
		return storage.GetResult{}, storage.ErrUnavailable
	}
	return b.Backend.Get(ctx, key, at)
}

func (b *troubled) Range(ctx context.Context, r storage.Range) (storage.RangeResult, error) {
	if mode, _ := b.now(); mode >= cut && mode != full {
		return storage.RangeResult{}, storage.ErrUnavailable
	}
	return b.Backend.Range(ctx, r)
}

func (b *troubled) Commit(ctx context.Context, c storage.Commit) (storage.CommitResult, error) {
	switch mode, healed := b.now(); {
	case mode == none:
	case b.flaw == "an acknowledged commit is lost" && c.Expect == storage.AnyRevision && b.lose(b.flaw):
		now, err := b.Backend.Get(ctx, c.Key, 0)
		return storage.CommitResult{Revision: now.Revision + 1}, err
	case mode == full && b.flaw == "a commit without space is made" && !c.Delete:
		res, err := b.Backend.Commit(ctx, c)
		if err == nil && b.lose(b.flaw) {
			return storage.CommitResult{}, storage.ErrNoSpace
		}
		return res, err
	case mode == full:
		return storage.CommitResult{}, storage.ErrNoSpace
	case rand.IntN(2) == 0: // the commit is made, now or later, and its caller gets no result
		if rand.IntN(2) == 0 {
			go func() {
				<-healed
				_, _ = b.Backend.Commit(context.Background(), c)
			}()
		} else {
			_, _ = b.Backend.Commit(ctx, c)
		}
		return storage.CommitResult{}, storage.ErrUnavailable
	default:
		return storage.CommitResult{}, storage.ErrUnavailable
	}
	return b.Backend.Commit(ctx, c)
}

func (b *troubled) Watch(ctx context.Context, w storage.WatchRange) (storage.Feed, error) {
	if mode, _ := b.now(); mode >= cut && mode != full {
		return nil, storage.ErrUnavailable
	}
	f, err := b.Backend.Watch(ctx, w)
	if err != nil {
		return nil, err
	}
	return &troubledFeed{Feed: f, b: b}, nil
}

type troubledFeed struct {
	storage.Feed
	b *troubled
}

func (f *troubledFeed) Next(ctx context.Context) (storage.Changes, error) {
	mode, healed := f.b.now()
	if mode == cut || mode == forever {
		if f.b.lose("a feed ends") {
			return storage.Changes{}, storage.ErrUnavailable
		}
		select {
		case <-healed:
		case <-ctx.Done():
			return storage.Changes{}, ctx.Err()
		}
	}
	got, err := f.Feed.Next(ctx)
	if len(got.Changes) > 0 && f.b.lose("a feed loses what came meanwhile") {
		got.Changes = got.Changes[1:]
	}
	return got, err
}

func (b *troubled) faults() []storagetest.Fault {
	worst := cut
	if b.flaw == "it does not work again" {
		worst = forever
	}
	return []storagetest.Fault{
		{Name: "unavailable", Strike: func(*testing.T) { b.strike(worst) }, Heal: func(*testing.T) { b.heal() }},
		{Name: "full", Strike: func(*testing.T) { b.strike(full) }, Heal: func(*testing.T) { b.heal() }},
		{Name: "over at once", Strike: func(*testing.T) { b.strike(cut); b.heal() }},
	}
}

func TestFaults(t *testing.T) {
	b := newTroubled("")
	defer b.Close()
	storagetest.Faults(t, storagetest.Faulty{Backends: []storage.Backend{b, b}, Faults: b.faults()})
}

// TestFaultFlaws shows that Faults can fail.
func TestFaultFlaws(t *testing.T) {
	t.Parallel()
	for _, f := range []struct {
		name, red string
		slow      bool
	}{
		{name: "an acknowledged commit is lost", red: "full"},
		{name: "a commit without space is made", red: "full"},
		{name: "a feed ends", red: "unavailable"},
		{name: "a feed loses what came meanwhile", red: "full"},
		{name: "it does not work again", red: "unavailable", slow: true},
	} {
		t.Run(f.name, func(t *testing.T) {
			t.Parallel()
			if f.slow && os.Getenv("KEELSON_SOAK") == "" {
				t.Skip("it takes the kit's patience")
			}
			red(t, "^TestFlawedFaults$/^"+f.red+"$", flawVariable+"="+f.name)
		})
	}
}

// TestFlawedFaults is the test that fails: it is run by TestFaultFlaws.
func TestFlawedFaults(t *testing.T) {
	name := os.Getenv(flawVariable)
	if name == "" {
		t.Skip("TestFaultFlaws runs it")
	}
	b := newTroubled(name)
	defer b.Close()
	storagetest.Faults(t, storagetest.Faulty{Backends: []storage.Backend{b}, Faults: b.faults()})
}
