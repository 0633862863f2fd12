package storage

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/keelson-dev/keelson/runtime"
	"github.com/keelson-dev/keelson/runtime/codec"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

// StoreOptions says what a Store stores, and how. Prefix and Codec are required.
type StoreOptions struct {
	// Prefix is where the resource's keys are, such as "/registry/example.com/widgets": an object is stored under
	// Prefix + "/" + its key. It has no slash at its end and no NUL byte.
	Prefix string
	// Codec encodes and decodes the kind.
	Codec Codec
	// Namespaced says that keys are "namespace/name", and not "name".
	Namespaced bool
	// Fields are the kind's selectable fields besides metadata.name and metadata.namespace, as dotted JSON paths.
	Fields []string
	// FieldPaths says where documents in another version have Fields: by apiVersion, such as "example.com/v1beta1", and
	// by field, the path in such a document. What is not in it is where Fields has it. A field with the path "" has no
	// path there: the object is decoded and the field read in the version that Codec decodes to, which takes as long as
	// that does. Of several paths, separated by "|", the first that leads to something counts. runtime.Scheme has a method that makes this.
	FieldPaths map[string]map[string]string
	// MaxObjectBytes bounds an encoded object; a larger one is ErrTooLarge. 0 is 1.5 MiB, what etcd takes by
	// default; a negative number is no bound.
	MaxObjectBytes int
	// TTL is that of every write whose options name none; 0 is none. A write that changes nothing is none: the object
	// lives as long as its last change says.
	TTL time.Duration
	// ReadWait is how long a read waits for a revision that has not happened yet; 0 is 3 s.
	ReadWait time.Duration
	// Hooks are told what the store asks of its backend.
	Hooks Hooks
}

func (o StoreOptions) withDefaults() (StoreOptions, error) {
	switch {
	case o.Codec == nil:
		return o, errors.New("storage: a store needs a codec")
	case o.Prefix == "" || strings.HasSuffix(o.Prefix, "/") || strings.Contains(o.Prefix, "\x00"):
		return o, fmt.Errorf("storage: bad prefix %q: a path without a slash at its end, such as /registry/example.com/widgets, is needed", o.Prefix)
	case slices.Contains(o.Fields, "metadata.name") || slices.Contains(o.Fields, "metadata.namespace"):
		return o, errors.New("storage: metadata.name and metadata.namespace are selectable in every kind; leave them out of Fields")
	}
	if o.MaxObjectBytes == 0 {
		o.MaxObjectBytes = 3 << 19
	}
	if o.ReadWait <= 0 {
		o.ReadWait = 3 * time.Second
	}
	return o, nil
}

// Store is the Interface of one resource over a Backend. It does, once for all backends, what is not about bytes
// and revisions: encoding, selection, paging, preconditions and retries, selection transitions of watches. It
// owns no goroutine and has nothing to close; the backend belongs to its opener. All methods may be called
// concurrently. Make one with [NewStore].
type Store struct {
	backend Backend
	opts    StoreOptions
	stater  Stater // the backend, if it is one; or nil
	knower  Knower // likewise, as the next two
	history Historian
	replay  Replayer
	held    heldPortions
	holder  bool   // the backend is a Holder
	root    string // Prefix + "/"
	known   knownRevisions
}

var (
	_ Interface         = (*Store)(nil)
	_ Source            = (*Store)(nil)
	_ UnreadableDeleter = (*Store)(nil)
)

// NewStore returns the store of one resource in b. No two stores may share a prefix, or have one within another's,
// unless they store the same resource.
func NewStore(b Backend, o StoreOptions) (*Store, error) {
	if b == nil {
		return nil, errors.New("storage: a store needs a backend")
	}
	o, err := o.withDefaults()
	if err != nil {
		return nil, err
	}
	stater, _ := As[Stater](b)
	s := &Store{opts: o, root: o.Prefix + "/"}
	s.knower, _ = As[Knower](b)
	s.history, _ = As[Historian](b)
	s.replay, _ = As[Replayer](b)
	if h, ok := As[Holder](b); ok {
		s.holder = h.Holds()
	}
	if o.Hooks.Requested != nil {
		b, stater = observe(b, stater, o.Hooks.Requested)
	}
	s.backend, s.stater = b, stater
	return s, nil
}

// Get implements Interface.
func (s *Store) Get(ctx context.Context, key string, at Read) (Record, error) {
	revision := int64(0)
	switch at.Match {
	case NotOlderThan:
		if err := s.reach(ctx, at.Revision); err != nil {
			return Record{}, err
		}
	case Exact:
		if err := checkExact(at); err != nil {
			return Record{}, err
		}
		revision = at.Revision
	}
	if s.checkKey(key) != nil {
		return Record{}, ErrNotFound
	}
	res, err := s.get(ctx, key, revision)
	if err != nil {
		return Record{}, err
	}
	if !res.Found {
		return Record{}, ErrNotFound
	}
	return s.record(res.KV)
}

