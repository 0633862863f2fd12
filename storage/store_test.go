package storage_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/keelson-dev/keelson/runtime"
	"github.com/keelson-dev/keelson/runtime/codec"
	"github.com/keelson-dev/keelson/storage"
	"github.com/keelson-dev/keelson/storage/memory"
	"github.com/keelson-dev/keelson/storage/storagetest"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

func TestConformance(t *testing.T) {
	storagetest.Interface(t, func(t *testing.T, o storage.StoreOptions) (storage.Interface, storage.Backend) {
		b := memory.New(memory.Options{})
		t.Cleanup(func() { b.Close() })
		return newStore(t, b, o), b
	})
}

func newStore(t testing.TB, b storage.Backend, o storage.StoreOptions) *storage.Store {
	t.Helper()
	s, err := storage.NewStore(b, o)
	if err != nil {
		t.Fatal(err)
	}
	return s
}

func gadgetOptions(t testing.TB) storage.StoreOptions {
	t.Helper()
	o, err := storagetest.GadgetOptions()
	if err != nil {
		t.Fatal(err)
	}
	return o
}

// gadgets returns an empty store of the kit's kind, and the backend below.
func gadgets(t testing.TB) (*storage.Store, *memory.Backend) {
	t.Helper()
	b := memory.New(memory.Options{})
	t.Cleanup(func() { b.Close() })
	return newStore(t, b, gadgetOptions(t)), b
}

func gadget(key string) *storagetest.Gadget {
	ns, name, _ := strings.Cut(key, "/")
	return &storagetest.Gadget{
		ObjectMeta: metav1.ObjectMeta{Namespace: ns, Name: name},
		Spec:       storagetest.GadgetSpec{Size: 1},
	}
}

func create(t testing.TB, s storage.Interface, key string) storage.Record {
	t.Helper()
	r, err := s.Create(context.Background(), key, gadget(key), storage.WriteOptions{})
	if err != nil {
		t.Fatal(err)
	}
	return r
}

func commit(t testing.TB, b storage.Backend, c storage.Commit) {
	t.Helper()
	if _, err := b.Commit(context.Background(), c); err != nil {
		t.Fatal(err)
	}
}

func TestNewStoreRefuses(t *testing.T) {
	b := memory.New(memory.Options{})
	defer b.Close()
	good := gadgetOptions(t)
	for name, change := range map[string]func(*storage.StoreOptions){
		"no codec":                   func(o *storage.StoreOptions) { o.Codec = nil },
		"no prefix":                  func(o *storage.StoreOptions) { o.Prefix = "" },
		"a slash after the prefix":   func(o *storage.StoreOptions) { o.Prefix += "/" },
		"a NUL byte in the prefix":   func(o *storage.StoreOptions) { o.Prefix += "\x00" },
		"metadata.name as own field": func(o *storage.StoreOptions) { o.Fields = []string{"metadata.name"} },
	} {
		o := good
		change(&o)
		if _, err := storage.NewStore(b, o); err == nil {
			t.Errorf("%s: no error", name)
		}
	}
	if _, err := storage.NewStore(nil, good); err == nil {
		t.Error("no backend: no error")
	}
}

func TestOpened(t *testing.T) {
	b := memory.New(memory.Options{})
	defer b.Close()
	if got, err := storage.Opened(b)(t.Context()); err != nil || got != storage.Backend(b) {
		t.Errorf("got %v, %v", got, err)
	}
}

