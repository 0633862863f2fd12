package request

import (
	"github.com/keelson-dev/keelson/authn"
	"github.com/keelson-dev/keelson/authz"
	"github.com/keelson-dev/keelson/runtime/selector"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/labels"
)

// Info is what a request's method and path say it wants. It is immutable once it is in a context.
type Info struct {
	// ResourceRequest tells a request for an API resource from one for a plain path.
	ResourceRequest bool
	Path            string // the URL path, as received
	Verb            string // get, list, watch, create, update, patch, delete, deletecollection; else the HTTP method in lower case

	// Of a resource request.
	APIPrefix   string // "api" or "apis"
	APIGroup    string // "" for the core group
	APIVersion  string
	Namespace   string // "" when cluster-scoped or across all namespaces
	Name        string // "" for a collection; from fieldSelector metadata.name for list and watch
	Resource    string // the plural, "widgets"
	Subresource string
	// Parts are the path's segments from the resource on, decoded: [resource, name, subresource, ...]. A name or
	// namespace may hold anything here, slashes, "%" and ".." included: whoever serves objects refuses those.
	Parts []string
	// Selectors of list, watch and deletecollection as sent, which may not parse; "" with a watch in the path.
	FieldSelector, LabelSelector string
	SelectorLimit                selector.Limit // by which Selectors parses them
	// DeprecatedWatch marks the old form /watch/ in the path.
	DeprecatedWatch bool
}

// Selectors parses FieldSelector and LabelSelector. One that is "", does not parse or is larger than SelectorLimit is nil.
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

// Attributes says in an authorizer's words what user, who may be nil, wants with the request. Selectors, which cost a parse,
// are left out.
func (i *Info) Attributes(user *authn.User) authz.Attributes {
	return authz.Attributes{
		User: user, Verb: i.Verb, ResourceRequest: i.ResourceRequest,
		APIGroup: i.APIGroup, APIVersion: i.APIVersion, Resource: i.Resource,
		Subresource: i.Subresource, Namespace: i.Namespace, Name: i.Name, Path: i.Path,
	}
}
