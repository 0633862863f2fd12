package jwt

import (
	"errors"

	v1 "github.com/keelson-dev/keelson/authn/jwt/internal/v1"
	"github.com/keelson-dev/keelson/runtime/configfile"
)

// Configuration is what a file of the kind AuthenticationConfiguration says. Parse reads one, and OIDC makes one of flags. The zero
// Configuration has no issuers and leaves anonymous requests to the server.
type Configuration = v1.AuthenticationConfiguration

// Parts of a Configuration.
type (
	Entry             = v1.JWTAuthenticator          // an issuer, and what its tokens become
	Issuer            = v1.Issuer                    // who signs tokens, and for whom
	ClaimRule         = v1.ClaimValidationRule       // a condition for claims
	Mappings          = v1.ClaimMappings             // make a user of claims
	PrefixedClaim     = v1.PrefixedClaimOrExpression // a claim with a prefix, or an expression
	Claim             = v1.ClaimOrExpression         // a claim, or an expression
	ExtraMapping      = v1.ExtraMapping              // makes an attribute of the user
	UserRule          = v1.UserValidationRule        // a condition for users
	AnonymousRequests = v1.AnonymousAuthConfig       // which requests without credentials are accepted
	AnonymousPath     = v1.AnonymousAuthCondition    // a path that they may have
)

// MaxFile is the size of the largest file that Parse reads, in bytes.
const MaxFile = configfile.MaxBytes

// Parse reads a file in YAML or JSON. It is strict: fields that are not known, or twice, are errors. The error has the words of
// kube-apiserver. What the file says is not checked: see Validate.
func Parse(file []byte) (*Configuration, error) {
	if len(file) == 0 {
		return nil, errors.New("empty config data")
	}
	c := &Configuration{}
	if err := configfile.Decode(file, "AuthenticationConfiguration", c); err != nil {
		return nil, err
	}
	return c, nil
}
