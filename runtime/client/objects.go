package client

import (
	"context"
	stdjson "encoding/json"
	"fmt"
	"mime"
	"net/http"
	"net/url"
	"strconv"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/json"
)

// Target names an object, or the objects of a resource.
type Target struct {
	// Resource is the group, version and name of the resource.
	Resource schema.GroupVersionResource
	// Namespace is "" for a cluster-scoped resource, and for the objects of all namespaces.
	Namespace string
	// Name is the name of the object. It is "" for List, Create and Watch, except that Create has a name with a Subresource.
	Name        string
	Subresource string // such as "status", "scale" or "token"; "" means the object itself
	// Query is sent in addition to the options of the method, for example fieldManager, dryRun and fieldValidation.
	Query url.Values
}

// path returns the path of the target, below Config.Server.
func (t Target) path() (string, error) {
	if t.Resource.Version == "" || t.Resource.Resource == "" {
		return "", fmt.Errorf("client: the target %q has no version or no resource", t.Resource)
	}
	parts := []string{"/apis", t.Resource.Group, t.Resource.Version}
	if t.Resource.Group == "" {
		parts = []string{"/api", t.Resource.Version}
	}
	if t.Namespace != "" {
		parts = append(parts, "namespaces", t.Namespace)
	}
	parts = append(parts, t.Resource.Resource)
	if t.Name != "" {
		parts = append(parts, t.Name)
	}
	if t.Subresource != "" {
		parts = append(parts, strings.Split(t.Subresource, "/")...)
	}
	for _, part := range parts[1:] {
		if part == "" || part == "." || part == ".." || strings.ContainsAny(part, "/%") {
			return "", fmt.Errorf("client: %q cannot be part of a path; a name is not \"\", \".\" or \"..\" and has no / and no %%", part)
		}
	}
	return strings.Join(parts, "/"), nil
}

// named returns t, or an error if it does not name one object.
func (t Target) named() (Target, error) {
	if t.Name == "" {
		return t, fmt.Errorf("client: the target of %s has no name", t.Resource.GroupResource())
	}
	return t, nil
}

// Get reads an object into a pointer: to a struct, an unstructured.Unstructured, or a json.RawMessage for the JSON itself. If
// into is nil, Get only checks whether there is an error.
func (c *Client) Get(ctx context.Context, t Target, into any) error {
	t, err := t.named()
	if err != nil {
		return err
	}
	return c.object(ctx, http.MethodGet, t, nil, nil, into)
}

// List reads a list, or a page of one, into a pointer as Get does. The fields TypeMeta and Watch of o are not used.
func (c *Client) List(ctx context.Context, t Target, o metav1.ListOptions, into any) error {
	o.Watch = false
	return c.object(ctx, http.MethodGet, t, listQuery(o), nil, into)
}

// Create creates obj, which is JSON ([]byte, json.RawMessage) or a value that encoding/json encodes. It decodes the answer into a
// pointer as Get does.
func (c *Client) Create(ctx context.Context, t Target, obj, into any) error {
	return c.write(ctx, http.MethodPost, t, obj, into)
}

// Update replaces an object by obj, which has a type as for Create.
func (c *Client) Update(ctx context.Context, t Target, obj, into any) error {
	t, err := t.named()
	if err != nil {
		return err
	}
	return c.write(ctx, http.MethodPut, t, obj, into)
}

// Delete deletes one object. o may be nil.
func (c *Client) Delete(ctx context.Context, t Target, o *metav1.DeleteOptions) error {
	t, err := t.named()
	if err != nil {
		return err
	}
	if o == nil {
		return c.object(ctx, http.MethodDelete, t, nil, nil, nil)
	}
	options := *o
	options.Kind, options.APIVersion = "DeleteOptions", metav1.SchemeGroupVersion.String()
	return c.write(ctx, http.MethodDelete, t, &options, nil)
}

func (c *Client) write(ctx context.Context, method string, t Target, obj, into any) error {
	body, err := bodyOf(obj)
	if err != nil {
		return fmt.Errorf("client: %s of %s: %w", method, t.Resource.GroupResource(), err)
	}
	return c.object(ctx, method, t, nil, body, into)
}

// object sends a request for an object or a list.
func (c *Client) object(ctx context.Context, method string, t Target, query url.Values, body []byte, into any) error {
	r, err := t.request(method, query)
	if err != nil {
		return err
	}
	r.Body = body
	resp, err := c.Do(ctx, *r)
	if err != nil {
		return err
	}
	if err := decodeInto(resp, into); err != nil {
		return c.problem(r, err)
	}
	return nil
}

// request returns the request for a target.
func (t Target) request(method string, query url.Values) (*Request, error) {
	path, err := t.path()
	if err != nil {
		return nil, err
	}
	all := url.Values{}
	for _, q := range []url.Values{t.Query, query} {
		for name, values := range q {
			all[name] = values
		}
	}
	return &Request{Method: method, Path: path, Query: all, about: about{t.Resource.GroupResource(), t.Name}}, nil
}

// bodyOf returns obj as JSON.
func bodyOf(obj any) ([]byte, error) {
	switch obj := obj.(type) {
	case []byte:
		return obj, nil
	case stdjson.RawMessage:
		return obj, nil
	}
	return stdjson.Marshal(obj)
}

// decodeInto decodes an answer into a pointer.
func decodeInto(resp *Response, into any) error {
	if into == nil {
		return nil
	}
	if contentType := resp.Header.Get("Content-Type"); contentType != "" {
		if media, _, err := mime.ParseMediaType(contentType); err != nil || media != "application/json" {
			return fmt.Errorf("the answer is of the type %q; want application/json", contentType)
		}
	}
	switch into := into.(type) {
	case *[]byte:
		*into = resp.Body
		return nil
	case *stdjson.RawMessage:
		*into = resp.Body
		return nil
	}
	return json.UnmarshalCaseSensitivePreserveInts(resp.Body, into)
}

// listQuery returns the query for list options.
func listQuery(o metav1.ListOptions) url.Values {
	q := url.Values{}
	set := func(name, value string) {
		if value != "" {
			q.Set(name, value)
		}
	}
	flag := func(name string, value bool) {
		if value {
			q.Set(name, "true")
		}
	}
	set("labelSelector", o.LabelSelector)
	set("fieldSelector", o.FieldSelector)
	set("resourceVersion", o.ResourceVersion)
	set("resourceVersionMatch", string(o.ResourceVersionMatch))
	set("continue", o.Continue)
	set("shardSelector", o.ShardSelector)
	flag("watch", o.Watch)
	flag("allowWatchBookmarks", o.AllowWatchBookmarks)
	if o.Limit != 0 {
		q.Set("limit", strconv.FormatInt(o.Limit, 10))
	}
	if o.TimeoutSeconds != nil {
		q.Set("timeoutSeconds", strconv.FormatInt(*o.TimeoutSeconds, 10))
	}
	if o.SendInitialEvents != nil {
		q.Set("sendInitialEvents", strconv.FormatBool(*o.SendInitialEvents))
	}
	return q
}
