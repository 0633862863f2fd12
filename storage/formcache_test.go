package storage_test

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"runtime"
	"slices"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/keelson-dev/keelson/storage"
)

// formCost is the cost of a form besides its bytes.
const formCost = 256

// getter is the Get of a Forms or of a FormCache, with a context that does not end.
type getter func(key any, make func() ([]byte, error)) ([]byte, error)

// plainly returns the Get of a Forms or of a FormCache as a getter.
func plainly(get func(context.Context, any, func() ([]byte, error)) ([]byte, error)) getter {
	return func(key any, make func() ([]byte, error)) ([]byte, error) {
		return get(context.Background(), key, make)
	}
}

// made makes a form of some bytes.
func made(n int) func() ([]byte, error) {
	return func() ([]byte, error) { return make([]byte, n), nil }
}

// A form is made once for any number of callers. A panic or the end of a context affects only its own caller, and a caller
// that needs another form does not wait.
func TestFormsGet(t *testing.T) {
	t.Parallel()
	for name, get := range map[string]getter{
		"of an event":    plainly(storage.NewForms(nil).Get),
		"under a budget": plainly(storage.NewFormCache(1 << 20).NewForms().Get),
		"of a cache":     plainly(storage.NewFormCache(1 << 20).Get),
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			type key struct{ a, b string }
			refused := fmt.Errorf("refused: %w", context.Canceled)
			if _, err := get(key{"a", "b"}, func() ([]byte, error) { return nil, refused }); err != refused {
				t.Fatal(err)
			}
			func() {
				defer func() {
					if recover() == nil {
						t.Error("the panic was kept")
					}
				}()
				_, _ = get(key{"a", "b"}, func() ([]byte, error) { panic("refused") })
			}()
			if text, err := get("other", made(7)); len(text) != 7 || err != nil {
				t.Fatal(len(text), err)
			}
			var makes, failures, asking atomic.Int32
			begun, goOn := make(chan struct{}), make(chan struct{})
			var readers sync.WaitGroup
			for range 16 {
				readers.Go(func() {
					asking.Add(1)
					text, err := get(key{"a", "b"}, func() ([]byte, error) {
						if makes.Add(1) == 1 {
							close(begun)
							<-goOn
							return nil, refused
						}
						return []byte("made"), nil
					})
					if err != nil {
						failures.Add(1)
					} else if string(text) != "made" {
						t.Errorf("got %q", text)
					}
				})
			}
			<-begun
			if text, _ := get("other", made(9)); len(text) != 7 { // while the first one is being made
				t.Errorf("%d bytes", len(text))
			}
			if text, _ := get("third", made(9)); len(text) != 9 {
				t.Errorf("%d bytes", len(text))
			}
			for spins := 0; spins < 1000 || asking.Load() < 16; spins++ {
				runtime.Gosched() // so that all, or most, wait for the first
			}
			close(goOn)
			readers.Wait()
			if makes.Load() != 2 || failures.Load() != 1 {
				t.Errorf("made %d times, failed %d times", makes.Load(), failures.Load())
			}
			if text, err := get(key{"a", "b"}, made(1)); string(text) != "made" || err != nil {
				t.Errorf("%q, %v", text, err)
			}
		})
	}
}

// A caller that waits for a form receives the error if it cannot be made, and does not try again after the other waiting
// callers.
func TestFormsFailOnce(t *testing.T) {
	t.Parallel()
	const readers = 50
	refused := errors.New("refused")
	forms := storage.NewForms(nil)
	var makes, failures, asking atomic.Int32
	begun, goOn := make(chan struct{}), make(chan struct{})
	var all sync.WaitGroup
	for range readers {
		all.Go(func() {
			asking.Add(1)
			_, err := forms.Get(t.Context(), "key", func() ([]byte, error) {
				if makes.Add(1) == 1 {
					close(begun)
					<-goOn
				}
				return nil, refused
			})
			if err == refused {
				failures.Add(1)
			}
		})
	}
	<-begun
	for spins := 0; spins < 1000 || asking.Load() < readers; spins++ {
		runtime.Gosched() // so that all, or most, wait for the first
	}
	close(goOn)
	all.Wait()
	if n := makes.Load(); n == readers || failures.Load() != readers {
		t.Errorf("%d made it, and %d heard that it failed, of %d", n, failures.Load(), readers)
	}
	if text, err := forms.Get(t.Context(), "key", made(3)); len(text) != 3 || err != nil {
		t.Errorf("afterwards: %d bytes, %v", len(text), err)
	}
}