// A cluster-scoped resource has keys of one segment, and no namespace selects any of them.
func TestClusterScoped(t *testing.T) {
	b := memory.New(memory.Options{})
	defer b.Close()
	o := gadgetOptions(t)
	o.Namespaced = false
	s := newStore(t, b, o)
	for _, key := range []string{"b", "a"} {
		g := &storagetest.Gadget{ObjectMeta: metav1.ObjectMeta{Name: key}}
		if _, err := s.Create(t.Context(), key, g, storage.WriteOptions{}); err != nil {
			t.Fatal(err)
		}
	}
	if _, err := s.Create(t.Context(), "ns/a", gadget("ns/a"), storage.WriteOptions{}); !errors.Is(err, storage.ErrBadKey) {
		t.Errorf("Create: %v, want ErrBadKey", err)
	}
	for _, test := range []struct {
		sel  storage.Selection
		want string
	}{
		{storage.Selection{}, "a b"},
		{storage.Selection{Name: "a"}, "a"},
		{storage.Selection{Namespace: "ns"}, ""},
		{storage.Selection{Namespace: "ns", Name: "a"}, ""},
	} {
		sel, want := test.sel, test.want
		p, err := s.List(t.Context(), storage.ListOptions{Selection: sel})
		if err != nil {
			t.Fatal(err)
		}
		var got []string
		for r := range p.Records {
			got = append(got, r.Key)
			if r.Fields.Get("metadata.name") != r.Key || r.Fields.Has("metadata.namespace") {
				t.Errorf("the fields of %q are wrong", r.Key)
			}
		}
		if strings.Join(got, " ") != want {
			t.Errorf("%+v: %q, want %q", sel, got, want)
		}
	}
}

// countingCodec counts the documents that it makes from stored bytes.
type countingCodec struct {
	storage.Codec
	entries atomic.Int64
}

func (c *countingCodec) Entry(value []byte) (codec.Document, bool, error) {
	c.entries.Add(1)
	return c.Codec.Entry(value)
}

func TestCanonicalBytesAreNotDecoded(t *testing.T) {
	b := memory.New(memory.Options{})
	defer b.Close()
	o := gadgetOptions(t)
	counter := &countingCodec{Codec: o.Codec}
	o.Codec = counter
	read := func(s *storage.Store) {
		t.Helper()
		if _, err := s.Get(t.Context(), "a/1", storage.Read{}); err != nil {
			t.Fatal(err)
		}
		if _, err := s.List(t.Context(), storage.ListOptions{}); err != nil {
			t.Fatal(err)
		}
		w, err := s.Watch(t.Context(), storage.WatchOptions{From: 1})
		if err != nil {
			t.Fatal(err)
		}
		defer w.Close()
		if events, err := w.Next(t.Context()); err != nil || len(events) != 4 {
			t.Fatalf("Next: %d events, %v", len(events), err)
		}
	}
	s := newStore(t, b, o)
	for _, key := range []string{"a/1", "a/2", "a/3"} {
		create(t, s, key)
	}
	_, err := s.Update(t.Context(), "a/1", storage.WriteOptions{}, func(_ context.Context, obj runtime.Object, _ storage.Record) (storage.Outcome, error) {
		obj.(*storagetest.Gadget).Spec.Size = 7
		return storage.Outcome{Object: obj}, nil
	})
	if err != nil {
		t.Fatal(err)
	}
	read(s)
	if n := counter.entries.Load(); n != 0 {
		t.Errorf("the store checked %d of its own values", n)
	}
	other := newStore(t, b, o) // as after a restart
	read(other)
	first := counter.entries.Load()
	read(other)
	if n := counter.entries.Load(); first != 4 || n != first {
		t.Errorf("a new store checked %d of four values, and %d when it read them again", first, n-first)
	}
}

// noSpace is a backend whose device is full.
type noSpace struct{ storage.Backend }

func (noSpace) Commit(context.Context, storage.Commit) (storage.CommitResult, error) {
	return storage.CommitResult{}, storage.ErrNoSpace
}

