package request

import (
	"fmt"
	"net/http"
	"net/url"
	"slices"
	"strings"

	"github.com/keelson-dev/keelson/runtime/excerpt"
	"github.com/keelson-dev/keelson/runtime/selector"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/validate/content"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/fields"
)

// Resolver resolves requests. The zero Resolver has the default limits.
type Resolver struct {
	// Selectors bounds the selectors of a collection. One that is larger is treated as one that does not parse: the handler
	// refuses it, and nothing is allowed because of it before.
	Selectors selector.Limit
}

// Resolve is [Resolver.Resolve] of the zero Resolver.
func Resolve(r *http.Request) (*Info, error) { return Resolver{}.Resolve(r) }

// Resolve reads a request's method, path and query. It never panics, and it judges form only: whether the resource
// exists, and whether a name is a good one, is for others to say.
//
//   - /api/VERSION/... and /apis/GROUP/VERSION/... with at least one more segment are requests for a resource; every
//     other path is plain. Slashes at the end do not count.
//   - /namespaces/NAMESPACE/RESOURCE/... is a resource in a namespace; /namespaces/NAME and its subresources status
//     and finalize are the resource namespaces, with NAME as namespace too.
//   - GET of a collection is a list, or a watch with ?watch (false and 0 aside); DELETE of one is deletecollection.
//     When the fieldSelector of a GET asks for one metadata.name, that is its name.
//   - watch and proxy as the segment after the version are the verb, in the old form of the path.
//
// The path is split as it was sent, before percent-decoding, so that %2F is a slash in a name, which no object may
// have, and not the start of a subresource. Where it could only serve to make one path look like another, before
// the resource, in it or in the subresource, it is an error. All errors are StatusErrors with code 400.
func (o Resolver) Resolve(r *http.Request) (*Info, error) {
	info := &Info{Path: r.URL.Path, SelectorLimit: o.Selectors}
	parts, err := split(r.URL)
	if err != nil {
		return nil, err
	}
	head := 3 // segments up to and with the resource
	if len(parts) > 0 && parts[0] == "apis" {
		head = 4
	}
	if len(parts) < head || !isAPIPrefix(parts[0]) {
		if hidesResource(r.URL, parts) {
			return nil, encodedSlash(r.URL)
		}
		info.Verb = strings.ToLower(r.Method)
		return info, nil
	}
	info.ResourceRequest, info.APIPrefix, info.APIVersion = true, parts[0], parts[head-2]
	if head == 4 {
		info.APIGroup = parts[1]
	}
	parts = parts[head-1:]

	if parts[0] == "watch" || parts[0] == "proxy" {
		if len(parts) < 2 {
			return nil, apierrors.NewBadRequest(fmt.Sprintf("unable to determine kind and namespace from url, %v", excerpt.Of(r.URL.String(), excerpt.Text)))
		}
		info.Verb, info.DeprecatedWatch = parts[0], parts[0] == "watch"
		parts = parts[1:]
	} else {
		info.Verb = MethodVerb(r.Method)
	}
	info.place(parts)
	if anySlash(info.APIGroup, info.APIVersion, info.Resource, info.Subresource) {
		return nil, encodedSlash(r.URL)
	}
	if info.Name == "" {
		info.readQuery(r.URL)
	}
	return info, nil
}

func isAPIPrefix(segment string) bool { return segment == "api" || segment == "apis" }

// split cuts the path into decoded segments.
func split(u *url.URL) ([]string, error) {
	if u.RawPath == "" { // no slash is encoded
		path := strings.Trim(u.Path, "/")
		if path == "" {
			return nil, nil
		}
		return strings.Split(path, "/"), nil
	}
	escaped := u.EscapedPath()
	if escaped != u.RawPath && hasEncodedSlash(u.RawPath) { // u.RawPath is not valid: escaped is made of u.Path, without those
		return nil, apierrors.NewBadRequest(fmt.Sprintf("the path %q has an encoded slash and a character that must be encoded", excerpt.Of(u.RawPath, excerpt.Text)))
	}
	path := strings.Trim(escaped, "/")
	if path == "" {
		return nil, nil
	}
	parts := strings.Split(path, "/")
	for i, raw := range parts {
		part, err := url.PathUnescape(raw)
		if err != nil { // EscapedPath returns valid escapes only
			return nil, apierrors.NewBadRequest(fmt.Sprintf("invalid path segment %q", excerpt.Of(raw, excerpt.Text)))
		}
		parts[i] = part
	}
	return parts, nil
}

