// Package v1 has the types of an AuthorizationConfiguration in apiserver.config.k8s.io/v1, as a file has them. The versions v1beta1 and
// v1alpha1 have the same fields. Package authz/config exports them under names of its own; here they have those of Kubernetes, because
// errors about a file name them.
package v1

import metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

// AuthorizationConfiguration says which authorizers there are.
type AuthorizationConfiguration struct {
	Kind       string `json:"kind,omitempty"`
	APIVersion string `json:"apiVersion,omitempty"`

	// Authorizers are asked in their order. There is at least one.
	Authorizers []AuthorizerConfiguration `json:"authorizers"`
}

// AuthorizerConfiguration is an authorizer.
type AuthorizerConfiguration struct {
	// Type is ABAC, AlwaysAllow, AlwaysDeny, Node, RBAC or Webhook. Only webhooks may be there several times.
	Type string `json:"type"`
	// Name is unique. That of another type than Webhook is the type in lower case.
	Name string `json:"name"`
	// Webhook is set for the type Webhook, and for no other.
	Webhook *WebhookConfiguration `json:"webhook,omitempty"`
}

// WebhookConfiguration configures a webhook.
type WebhookConfiguration struct {
	// AuthorizedTTL and UnauthorizedTTL are how long it is remembered that a request is allowed, and that it is not; 0 means 5 minutes and
	// 30 seconds.
	AuthorizedTTL   metav1.Duration `json:"authorizedTTL"`
	UnauthorizedTTL metav1.Duration `json:"unauthorizedTTL"`
	// CacheAuthorizedRequests and CacheUnauthorizedRequests are true by default; false remembers nothing.
	CacheAuthorizedRequests   *bool `json:"cacheAuthorizedRequests,omitempty"`
	CacheUnauthorizedRequests *bool `json:"cacheUnauthorizedRequests,omitempty"`
	// Timeout bounds an attempt; at most 30 s.
	Timeout metav1.Duration `json:"timeout"`
	// SubjectAccessReviewVersion is the version of the SubjectAccessReviews that the webhook gets: v1 or v1beta1.
	SubjectAccessReviewVersion string `json:"subjectAccessReviewVersion"`
	// MatchConditionSubjectAccessReviewVersion is the version of the variable of the conditions: v1. It is required if there are any.
	MatchConditionSubjectAccessReviewVersion string `json:"matchConditionSubjectAccessReviewVersion,omitempty"`
	// FailurePolicy is NoOpinion or Deny.
	FailurePolicy  string                `json:"failurePolicy"`
	ConnectionInfo WebhookConnectionInfo `json:"connectionInfo"`
	// MatchConditions must all be true for a request about which the webhook is asked.
	MatchConditions []WebhookMatchCondition `json:"matchConditions,omitempty"`
}

// WebhookConnectionInfo says where a webhook is.
type WebhookConnectionInfo struct {
	// Type is KubeConfigFile or InClusterConfig.
	Type string `json:"type"`
	// KubeConfigFile is the absolute path of a kubeconfig.
	KubeConfigFile *string `json:"kubeConfigFile"`
}

// WebhookMatchCondition is a condition.
type WebhookMatchCondition struct {
	// Expression is in CEL, and has the variable request. See package authz/webhook/condition.
	Expression string `json:"expression"`
}
