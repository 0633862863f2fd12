// Package reader reads the decoded objects of one kind from their storage, for policies and strategies:
//
//	r, err := reader.New(cache, reader.Options{Status: reg.ReaderStatus})
//	obj, err := r.Get(ctx, "default", "a", runtime.Freshness{})
//
// A Reader implements runtime.Reader over a storage.Interface. Over a storage.Differ, such as a cache of package cacher, it
// reads from memory. The package does not depend on package cacher: it uses a cache only through the interface
// storage.Differ.
//
// A server gives its extensions readers of its own kinds, as runtime.Readers; a program of its own reads those of another server
// by client.Readers, which implements the same interface over HTTP.
//
// # Freshness
//
// Cached is the Match Acknowledged of package storage. It waits until the cache has the writes that were acknowledged through
// it, which takes microseconds if the backend is in this process. While the cache is not filled, or if it stays behind for
// longer than its ReadWait, the storage below serves the read, by a linearizable read. The freshness AtLeast is NotOlderThan,
// Exactly is Exact and Live is Latest.
//
// # Shared objects
//
// An object is decoded when it is first read, and kept for all readers of that state. For each object, only the state that
// was decoded last is kept, within Options.KeepBytes. An evicted object is decoded again.
//
// # Objects that cannot be read
//
// Get returns an error for an object whose stored bytes cannot be decoded. List does so if it would have to return such an
// object, because a result without it would look complete. The error names the object. It lasts until the object is deleted
// or repaired. Changes returns the changes together with such an error, which wraps runtime.ErrUnreadable and names up to ten
// objects. A caller can use the changes without these objects, or treat them as failed.
//
// # Without a cache
//
// Over any other storage.Interface every Cached read is a read of the most recent state from the storage, and Changes always
// returns a Reset with all objects. Changed returns the revision of the store, which also grows with changes of other kinds.
// If the backend is not in this process, each call of Changed sends a request. Ready checks that the storage answers.
package reader

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/keelson-dev/keelson/runtime"
	"github.com/keelson-dev/keelson/storage"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

// Options are the options of a Reader. The zero Options is valid.
type Options struct {
	// Status converts an error of package storage to the error that callers get, such as a StatusError. name is the name of
	// the object; it is "" for an error about the collection. A nil Status leaves errors unchanged. It is not called for the
	// context's error.
	Status func(err error, name string) error
	// KeepBytes bounds the decoded objects that are kept, by the bytes of their JSON; an object takes two to six times as
	// much memory. 0 is 32 MiB; a negative number keeps none.
	KeepBytes int64
	// Version is the hub version of the kind. If it is set and the storage is a storage.ManyDecoder, many objects are decoded
	// at once. Otherwise they are decoded one after the other.
	Version schema.GroupVersion
	// Wait is how long Changed, which has no context, waits for a storage without a cache; 0 is 3 s.
	Wait time.Duration
}

// defaultKeep is the default of Options.KeepBytes.
const defaultKeep = 32 << 20

// Reader is a runtime.Reader over a storage.Interface. Make one with New; the zero Reader is not usable. All methods may
// be called concurrently. It has nothing to close.
type Reader struct {
	store  storage.Interface
	differ storage.Differ // the store if it is a Differ, or nil
	opts   Options
	kept   *kept
}

var _ runtime.Reader[runtime.Object] = (*Reader)(nil)

// New returns a Reader of the objects in store.
func New(store storage.Interface, o Options) (*Reader, error) {
	if store == nil {
		return nil, errors.New("reader: a Reader needs a storage")
	}
	if o.Wait < 0 {
		return nil, errors.New("reader: Wait must not be negative")
	}
	if o.Wait == 0 {
		o.Wait = 3 * time.Second
	}
	if o.KeepBytes == 0 {
		o.KeepBytes = defaultKeep
	}
	r := &Reader{store: store, opts: o, kept: newKept(o.KeepBytes)}
	r.differ, _ = store.(storage.Differ)
	return r, nil
}

// read returns the storage.Read for a Freshness.
func read(at runtime.Freshness) storage.Read {
	if revision, ok := at.AtLeast(); ok {
		return storage.Read{Match: storage.NotOlderThan, Revision: revision}
	}
	if revision, ok := at.Exactly(); ok {
		return storage.Read{Match: storage.Exact, Revision: revision}
	}
	if at.IsLive() {
		return storage.Read{Match: storage.Latest}
	}
	return storage.Read{Match: storage.Acknowledged}
}

// fail returns the error for the caller.
func (r *Reader) fail(ctx context.Context, err error, name string) error {
	switch {
	case ctx.Err() != nil && errors.Is(err, ctx.Err()):
		return err
	case errors.Is(err, storage.ErrClosed):
		return fmt.Errorf("%w: %w", runtime.ErrNotReady, err)
	case r.opts.Status == nil:
		return err
	}
	return r.opts.Status(err, name)
}

// Get implements runtime.Reader.
func (r *Reader) Get(ctx context.Context, namespace, name string, at runtime.Freshness) (runtime.Object, error) {
	obj, err := r.get(ctx, namespace, name, at)
	if err != nil {
		return nil, r.fail(ctx, err, name)
	}
	return obj, nil
}

