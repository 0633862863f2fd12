package client

import (
	"context"
	"errors"

	apierrors "k8s.io/apimachinery/pkg/api/errors"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

// list loads all objects in pages.
func (r *reader) list(ctx context.Context, src *source) error {
	before := r.revision()
	l := &load{items: map[string]*item{}}
	revision, err := r.pages(ctx, src, "", metav1.ListOptions{}, func() { *l = load{items: map[string]*item{}} }, func(i *item) error {
		return r.add(l, i)
	})
	if err != nil {
		return err
	}
	r.replace(src, l, revision, before)
	return nil
}

// discover returns the resource of the objects, in the hub version of the kind or in another version that converts to it.
func (r *reader) discover(ctx context.Context) (*source, error) {
	r.mu.Lock()
	src := r.source
	r.mu.Unlock()
	if src != nil {
		return src, nil
	}
	versions := []schema.GroupVersionKind{r.kind}
	if s := r.of.opts.Scheme; s != nil {
		for _, k := range s.Versions(r.kind.GroupKind()) {
			if k.GVK != r.kind && s.Converts(k.GVK) {
				versions = append(versions, k.GVK)
			}
		}
	}
	var missing error
	for _, gvk := range versions {
		resource, err := r.of.client.Resource(ctx, gvk)
		if err == nil {
			src := &source{resource, decoder{r.of.opts.Scheme, gvk, r.kind}}
			r.setSource(src)
			return src, nil
		}
		if !meta.IsNoMatchError(err) {
			return nil, err
		}
		if missing == nil {
			missing = err
		}
	}
	return nil, missing
}

// pages lists in pages. It calls again before each attempt, and add with each object. It returns the revision of the list. If add
// returns an error, pages stops and returns it.
func (r *reader) pages(ctx context.Context, src *source, namespace string, o metav1.ListOptions, again func(), add func(*item) error) (int64, error) {
	size := r.of.opts.PageSize
	for restarts := 0; ; restarts++ {
		again()
		revision, err := r.somePages(ctx, src, namespace, o, &size, add)
		if err == nil || !apierrors.IsResourceExpired(err) && !apierrors.IsGone(err) || restarts >= maxRestarts {
			return revision, err
		}
	}
}

// somePages lists once. size is the number of objects in a page, which is halved if a page is too long.
func (r *reader) somePages(ctx context.Context, src *source, namespace string, o metav1.ListOptions, size *int, add func(*item) error) (int64, error) {
	var revision int64
	for empty := 0; ; {
		o.Limit = int64(*size)
		var p page
		err := r.of.client.List(ctx, src.target(namespace, ""), o, &p)
		if errors.Is(err, ErrTooLong) && *size > 1 {
			*size /= 2
			continue
		}
		if err != nil {
			return 0, err
		}
		if revision == 0 {
			if revision, err = parseRevision(p.Metadata.ResourceVersion); err != nil {
				return 0, err
			}
		}
		for n, text := range p.Items {
			i, err := src.decoder.decode(ctx, text)
			if err == nil {
				err = add(i)
			}
			if err != nil {
				return 0, err
			}
			p.Items[n] = nil
		}
		if o.Continue = p.Metadata.Continue; o.Continue == "" {
			return revision, nil
		}
		if len(p.Items) > 0 {
			empty = 0
		} else if empty++; empty > maxEmptyPages {
			return 0, errors.New("the list goes on with pages without objects")
		}
	}
}
