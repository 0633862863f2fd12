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
	// Selectors bounds the selectors of a collection. A larger selector is treated as one that does not parse: the authorizer
	// does not see it, so that no rule for selectors allows the request, and the handler refuses it.
	Selectors selector.Limit
}

// Resolve calls [Resolver.Resolve] of the zero Resolver.
func Resolve(r *http.Request) (*Info, error) { return Resolver{}.Resolve(r) }

// Resolve resolves a request by its method, path and query. It never panics. It checks only the form: not whether the resource
// exists, nor whether a name is valid.
//
//   - /api/VERSION/... and /apis/GROUP/VERSION/... with at least one more segment are requests for a resource; every other path
//     is not. Slashes at the end do not count.
//   - /namespaces/NAMESPACE/RESOURCE/... is a resource in a namespace. /namespaces/NAME and its subresources status and finalize
//     are the resource namespaces, with NAME also as the namespace.
//   - GET of a collection is a list, or a watch with ?watch (except false and 0). DELETE of a collection is deletecollection. If
//     the fieldSelector of a GET selects one metadata.name, that is the Name.
//   - watch or proxy in the segment after the version is the verb, in the old form of the path.
//
// The path is split as it was sent, before percent-decoding. So %2F is a slash in a name, which no object may have, and not the
// start of a subresource. In the segments before the resource, in the resource and in the subresource, an encoded slash could
// only make one path look like another, and is an error. kube-apiserver splits the decoded path. All errors are StatusErrors with
// code 400.
func (o Resolver) Resolve(r *http.Request) (*Info, error) {
	info := &Info{Path: r.URL.Path, SelectorLimit: o.Selectors}
	parts, err := split(r.URL)
	if err != nil {
		return nil, err
	}
	head := 3 // number of segments up to and including the resource
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
	if escaped != u.RawPath && hasEncodedSlash(u.RawPath) { // u.RawPath is not valid: escaped is made from u.Path, and has no encoded slashes
		return nil, apierrors.NewBadRequest(fmt.Sprintf("the path %q has an encoded slash and a character that must be encoded", excerpt.Of(u.RawPath, excerpt.Text)))
	}
	path := strings.Trim(escaped, "/")
	if path == "" {
		return nil, nil
	}
	parts := strings.Split(path, "/")
	for i, raw := range parts {
		part, err := url.PathUnescape(raw)
		if err != nil { // cannot happen: EscapedPath returns valid escapes only
			return nil, apierrors.NewBadRequest(fmt.Sprintf("invalid path segment %q", excerpt.Of(raw, excerpt.Text)))
		}
		parts[i] = part
	}
	return parts, nil
}

func hasEncodedSlash(path string) bool {
	return strings.Contains(path, "%2f") || strings.Contains(path, "%2F")
}

// hidesResource reports whether the decoded form of a path is below the API, while the path as sent is not. Permission for paths
// that are not resources must not give access to resources.
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

// MethodVerb returns the verb of an HTTP method for one object, or "" if the method has none.
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

// place sets the fields from the segments that follow the version and a verb in the path.
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
	if len(parts) > 2 && i.Verb != "proxy" { // the segments that follow are the path for the proxy
		i.Subresource = parts[2]
	}
}

// readQuery sets the verb of a request without a name, and its selectors.
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

// collectionQuery reads the options of a list. If one of them is invalid, it uses only ?watch, which decides whether the request
// fails as a list or as a watch.
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

// IsLongRunning reports whether a request may last long: a watch, a request to the subresource attach, exec, log, portforward or
// proxy, or one for a path below /debug/pprof/. Filters give such a request no deadline. It does not count among the concurrent
// requests that server.Limits.MaxReadsInFlight and MaxWritesInFlight bound, or that a server waits for when it ends. A nil info
// is not long-running.
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
