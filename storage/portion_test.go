package storage_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/keelson-dev/keelson/storage"
	"github.com/keelson-dev/keelson/storage/memory"
	"k8s.io/apimachinery/pkg/labels"
)

// readBackend counts the reads of a backend, and the bytes of the largest one.
type readBackend struct {
	storage.Backend
	reads   atomic.Int64
	longest atomic.Int64
	before  func() // called before each read; may be nil
}

func (b *readBackend) Unwrap() storage.Backend { return b.Backend }

func (b *readBackend) Range(ctx context.Context, r storage.Range) (storage.RangeResult, error) {
	if b.before != nil {
		b.before()
	}
	res, err := b.Backend.Range(ctx, r)
	if !r.CountOnly {
		b.reads.Add(1)
	}
	bytes := int64(0)
	for _, kv := range res.KVs {
		bytes += int64(len(kv.Value))
	}
	b.longest.Store(max(b.longest.Load(), bytes))
	return res, err
}

// inPortions returns all portions of a list, and the last of them.
func inPortions(ctx context.Context, s storage.Interface, o storage.ListOptions) (all []storage.Record, portions int, last storage.Page, err error) {
	page, err := s.List(ctx, o)
	for ; err == nil; page, err = page.Next(ctx) {
		n := 0
		for r := range page.Records {
			all = append(all, r)
			n++
		}
		if n != page.Count {
			return nil, 0, page, fmt.Errorf("a portion of %d records says that it has %d", n, page.Count)
		}
		portions++
		if page.Next == nil {
			return all, portions, page, nil
		}
		if page.Continue != "" || page.Remaining != nil {
			return nil, 0, page, errors.New("a portion that is not the last says how the page ends")
		}
	}
	return nil, 0, page, err
}

func keysOf(records []storage.Record) string {
	var s strings.Builder
	for _, r := range records {
		fmt.Fprintf(&s, "%s@%d ", r.Key, r.Revision)
	}
	return s.String()
}

// crowded returns a store of n objects of about 1 KiB. Every third one is in namespace b and every second one has the label
// "on".
func crowded(t *testing.T, n int) (*storage.Store, *readBackend) {
	t.Helper()
	b := &readBackend{Backend: memory.New(memory.Options{})}
	t.Cleanup(func() { _ = b.Close() })
	s := newStore(t, b, gadgetOptions(t))
	for i := range n {
		g := gadget(fmt.Sprintf("%c/g%05d", "aab"[i%3], i))
		g.Spec.Color = strings.Repeat("x", 1000)
		g.Labels = map[string]string{"on": fmt.Sprint(i % 2)}
		if _, err := s.Create(t.Context(), g.Namespace+"/"+g.Name, g, storage.WriteOptions{}); err != nil {
			t.Fatal(err)
		}
	}
	return s, b
}

