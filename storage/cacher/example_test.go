package cacher_test

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"sync"
	"time"

	"github.com/keelson-dev/keelson/runtime"
	"github.com/keelson-dev/keelson/runtime/codec"
	"github.com/keelson-dev/keelson/storage"
	"github.com/keelson-dev/keelson/storage/cacher"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/watch"
)

// Shelf is an example of a storage.Interface: the log of all changes to the objects of a namespaced kind, in memory. It
// forgets nothing, and every read replays the log. The change of revision r is log[r-2]; an empty Shelf is at revision 1. Of
// its options it uses Codec, Fields, MaxObjectBytes and ReadWait.
type Shelf struct {
	o storage.StoreOptions

	mu   sync.Mutex // guards all below
	log  []shelved
	news chan struct{} // closed by the next change
}

// shelved is one change; a nil record is a deletion.
type shelved struct{ was, is *storage.Record }

func NewShelf(o storage.StoreOptions) *Shelf { return &Shelf{o: o, news: make(chan struct{})} }

// now returns the log, and a channel that is closed when the log grows.
func (s *Shelf) now() ([]shelved, <-chan struct{}) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.log, s.news
}

// replay returns the state after a log, and its revision.
func replay(log []shelved) (state map[string]storage.Record, revision int64) {
	state = map[string]storage.Record{}
	for _, c := range log {
		if c.is != nil {
			state[c.is.Key] = *c.is
		} else {
			delete(state, c.was.Key)
		}
	}
	return state, int64(len(log)) + 1
}

// state returns a state that at accepts, and its revision.
func (s *Shelf) state(ctx context.Context, at storage.Read) (map[string]storage.Record, int64, error) {
	if at.Match == storage.Exact && at.Revision < 1 {
		return nil, 0, fmt.Errorf("no state has revision %d", at.Revision)
	}
	log, news := s.now()
	for late := time.After(s.o.ReadWait); at.Revision > int64(len(log))+1; log, news = s.now() {
		select {
		case <-news:
		case <-late:
			return nil, 0, &storage.FutureError{Requested: at.Revision, Current: int64(len(log)) + 1}
		case <-ctx.Done():
			return nil, 0, ctx.Err()
		}
	}
	if at.Match == storage.Exact {
		log = log[:at.Revision-1]
	}
	state, revision := replay(log)
	return state, revision, ctx.Err()
}

// commit makes a change if the key is still at the expected revision; 0 means that the key has no record.
func (s *Shelf) commit(key string, expect int64, c shelved) (revision int64, done bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	state, revision := replay(s.log)
	if state[key].Revision != expect {
		return 0, false
	}
	revision++
	if c.is != nil {
		c.is.Revision = revision
	}
	s.log = append(s.log, c)
	close(s.news)
	s.news = make(chan struct{})
	return revision, true
}

// record makes the record of an object that is not stored yet.
func (s *Shelf) record(key string, obj runtime.Object, opts storage.WriteOptions) (storage.Record, error) {
	body, err := s.o.Codec.Encode(obj)
	switch {
	case err != nil:
		return storage.Record{}, err
	case opts.TTL > 0:
		return storage.Record{}, storage.ErrUnsupported
	case s.o.MaxObjectBytes > 0 && len(body.Bytes()) > s.o.MaxObjectBytes:
		return storage.Record{}, storage.ErrTooLarge
	}
	namespace, name := storage.SplitKey(key, true)
	selectable := fields.Set{"metadata.namespace": namespace, "metadata.name": name}
	for _, path := range s.o.Fields {
		selectable[path] = body.Field(path)
	}
	return storage.Record{Key: key, Body: body, Labels: body.Labels(), Fields: selectable}, nil
}

func (s *Shelf) Get(ctx context.Context, key string, at storage.Read) (storage.Record, error) {
	state, _, err := s.state(ctx, at)
	r, found := state[key]
	if err == nil && !found {
		err = storage.ErrNotFound
	}
	return r, err
}

func (s *Shelf) List(ctx context.Context, opts storage.ListOptions) (storage.Page, error) {
	scope, at, from := opts.Scope(true), opts.At, ""
	if opts.Continue != "" {
		c, err := scope.Continue(opts.Continue)
		if err == nil && at.Revision != 0 {
			err = fmt.Errorf("%w: it comes with a revision", storage.ErrBadContinue)
		}
		if err != nil {
			return storage.Page{}, err
		}
		if from = c.From; c.Revision != storage.AtLatest {
			at = storage.Read{Match: storage.Exact, Revision: c.Revision}
		}
	}
	state, revision, err := s.state(ctx, at)
	if err != nil {
		return storage.Page{}, err
	}
	var records []storage.Record
	left := int64(0)
	for _, key := range slices.Sorted(maps.Keys(state)) {
		switch {
		case key < from || !scope.Has(key) || !opts.Matches(state[key]):
		case opts.Limit > 0 && at.Match != storage.Any && int64(len(records)) >= opts.Limit:
			left++
		default:
			records = append(records, state[key])
		}
	}
	p := storage.Page{Records: slices.Values(records), Count: len(records), Revision: revision}
	if left > 0 {
		p.Continue = scope.Token(storage.Continue{Revision: revision, From: records[len(records)-1].Key + "\x00"})
		if !opts.Selective() && scope.Whole() {
			p.Remaining = &left
		}
	}
	return p, nil
}