func TestErrorsOfTheBackendPass(t *testing.T) {
	s, b := gadgets(t)
	create(t, s, "a/1")
	full := newStore(t, noSpace{b}, gadgetOptions(t))
	remove := func(context.Context, runtime.Object, storage.Record) (storage.Outcome, error) {
		return storage.Outcome{Delete: true}, nil
	}
	_, err := full.Create(t.Context(), "a/2", gadget("a/2"), storage.WriteOptions{})
	_, err2 := full.Update(t.Context(), "a/1", storage.WriteOptions{}, remove)
	for _, err := range []error{err, err2} {
		if !errors.Is(err, storage.ErrNoSpace) {
			t.Errorf("a write to a full backend: %v, want ErrNoSpace", err)
		}
	}
	w, err := s.Watch(t.Context(), storage.WatchOptions{})
	if err != nil {
		t.Fatal(err)
	}
	b.Close()
	_, get := s.Get(t.Context(), "a/1", storage.Read{})
	_, list := s.List(t.Context(), storage.ListOptions{})
	_, watch := s.Watch(t.Context(), storage.WatchOptions{})
	_, initial := s.Watch(t.Context(), storage.WatchOptions{Initial: true})
	_, revision := s.Revision(t.Context())
	_, next := w.Next(t.Context())
	for i, err := range []error{get, list, watch, initial, revision, next} {
		if !errors.Is(err, storage.ErrClosed) {
			t.Errorf("call %d after Close: %v, want ErrClosed", i, err)
		}
	}
}

func TestReadWait(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s, b := gadgets(t)
		now := create(t, s, "a/1").Revision
		future := storage.Read{Match: storage.NotOlderThan, Revision: now + 1}

		begin := time.Now()
		_, err := s.Get(t.Context(), "a/1", future)
		var late *storage.FutureError
		if !errors.As(err, &late) || time.Since(begin) != 3*time.Second {
			t.Errorf("after %v: %v, want a FutureError after 3 s", time.Since(begin), err)
		}
		if want := "Too large resource version: 3, current: 2"; err.Error() != want {
			t.Errorf("the error is %q, want %q", err, want)
		}

		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		if _, err := s.Get(ctx, "a/1", future); !errors.Is(err, context.DeadlineExceeded) {
			t.Errorf("with a deadline of 1 s: %v, want it to be the error", err)
		}

		// Any change of the whole backend counts, and the wait ends as soon as it comes.
		begin = time.Now()
		go func() {
			time.Sleep(2 * time.Second)
			commit(t, b, storage.Commit{Key: "other", Expect: storage.AnyRevision})
		}()
		if _, err := s.Get(t.Context(), "a/1", future); err != nil || time.Since(begin) != 2*time.Second {
			t.Errorf("after %v: %v, want the record after 2 s", time.Since(begin), err)
		}
	})
}

func TestTTLIsPassedOn(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s, b := gadgets(t)
		defer b.Close()
		ttl := storage.WriteOptions{TTL: time.Minute}
		if _, err := s.Create(t.Context(), "a/1", gadget("a/1"), ttl); err != nil {
			t.Fatal(err)
		}
		w, err := s.Watch(t.Context(), storage.WatchOptions{Initial: true})
		if err != nil {
			t.Fatal(err)
		}
		defer w.Close()
		for deleted := false; !deleted; {
			events, err := w.Next(t.Context())
			if err != nil {
				t.Fatal(err)
			}
			deleted = events[len(events)-1].Type == "DELETED"
		}
		if _, err := s.Get(t.Context(), "a/1", storage.Read{}); !errors.Is(err, storage.ErrNotFound) {
			t.Errorf("Get: %v, want ErrNotFound", err)
		}
	})
}

func TestASlowWatcherExpires(t *testing.T) {
	s, b := gadgets(t)
	w, err := s.Watch(t.Context(), storage.WatchOptions{})
	if err != nil {
		t.Fatal(err)
	}
	defer w.Close()
	create(t, s, "a/1")
	now := create(t, s, "a/2").Revision
	if err := b.Compact(t.Context(), now); err != nil {
		t.Fatal(err)
	}
	_, err = w.Next(t.Context())
	var expired *storage.ExpiredError
	if !errors.As(err, &expired) || expired.Oldest != now {
		t.Errorf("Next: %v, want an ExpiredError with oldest %d", err, now)
	}
}