// Nothing is kept by a nil Forms or FormCache, nor by one without a budget.
func TestFormsOfNothing(t *testing.T) {
	t.Parallel()
	var forms *storage.Forms
	var cache *storage.FormCache
	for name, get := range map[string]getter{
		"forms": plainly(forms.Get), "cache": plainly(cache.Get), "forms of a cache": plainly(cache.NewForms().Get),
		"no budget": plainly(storage.NewFormCache(0).Get), "negative": plainly(storage.NewFormCache(-1).NewForms().Get),
	} {
		for n := range 3 {
			if text, err := get("key", made(n)); len(text) != n || err != nil {
				t.Errorf("%s: %d bytes, %v", name, len(text), err)
			}
		}
	}
	forms.Drop()
	if s := cache.Stats(); s != (storage.FormStats{}) {
		t.Errorf("%+v", s)
	}
}

// A caller that waits for a form leaves when its own context ends. The form is made all the same, and found by the next caller.
func TestFormsGetLeavesWithItsContext(t *testing.T) {
	t.Parallel()
	cache := storage.NewFormCache(1 << 20)
	for name, get := range map[string]func(context.Context, any, func() ([]byte, error)) ([]byte, error){
		"of an event": storage.NewForms(nil).Get, "under a budget": cache.NewForms().Get, "of a cache": cache.Get,
	} {
		begun, goOn := make(chan struct{}), make(chan struct{})
		var maker sync.WaitGroup
		maker.Go(func() {
			_, _ = get(t.Context(), "key", func() ([]byte, error) {
				close(begun)
				<-goOn
				return []byte("made"), nil
			})
		})
		<-begun
		ctx, cancel := context.WithCancel(t.Context())
		left := make(chan error, 1)
		go func() {
			_, err := get(ctx, "key", made(1))
			left <- err
		}()
		cancel()
		if err := <-left; !errors.Is(err, context.Canceled) {
			t.Errorf("%s: %v", name, err)
		}
		close(goOn)
		maker.Wait()
		if text, err := get(t.Context(), "key", made(1)); string(text) != "made" || err != nil {
			t.Errorf("%s: %q, %v", name, text, err)
		}
	}
}

// The Forms of an event call grown once for each form they keep, until they are dropped.
func TestFormsGrow(t *testing.T) {
	t.Parallel()
	var grown []int
	f := storage.NewForms(func(n int) { grown = append(grown, n) })
	for _, key := range []int{1, 2, 1} {
		_, _ = f.Get(t.Context(), key, made(10*key))
	}
	_, _ = f.Get(t.Context(), 3, func() ([]byte, error) { return nil, errors.New("refused") })
	f.Drop()
	if text, _ := f.Get(t.Context(), 1, made(5)); len(text) != 5 {
		t.Error("a form is there after Drop")
	}
	if !slices.Equal(grown, []int{10, 20}) {
		t.Errorf("grown by %v", grown)
	}
}

