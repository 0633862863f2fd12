package website

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

// GroupVersion returns the group and version of the kinds of this package.
func GroupVersion() schema.GroupVersion {
	return schema.GroupVersion{Group: "web.example.com", Version: "v1"}
}

// AddToScheme adds the kinds of this package.
func AddToScheme(s *runtime.Scheme) error {
	s.AddKnownTypes(GroupVersion(), &Website{}, &WebsiteList{}, &Domain{}, &DomainList{})
	metav1.AddToGroupVersion(s, GroupVersion())
	return nil
}

// Website is a set of pages with the servers that serve them.
type Website struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata,omitempty"`

	// Spec is the wanted state.
	Spec WebsiteSpec `json:"spec,omitempty"`
	// Status is the observed state.
	Status WebsiteStatus `json:"status,omitempty"`
}

// WebsiteSpec is the wanted state of a Website.
type WebsiteSpec struct {
	// Image is the image of the servers.
	Image string `json:"image"`
	// Replicas is the number of servers; nil means one.
	Replicas *int32 `json:"replicas,omitempty"`
	// Domain is the name of the site, which no other site of the cluster may have; "" means none.
	Domain string `json:"domain,omitempty"`
	// Pages are the content, by file name.
	Pages map[string]string `json:"pages,omitempty"`
	// SecretName is the name of a Secret for the servers; "" means none.
	SecretName string `json:"secretName,omitempty"`
	// Paused stops the controller for this website.
	Paused bool `json:"paused,omitempty"`
	// Expires is when the site is deleted; nil means never.
	Expires *metav1.Time `json:"expires,omitempty"`
}

// WebsiteStatus is the observed state of a Website.
type WebsiteStatus struct {
	// ObservedGeneration is the generation of the spec for which the other fields were computed.
	ObservedGeneration int64 `json:"observedGeneration,omitempty"`
	// ReadyReplicas is the number of ready servers.
	ReadyReplicas int32 `json:"readyReplicas,omitempty"`
	// Conditions has the condition Ready.
	Conditions []metav1.Condition `json:"conditions,omitempty"`
}

// These are the condition of a Website and its reasons.
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
	// Items are the websites.
	Items []Website `json:"items"`
}

// Domain is the name of a Website. It is cluster-scoped: each name exists only once.
type Domain struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata,omitempty"`

	// Spec says which website has the domain.
	Spec DomainSpec `json:"spec,omitempty"`
}

// DomainSpec says which website has a domain.
type DomainSpec struct {
	// Namespace is the namespace of the website.
	Namespace string `json:"namespace"`
	// Website is the name of the website.
	Website string `json:"website"`
}

// DomainList is a list of domains.
type DomainList struct {
	metav1.TypeMeta `json:",inline"`
	metav1.ListMeta `json:"metadata,omitempty"`
	// Items are the domains.
	Items []Domain `json:"items"`
}