func (r *Reader) get(ctx context.Context, namespace, name string, at runtime.Freshness) (runtime.Object, error) {
	if strings.Contains(name, "/") { // otherwise it could be the key of an object in another namespace
		return nil, storage.ErrNotFound
	}
	key := name
	if namespace != "" {
		key = namespace + "/" + name
	}
	record, err := r.store.Get(ctx, key, read(at))
	if err != nil {
		return nil, err
	}
	return r.object(record)
}

// List implements runtime.Reader.
func (r *Reader) List(ctx context.Context, q runtime.Query) (runtime.Listed[runtime.Object], error) {
	page, err := r.store.List(ctx, storage.ListOptions{
		Selection: storage.Selection{Namespace: q.Namespace, Labels: q.Labels, Fields: q.Fields},
		At:        read(q.At),
	})
	if err != nil {
		return runtime.Listed[runtime.Object]{}, r.fail(ctx, err, "")
	}
	out := runtime.Listed[runtime.Object]{Revision: page.Revision, Items: make([]runtime.Object, page.Count)}
	m := r.many(func(i int, obj runtime.Object) { out.Items[i] = obj })
	i := 0
	for record := range page.Records {
		m.add(i, record)
		i++
	}
	if err := m.decode(ctx); err != nil {
		return runtime.Listed[runtime.Object]{}, r.fail(ctx, err, "")
	}
	return out, nil
}

// Changes implements runtime.Reader.
func (r *Reader) Changes(ctx context.Context, since int64, at runtime.Freshness) (runtime.Changes[runtime.Object], error) {
	d, err := r.delta(ctx, since, read(at))
	if err != nil {
		return runtime.Changes[runtime.Object]{}, r.fail(ctx, err, "")
	}
	out := runtime.Changes[runtime.Object]{Revision: d.Revision, Reset: d.Reset}
	if d.Count == 0 {
		return out, nil
	}
	var unreadable *storage.UnreadableError
	if out.All, unreadable, err = r.changes(ctx, d); err != nil {
		return runtime.Changes[runtime.Object]{}, r.fail(ctx, err, "")
	}
	if unreadable != nil {
		return out, fmt.Errorf("%w: %w", runtime.ErrUnreadable, r.fail(ctx, unreadable, ""))
	}
	return out, nil
}

// changes converts moves to changes of objects. An unreadable object is Deleted in the result, and unreadable names it.
func (r *Reader) changes(ctx context.Context, d storage.Delta) (all []runtime.Change[runtime.Object], unreadable *storage.UnreadableError, err error) {
	all = make([]runtime.Change[runtime.Object], d.Count)
	m := r.many(func(i int, obj runtime.Object) { all[i].Object = obj })
	m.skip = func(i int, err *storage.UnreadableError) {
		all[i].Deleted = true
		unreadable = unreadable.And(err)
	}
	i := 0
	for move := range d.Moves {
		one := &all[i]
		one.Namespace, one.Name = names(move.Record.Key)
		switch {
		case move.Unreadable != nil:
			m.skip(i, move.Unreadable)
		case move.Deleted:
			one.Deleted = true
			r.kept.drop(move.Record.Key, move.Record.Revision)
		default:
			m.add(i, move.Record)
		}
		i++
	}
	err = m.decode(ctx)
	return all, unreadable, err
}

// names returns the namespace and the name in a key.
func names(key string) (namespace, name string) {
	namespace, name, namespaced := strings.Cut(key, "/")
	if !namespaced {
		return "", key
	}
	return namespace, name
}

// delta returns the Delta of the storage, or all objects if the storage is no Differ.
func (r *Reader) delta(ctx context.Context, since int64, at storage.Read) (storage.Delta, error) {
	if r.differ != nil {
		return r.differ.Delta(ctx, since, at)
	}
	return storage.Whole(ctx, r.store, at)
}

// Changed implements runtime.Reader. Over a storage.Differ it takes no lock. The Generation is always 0, because the storage
// makes all objects in the same way.
func (r *Reader) Changed() runtime.LastChange { return runtime.LastChange{Revision: r.changed()} }

func (r *Reader) changed() int64 {
	if r.differ != nil {
		return r.differ.Changed()
	}
	if knower, ok := r.store.(storage.Knower); ok {
		if revision, ok := knower.Known(); ok {
			return revision
		}
	}
	ctx, cancel := context.WithTimeout(context.Background(), r.opts.Wait)
	defer cancel()
	revision, err := r.store.Revision(ctx)
	if err != nil {
		return 0
	}
	return revision
}

// starter is a cache that begins to fill when Start is called.
type starter interface {
	Start()
	Ready(ctx context.Context) error
}

// Ready implements runtime.Reader. If a cache is not filled, Ready makes it begin to fill; it does not wait for that.
func (r *Reader) Ready(ctx context.Context) error {
	if r.differ == nil {
		_, err := r.store.Revision(ctx)
		if err != nil {
			return r.fail(ctx, err, "")
		}
		return nil
	}
	if r.differ.Changed() > 0 {
		return nil
	}
	s, ok := r.store.(starter)
	if !ok {
		return runtime.ErrNotReady
	}
	s.Start()
	err := s.Ready(ctx)
	switch {
	case r.differ.Changed() > 0:
		return nil
	case err != nil:
		return fmt.Errorf("%w: %w", runtime.ErrNotReady, err)
	}
	return runtime.ErrNotReady
}