// checkKey is CheckKey for this resource.
func (s *Store) checkKey(key string) error { return CheckKey(key, s.opts.Namespaced) }

// interval places that of a scope among the backend's keys.
func (s *Store) interval(sc Scope) (from, to string) {
	if sc.To == "" {
		return s.root + sc.From, s.opts.Prefix + "0" // the next byte after the root's slash
	}
	return s.root + sc.From, s.root + sc.To
}

// get reads a key at a revision, and waits for one that has not happened yet.
func (s *Store) get(ctx context.Context, key string, at int64) (GetResult, error) {
	before := s.known.reached.Load()
	res, err := s.backend.Get(ctx, s.root+key, at)
	if err == nil && at == 0 {
		s.known.saw(before, res.Revision)
	}
	if errors.Is(err, ErrFuture) {
		if err := s.reach(ctx, at); err != nil {
			return GetResult{}, err
		}
		res, err = s.backend.Get(ctx, s.root+key, at)
	}
	return res, expired(err, at, "")
}

// Decode implements Interface.
func (s *Store) Decode(r Record) (runtime.Object, error) {
	obj := r.read.take()
	if obj == nil {
		var err error
		if obj, err = s.opts.Codec.Decode(r.Body); err != nil {
			return nil, s.unreadable(r.Key, r.Revision, err)
		}
	}
	if err := setRevision(obj, r.Revision); err != nil {
		return nil, s.unreadable(r.Key, r.Revision, err)
	}
	return obj, nil
}

// DecodeAll implements ManyDecoder.
func (s *Store) DecodeAll(ctx context.Context, records []Record, gv schema.GroupVersion) ([]runtime.Object, error) {
	many, ok := s.opts.Codec.(ManyCodec)
	if !ok {
		return nil, ErrUnsupported
	}
	docs := make([]codec.Document, len(records))
	for i, r := range records {
		docs[i] = r.Body
	}
	objs, err := many.DecodeAll(ctx, docs, gv)
	if err != nil {
		return nil, err
	}
	for i, r := range records {
		if err := setRevision(objs[i], r.Revision); err != nil {
			return nil, s.unreadable(r.Key, r.Revision, err)
		}
	}
	return objs, nil
}

// setRevision gives an object that is stored its resourceVersion.
func setRevision(obj runtime.Object, revision int64) error {
	if revision == 0 {
		return nil
	}
	m, err := meta.Accessor(obj)
	if err != nil {
		return err
	}
	m.SetResourceVersion(strconv.FormatInt(revision, 10))
	return nil
}

// Revision implements Interface.
func (s *Store) Revision(ctx context.Context) (int64, error) {
	before := s.known.reached.Load()
	res, err := s.backend.Range(ctx, Range{From: "\x00", To: "\x00", CountOnly: true}) // of nothing: the cheapest read
	if err == nil {
		s.known.saw(before, res.Revision)
	}
	return res.Revision, err
}

// reach returns once the store is at a revision or a later one. It waits for the backend's news of it, and after
// ReadWait gives up with a FutureError.
func (s *Store) reach(ctx context.Context, revision int64) error {
	now, err := s.Revision(ctx)
	if err != nil || now >= revision {
		return err
	}
	wait, cancel := context.WithTimeout(ctx, s.opts.ReadWait)
	defer cancel()
	feed, err := s.backend.Watch(wait, WatchRange{From: revision - 1})
	if err == nil {
		defer feed.Close()
		for err == nil {
			var got Changes
			got, err = feed.Next(wait)
			if err == nil && (len(got.Changes) > 0 || got.Progress >= revision) {
				return nil
			}
		}
	}
	switch {
	case errors.Is(err, ErrCompacted): // it came and has gone already
		return nil
	case ctx.Err() != nil:
		return ctx.Err()
	case wait.Err() == nil:
		return err
	}
	if now, err = s.Revision(ctx); err != nil || now >= revision {
		return err
	}
	return &FutureError{Requested: revision, Current: now}
}

func checkExact(at Read) error {
	if at.Revision <= 0 {
		return fmt.Errorf("storage: no state has revision %d", at.Revision)
	}
	return nil
}

// expired makes what a backend says of a revision that is gone into an ExpiredError, and leaves other errors alone.
func expired(err error, revision int64, token string) error {
	if !errors.Is(err, ErrCompacted) {
		return err
	}
	e := &ExpiredError{Revision: revision, Continue: token}
	var told *ExpiredError
	if errors.As(err, &told) {
		e.Oldest = told.Oldest
	}
	return e
}

// take returns the object, nil if there is none or somebody has it already.
func (b *readBack) take() runtime.Object {
	if b == nil {
		return nil
	}
	if obj := b.obj.Swap(nil); obj != nil {
		return *obj
	}
	return nil
}