// A form that is dropped while it is made is not kept; nor is one that costs too much, but callers that wait receive it.
func TestFormCacheRefuses(t *testing.T) {
	t.Parallel()
	c := storage.NewFormCache(80_000)
	forms := c.NewForms()
	_, _ = forms.Get(t.Context(), "before", made(100))
	text, err := forms.Get(t.Context(), "now", func() ([]byte, error) {
		forms.Drop()
		return made(100)()
	})
	if len(text) != 100 || err != nil {
		t.Errorf("%d bytes, %v", len(text), err)
	}
	if s := c.Stats(); s.Bytes != 0 || s.Forms != 0 {
		t.Errorf("%+v", s)
	}
	most := 80_000/8 - formCost
	_, _ = c.Get(t.Context(), "large", made(most))
	if s := c.Stats(); s.Bytes != 10_000 || s.Forms != 1 {
		t.Errorf("%+v", s)
	}
	var makes atomic.Int32
	begun, goOn := make(chan struct{}), make(chan struct{})
	var readers sync.WaitGroup
	for range 8 {
		readers.Go(func() {
			text, err := c.Get(t.Context(), "larger", func() ([]byte, error) {
				if makes.Add(1) == 1 {
					close(begun)
					<-goOn
				}
				return make([]byte, 1, most+1), nil // the capacity counts
			})
			if len(text) != 1 || err != nil {
				t.Errorf("%d bytes, %v", len(text), err)
			}
		})
	}
	<-begun
	close(goOn)
	readers.Wait()
	if s := c.Stats(); s.Bytes != 10_000 || s.Forms != 1 {
		t.Errorf("%+v", s)
	}
}

// modelForm and formModel are a simple implementation of a FormCache.
type formModel struct {
	most  int
	order []*modelForm // the oldest first
	stats storage.FormStats
}

type modelForm struct {
	key, of     any
	cost, lives int
}

func (m *formModel) get(key, of any, size int, over bool) (found bool) {
	for _, f := range m.order {
		if f.key == key && f.of == of {
			f.lives = 2
			m.stats.Hits++
			return true
		}
	}
	if over {
		return false
	}
	m.stats.Misses++
	cost := size + formCost
	if cost > m.most/8 {
		return false
	}
	for int(m.stats.Bytes)+cost > m.most {
		f := m.order[0]
		m.order = m.order[1:]
		if f.lives--; f.lives >= 0 {
			m.order = append(m.order, f)
			return false
		}
		m.stats.Bytes -= int64(f.cost)
		m.stats.Evictions++
	}
	m.order = append(m.order, &modelForm{key, of, cost, 2})
	m.stats.Bytes += int64(cost)
	return false
}

func (m *formModel) drop(of any) {
	m.order = slices.DeleteFunc(m.order, func(f *modelForm) bool {
		if f.of == of {
			m.stats.Bytes -= int64(f.cost)
		}
		return f.of == of
	})
}

// A FormCache behaves like its model, and never exceeds its budget.
func TestFormCacheModel(t *testing.T) {
	t.Parallel()
	for seed := range uint64(30) {
		r := rand.New(rand.NewPCG(seed, 7))
		m := &formModel{most: 5_000 + r.IntN(30_000)}
		c := storage.NewFormCache(int64(m.most))
		pages := make([]*storage.Forms, 12)
		dropped := map[*storage.Forms]bool{}
		for i := range pages {
			pages[i] = c.NewForms()
		}
		for step := range 5000 {
			i, key, size := r.IntN(len(pages)), r.IntN(4), r.IntN(1+r.IntN(m.most/4))
			if r.IntN(3) == 0 {
				i = r.IntN(3) // some are used more often
			}
			of := any(pages[i])
			get := pages[i].Get
			if r.IntN(4) == 0 {
				get, of = c.Get, nil
			}
			if r.IntN(60) == 0 {
				pages[i].Drop()
				m.drop(pages[i])
				if dropped[pages[i]] = true; r.IntN(2) == 0 {
					pages[i] = c.NewForms()
				}
				continue
			}
			found := true
			text, err := get(t.Context(), key, func() ([]byte, error) {
				found = false
				return made(size)()
			})
			if want := m.get(key, of, size, of != nil && dropped[pages[i]]); found != want || err != nil || !found && len(text) != size {
				t.Fatalf("seed %d, step %d: found %t, want %t; %v", seed, step, found, want, err)
			}
			m.stats.Forms, m.stats.Most = int64(len(m.order)), int64(m.most)
			if got := c.Stats(); got != m.stats || got.Bytes > got.Most {
				t.Fatalf("seed %d, step %d: %+v, want %+v", seed, step, got, m.stats)
			}
		}
	}
}

