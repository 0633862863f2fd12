package client

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/keelson-dev/keelson/runtime"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// where returns the resource of the objects, for reads that send a request to the server.
func (r *reader) where(ctx context.Context) (*source, error) {
	if v := r.view(); v.source != nil {
		return v.source, nil
	}
	return r.discover(ctx)
}

func (r *reader) getLive(ctx context.Context, namespace, name string) (runtime.Object, error) {
	src, err := r.where(ctx)
	if err != nil {
		return nil, r.liveError(err)
	}
	var text json.RawMessage
	if err := r.of.client.Get(ctx, src.target(namespace, name), &text); err != nil {
		return nil, r.liveError(err)
	}
	i, err := src.decoder.decode(ctx, text)
	if err != nil {
		return nil, fmt.Errorf("reader of %s: %w", r.kind, err)
	}
	return i.obj, nil
}

// liveError converts an error of the client to one of a Reader. An answer about the object or the request stays a StatusError. If
// the server cannot be reached, does not serve the kind, or does not let the client read it, the error wraps ErrNotReady.
func (r *reader) liveError(err error) error {
	status := apierrors.APIStatus(nil)
	if errors.Is(err, context.Canceled) || errors.Is(err, context.DeadlineExceeded) {
		return err
	}
	if errors.As(err, &status) && !apierrors.IsUnauthorized(err) && !apierrors.IsForbidden(err) {
		noObject := status.Status().Details != nil && status.Status().Details.Name != "" && !apierrors.IsUnexpectedServerError(err)
		if noObject || !apierrors.IsNotFound(err) {
			return err
		}
	}
	return fmt.Errorf("reader of %s: %w: %w", r.kind, runtime.ErrNotReady, opaque(err))
}

func (r *reader) listLive(ctx context.Context, q runtime.Query) (runtime.Listed[runtime.Object], error) {
	none := runtime.Listed[runtime.Object]{}
	src, err := r.where(ctx)
	if err != nil {
		return none, r.liveError(err)
	}
	o := metav1.ListOptions{}
	if q.Labels != nil {
		o.LabelSelector = q.Labels.String()
	}
	if q.Fields != nil {
		o.FieldSelector = q.Fields.String()
	}
	var items []*item
	bytes, bounds := 0, r.of.opts.limits()
	revision, err := r.pages(ctx, src, q.Namespace, o, func() { items, bytes = nil, 0 }, func(i *item) error {
		items = append(items, i)
		bytes += i.size
		return bounds.check(len(items), bytes)
	})
	if err != nil {
		return none, r.liveError(err)
	}
	slices.SortFunc(items, func(a, b *item) int {
		return cmp.Or(strings.Compare(a.meta.GetNamespace(), b.meta.GetNamespace()), strings.Compare(a.meta.GetName(), b.meta.GetName()))
	})
	out := runtime.Listed[runtime.Object]{Revision: revision, Items: make([]runtime.Object, len(items))}
	for n, i := range items {
		out.Items[n] = i.obj
	}
	return out, nil
}

// listFields lists by field selectors that only the server can evaluate.
func (r *reader) listFields(ctx context.Context, q runtime.Query) (runtime.Listed[runtime.Object], error) {
	if _, ok := q.At.Exactly(); ok {
		return runtime.Listed[runtime.Object]{}, apierrors.NewBadRequest(fmt.Sprintf(
			"the field selector %q cannot be used at an exact revision: of another server's objects only metadata.name and metadata.namespace can", q.Fields))
	}
	l, err := r.listLive(ctx, q)
	if revision, ok := q.At.AtLeast(); ok && err == nil && l.Revision < revision {
		return runtime.Listed[runtime.Object]{}, tooLarge(revision, &view{state: &state{revision: l.Revision}})
	}
	return l, err
}

// maxRestarts limits how often a list starts again because its continue token expired.
const maxRestarts = 3

const maxEmptyPages = 10

// newest returns the current revision of the server.
func (r *reader) newest(ctx context.Context, src *source) (int64, error) {
	var p page
	if err := r.of.client.List(ctx, src.target("", ""), metav1.ListOptions{Limit: 1}, &p); err != nil {
		return 0, err
	}
	return parseRevision(p.Metadata.ResourceVersion)
}

// refresh lists the objects in the background if their revision is lower than one that the server has, because the watch may have
// no events to send. Only one refresh runs at a time, and the pause after it is twice as long as it took.
func (r *reader) refresh(revision int64) {
	r.mu.Lock()
	early := time.Now().Before(r.refreshed)
	r.mu.Unlock()
	if early || !r.refreshing.CompareAndSwap(false, true) {
		return
	}
	began := r.of.run(func(ctx context.Context) {
		defer r.refreshing.Store(false)
		begin := time.Now()
		err := r.refreshNow(ctx, revision)
		took := time.Since(begin)
		r.mu.Lock()
		r.refreshed = time.Now().Add(max(r.of.opts.Refresh, 2*took))
		r.mu.Unlock()
		if err != nil && ctx.Err() == nil {
			r.of.opts.Hooks.Retry(r.kind, err, max(r.of.opts.Refresh, 2*took))
		}
	})
	if !began {
		r.refreshing.Store(false)
	}
}

func (r *reader) refreshNow(ctx context.Context, revision int64) error {
	v := r.now.Load()
	if v.state == nil || v.revision >= revision {
		return nil
	}
	newest, err := r.newest(ctx, v.source)
	if err != nil || newest < revision {
		return err
	}
	if v = r.now.Load(); v.state == nil || v.revision >= revision {
		return nil
	}
	return r.list(ctx, v.source)
}
