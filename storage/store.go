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

// StoreOptions are the options of a Store. Prefix and Codec are required.
type StoreOptions struct {
	// Prefix is the common prefix of the resource's keys, such as "/registry/example.com/widgets". An object is stored under
	// Prefix + "/" + its key. Prefix has no slash at its end and no NUL byte.
	Prefix string
	// Codec encodes and decodes the kind.
	Codec Codec
	// Namespaced means that keys are "namespace/name", and not "name".
	Namespaced bool
	// Fields are the kind's selectable fields besides metadata.name and metadata.namespace, as dotted JSON paths.
	Fields []string
	// FieldPaths has the paths of Fields in documents of other versions: by apiVersion, such as "example.com/v1beta1", and
	// then by field, the path in such a document. A field that is not in FieldPaths has the path in Fields. A field with the
	// path "" has no path in that version. The object is then decoded, and the field is read in the version that Codec
	// decodes to, which costs a full decode. If a value has several paths, separated by "|", the first that leads to a value
	// counts. runtime.Scheme has a method that makes this map.
	FieldPaths map[string]map[string]string
	// MaxObjectBytes bounds the size of an encoded object; a larger one is ErrTooLarge. 0 is 1.5 MiB, the default limit of
	// etcd; a negative number is no limit.
	MaxObjectBytes int
	// TTL is the TTL of every write whose options have none; 0 is none. A write that changes nothing does not renew the TTL:
	// the object expires at the time that its last change set.
	TTL time.Duration
	// ReadWait is how long a read waits for a revision that the store has not reached yet; 0 is 3 s.
	ReadWait time.Duration
	// Hooks are called about the store's requests to its backend.
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

// Store is the Interface of one resource over a Backend. It implements, once for all backends, everything above bytes and
// revisions: encoding, selection, paging, preconditions and retries, and how selectors turn changes into events of a watch.
// It has no goroutine of its own and nothing to close. The backend belongs to its opener. All methods may be called
// concurrently. Make one with [NewStore].
type Store struct {
	backend Backend
	opts    StoreOptions
	stater  Stater // the backend if it implements this interface, or nil
	knower  Knower // as stater, like the next two
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

// NewStore returns the store of one resource in b. Two stores may share a prefix, or have nested prefixes, only if they store
// the same resource.
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

// checkKey calls CheckKey for this resource.
func (s *Store) checkKey(key string) error { return CheckKey(key, s.opts.Namespaced) }

// interval returns the interval of the backend's keys for a scope.
func (s *Store) interval(sc Scope) (from, to string) {
	if sc.To == "" {
		return s.root + sc.From, s.opts.Prefix + "0" // the next byte after the root's slash
	}
	return s.root + sc.From, s.root + sc.To
}

// get reads a key at a revision. If the revision is in the future, get waits for it.
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

// setRevision sets the resourceVersion of a stored object.
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
	res, err := s.backend.Range(ctx, Range{From: "\x00", To: "\x00", CountOnly: true}) // an empty interval is the cheapest read
	if err == nil {
		s.known.saw(before, res.Revision)
	}
	return res.Revision, err
}

// reach returns once the store has reached a revision. It waits for that with a watch of the backend, and returns a
// FutureError after ReadWait.
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
	case errors.Is(err, ErrCompacted): // the revision has been reached and compacted already
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

// expired returns an ExpiredError for a backend's ErrCompacted, and returns other errors unchanged.
func expired(err error, revision int64, token string) error {
	if !errors.Is(err, ErrCompacted) {
		return err
	}
	e := &ExpiredError{Revision: revision, Continue: token}
	var cause *ExpiredError
	if errors.As(err, &cause) {
		e.Oldest = cause.Oldest
	}
	return e
}

// take returns the object, or nil if there is none or it was taken already.
func (b *readBack) take() runtime.Object {
	if b == nil {
		return nil
	}
	if obj := b.obj.Swap(nil); obj != nil {
		return *obj
	}
	return nil
}
