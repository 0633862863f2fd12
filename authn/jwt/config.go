package jwt

import (
	"bytes"
	"errors"
	"fmt"
	"slices"

	apiruntime "k8s.io/apimachinery/pkg/runtime"
	apijson "k8s.io/apimachinery/pkg/runtime/serializer/json"

	v1 "github.com/keelson-dev/keelson/authn/jwt/internal/v1"
	"github.com/keelson-dev/keelson/runtime/codec"
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
const MaxFile = 3 << 20

const (
	configGroup = "apiserver.config.k8s.io"
	configKind  = "AuthenticationConfiguration"
	// scheme stands in the message about kinds that are not known.
	scheme = "pkg/runtime/scheme.go:111"
)

// versions are those of configKind.
func versions() []string { return []string{"v1", "v1beta1", "v1alpha1"} }

// otherKinds are the kinds of configGroup, in version v1, that a file may have by mistake.
func otherKinds() []string {
	return []string{"AdmissionConfiguration", "AuthorizationConfiguration", "TracingConfiguration"}
}

// Parse reads a file in YAML or JSON. It is strict: fields that are not known, or twice, are errors. The error has the words of
// kube-apiserver. What the file says is not checked: see Validate.
func Parse(file []byte) (*Configuration, error) {
	switch {
	case len(file) == 0:
		return nil, errors.New("empty config data")
	case len(file) > MaxFile:
		return nil, fmt.Errorf("the file has %d bytes, at most %d are allowed", len(file), MaxFile)
	}
	text := file
	var problems []error
	if !bytes.HasPrefix(bytes.TrimSpace(file), []byte("{")) {
		var err error
		if text, problems, err = codec.YAML().ToJSON(file, codec.Strict); err != nil {
			return nil, err
		}
	}
	if err := checkKind(text, file); err != nil {
		return nil, err
	}
	c := &Configuration{}
	more, err := codec.Unmarshal(text, c, codec.Strict)
	if err != nil {
		return nil, err
	}
	if problems = slices.Concat(problems, more); len(problems) > 0 {
		return nil, codec.StrictError(problems)
	}
	return c, nil
}

// checkKind checks the version and the kind of a file, which is JSON in text.
func checkKind(text, file []byte) error {
	kind, err := apijson.DefaultMetaFactory.Interpret(text)
	switch {
	case err != nil:
		return err
	case kind.Kind == "":
		return apiruntime.NewMissingKindErr(string(file))
	case kind.Version == "":
		return apiruntime.NewMissingVersionErr(string(file))
	case kind.Group == configGroup && slices.Contains(versions(), kind.Version) && kind.Kind == configKind:
		return nil
	case kind.Group == configGroup && kind.Version == "v1" && slices.Contains(otherKinds(), kind.Kind):
		return fmt.Errorf("expected %s, got *apiserver.%s", configKind, kind.Kind)
	}
	return apiruntime.NewNotRegisteredErrForKind(scheme, *kind)
}