// A bookmark below a watch's start would make its reader go back.
func TestNoBookmarkBeforeTheStart(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s, b := gadgets(t)
		defer b.Close()
		w, err := s.Watch(t.Context(), storage.WatchOptions{From: 4})
		if err != nil {
			t.Fatal(err)
		}
		defer w.Close()
		got := make(chan []storage.Event)
		go func() {
			events, err := w.Next(t.Context())
			if err != nil {
				t.Error(err)
			}
			got <- events
		}()
		for _, key := range []string{"a/2", "a/3", "a/4", "a/5"} {
			w.RequestProgress()
			synctest.Wait()
			create(t, s, key)
		}
		events := <-got
		if e := events[0]; e.Record.Revision < 4 {
			t.Errorf("got %s %q at %d, want nothing below 4", e.Type, e.Record.Key, e.Record.Revision)
		}
	})
}

func TestReadsThatCannotBeMeant(t *testing.T) {
	s, _ := gadgets(t)
	exact := storage.Read{Match: storage.Exact}
	if _, err := s.Get(t.Context(), "a/1", exact); err == nil {
		t.Error("Get at exactly revision 0: no error")
	}
	if _, err := s.List(t.Context(), storage.ListOptions{At: exact}); err == nil {
		t.Error("List at exactly revision 0: no error")
	}
	if _, err := s.List(t.Context(), storage.ListOptions{Continue: goldenLatest, At: storage.Read{Match: storage.Exact, Revision: 1}}); err == nil {
		t.Error("List with a token and a revision: no error")
	}
	if _, err := s.Watch(t.Context(), storage.WatchOptions{Initial: true, At: storage.Read{Match: storage.Exact, Revision: 1}}); err == nil {
		t.Error("Watch from exactly one state: no error")
	}
}

// sealed is a backend whose values are all sealed by a key that is not the first one any more.
type sealed struct{ storage.Backend }

func (b sealed) Get(ctx context.Context, key string, at int64) (storage.GetResult, error) {
	res, err := b.Backend.Get(ctx, key, at)
	res.KV.Stale = res.Found
	return res, err
}

func (b sealed) Range(ctx context.Context, r storage.Range) (storage.RangeResult, error) {
	res, err := b.Backend.Range(ctx, r)
	for i := range res.KVs {
		res.KVs[i].Stale = true
	}
	return res, err
}

func (b sealed) Watch(ctx context.Context, w storage.WatchRange) (storage.Feed, error) {
	f, err := b.Backend.Watch(ctx, w)
	return sealedFeed{f}, err
}

type sealedFeed struct{ storage.Feed }

func (f sealedFeed) Next(ctx context.Context) (storage.Changes, error) {
	got, err := f.Feed.Next(ctx)
	for i := range got.Changes {
		got.Changes[i].Stale = true
	}
	return got, err
}

func TestTheBackendsStaleFlagReachesReaders(t *testing.T) {
	fresh, b := gadgets(t)
	made := create(t, fresh, "a/1")
	s := newStore(t, sealed{b}, gadgetOptions(t))
	if r, err := s.Get(t.Context(), "a/1", storage.Read{}); err != nil || !r.Stale {
		t.Errorf("Get: stale %v, %v", r.Stale, err)
	}
	p, err := s.List(t.Context(), storage.ListOptions{})
	if err != nil {
		t.Fatal(err)
	}
	for r := range p.Records {
		if !r.Stale {
			t.Error("the listed record is not stale")
		}
	}
	w, err := s.Watch(t.Context(), storage.WatchOptions{From: 1})
	if err != nil {
		t.Fatal(err)
	}
	defer w.Close()
	if events, err := w.Next(t.Context()); err != nil || !events[0].Record.Stale {
		t.Errorf("Next: %+v, %v", events, err)
	}
	r, err := s.Update(t.Context(), "a/1", storage.WriteOptions{}, func(_ context.Context, obj runtime.Object, _ storage.Record) (storage.Outcome, error) {
		return storage.Outcome{Object: obj}, nil
	})
	if err != nil || r.Revision <= made.Revision || r.Stale {
		t.Errorf("an update that changes nothing: %+v, %v; want it to write", r, err)
	}
}

// unreadable has the faults of values in the tests of unsafe deletion.
const unreadable = "\x00 no object"

// race is a backend in which something happens before the next commit.
type race struct {
	storage.Backend
	before func()
}