func (s *Shelf) Create(ctx context.Context, key string, obj runtime.Object, opts storage.WriteOptions) (storage.Record, error) {
	if err := cmp.Or(storage.CheckKey(key, true), ctx.Err()); err != nil {
		return storage.Record{}, err
	}
	r, err := s.record(key, obj, opts)
	if err != nil {
		return storage.Record{}, err
	}
	if !opts.DryRun {
		_, done := s.commit(key, 0, shelved{is: &r})
		if !done {
			err = storage.ErrExists
		}
	} else if _, missing := s.Get(ctx, key, storage.Read{}); missing == nil {
		err = storage.ErrExists
	}
	return r, err
}

func (s *Shelf) Update(ctx context.Context, key string, opts storage.WriteOptions, change storage.ChangeFunc) (storage.Record, error) {
	for {
		was, err := s.Get(ctx, key, storage.Read{})
		if err != nil {
			return was, err
		}
		obj, err := s.Decode(was)
		if err != nil {
			return was, err
		}
		out, err := change(ctx, obj, was)
		c, is := shelved{was: &was}, was
		switch {
		case err != nil || out.Object == nil && !out.Delete:
			return was, err
		case !out.Delete:
			if is, err = s.record(key, out.Object, opts); err != nil {
				return was, err
			}
			is.Revision, c.is = was.Revision, &is
		}
		if opts.DryRun || !out.Delete && bytes.Equal(is.Body.Bytes(), was.Body.Bytes()) {
			return is, nil
		}
		if revision, done := s.commit(key, was.Revision, c); done {
			last := is
			last.Revision = revision
			return last, nil
		}
	}
}

func (s *Shelf) Decode(r storage.Record) (runtime.Object, error) {
	obj, err := s.o.Codec.Decode(r.Body)
	if err != nil || r.Revision == 0 {
		return obj, err
	}
	m, err := meta.Accessor(obj)
	if err == nil {
		m.SetResourceVersion(strconv.FormatInt(r.Revision, 10))
	}
	return obj, err
}

func (s *Shelf) Revision(ctx context.Context) (int64, error) {
	log, _ := s.now()
	return int64(len(log)) + 1, ctx.Err()
}

func (s *Shelf) Watch(ctx context.Context, opts storage.WatchOptions) (storage.Watch, error) {
	w := &shelfWatch{s: s, sel: opts.Selection, scope: opts.Scope(true), from: opts.From, asked: make(chan struct{}, 1)}
	switch {
	case opts.Initial && opts.At.Match == storage.Exact:
		return nil, errors.New("a watch cannot begin with the state at exactly one revision")
	case opts.Initial:
		p, err := s.List(ctx, storage.ListOptions{Selection: opts.Selection, At: opts.At})
		if err != nil {
			return nil, err
		}
		for r := range p.Records {
			w.first = append(w.first, storage.Event{Type: watch.Added, Record: r})
		}
		w.from = p.Revision
		w.first = append(w.first, storage.Event{Type: watch.Bookmark, Record: storage.Record{Revision: w.from}, InitialEnd: true})
	case opts.From < 0:
		return nil, &storage.ExpiredError{Revision: opts.From, Oldest: 1}
	case opts.From == 0:
		log, _ := s.now()
		w.from = int64(len(log)) + 1
	}
	w.life, w.end = context.WithCancelCause(ctx)
	return w, nil
}

type shelfWatch struct {
	s     *Shelf
	life  context.Context // ends with the context given to Watch, and with Close
	end   context.CancelCauseFunc
	sel   storage.Selection
	scope storage.Scope
	first []storage.Event // the initial events
	from  int64           // changes up to this revision have been shown
	asked chan struct{}   // holds one request for a bookmark
}

func (w *shelfWatch) Next(ctx context.Context) ([]storage.Event, error) {
	for asked := false; ; {
		if err := cmp.Or(context.Cause(w.life), ctx.Err()); err != nil {
			return nil, err
		}
		events := w.first
		w.first = nil
		log, news := w.s.now()
		for ; w.from <= int64(len(log)); w.from++ {
			events = append(events, w.event(log[w.from-1], w.from+1)...)
		}
		if asked && w.from == int64(len(log))+1 {
			events = append(events, storage.Event{Type: watch.Bookmark, Record: storage.Record{Revision: w.from}})
		}
		if len(events) > 0 {
			return events, nil
		}
		select {
		case <-w.asked:
			asked = true
		case <-news:
		case <-ctx.Done():
		case <-w.life.Done():
		}
	}
}

