package storagetest

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/keelson-dev/keelson/runtime"
	"github.com/keelson-dev/keelson/storage"
	"k8s.io/apimachinery/pkg/watch"
)

// objectConcurrentTests test a storage.Interface with the clients and watches that test a backend.
var objectConcurrentTests = []objectTest{
	{name: "clients and watches", run: func(t *testing.T, s *objects) { concurrentObjects(t, s, 4) }},
	{name: "clients and watches of few objects", run: func(t *testing.T, s *objects) { concurrentObjects(t, s, 2) }},
}

func concurrentObjects(t *testing.T, s *objects, keys int) {
	repeat(t, func(round int) *workload {
		return &workload{
			t: t, backends: []storage.Backend{adapter{s}}, prefix: fmt.Sprintf("c%d/", round), keys: keys, calls: callsPerClient(), incomplete: true,
		}
	})
}

// adapter makes a storage.Backend of a storage.Interface, for the workload. Its results do not always have a revision. Values
// are the colors of gadgets. An unconditional commit cannot create a key.
type adapter struct{ s *objects }

// Get implements storage.Backend. The key of a namespace reads only the revision.
func (a adapter) Get(ctx context.Context, key string, at int64) (storage.GetResult, error) {
	if strings.HasSuffix(key, "/") {
		now, err := a.s.Revision(ctx)
		return storage.GetResult{Revision: now}, err
	}
	r, err := a.s.Get(ctx, key, exact(at))
	if errors.Is(err, storage.ErrNotFound) {
		return storage.GetResult{Revision: at}, nil
	}
	if err != nil {
		return storage.GetResult{}, err
	}
	return storage.GetResult{KV: stored(r), Found: true, Revision: at}, nil
}

func exact(at int64) storage.Read {
	if at == 0 {
		return storage.Read{}
	}
	return storage.Read{Match: storage.Exact, Revision: at}
}

func stored(r storage.Record) storage.KV {
	return storage.KV{Key: r.Key, Value: []byte(r.Fields.Get("spec.color")), Revision: r.Revision}
}

// Range implements storage.Backend for a namespace.
func (a adapter) Range(ctx context.Context, r storage.Range) (storage.RangeResult, error) {
	p, err := a.s.List(ctx, storage.ListOptions{Selection: selection(r.From), At: exact(r.At)})
	if err != nil {
		return storage.RangeResult{}, err
	}
	res := storage.RangeResult{Count: int64(p.Count), Revision: p.Revision}
	for record := range p.Records {
		res.KVs = append(res.KVs, stored(record))
	}
	return res, nil
}

func selection(prefix string) storage.Selection {
	ns, name, _ := strings.Cut(prefix, "/")
	return storage.Selection{Namespace: ns, Name: name}
}

// metError has the value that a change found instead of the expected one.
type metError struct{ kv storage.KV }

func (e *metError) Error() string { return fmt.Sprintf("met revision %d", e.kv.Revision) }

// Commit implements storage.Backend.
func (a adapter) Commit(ctx context.Context, c storage.Commit) (storage.CommitResult, error) {
	if c.Expect == 0 && !c.Delete {
		r, err := a.s.Create(ctx, c.Key, gadget(c.Key, "color:"+string(c.Value)), storage.WriteOptions{})
		if errors.Is(err, storage.ErrExists) {
			return storage.CommitResult{Found: true}, storage.ErrConflict
		}
		return storage.CommitResult{Revision: r.Revision}, err
	}
	r, err := a.s.Update(ctx, c.Key, storage.WriteOptions{}, func(_ context.Context, obj runtime.Object, r storage.Record) (storage.Outcome, error) {
		if c.Expect != storage.AnyRevision && c.Expect != r.Revision {
			return storage.Outcome{}, &metError{stored(r)}
		}
		if g, ok := obj.(*Gadget); ok {
			g.Spec.Color = string(c.Value)
		}
		return storage.Outcome{Object: obj, Delete: c.Delete}, nil
	})
	var met *metError
	switch {
	case errors.As(err, &met):
		return storage.CommitResult{Current: met.kv, Found: true}, storage.ErrConflict
	case errors.Is(err, storage.ErrNotFound) && c.Expect == storage.AnyRevision:
		return storage.CommitResult{}, nil
	case errors.Is(err, storage.ErrNotFound):
		return storage.CommitResult{}, storage.ErrConflict
	}
	return storage.CommitResult{Revision: r.Revision}, err
}

// Watch implements storage.Backend.
func (a adapter) Watch(ctx context.Context, w storage.WatchRange) (storage.Feed, error) {
	events, err := a.s.Watch(ctx, storage.WatchOptions{Selection: selection(w.Prefix), From: w.From})
	return adapterFeed{events}, err
}

// Close implements storage.Backend.
func (a adapter) Close() error { return nil }

type adapterFeed struct{ storage.Watch }

// Next implements storage.Feed.
func (f adapterFeed) Next(ctx context.Context) (storage.Changes, error) {
	events, err := f.Watch.Next(ctx)
	var out storage.Changes
	for _, e := range events {
		out.Progress = e.Record.Revision
		if e.Type == watch.Bookmark {
			continue
		}
		kv := stored(e.Record)
		c := storage.Change{Key: kv.Key, Value: kv.Value, Revision: kv.Revision, Deleted: e.Type == watch.Deleted}
		if c.Deleted {
			c.Value = nil
		}
		out.Changes = append(out.Changes, c)
	}
	return out, err
}