func (r *race) Commit(ctx context.Context, c storage.Commit) (storage.CommitResult, error) {
	if f := r.before; f != nil {
		r.before = nil
		f()
	}
	return r.Backend.Commit(ctx, c)
}

func TestDeleteUnreadable(t *testing.T) {
	s, b := gadgets(t)
	good := create(t, s, "a/good")
	plant := func(key, value string) {
		commit(t, b, storage.Commit{Key: gadgetOptions(t).Prefix + "/" + key, Expect: storage.AnyRevision, Value: []byte(value)})
	}
	plant("a/bad", unreadable)
	w, err := s.Watch(t.Context(), storage.WatchOptions{})
	if err != nil {
		t.Fatal(err)
	}
	defer w.Close()
	if revision, err := s.DeleteUnreadable(t.Context(), "a/bad", storage.WriteOptions{DryRun: true}); err != nil || revision != good.Revision+1 {
		t.Fatalf("a trial: %d, %v; want revision %d", revision, err, good.Revision+1)
	}
	revision, err := s.DeleteUnreadable(t.Context(), "a/bad", storage.WriteOptions{})
	if err != nil || revision != good.Revision+2 {
		t.Fatalf("%d, %v; want revision %d", revision, err, good.Revision+2)
	}
	var u *storage.UnreadableError
	if _, err := w.Next(t.Context()); !errors.As(err, &u) || u.Key != "a/bad" {
		t.Errorf("the watch ends with %v, want an UnreadableError", err)
	}
	if p, err := s.List(t.Context(), storage.ListOptions{}); err != nil || p.Count != 1 || p.Revision != revision {
		t.Errorf("List afterwards: %+v, %v", p, err)
	}
	for key, want := range map[string]error{"a/good": storage.ErrReadable, "a/bad": storage.ErrNotFound, "a": storage.ErrNotFound, "a/b/c": storage.ErrNotFound} {
		if _, err := s.DeleteUnreadable(t.Context(), key, storage.WriteOptions{}); !errors.Is(err, want) {
			t.Errorf("%s: %v, want %v", key, err, want)
		}
	}
	if r, err := s.Get(t.Context(), "a/good", storage.Read{}); err != nil || r.Revision != good.Revision {
		t.Errorf("the readable object is %+v, %v", r, err)
	}
}

// An object that is created, deleted or repaired between the read and the commit is read again.
func TestDeleteUnreadableLooksAgain(t *testing.T) {
	readable := `{"kind":"Gadget","apiVersion":"test.example.com/v1","metadata":{"name":"x","namespace":"a"}}`
	for name, c := range map[string]struct {
		meanwhile storage.Commit
		want      error
	}{
		"repaired": {storage.Commit{Value: []byte(readable)}, storage.ErrReadable},
		"gone":     {storage.Commit{Delete: true}, storage.ErrNotFound},
		"replaced": {storage.Commit{Value: []byte(unreadable)}, nil},
	} {
		m := inMemory(t)
		r := &race{Backend: m}
		s := newStore(t, r, gadgetOptions(t))
		key := gadgetOptions(t).Prefix + "/a/x"
		commit(t, m, storage.Commit{Key: key, Value: []byte(unreadable)})
		c.meanwhile.Key, c.meanwhile.Expect = key, storage.AnyRevision
		r.before = func() { commit(t, m, c.meanwhile) }
		if _, err := s.DeleteUnreadable(t.Context(), "a/x", storage.WriteOptions{}); !errors.Is(err, c.want) {
			t.Errorf("%s: %v, want %v", name, err, c.want)
		}
		if res, err := m.Get(t.Context(), key, 0); err != nil || res.Found != (name == "repaired") {
			t.Errorf("%s: afterwards %+v, %v", name, res, err)
		}
	}
}

// undecodable is a codec that makes documents, but no objects of them.
type undecodable struct{ storage.Codec }

func (undecodable) Decode(codec.Document) (runtime.Object, error) {
	return nil, errors.New("no such conversion")
}