func hasEncodedSlash(path string) bool {
	return strings.Contains(path, "%2f") || strings.Contains(path, "%2F")
}

// hidesResource reports whether a plain path is below the API for whoever looks at the decoded path: permission for
// plain paths must not open resources there.
func hidesResource(u *url.URL, parts []string) bool {
	first, _, below := strings.Cut(strings.Trim(u.Path, "/"), "/")
	return below && isAPIPrefix(first) && anySlash(parts...)
}

func anySlash(parts ...string) bool {
	return slices.ContainsFunc(parts, func(p string) bool { return strings.Contains(p, "/") })
}

func encodedSlash(u *url.URL) error {
	return apierrors.NewBadRequest(fmt.Sprintf("the path %q has an encoded slash where no name stands", excerpt.Of(u.EscapedPath(), excerpt.Text)))
}

// MethodVerb is the verb of an HTTP method on one object; "" for a method that has none.
func MethodVerb(method string) string {
	switch method {
	case http.MethodPost:
		return "create"
	case http.MethodGet, http.MethodHead:
		return "get"
	case http.MethodPut:
		return "update"
	case http.MethodPatch:
		return "patch"
	case http.MethodDelete:
		return "delete"
	}
	return ""
}

// place reads the segments after the version and a verb in the path.
func (i *Info) place(parts []string) {
	if parts[0] == "namespaces" && len(parts) > 1 {
		i.Namespace = parts[1]
		if len(parts) > 2 && parts[2] != "status" && parts[2] != "finalize" {
			parts = parts[2:]
		}
	}
	i.Parts = parts
	i.Resource = parts[0]
	if len(parts) > 1 {
		i.Name = parts[1]
	}
	if len(parts) > 2 && i.Verb != "proxy" { // what follows is the proxy's own path
		i.Subresource = parts[2]
	}
}

// readQuery completes the verb of a request without a name, and notes its selectors.
func (i *Info) readQuery(u *url.URL) {
	var query url.Values
	if u.RawQuery != "" {
		query = u.Query()
	}
	switch i.Verb {
	case "get":
		var watch bool
		i.Verb = "list"
		if i.Name, watch = i.collectionQuery(query); watch {
			i.Verb = "watch"
		}
	case "delete":
		i.Verb = "deletecollection"
	default: // a watch in the path has no selectors for authorization
		return
	}
	i.FieldSelector, i.LabelSelector = query.Get("fieldSelector"), query.Get("labelSelector")
}

// collectionQuery reads the options of a list. When they are not all readable only ?watch counts, for whoever
// answers with the error.
func (i *Info) collectionQuery(query url.Values) (name string, watch bool) {
	if len(query) == 0 {
		return "", false
	}
	var opts metav1.ListOptions
	err := metav1.Convert_url_Values_To_v1_ListOptions(&query, &opts, nil)
	var selector fields.Selector
	if err == nil {
		selector, err = i.SelectorLimit.ParseFields(opts.FieldSelector)
	}
	if err == nil {
		_, err = i.SelectorLimit.ParseLabels(opts.LabelSelector)
	}
	if err != nil {
		values := query["watch"]
		return "", len(values) > 0 && values[0] != "0" && !strings.EqualFold(values[0], "false")
	}
	if exact, ok := selector.RequiresExactMatch("metadata.name"); ok && len(content.IsPathSegmentName(exact)) == 0 {
		name = exact
	}
	return name, opts.Watch
}

// IsLongRunning reports whether a request may last: watches, and streams between client and something else. They
// have no deadline but their own, and do not count among the requests that a server limits or waits for.
// A nil info is not long-running.
func IsLongRunning(info *Info) bool {
	if info == nil {
		return false
	}
	if !info.ResourceRequest {
		return strings.HasPrefix(info.Path, "/debug/pprof/")
	}
	switch info.Verb {
	case "watch", "proxy":
		return true
	}
	switch info.Subresource {
	case "attach", "exec", "proxy", "log", "portforward":
		return true
	}
	return false
}
