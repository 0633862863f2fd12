package request

import (
	"github.com/keelson-dev/keelson/authn"
	"github.com/keelson-dev/keelson/authz"
	"github.com/keelson-dev/keelson/runtime/selector"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/labels"
)

// Info is what a request is for, according to its method, path and query. It is immutable once it is in a context.
type Info struct {
	// ResourceRequest is true if the request is for an API resource, and false if it is for another path.
	ResourceRequest bool
	Path            string // the URL path, as received
	// Verb is get, list, watch, create, update, patch, delete, deletecollection or, from the path, proxy. It is "" for a resource
	// request with any other method. For a request that is not for a resource, it is the HTTP method in lower case.
	Verb string

	// The following fields are set for a resource request.
	APIPrefix string // "api" or "apis"
	APIGroup  string // "" for the core group
	// APIVersion is the version, such as "v1".
	APIVersion string
	Namespace  string // "" when cluster-scoped or across all namespaces
	Name       string // "" for a collection; from fieldSelector metadata.name for list and watch
	Resource   string // the plural name, "widgets"
	// Subresource is the name of the subresource, such as "status"; "" for the resource itself.
	Subresource string
	// Parts are the decoded segments of the path from the resource on: [resource, name, subresource, ...]. A name or namespace in
	// Parts is not validated, and may contain slashes, "%" and "..": handlers of objects have to refuse such names.
	Parts []string
	// FieldSelector and LabelSelector are the selectors of list, watch and deletecollection as they were sent, which may not
	// parse. They are "" with a watch in the path.
	FieldSelector, LabelSelector string
	SelectorLimit                selector.Limit // bounds for the selectors that Selectors parses
	// DeprecatedWatch is true if the path has the old form with /watch/.
	DeprecatedWatch bool
}

// Selectors parses FieldSelector and LabelSelector. A selector that is "", does not parse or is larger than SelectorLimit is nil.
func (i *Info) Selectors() (fields.Selector, labels.Selector) {
	var byFields fields.Selector
	var byLabels labels.Selector
	if i.FieldSelector != "" {
		if s, err := i.SelectorLimit.ParseFields(i.FieldSelector); err == nil {
			byFields = s
		}
	}
	if i.LabelSelector != "" {
		if s, err := i.SelectorLimit.ParseLabels(i.LabelSelector); err == nil {
			byLabels = s
		}
	}
	return byFields, byLabels
}

// Attributes returns the attributes of the request by user, which may be nil, for an authorizer. The attributes have no
// selectors, because parsing these takes time: see Selectors.
func (i *Info) Attributes(user *authn.User) authz.Attributes {
	return authz.Attributes{
		User: user, Verb: i.Verb, ResourceRequest: i.ResourceRequest,
		APIGroup: i.APIGroup, APIVersion: i.APIVersion, Resource: i.Resource,
		Subresource: i.Subresource, Namespace: i.Namespace, Name: i.Name, Path: i.Path,
	}
}