// An object that Update cannot decode can be deleted, also when its bytes are canonical.
func TestDeleteUnreadableOfAnUnconvertible(t *testing.T) {
	o := gadgetOptions(t)
	o.Codec = undecodable{o.Codec}
	s := newStore(t, inMemory(t), o)
	create(t, s, "a/x")
	var u *storage.UnreadableError
	_, err := s.Update(t.Context(), "a/x", storage.WriteOptions{}, func(context.Context, runtime.Object, storage.Record) (storage.Outcome, error) {
		return storage.Outcome{Delete: true}, nil
	})
	if !errors.As(err, &u) {
		t.Fatalf("Update: %v, want an UnreadableError", err)
	}
	if _, err := s.DeleteUnreadable(t.Context(), "a/x", storage.WriteOptions{}); err != nil {
		t.Error(err)
	}
}

// A list has the error of each unreadable key up to a maximum, and reports that there are more.
func TestUnreadableListGivesReasons(t *testing.T) {
	s, b := gadgets(t)
	prefix := gadgetOptions(t).Prefix
	commit(t, b, storage.Commit{Key: prefix + "/a/0", Value: []byte(unreadable)})
	commit(t, b, storage.Commit{Key: prefix + "/a/1", Value: []byte(`{"kind":"Other","apiVersion":"v1"}`)})
	var u *storage.UnreadableError
	if _, err := s.List(t.Context(), storage.ListOptions{}); !errors.As(err, &u) {
		t.Fatalf("%v, want an UnreadableError", err)
	}
	reasons := map[string]string{}
	for one := range u.All() {
		reasons[one.Key] = one.Err.Error()
		if one.StoredKey != prefix+"/"+one.Key || one.Revision == 0 {
			t.Errorf("%q is %q of revision %d in the backend", one.Key, one.StoredKey, one.Revision)
		}
	}
	if len(reasons) != 2 || u.Truncated || reasons["a/0"] == reasons["a/1"] || !strings.Contains(reasons["a/1"], "Other") {
		t.Errorf("reasons %q", reasons)
	}
	for _, reason := range reasons {
		if !strings.Contains(u.Error(), reason) {
			t.Errorf("%q does not say %q", u, reason)
		}
	}
	for i := range 99 {
		commit(t, b, storage.Commit{Key: fmt.Sprintf("%s/b/%02d", prefix, i), Value: []byte(unreadable)})
		_, err := s.List(t.Context(), storage.ListOptions{})
		named := min(3+i, 100)
		if !errors.As(err, &u) || len(u.More) != named-1 || u.Truncated != (3+i > 100) {
			t.Fatalf("with %d unreadable objects: %d named, truncated %v: %v", 3+i, 1+len(u.More), u.Truncated, err)
		}
	}
	if text := u.Error(); strings.Count(text, "no object")+strings.Count(text, "json") > 40 || !strings.Contains(text, "and others") {
		t.Errorf("the text is %q", text)
	}
}

// around is a Backend around another one, with an optional ability of its own.
type around struct{ storage.Backend }

func (a around) Unwrap() storage.Backend { return a.Backend }
func (around) Replay() int64             { return 7 }

func TestAs(t *testing.T) {
	below := memory.New(memory.Options{})
	defer below.Close()
	b := storage.Backend(around{around{below}})
	if k, ok := storage.As[storage.Knower](b); !ok || k != storage.Knower(below) {
		t.Errorf("the power of what is below: %v, %v", k, ok)
	}
	if r, ok := storage.As[storage.Replayer](b); !ok || r.Replay() != 7 {
		t.Errorf("the power of a wrapper: %v, %v", r, ok)
	}
	if r, ok := storage.As[storage.Readier](b); ok || r != nil {
		t.Errorf("a power that nobody has: %v", r)
	}
	if k, ok := storage.As[storage.Knower](struct{ storage.Backend }{below}); ok {
		t.Errorf("a wrapper without Unwrap shows a power of what is below: %v", k)
	}
	if k, ok := storage.As[storage.Knower](nil); ok {
		t.Errorf("nil has a power: %v", k)
	}
	if k, ok := storage.As[storage.Knower](around{}); ok {
		t.Errorf("a wrapper around nothing has a power of that: %v", k)
	}
}
