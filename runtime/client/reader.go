package client

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/keelson-dev/keelson/runtime"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

// OutageError is returned by Ready if Cached reads are answered from objects that may be out of date, because the server could
// not be reached for longer than ReadersOptions.Stale. It does not wrap runtime.ErrNotReady.
type OutageError struct {
	Kind  schema.GroupVersionKind // the kind of the Reader
	Since time.Time               // when the connection was lost, or could not be made again
	Err   error                   // the last error
}

// Error implements error.
func (o *OutageError) Error() string {
	return fmt.Sprintf("the objects of %s may be out of date since %s: %v", o.Kind, o.Since.UTC().Format(time.RFC3339), o.Err)
}

// Unwrap returns Err.
func (o *OutageError) Unwrap() error { return o.Err }

// view is the data of a reader at one time. It is immutable, except that next is closed when there is a newer view.
type view struct {
	*state // nil: nothing is loaded
	source *source
	failed error     // the last error since the last success; nil: none
	since  time.Time // when failed was first set
	next   chan struct{}
}

// source describes the resource that the objects are read from.
type source struct {
	resource Resource
	decoder  decoder
}

var _ runtime.Reader[runtime.Object] = (*reader)(nil)

// Ready implements runtime.Reader.
func (r *reader) Ready(context.Context) error {
	v := r.view()
	switch {
	case v.state == nil:
		return r.notReady(v)
	case v.failed != nil && time.Since(v.since) > r.of.opts.Stale:
		return &OutageError{r.kind, v.since, v.failed}
	}
	return nil
}

// Changed implements runtime.Reader. After a list its revision may be later than that of the newest change: see [Readers].
func (r *reader) Changed() runtime.LastChange {
	if v := r.view(); v.state != nil {
		return runtime.LastChange{Revision: v.changed, Generation: v.generation}
	}
	return runtime.LastChange{}
}

// loaded returns a view with objects. It waits for the first objects as long as nothing has failed.
func (r *reader) loaded(ctx context.Context) (*view, error) {
	v := r.view()
	if v.state != nil {
		return v, ctx.Err()
	}
	ctx, cancel := context.WithTimeoutCause(ctx, r.of.opts.Wait, errWaited)
	defer cancel()
	for v.state == nil {
		if v.failed != nil {
			return nil, r.notReady(v)
		}
		select {
		case <-v.next:
			v = r.now.Load()
		case <-ctx.Done():
			if errors.Is(context.Cause(ctx), errWaited) {
				return nil, r.notReady(v)
			}
			return nil, ctx.Err()
		}
	}
	return v, nil
}

// errWaited is the cause of a context that ended because of ReadersOptions.Wait.
var errWaited = errors.New("waited long enough")

// reached waits for a state at a revision or later, and returns its view.
func (r *reader) reached(ctx context.Context, revision int64) (*view, error) {
	v, err := r.loaded(ctx)
	if err != nil || v.revision >= revision {
		return v, err
	}
	ctx, cancel := context.WithTimeoutCause(ctx, r.of.opts.Wait, errWaited)
	defer cancel()
	ask := time.NewTicker(r.of.opts.Refresh)
	defer ask.Stop()
	for v.revision < revision {
		select {
		case <-v.next:
		case <-ask.C:
			r.refresh(revision)
		case <-ctx.Done():
			if errors.Is(context.Cause(ctx), errWaited) {
				return nil, tooLarge(revision, v)
			}
			return nil, ctx.Err()
		}
		if v = r.now.Load(); v.state == nil {
			return nil, r.notReady(v)
		}
	}
	return v, nil
}

// at returns the view and the revision for a freshness other than Live.
func (r *reader) at(ctx context.Context, at runtime.Freshness) (*view, int64, error) {
	if revision, ok := at.Exactly(); ok {
		v, err := r.reached(ctx, revision)
		if err != nil {
			return nil, 0, err
		}
		if revision < v.exactFrom {
			return nil, 0, apierrors.NewResourceExpired(fmt.Sprintf("too old resource version: %d (%d)", revision, v.exactFrom))
		}
		return v, revision, nil
	}
	revision, _ := at.AtLeast()
	v, err := r.reached(ctx, revision)
	if err != nil {
		return nil, 0, err
	}
	return v, v.revision, nil
}

// Get implements runtime.Reader.
func (r *reader) Get(ctx context.Context, namespace, name string, at runtime.Freshness) (runtime.Object, error) {
	if at.IsLive() {
		return r.getLive(ctx, namespace, name)
	}
	v, revision, err := r.at(ctx, at)
	if err != nil {
		return nil, err
	}
	i, ok := v.get(key(namespace, name), revision)
	if !ok {
		return nil, apierrors.NewNotFound(v.source.resource.GroupResource(), name)
	}
	return i.obj, nil
}

// List implements runtime.Reader. Field selectors other than metadata.name and metadata.namespace are evaluated by the server, as
// in a Live list, and are not possible with Exactly.
func (r *reader) List(ctx context.Context, q runtime.Query) (runtime.Listed[runtime.Object], error) {
	if q.At.IsLive() {
		return r.listLive(ctx, q)
	}
	if q.Fields != nil && !localFields(q.Fields) {
		return r.listFields(ctx, q)
	}
	v, revision, err := r.at(ctx, q.At)
	if err != nil {
		return runtime.Listed[runtime.Object]{}, err
	}
	out := runtime.Listed[runtime.Object]{Revision: revision}
	add := func(i *item) bool {
		if matches(q, i.meta) {
			out.Items = append(out.Items, i.obj)
		}
		return ctx.Err() == nil
	}
	if namespace, name, ok := oneOf(q, v.source.resource.Namespaced); ok {
		if i, ok := v.get(key(namespace, name), revision); ok {
			add(i)
		}
	} else {
		v.scan(q.Namespace, revision, add)
	}
	return out, ctx.Err()
}

// oneOf returns the name of the only object that a query can select, if the query names one.
func oneOf(q runtime.Query, namespaced bool) (namespace, name string, ok bool) {
	if q.Fields == nil || namespaced && q.Namespace == "" {
		return "", "", false
	}
	name, ok = q.Fields.RequiresExactMatch("metadata.name")
	return q.Namespace, name, ok && name != ""
}

func localFields(s fields.Selector) bool {
	for _, one := range s.Requirements() {
		if one.Field != "metadata.name" && one.Field != "metadata.namespace" {
			return false
		}
	}
	return true
}

func matches(q runtime.Query, m metav1.Object) bool {
	if q.Namespace != "" && m.GetNamespace() != q.Namespace {
		return false
	}
	if q.Labels != nil && !q.Labels.Empty() && !q.Labels.Matches(labels.Set(m.GetLabels())) {
		return false
	}
	return q.Fields == nil || q.Fields.Empty() ||
		q.Fields.Matches(fields.Set{"metadata.name": m.GetName(), "metadata.namespace": m.GetNamespace()})
}

// Changes implements runtime.Reader. For Live it asks the server for its revision, and waits for that revision.
func (r *reader) Changes(ctx context.Context, since int64, at runtime.Freshness) (runtime.Changes[runtime.Object], error) {
	if at.IsLive() {
		v, err := r.loaded(ctx)
		if err != nil {
			return runtime.Changes[runtime.Object]{}, err
		}
		revision, err := r.newest(ctx, v.source)
		if err != nil {
			return runtime.Changes[runtime.Object]{}, r.liveError(err)
		}
		at = runtime.AtLeast(revision)
	}
	v, revision, err := r.at(ctx, at)
	if err != nil {
		return runtime.Changes[runtime.Object]{}, err
	}
	return v.changes(since, revision), nil
}