// event returns the event of a change for a selection, if any.
func (w *shelfWatch) event(c shelved, revision int64) []storage.Event {
	sees := func(r *storage.Record) bool { return r != nil && w.scope.Has(r.Key) && w.sel.Matches(*r) }
	switch saw, sees := sees(c.was), sees(c.is); {
	case saw && sees:
		return []storage.Event{{Type: watch.Modified, Record: *c.is}}
	case sees:
		return []storage.Event{{Type: watch.Added, Record: *c.is}}
	case saw:
		last := *c.was
		last.Revision = revision
		return []storage.Event{{Type: watch.Deleted, Record: last}}
	}
	return nil
}

func (w *shelfWatch) RequestProgress() {
	select {
	case w.asked <- struct{}{}:
	default:
	}
}

func (w *shelfWatch) Close() { w.end(storage.ErrClosed) }

type BoatSpec struct {
	Port string `json:"port"`
}

type Boat = runtime.Resource[BoatSpec, struct{}]

// A cache over another implementation of storage.Interface, without a server. The cache reads from the Shelf what it does not
// have, such as states that are older than the cache.
func Example() {
	ctx := context.Background()
	kind := schema.GroupVersionKind{Group: "example.com", Version: "v1", Kind: "Boat"}
	scheme := runtime.NewScheme()
	must(runtime.Register[*Boat](scheme, kind, runtime.KindOptions[*Boat]{SelectableFields: []string{"spec.port"}}))
	boats, err := codec.NewTyped(scheme, kind)
	must(err)
	shelf := NewShelf(storage.StoreOptions{Codec: boats, Fields: []string{"spec.port"}, ReadWait: time.Second})

	moor := func(s storage.Interface, name, port string) int64 {
		boat := &Boat{Spec: BoatSpec{Port: port}}
		boat.Namespace, boat.Name = "sea", name
		r, err := s.Create(ctx, "sea/"+name, boat, storage.WriteOptions{})
		must(err)
		return r.Revision
	}
	before := moor(shelf, "dinghy", "hull")
	moor(shelf, "cutter", "oslo")

	cache, err := cacher.New(shelf, cacher.Options{
		Namespaced:  true,
		IndexFields: []string{"spec.port"},
		Hooks:       cacher.Hooks{List: func(from cacher.Source) { fmt.Println("a list from", from) }},
	})
	must(err)
	defer cache.Close()
	list := func(opts storage.ListOptions) storage.Page {
		page, err := cache.List(ctx, opts)
		must(err)
		for r := range page.Records {
			fmt.Println(" ", r.Key, r.Revision, r.Fields.Get("spec.port"))
		}
		return page
	}

	// The most recent state, whichever client wrote it.
	now := list(storage.ListOptions{}).Revision
	moor(shelf, "sloop", "oslo")
	list(storage.ListOptions{})

	// An earlier state, which the cache keeps for a while, and one that it never had.
	list(storage.ListOptions{At: storage.Read{Match: storage.Exact, Revision: now}})
	list(storage.ListOptions{At: storage.Read{Match: storage.Exact, Revision: before}})

	// A list by an index reads only its result, and other changes do not wake a watch by an index.
	inOslo := storage.Selection{Fields: fields.OneTermEqualSelector("spec.port", "oslo")}
	list(storage.ListOptions{Selection: inOslo, Limit: 1})
	w, err := cache.Watch(ctx, storage.WatchOptions{Selection: inOslo, From: now})
	must(err)
	defer w.Close()
	moor(cache, "barge", "hull")
	_, err = cache.Update(ctx, "sea/cutter", storage.WriteOptions{},
		func(_ context.Context, current runtime.Object, _ storage.Record) (storage.Outcome, error) {
			boat := current.(*Boat)
			boat.Spec.Port = "hull"
			return storage.Outcome{Object: boat}, nil
		})
	must(err)
	for n := 0; n < 2; {
		events, err := w.Next(ctx)
		must(err)
		for _, e := range events {
			fmt.Println(e.Type, e.Record.Key, e.Record.Revision)
		}
		n += len(events)
	}
	// Output:
	// a list from memory
	//   sea/cutter 3 oslo
	//   sea/dinghy 2 hull
	// a list from memory
	//   sea/cutter 3 oslo
	//   sea/dinghy 2 hull
	//   sea/sloop 4 oslo
	// a list from history
	//   sea/cutter 3 oslo
	//   sea/dinghy 2 hull
	// a list from storage
	//   sea/dinghy 2 hull
	// a list from memory
	//   sea/cutter 3 oslo
	// ADDED sea/sloop 4
	// DELETED sea/cutter 6
}

func must(err error) {
	if err != nil {
		panic(err)
	}
}
