package webhook

import (
	"bytes"
	"encoding/json"

	"github.com/keelson-dev/keelson/authz"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/selection"
)

// Spec is the spec of a SubjectAccessReview in authorization.k8s.io/v1. It has either ResourceAttributes or NonResourceAttributes. Fields
// have the names of Kubernetes.
type Spec struct {
	ResourceAttributes    *ResourceAttributes    `json:"resourceAttributes,omitempty"`
	NonResourceAttributes *NonResourceAttributes `json:"nonResourceAttributes,omitempty"`
	User                  string                 `json:"user,omitempty"`
	Groups                []string               `json:"groups,omitempty"`
	Extra                 map[string][]string    `json:"extra,omitempty"`
	UID                   string                 `json:"uid,omitempty"`
}

// ResourceAttributes describe a request for a resource.
type ResourceAttributes struct {
	Namespace     string    `json:"namespace,omitempty"`
	Verb          string    `json:"verb,omitempty"`
	Group         string    `json:"group,omitempty"`
	Version       string    `json:"version,omitempty"`
	Resource      string    `json:"resource,omitempty"`
	Subresource   string    `json:"subresource,omitempty"`
	Name          string    `json:"name,omitempty"`
	FieldSelector *Selector `json:"fieldSelector,omitempty"` // nil if there is none
	LabelSelector *Selector `json:"labelSelector,omitempty"`
}

// NonResourceAttributes describe a request for a path.
type NonResourceAttributes struct {
	Path string `json:"path,omitempty"`
	Verb string `json:"verb,omitempty"`
}

// Selector is a selector of fields or labels. All requirements hold.
type Selector struct {
	Requirements []Requirement `json:"requirements,omitempty"`
}

// Requirement is a requirement of a selector. The operator is In, NotIn, Exists or DoesNotExist.
type Requirement struct {
	Key      string   `json:"key"`
	Operator string   `json:"operator"`
	Values   []string `json:"values,omitempty"`
}

const (
	reviewKind  = "SubjectAccessReview"
	reviewGroup = "authorization.k8s.io/"
)

// subjectAccessReview is a SubjectAccessReview. Spec is that of its version.
type subjectAccessReview struct {
	Kind       string          `json:"kind"`
	APIVersion string          `json:"apiVersion"`
	Metadata   struct{}        `json:"metadata"`
	Spec       json.RawMessage `json:"spec"`
	Status     status          `json:"status"`
}

type status struct {
	Allowed bool   `json:"allowed"`
	Denied  bool   `json:"denied,omitempty"`
	Reason  string `json:"reason,omitempty"`
}

// specV1beta1 is a Spec in v1beta1, which names the groups otherwise.
type specV1beta1 struct {
	ResourceAttributes    *ResourceAttributes    `json:"resourceAttributes,omitempty"`
	NonResourceAttributes *NonResourceAttributes `json:"nonResourceAttributes,omitempty"`
	User                  string                 `json:"user,omitempty"`
	Groups                []string               `json:"group,omitempty"`
	Extra                 map[string][]string    `json:"extra,omitempty"`
	UID                   string                 `json:"uid,omitempty"`
}

// encode returns a spec in a version, in JSON.
func encode(s *Spec, version string) ([]byte, error) {
	if version == V1beta1 {
		return json.Marshal((*specV1beta1)(s))
	}
	return json.Marshal(s)
}

// reviewOf returns a review of a version with a spec, in JSON. It ends with a line feed, as that of kube-apiserver.
func reviewOf(spec []byte, version string) ([]byte, error) {
	var text bytes.Buffer
	err := json.NewEncoder(&text).Encode(subjectAccessReview{Kind: reviewKind, APIVersion: reviewGroup + version, Spec: spec})
	return text.Bytes(), err
}

// specOf returns the spec that describes a request.
func specOf(a authz.Attributes) *Spec {
	s := &Spec{}
	if u := a.User; u != nil {
		s.User, s.UID, s.Groups, s.Extra = u.Name, u.UID, u.Groups, u.Extra
	}
	if !a.ResourceRequest {
		s.NonResourceAttributes = &NonResourceAttributes{Path: a.Path, Verb: a.Verb}
		return s
	}
	s.ResourceAttributes = &ResourceAttributes{
		Namespace: a.Namespace, Verb: a.Verb, Group: a.APIGroup, Version: a.APIVersion, Resource: a.Resource, Subresource: a.Subresource, Name: a.Name,
		FieldSelector: selectorOf(a.FieldSelector, fieldRequirement), LabelSelector: selectorOf(a.LabelSelector, labelRequirement),
	}
	return s
}

// selectorOf returns a selector of requirements, or nil if there are none. Those that a review cannot have are left out: the selector then
// selects more than the request does, so that a webhook which restricts requests by selectors allows no more.
func selectorOf[R any](all []R, convert func(R) (Requirement, bool)) *Selector {
	var s Selector
	for _, r := range all {
		if converted, ok := convert(r); ok {
			s.Requirements = append(s.Requirements, converted)
		}
	}
	if s.Requirements == nil {
		return nil
	}
	return &s
}

const in, notIn, exists, doesNotExist = "In", "NotIn", "Exists", "DoesNotExist"

func fieldRequirement(r fields.Requirement) (Requirement, bool) {
	switch r.Operator {
	case selection.Equals, selection.DoubleEquals, selection.In:
		return Requirement{r.Field, in, []string{r.Value}}, true
	case selection.NotEquals, selection.NotIn:
		return Requirement{r.Field, notIn, []string{r.Value}}, true
	}
	return Requirement{}, false
}

func labelRequirement(r labels.Requirement) (Requirement, bool) {
	switch r.Operator() {
	case selection.Equals, selection.DoubleEquals, selection.In:
		return Requirement{r.Key(), in, r.ValuesUnsorted()}, true
	case selection.NotEquals, selection.NotIn:
		return Requirement{r.Key(), notIn, r.ValuesUnsorted()}, true
	case selection.Exists:
		return Requirement{r.Key(), exists, nil}, true
	case selection.DoesNotExist:
		return Requirement{r.Key(), doesNotExist, nil}, true
	}
	return Requirement{}, false
}
