package apiset

import (
	"context"
	"fmt"
	"math"
	"strconv"
	"sync"
	"sync/atomic"

	"github.com/keelson-dev/keelson/authn"
	"github.com/keelson-dev/keelson/runtime"
	"github.com/keelson-dev/keelson/server/registry"
	"github.com/keelson-dev/keelson/storage"
	"github.com/keelson-dev/keelson/storage/reader"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// source reads the objects of a kind, in all its versions, between two changes of what is served.
type source struct {
	of       *served // the hub
	before   atomic.Pointer[source]
	over     bool         // before is not in use any more, or another source calls its leave; guarded by the readers' mu
	answered highest      // the highest revision in answers
	floor    atomic.Int64 // the highest revision in answers of other sources: changes since then, or since an older revision, are not known

	generation int64 // differs from that of every other source of the kind

	asked atomic.Bool // the source was read
	once  sync.Once   // sets read
	read  runtime.Reader[runtime.Object]
}

// newSource returns the source of a hub. The caller has to set its floor.
func newSource(of *served, generation int64) *source {
	s := &source{of: of, generation: generation}
	s.floor.Store(math.MaxInt64)
	return s
}

// reader returns the reader of the objects, and makes it at the first call.
func (s *source) reader() runtime.Reader[runtime.Object] {
	s.once.Do(func() {
		s.read = s.of.newReader()
		s.asked.Store(true)
	})
	return s.read
}

// scope refuses a namespace that objects of the kind cannot have. named is true if one object is read, by its name.
func (s *source) scope(namespace string, named bool) error {
	switch {
	case namespace != "" && !s.of.Namespaced:
		return fmt.Errorf("reader of %s: the kind is cluster-scoped, and is read with the namespace \"\", not with %q", s.of.hub, namespace)
	case namespace == "" && named && s.of.Namespaced:
		return fmt.Errorf("reader of %s: the kind is namespaced: an object is read with its namespace", s.of.hub)
	}
	return nil
}

// changes calls the reader. A revision that another source has answered with counts as unknown, so that all objects are returned.
func (s *source) changes(ctx context.Context, since int64, at runtime.Freshness) (runtime.Changes[runtime.Object], error) {
	if since <= s.floor.Load() {
		since = 0
	}
	return s.reader().Changes(ctx, since, at)
}

// newReader makes the reader of the objects of a hub.
func (r *served) newReader() runtime.Reader[runtime.Object] {
	var store storage.Interface
	switch {
	case r.Custom != nil:
		return newCustomReader(r)
	case r.cache != nil:
		store = r.cache
	default:
		store = r.objects
	}
	made, err := reader.New(store, reader.Options{Status: r.reg.ReaderStatus, Version: r.hub.GroupVersion()})
	if err != nil {
		return brokenReader{fmt.Errorf("reader of %s: %w", r.hub, err)}
	}
	return made
}

// customReader reads the objects of a kind from its own Storage. It calls the Storage each time, so that every read is Live. Get
// cannot be Exactly: a Getter has no such option.
type customReader struct {
	of     *served
	getter registry.Getter // nil: the Storage is no Getter
	lister registry.Lister // nil: the Storage is no Lister
}

// newCustomReader returns the reader of a kind with a Storage of its own.
func newCustomReader(r *served) runtime.Reader[runtime.Object] {
	c := &customReader{of: r}
	c.getter, _ = registry.As[registry.Getter](r.Custom)
	c.lister, _ = registry.As[registry.Lister](r.Custom)
	if c.getter == nil && c.lister == nil {
		return brokenReader{c.cannot("read: it is neither a registry.Getter nor a registry.Lister")}
	}
	return c
}

func (c *customReader) cannot(what string) error {
	return fmt.Errorf("reader of %s: the kind has a Storage of its own (%T), which cannot be %s", c.of.hub, c.of.Custom, what)
}

// Get implements runtime.Reader.
func (c *customReader) Get(ctx context.Context, namespace, name string, at runtime.Freshness) (runtime.Object, error) {
	if c.getter == nil {
		return nil, c.cannot("asked for one object: it is no registry.Getter")
	}
	opts := &metav1.GetOptions{}
	if _, ok := at.Exactly(); ok {
		return nil, c.cannot("asked for one object at a revision")
	}
	if revision, ok := at.AtLeast(); ok {
		opts.ResourceVersion = strconv.FormatInt(revision, 10)
	}
	obj, err := c.getter.Get(registry.NewDecidedCall(ctx, authn.System(), namespace, c.of.policy), name, opts)
	if err == nil && obj == nil {
		err = c.cannot("read: it returned no object and no error")
	}
	return obj, err
}

// List implements runtime.Reader.
func (c *customReader) List(ctx context.Context, q runtime.Query) (runtime.Listed[runtime.Object], error) {
	var out runtime.Listed[runtime.Object]
	if c.lister == nil {
		return out, c.cannot("listed: it is no registry.Lister")
	}
	opts := &metav1.ListOptions{}
	if q.Labels != nil {
		opts.LabelSelector = q.Labels.String()
	}
	if q.Fields != nil {
		opts.FieldSelector = q.Fields.String()
	}
	if revision, ok := q.At.AtLeast(); ok {
		opts.ResourceVersion, opts.ResourceVersionMatch = strconv.FormatInt(revision, 10), metav1.ResourceVersionMatchNotOlderThan
	}
	if revision, ok := q.At.Exactly(); ok {
		opts.ResourceVersion, opts.ResourceVersionMatch = strconv.FormatInt(revision, 10), metav1.ResourceVersionMatchExact
	}
	selects, err := registry.Selects(opts)
	if err != nil {
		return out, err
	}
	list, err := c.lister.List(registry.NewDecidedCall(ctx, authn.System(), q.Namespace, c.of.policy), opts)
	if err != nil {
		return out, err
	}
	items, err := meta.ExtractList(list)
	if err != nil {
		return out, fmt.Errorf("list of %s: %w", c.of.hub, err)
	}
	if m, err := meta.ListAccessor(list); err == nil {
		out.Revision, _ = strconv.ParseInt(m.GetResourceVersion(), 10, 64) // 0 if it is not a number
	}
	for _, obj := range items {
		m, err := meta.Accessor(obj)
		if err != nil {
			return runtime.Listed[runtime.Object]{}, fmt.Errorf("object of %s: %w", c.of.hub, err)
		}
		if (q.Namespace == "" || m.GetNamespace() == q.Namespace) && selects(m) {
			out.Items = append(out.Items, obj)
		}
	}
	return out, nil
}

// Changes implements runtime.Reader. The result is always a Reset.
func (c *customReader) Changes(ctx context.Context, _ int64, at runtime.Freshness) (runtime.Changes[runtime.Object], error) {
	l, err := c.List(ctx, runtime.Query{At: at})
	if err != nil {
		return runtime.Changes[runtime.Object]{}, err
	}
	out := runtime.Changes[runtime.Object]{Revision: l.Revision, Reset: true}
	for _, obj := range l.Items {
		m, err := meta.Accessor(obj)
		if err != nil {
			return runtime.Changes[runtime.Object]{}, fmt.Errorf("object of %s: %w", c.of.hub, err)
		}
		out.All = append(out.All, runtime.Change[runtime.Object]{Namespace: m.GetNamespace(), Name: m.GetName(), Object: obj})
	}
	return out, nil
}

// Changed implements runtime.Reader. It returns the zero LastChange, since changes are not known.
func (c *customReader) Changed() runtime.LastChange { return runtime.LastChange{} }

// Ready implements runtime.Reader.
func (c *customReader) Ready(context.Context) error { return nil }

// brokenReader is a Reader whose reads return an error.
type brokenReader struct{ err error }

// Get implements runtime.Reader.
func (b brokenReader) Get(context.Context, string, string, runtime.Freshness) (runtime.Object, error) {
	return nil, b.err
}

// List implements runtime.Reader.
func (b brokenReader) List(context.Context, runtime.Query) (runtime.Listed[runtime.Object], error) {
	return runtime.Listed[runtime.Object]{}, b.err
}

// Changes implements runtime.Reader.
func (b brokenReader) Changes(context.Context, int64, runtime.Freshness) (runtime.Changes[runtime.Object], error) {
	return runtime.Changes[runtime.Object]{}, b.err
}

// Changed implements runtime.Reader.
func (b brokenReader) Changed() runtime.LastChange { return runtime.LastChange{} }

// Ready implements runtime.Reader.
func (b brokenReader) Ready(context.Context) error { return b.err }
