package client

import (
	"context"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

// list loads the objects in pages.
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

// discover returns where the objects are: the hub of a kind, or another version that converts to it.
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
