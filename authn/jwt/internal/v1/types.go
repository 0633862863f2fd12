// Package v1 has the types of an AuthenticationConfiguration in apiserver.config.k8s.io/v1, as a file has them. The versions v1beta1 and
// v1alpha1 have the same fields. Package authn/jwt exports them under names of its own; here they have those of Kubernetes, because
// errors about a file name them.
package v1

// AuthenticationConfiguration says whose tokens are accepted, and which requests without credentials.
type AuthenticationConfiguration struct {
	Kind       string `json:"kind,omitempty"`
	APIVersion string `json:"apiVersion,omitempty"`

	// JWT has an entry for each issuer. Their issuers differ.
	JWT []JWTAuthenticator `json:"jwt"`
	// Anonymous says which requests without credentials are accepted as those of system:anonymous. nil leaves it to the server.
	Anonymous *AnonymousAuthConfig `json:"anonymous,omitempty"`
}

// AnonymousAuthConfig says which requests without credentials are accepted.
type AnonymousAuthConfig struct {
	// Enabled accepts them.
	Enabled bool `json:"enabled"`
	// Conditions restrict Enabled to the paths that they name; without any, all paths are accepted.
	Conditions []AnonymousAuthCondition `json:"conditions,omitempty"`
}

// AnonymousAuthCondition is a path that requests without credentials may have.
type AnonymousAuthCondition struct {
	// Path is the whole path of the URL.
	Path string `json:"path"`
}

// JWTAuthenticator is an issuer, and what its tokens become.
type JWTAuthenticator struct {
	Issuer Issuer `json:"issuer"`
	// ClaimValidationRules must all hold for the claims of a token.
	ClaimValidationRules []ClaimValidationRule `json:"claimValidationRules,omitempty"`
	ClaimMappings        ClaimMappings         `json:"claimMappings"`
	// UserValidationRules must all hold for the user that ClaimMappings make.
	UserValidationRules []UserValidationRule `json:"userValidationRules,omitempty"`

	// SigningAlgorithms are the algorithms that tokens may be signed with. A file cannot name them; nil are all: RS, PS and ES with 256,
	// 384 and 512 bits.
	SigningAlgorithms []string `json:"-"`
}

// Issuer is who signs tokens, and for whom.
type Issuer struct {
	// URL is what tokens have as their issuer: an https URL without user, query and fragment.
	URL string `json:"url"`
	// DiscoveryURL is where the discovery document is; "" is /.well-known/openid-configuration below URL.
	DiscoveryURL string `json:"discoveryURL,omitempty"`
	// CertificateAuthority has the certificates in PEM that verify the issuer's server; "" are those of the system.
	CertificateAuthority string `json:"certificateAuthority,omitempty"`
	// Audiences are those of which a token must have one.
	Audiences []string `json:"audiences"`
	// AudienceMatchPolicy is MatchAny if there are several audiences. It may be empty if there is one.
	AudienceMatchPolicy string `json:"audienceMatchPolicy,omitempty"`
	// EgressSelectorType is the network through which the issuer is reached: "", "controlplane" or "cluster".
	EgressSelectorType string `json:"egressSelectorType,omitempty"`
}

// ClaimValidationRule is either a claim with a value, or an expression.
type ClaimValidationRule struct {
	// Claim must be a string in the token, and equal to RequiredValue.
	Claim         string `json:"claim,omitempty"`
	RequiredValue string `json:"requiredValue,omitempty"`
	// Expression is in CEL, has the variable claims, and must be true.
	Expression string `json:"expression,omitempty"`
	// Message is the reason of a refusal, for the log.
	Message string `json:"message,omitempty"`
}

// ClaimMappings make a user of claims.
type ClaimMappings struct {
	Username PrefixedClaimOrExpression `json:"username"`
	Groups   PrefixedClaimOrExpression `json:"groups,omitempty"`
	UID      ClaimOrExpression         `json:"uid"`
	Extra    []ExtraMapping            `json:"extra,omitempty"`
}

// PrefixedClaimOrExpression is either a claim with a prefix, or an expression.
type PrefixedClaimOrExpression struct {
	Claim string `json:"claim,omitempty"`
	// Prefix stands before each value of Claim. It must be set with Claim, and may be "".
	Prefix     *string `json:"prefix,omitempty"`
	Expression string  `json:"expression,omitempty"`
}

// ClaimOrExpression is either a claim, or an expression.
type ClaimOrExpression struct {
	Claim      string `json:"claim,omitempty"`
	Expression string `json:"expression,omitempty"`
}

// ExtraMapping makes an attribute of the user.
type ExtraMapping struct {
	// Key is a domain and a path, such as example.com/tenant, in lower case.
	Key string `json:"key"`
	// ValueExpression is in CEL, has the variable claims, and is a string or a list of strings. An empty value is left out.
	ValueExpression string `json:"valueExpression"`
}

// UserValidationRule is a condition for users.
type UserValidationRule struct {
	// Expression is in CEL, has the variable user with the fields username, uid, groups and extra, and must be true.
	Expression string `json:"expression"`
	// Message is the reason of a refusal, for the log.
	Message string `json:"message,omitempty"`
}