// A list in portions has the same records as one without, and no read is longer than a portion.
func TestPortions(t *testing.T) {
	const n, portion = 300, 20 << 10
	s, b := crowded(t, n)
	now, err := s.Revision(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	on := labels.SelectorFromSet(labels.Set{"on": "1"})
	for _, o := range []storage.ListOptions{
		{},
		{At: storage.Read{Match: storage.Exact, Revision: now - 100}},
		{At: storage.Read{Match: storage.NotOlderThan, Revision: now}},
		{At: storage.Read{Match: storage.Any}, Limit: 10},
		{Selection: storage.Selection{Namespace: "b"}},
		{Selection: storage.Selection{Labels: on}},
		{Selection: storage.Selection{Labels: on}, Limit: 100},
		{Selection: storage.Selection{Labels: on, Namespace: "a"}, Limit: 7},
		{Selection: storage.Selection{Name: "g00007"}},
		{Selection: storage.Selection{Namespace: "a", Name: "g00007"}},
		{Limit: 100}, {Limit: 300}, {Limit: 299}, {Limit: 5}, {Limit: 1000},
	} {
		for range 2 { // the second time it begins at the end of the first page
			whole, err := s.List(t.Context(), o)
			if err != nil {
				t.Fatalf("%+v: %v", o, err)
			}
			var want []storage.Record
			for r := range whole.Records {
				want = append(want, r)
			}
			b.longest.Store(0)
			in := o
			in.Portion = portion
			got, portions, last, err := inPortions(t.Context(), s, in)
			if err != nil {
				t.Fatalf("%+v: %v", o, err)
			}
			if keysOf(got) != keysOf(want) || last.Revision != whole.Revision || last.Continue != whole.Continue || remaining(last) != remaining(whole) {
				t.Errorf("%+v in %d portions: %d records at %d, %q, %s; want %d at %d, %q, %s", o, portions,
					len(got), last.Revision, last.Continue, remaining(last), len(want), whole.Revision, whole.Continue, remaining(whole))
			}
			if longest := b.longest.Load(); longest > portion+2<<10 {
				t.Errorf("%+v: a read of %d bytes", o, longest)
			}
			if len(want) >= 100 && portions < 3 {
				t.Errorf("%+v: %d records in %d portions", o, len(want), portions)
			}
			if o = (storage.ListOptions{Selection: o.Selection, Limit: o.Limit, Continue: whole.Continue}); o.Continue == "" {
				break
			}
		}
	}
}

func remaining(p storage.Page) string {
	if p.Remaining == nil {
		return "none"
	}
	return fmt.Sprint(*p.Remaining)
}

// A portion can be read again, and the ones after it.
func TestPortionsAreReadAgain(t *testing.T) {
	s, _ := crowded(t, 100)
	first, err := s.List(t.Context(), storage.ListOptions{Portion: 10 << 10})
	if err != nil {
		t.Fatal(err)
	}
	walk := func() (keys string) {
		for page := first; ; {
			for r := range page.Records {
				keys += r.Key + " "
			}
			if page.Next == nil {
				return keys
			}
			if page, err = page.Next(t.Context()); err != nil {
				t.Fatal(err)
			}
		}
	}
	once := walk()
	if _, err := s.Create(t.Context(), "a/z", gadget("a/z"), storage.WriteOptions{}); err != nil {
		t.Fatal(err)
	}
	if again := walk(); once != again || strings.Count(once, " ") != 100 {
		t.Errorf("walked again: %q, at first %q", again, once)
	}
}

// Callers that read the same at the same time share each read of the backend.
func TestPortionsAreShared(t *testing.T) {
	const readers, portion = 12, 20 << 10
	s, b := crowded(t, 200)
	now, err := s.Revision(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	for name, at := range map[string]storage.Read{"exact": {Match: storage.Exact, Revision: now - 1}, "latest": {}} {
		b.reads.Store(0)
		_, portions, _, err := inPortions(t.Context(), s, storage.ListOptions{At: at, Portion: portion})
		if err != nil {
			t.Fatal(err)
		}
		alone := b.reads.Swap(0)
		pages := make([]storage.Page, readers)
		for step := range portions { // all callers have a portion before any of them continues
			var all sync.WaitGroup
			for i := range pages {
				all.Go(func() {
					var err error
					if step == 0 {
						pages[i], err = s.List(t.Context(), storage.ListOptions{At: at, Portion: portion})
					} else {
						pages[i], err = pages[i].Next(t.Context())
					}
					if err != nil {
						t.Error(err)
					}
				})
			}
			all.Wait()
		}
		if got := b.reads.Load(); got > alone {
			t.Errorf("%s: %d readers of the same make %d reads, one makes %d", name, readers, got, alone)
		}
	}
}

// A caller that waits for a read whose context ends reads itself.
func TestPortionsOfSomebodyWhoIsGone(t *testing.T) {
	s, b := crowded(t, 50)
	o := storage.ListOptions{At: storage.Read{Match: storage.Exact, Revision: 20}, Portion: 10 << 10}
	ctx, cancel := context.WithCancel(t.Context())
	began, goOn := make(chan struct{}), make(chan struct{})
	b.before = sync.OnceFunc(func() { close(began); <-goOn })
	gone := make(chan error)
	go func() {
		_, err := s.List(ctx, o)
		gone <- err
	}()
	<-began
	waits := make(chan error)
	go func() {
		_, err := s.List(t.Context(), o)
		waits <- err
	}()
	cancel()
	close(goOn)
	if err := <-gone; !errors.Is(err, context.Canceled) {
		t.Errorf("who is gone: %v", err)
	}
	if err := <-waits; err != nil {
		t.Errorf("who waited: %v", err)
	}
}

// account records its calls, and returns an error for more than most.
type account struct{ held, peak, most int64 }

var errFull = errors.New("full")

func (a *account) Hold(bytes int64) error {
	if bytes > a.most {
		return errFull
	}
	a.held, a.peak = bytes, max(a.peak, bytes)
	return nil
}

// The account of a list is called with the bytes that its reader holds, and can end the list.
func TestPortionsHaveAnAccount(t *testing.T) {
	const portion = 20 << 10
	s, _ := crowded(t, 200)
	a := &account{most: 1 << 30}
	_, _, _, err := inPortions(t.Context(), s, storage.ListOptions{Portion: portion, Account: a})
	if err != nil || a.peak < portion || a.peak > 2*portion || a.held == 0 {
		t.Errorf("%+v, %v", *a, err)
	}
	page, err := s.List(t.Context(), storage.ListOptions{Selection: storage.Selection{Namespace: "a", Name: "g00001"}, Portion: portion, Account: a})
	if err != nil || page.Bytes != a.held || page.Bytes < 1000 || page.Bytes > 2000 {
		t.Errorf("one record: held %d, of a page of %d, %v", a.held, page.Bytes, err)
	}
	if _, err = s.List(t.Context(), storage.ListOptions{Portion: portion, Account: &account{most: portion - 1}}); !errors.Is(err, errFull) {
		t.Errorf("an account with too little: %v", err)
	}
}

// A list in portions names unreadable objects like a list that is read at once.
func TestPortionsNameWhatIsUnreadable(t *testing.T) {
	s, b := crowded(t, 100)
	for _, key := range []string{"a/g00000", "a/g00050x", "b/z"} {
		if _, err := b.Commit(t.Context(), storage.Commit{Key: gadgetOptions(t).Prefix + "/" + key, Expect: storage.AnyRevision, Value: []byte("{")}); err != nil {
			t.Fatal(err)
		}
	}
	for _, o := range []storage.ListOptions{{}, {Limit: 1}, {Limit: 60}, {Limit: 1000}, {Selection: storage.Selection{Namespace: "a"}}} {
		_, err := s.List(t.Context(), o)
		var want *storage.UnreadableError
		if !errors.As(err, &want) {
			t.Fatalf("%+v: %v", o, err)
		}
		o.Portion = 10 << 10
		_, _, _, err = inPortions(t.Context(), s, o)
		var got *storage.UnreadableError
		if !errors.As(err, &got) || got.Error() != want.Error() {
			t.Errorf("%+v in portions: %v; want %v", o, err, want)
		}
	}
}
