package client

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"sync"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

// Resource describes the resource under which a server serves the objects of a kind.
type Resource struct {
	// GroupVersionResource is the group, version and name of the resource.
	schema.GroupVersionResource
	Kind       schema.GroupVersionKind // the kind of the objects
	Namespaced bool                    // the objects are in namespaces
	Verbs      []string                // the verbs of the resource; shared, must not be changed
}

// maxVersions limits the group versions that are cached.
const maxVersions = 256

// resourceCache caches the resources of group versions.
type resourceCache struct {
	mu       sync.Mutex // guards versions
	versions map[schema.GroupVersion]*metav1.APIResourceList
}

// Resource returns the resource of a kind, by discovery of its group version, which the Client caches until ForgetResources. For
// a kind that is not served the error is a *meta.NoKindMatchError (see meta.IsNoMatchError); that answer is not cached.
func (c *Client) Resource(ctx context.Context, kind schema.GroupVersionKind) (Resource, error) {
	gv := kind.GroupVersion()
	c.resources.mu.Lock()
	known := c.resources.versions[gv]
	c.resources.mu.Unlock()
	if r, ok := resourceOf(known, kind); ok {
		return r, nil
	}
	path := "/apis/" + gv.String()
	if gv.Group == "" {
		path = "/api/" + gv.Version
	}
	if gv.Version == "" || strings.ContainsAny(gv.Group+gv.Version, "/%?#") {
		return Resource{}, fmt.Errorf("client: %q is no group version", gv)
	}
	list := &metav1.APIResourceList{}
	resp, err := c.Do(ctx, Request{Path: path})
	if err == nil {
		err = decodeInto(resp, list)
	}
	if apierrors.IsNotFound(err) {
		return Resource{}, noKind(kind)
	}
	if err != nil {
		return Resource{}, fmt.Errorf("discovery of %s: %w", gv, err)
	}
	r, ok := resourceOf(list, kind)
	if !ok {
		return Resource{}, noKind(kind)
	}
	c.resources.mu.Lock()
	defer c.resources.mu.Unlock()
	if c.resources.versions == nil || len(c.resources.versions) >= maxVersions {
		c.resources.versions = map[schema.GroupVersion]*metav1.APIResourceList{}
	}
	c.resources.versions[gv] = list
	return r, nil
}

// ForgetResources removes a group version from the cache, so that the next call of Resource sends a request to the server.
func (c *Client) ForgetResources(gv schema.GroupVersion) {
	c.resources.mu.Lock()
	defer c.resources.mu.Unlock()
	delete(c.resources.versions, gv)
}

func noKind(kind schema.GroupVersionKind) error {
	return &meta.NoKindMatchError{GroupKind: kind.GroupKind(), SearchedVersions: []string{kind.Version}}
}

// resourceOf finds the resource of a kind in a list, which may be nil. It prefers a resource that can be listed.
func resourceOf(list *metav1.APIResourceList, kind schema.GroupVersionKind) (found Resource, ok bool) {
	if list == nil {
		return Resource{}, false
	}
	for i := range list.APIResources {
		r := &list.APIResources[i]
		if r.Kind != kind.Kind || strings.Contains(r.Name, "/") || ok && !slices.Contains(r.Verbs, "list") {
			continue
		}
		if ok && slices.Contains(found.Verbs, "list") {
			continue
		}
		found, ok = Resource{kind.GroupVersion().WithResource(r.Name), kind, r.Namespaced, r.Verbs}, true
	}
	return found, ok
}
