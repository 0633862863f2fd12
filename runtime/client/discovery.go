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

// Resource is what a server serves the objects of a kind as.
type Resource struct {
	schema.GroupVersionResource
	Kind       schema.GroupVersionKind
	Namespaced bool
	Verbs      []string // shared: nobody changes them
}

// maxVersions bounds the group versions that are remembered.
const maxVersions = 256

// resourceCache remembers the resources of group versions.
type resourceCache struct {
	mu       sync.Mutex // guards versions
	versions map[schema.GroupVersion]*metav1.APIResourceList
}

// Resource returns what the server serves a kind as, by discovery of its group version, which the Client remembers until
// ForgetResources. A kind that is not served is a *meta.NoKindMatchError, see meta.IsNoMatchError; that is not remembered.
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

// ForgetResources has the next Resource of a group version ask the server.
func (c *Client) ForgetResources(gv schema.GroupVersion) {
	c.resources.mu.Lock()
	defer c.resources.mu.Unlock()
	delete(c.resources.versions, gv)
}

func noKind(kind schema.GroupVersionKind) error {
	return &meta.NoKindMatchError{GroupKind: kind.GroupKind(), SearchedVersions: []string{kind.Version}}
}

// resourceOf finds the resource of a kind in a list, which may be nil. One that can be listed comes before others.
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
