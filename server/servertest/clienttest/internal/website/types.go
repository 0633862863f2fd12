package website

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

// GroupVersion is that of the kinds of this package.
func GroupVersion() schema.GroupVersion {
	return schema.GroupVersion{Group: "web.example.com", Version: "v1"}
}

// AddToScheme adds the kinds of this package.
func AddToScheme(s *runtime.Scheme) error {
	s.AddKnownTypes(GroupVersion(), &Website{}, &WebsiteList{}, &Domain{}, &DomainList{})
	metav1.AddToGroupVersion(s, GroupVersion())
	return nil
}

// Website is some pages, and the servers that show them.
type Website struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata,omitempty"`

	Spec   WebsiteSpec   `json:"spec,omitempty"`
	Status WebsiteStatus `json:"status,omitempty"`
}

// WebsiteSpec is what is wanted.
type WebsiteSpec struct {
	// Image is that of the servers.
	Image string `json:"image"`
	// Replicas is how many servers there are; nil is one.
	Replicas *int32 `json:"replicas,omitempty"`
	// Domain is the name that the site has, alone in the whole cluster; "" is none.
	Domain string `json:"domain,omitempty"`
	// Pages are the content, by file name.
	Pages map[string]string `json:"pages,omitempty"`
	// SecretName is a Secret with what the servers must know and nobody else; "" is none.
	SecretName string `json:"secretName,omitempty"`
	// Paused leaves everything as it is.
	Paused bool `json:"paused,omitempty"`
	// Expires is when the site is deleted; nil is never.
	Expires *metav1.Time `json:"expires,omitempty"`
}

// WebsiteStatus is what is.
type WebsiteStatus struct {
	// ObservedGeneration is the generation of the spec that the rest is about.
	ObservedGeneration int64 `json:"observedGeneration,omitempty"`
	// ReadyReplicas is how many servers answer.
	ReadyReplicas int32 `json:"readyReplicas,omitempty"`
	// Conditions has Ready.
	Conditions []metav1.Condition `json:"conditions,omitempty"`
}

// The condition of a Website, and its reasons.
const (
	Ready = "Ready"

	ReasonServing       = "Serving"
	ReasonStarting      = "Starting"
	ReasonDomainTaken   = "DomainTaken"
	ReasonSecretMissing = "SecretMissing"
)

// WebsiteList is a list of websites.
type WebsiteList struct {
	metav1.TypeMeta `json:",inline"`
	metav1.ListMeta `json:"metadata,omitempty"`
	Items           []Website `json:"items"`
}

// Domain is a name that a Website has. It is cluster scoped: there is one of each name.
type Domain struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata,omitempty"`

	Spec DomainSpec `json:"spec,omitempty"`
}

// DomainSpec says whose a domain is.
type DomainSpec struct {
	Namespace string `json:"namespace"`
	Website   string `json:"website"`
}

// DomainList is a list of domains.
type DomainList struct {
	metav1.TypeMeta `json:",inline"`
	metav1.ListMeta `json:"metadata,omitempty"`
	Items           []Domain `json:"items"`
}
