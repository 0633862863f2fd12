package authn

import "slices"

// Names of members of a [Live], in the order in which kube-apiserver calls them:
// https://kubernetes.io/docs/reference/access-authn-authz/authentication/.
const (
	RequestHeader     = "request-header"   // headers of an authenticating proxy
	ClientCertificate = "x509"             // client certificates
	TokenFile         = "token-file"       // static tokens
	ServiceAccounts   = "service-accounts" // tokens of service accounts
	BootstrapTokens   = "bootstrap-tokens" // bootstrap tokens
	OIDC              = "oidc"             // JSON web tokens of issuers
	TokenWebhook      = "webhook"          // tokens that a webhook authenticates
)

// order returns the names that have a fixed position. Members with other names come after them, in the order in which they were
// added.
func order() []string {
	return []string{RequestHeader, ClientCertificate, TokenFile, ServiceAccounts, BootstrapTokens, OIDC, TokenWebhook}
}

// place returns the position of a member.
func place(name string) int {
	if i := slices.Index(order(), name); i >= 0 {
		return i
	}
	return len(order())
}
