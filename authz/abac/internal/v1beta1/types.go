// Package v1beta1 has the types of a line of a policy file in abac.authorization.kubernetes.io/v1beta1. They have the names of
// Kubernetes, because errors about a file have them.
package v1beta1

// Policy is a line.
type Policy struct {
	Kind       string     `json:"kind,omitempty"`
	APIVersion string     `json:"apiVersion,omitempty"`
	Spec       PolicySpec `json:"spec"`
}

// PolicySpec says who may do what. Fields that are empty match nothing, and "*" matches everything.
type PolicySpec struct {
	User            string `json:"user,omitempty"`
	Group           string `json:"group,omitempty"`
	Readonly        bool   `json:"readonly,omitempty"`
	APIGroup        string `json:"apiGroup,omitempty"`
	Resource        string `json:"resource,omitempty"`
	Namespace       string `json:"namespace,omitempty"`
	NonResourcePath string `json:"nonResourcePath,omitempty"`
}
