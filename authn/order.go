package authn

import "slices"

// Names of the members of a [Live], in the order in which kube-apiserver asks them:
// https://kubernetes.io/docs/reference/access-authn-authz/authentication/.
const (
	RequestHeader     = "request-header"   // an authenticating proxy
	ClientCertificate = "x509"             // client certificates
	TokenFile         = "token-file"       // static tokens
	ServiceAccounts   = "service-accounts" // tokens of service accounts
	BootstrapTokens   = "bootstrap-tokens"
	OIDC              = "oidc" // JSON web tokens of issuers
	TokenWebhook      = "webhook"
)

// order lists the names that have a place of their own; any other member comes after them, as it was added.
func order() []string {
	return []string{RequestHeader, ClientCertificate, TokenFile, ServiceAccounts, BootstrapTokens, OIDC, TokenWebhook}
}

// place is where a member stands among the others.
func place(name string) int {
	if i := slices.Index(order(), name); i >= 0 {
		return i
	}
	return len(order())
}