// Of a list of twice the budget a part is found each time. A list that is not read any more is replaced by another one.
func TestFormCacheOverBudget(t *testing.T) {
	t.Parallel()
	const n, size = 1000, 1000
	c := storage.NewFormCache(n * (size + formCost))
	list := func(name string, n int) (hits int) {
		before := c.Stats().Hits
		for i := range n {
			_, _ = c.Get(t.Context(), fmt.Sprint(name, i), made(size))
		}
		return int(c.Stats().Hits - before)
	}
	list("a", 2*n)
	for range 5 {
		if hits := list("a", 2*n); hits < n*9/10 {
			t.Errorf("%d of %d are found", hits, 2*n)
		}
	}
	for range 3 {
		list("b", n)
	}
	if hits := list("b", n); hits != n {
		t.Errorf("%d of %d are found", hits, n)
	}
}

// Many goroutines use one cache while pages come and go; nothing is counted twice, and nothing is left.
func TestFormCacheRace(t *testing.T) {
	t.Parallel()
	c := storage.NewFormCache(100_000)
	refused := errors.New("refused") // also for callers that wait for the same form
	var pages [8]atomic.Pointer[storage.Forms]
	for i := range pages {
		pages[i].Store(c.NewForms())
	}
	var users sync.WaitGroup
	for u := range 4 {
		users.Go(func() {
			r := rand.New(rand.NewPCG(uint64(u), 8))
			for range 20_000 {
				page, key := &pages[r.IntN(len(pages))], r.IntN(6)
				want := 100 * key
				get := page.Load().Get
				switch r.IntN(20) {
				case 0:
					was := page.Swap(c.NewForms())
					was.Drop()
					continue
				case 1:
					_, _ = get(t.Context(), key, func() ([]byte, error) { return nil, refused })
					continue
				case 2:
					key, want = r.IntN(100), 2000
					get = c.Get
				}
				text, err := get(t.Context(), key, func() ([]byte, error) {
					b := make([]byte, want)
					for i := range b {
						b[i] = byte(key)
					}
					return b, nil
				})
				if err == refused {
					continue
				}
				if err != nil || len(text) != want || len(text) > 0 && text[len(text)-1] != byte(key) {
					t.Errorf("key %d: %d bytes, %v", key, len(text), err)
				}
				if s := c.Stats(); s.Bytes > s.Most || s.Bytes < 0 {
					t.Errorf("%+v", s)
				}
			}
		})
	}
	users.Wait()
	if s := c.Stats(); s.Hits == 0 || s.Evictions == 0 {
		t.Errorf("nothing was tested: %+v", s)
	}
	for i := range pages {
		pages[i].Load().Drop()
	}
	if s := c.Stats(); s.Bytes != s.Forms*(2000+formCost) {
		t.Errorf("what is left is not that of ids alone: %+v", s)
	}
}

// BenchmarkForms gets a form of a page, as each list does for each of its blocks.
func BenchmarkForms(b *testing.B) {
	type key struct{ version, mediaType string }
	forms := make([]*storage.Forms, 4000)
	c := storage.NewFormCache(64 << 20)
	for i := range forms {
		forms[i] = c.NewForms()
		for _, k := range []key{{"v1", "yaml"}, {"v1", "protobuf"}, {"v1", "gzip"}} {
			if _, err := forms[i].Get(b.Context(), k, made(1000)); err != nil {
				b.Fatal(err)
			}
		}
	}
	ctx := b.Context()
	find := func(i int) {
		if _, err := forms[i%len(forms)].Get(ctx, key{"v1", "yaml"}, nil); err != nil {
			b.Error(err)
		}
	}
	b.Run("one", func(b *testing.B) {
		b.ReportAllocs()
		for i := 0; b.Loop(); i++ {
			find(i)
		}
	})
	b.Run("many", func(b *testing.B) {
		b.SetParallelism(8)
		b.RunParallel(func(pb *testing.PB) {
			for i := 0; pb.Next(); i++ {
				find(i)
			}
		})
	})
	b.Run("made", func(b *testing.B) {
		b.ReportAllocs()
		for i := 0; b.Loop(); i++ {
			_, _ = c.Get(ctx, i, made(1000))
		}
	})
}
