package jwt

import (
	"crypto/ecdsa"
	"crypto/rsa"
	"crypto/x509"
	"encoding/pem"
	"errors"
	"fmt"
	"net/url"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/util/validation"
	"k8s.io/apimachinery/pkg/util/validation/field"
)

// MaxIssuers is the largest number of entries of a Configuration.
const MaxIssuers = 64

// Validate returns an error with all faults of a configuration, in the words of kube-apiserver.
func Validate(c *Configuration) error {
	_, err := compile(c)
	return err
}

// compile checks a configuration and compiles its expressions.
func compile(c *Configuration) ([]*entry, error) {
	e, err := newExpressions()
	if err != nil {
		return nil, err
	}
	var errs field.ErrorList
	root := field.NewPath("jwt")
	if len(c.JWT) > MaxIssuers {
		errs = append(errs, field.TooMany(root, len(c.JWT), MaxIssuers))
		c = &Configuration{JWT: c.JWT[:MaxIssuers], Anonymous: c.Anonymous}
	}
	v := &validator{expressions: e, urls: map[string]bool{}, discovery: map[string]bool{}}
	entries := make([]*entry, 0, len(c.JWT))
	for i := range c.JWT {
		one := &entry{Entry: c.JWT[i]}
		errs = append(errs, v.entry(one, root.Index(i))...)
		entries = append(entries, one)
	}
	if a := c.Anonymous; a != nil && !a.Enabled && len(a.Conditions) > 0 {
		shown := make([]struct{ Path string }, 0, len(a.Conditions))
		for _, c := range a.Conditions {
			shown = append(shown, struct{ Path string }{c.Path})
		}
		errs = append(errs, field.Invalid(field.NewPath("anonymous", "conditions"), shown, "enabled should be set to true when conditions are defined"))
	}
	if err := errs.ToAggregate(); err != nil {
		return nil, fmt.Errorf("invalid authentication configuration: %w", err)
	}
	return entries, nil
}

// validator checks the entries of one configuration.
type validator struct {
	*expressions
	urls, discovery map[string]bool // of the entries before
}

func (v *validator) entry(e *entry, at *field.Path) field.ErrorList {
	return slices.Concat(
		v.issuer(e, at.Child("issuer")),
		v.claimRules(e, at.Child("claimValidationRules")),
		v.mappings(e, at.Child("claimMappings")),
		v.userRules(e, at.Child("userValidationRules")),
	)
}

func (v *validator) issuer(e *entry, at *field.Path) field.ErrorList {
	errs := v.url(e.Issuer.URL, at.Child("url"))
	errs = append(errs, v.discoveryURL(&e.Issuer, at.Child("discoveryURL"))...)
	errs = append(errs, audiences(&e.Issuer, at)...)
	if text := e.Issuer.CertificateAuthority; text != "" {
		var err error
		if e.roots, err = readRoots(text); err != nil {
			errs = append(errs, field.Invalid(at.Child("certificateAuthority"), "<omitted>", err.Error()))
		}
	}
	switch selector := e.Issuer.EgressSelectorType; selector {
	case "", "controlplane", "cluster":
	default:
		errs = append(errs, field.Invalid(at.Child("egressSelectorType"), selector, "egress selector must be either controlplane or cluster"))
	}
	return errs
}

func (v *validator) url(text string, at *field.Path) field.ErrorList {
	if text == "" {
		return field.ErrorList{field.Required(at, "")}
	}
	var errs field.ErrorList
	if v.urls[text] {
		errs = append(errs, field.Duplicate(at, text))
	}
	v.urls[text] = true
	return append(errs, httpsURL(text, at)...)
}

// reservedIssuer returns the error of an issuer that the server reserves.
func reservedIssuer(url string, reserved []string) error {
	return field.Invalid(field.NewPath("issuer", "url"), url, fmt.Sprintf("URL must not overlap with disallowed issuers: %v", reserved))
}

func (v *validator) discoveryURL(i *Issuer, at *field.Path) field.ErrorList {
	text := i.DiscoveryURL
	if text == "" {
		return nil
	}
	var errs field.ErrorList
	if strings.TrimRight(text, "/") == strings.TrimRight(i.URL, "/") {
		errs = append(errs, field.Invalid(at, text, "discoveryURL must be different from URL"))
	}
	if v.discovery[text] {
		errs = append(errs, field.Duplicate(at, text))
	}
	v.discovery[text] = true
	return append(errs, httpsURL(text, at)...)
}

// httpsURL checks that a text is an https URL without user, query and fragment.
func httpsURL(text string, at *field.Path) field.ErrorList {
	u, err := url.Parse(text)
	if err != nil {
		return field.ErrorList{field.Invalid(at, text, err.Error())}
	}
	var errs field.ErrorList
	for _, c := range []struct {
		wrong bool
		why   string
	}{
		{u.Scheme != "https", "URL scheme must be https"},
		{u.User != nil, "URL must not contain a username or password"},
		{u.RawQuery != "", "URL must not contain a query"},
		{u.Fragment != "", "URL must not contain a fragment"},
	} {
		if c.wrong {
			errs = append(errs, field.Invalid(at, text, c.why))
		}
	}
	return errs
}

func audiences(i *Issuer, at *field.Path) field.ErrorList {
	list := at.Child("audiences")
	if len(i.Audiences) == 0 {
		return field.ErrorList{field.Required(list, fmt.Sprintf("at least one %s is required", list))}
	}
	var errs field.ErrorList
	for n, audience := range i.Audiences {
		switch {
		case audience == "":
			errs = append(errs, field.Required(list.Index(n), ""))
		case slices.Contains(i.Audiences[:n], audience):
			errs = append(errs, field.Duplicate(list.Index(n), audience))
		}
	}
	const matchAny = "MatchAny"
	policy := at.Child("audienceMatchPolicy")
	switch {
	case len(i.Audiences) > 1 && i.AudienceMatchPolicy != matchAny:
		errs = append(errs, field.Invalid(policy, i.AudienceMatchPolicy, "audienceMatchPolicy must be MatchAny for multiple audiences"))
	case len(i.Audiences) == 1 && i.AudienceMatchPolicy != "" && i.AudienceMatchPolicy != matchAny:
		errs = append(errs, field.Invalid(policy, i.AudienceMatchPolicy, "audienceMatchPolicy must be empty or MatchAny for single audience"))
	}
	return errs
}

// readRoots returns the certificates in a text.
func readRoots(text string) (*x509.CertPool, error) {
	roots, some := x509.NewCertPool(), false
	for rest := []byte(text); ; {
		var block *pem.Block
		if block, rest = pem.Decode(rest); block == nil {
			break
		}
		if block.Type != "CERTIFICATE" || len(block.Headers) > 0 {
			continue
		}
		certificate, err := x509.ParseCertificate(block.Bytes)
		if err != nil {
			return nil, err
		}
		switch certificate.PublicKey.(type) {
		case *rsa.PublicKey, *ecdsa.PublicKey:
			some = true
		}
		roots.AddCert(certificate)
	}
	if !some {
		return nil, errors.New("data does not contain any valid RSA or ECDSA certificates")
	}
	return roots, nil
}

func (v *validator) claimRules(e *entry, at *field.Path) field.ErrorList {
	const notBoth = "may not be specified when %s is set"
	var errs field.ErrorList
	claims, expressions := map[string]bool{}, map[string]bool{}
	for i, rule := range e.ClaimValidationRules {
		at := at.Index(i)
		switch {
		case rule.Claim == "" && rule.Expression == "":
			errs = append(errs, field.Required(at, "claim or expression is required"))
		case rule.Claim != "" && rule.Expression != "":
			errs = append(errs, field.Invalid(at, rule.Claim, "claim and expression can't both be set"))
		case rule.Claim != "":
			if rule.Message != "" {
				errs = append(errs, field.Invalid(at.Child("message"), rule.Message, fmt.Sprintf(notBoth, "claim")))
			}
			if claims[rule.Claim] {
				errs = append(errs, field.Duplicate(at.Child("claim"), rule.Claim))
			}
			claims[rule.Claim] = true
		case rule.RequiredValue != "":
			errs = append(errs, field.Invalid(at.Child("requiredValue"), rule.RequiredValue, fmt.Sprintf(notBoth, "expression")))
		case expressions[rule.Expression]:
			errs = append(errs, field.Duplicate(at.Child("expression"), rule.Expression))
		default:
			expressions[rule.Expression] = true
			program, err := v.rule(v.claims, rule.Expression, at.Child("expression"))
			if err != nil {
				errs = append(errs, err)
				break
			}
			e.rules = append(e.rules, condition{program, rule.Message})
		}
	}
	return errs
}

func (v *validator) userRules(e *entry, at *field.Path) field.ErrorList {
	var errs field.ErrorList
	seen := map[string]bool{}
	for i, rule := range e.UserValidationRules {
		at := at.Index(i).Child("expression")
		switch {
		case rule.Expression == "":
			errs = append(errs, field.Required(at, ""))
		case seen[rule.Expression]:
			errs = append(errs, field.Duplicate(at, rule.Expression))
		default:
			seen[rule.Expression] = true
			program, err := v.rule(v.user, rule.Expression, at)
			if err != nil {
				errs = append(errs, err)
				break
			}
			e.userRules = append(e.userRules, condition{program, rule.Message})
		}
	}
	return errs
}

func (v *validator) mappings(e *entry, at *field.Path) field.ErrorList {
	m := &e.ClaimMappings
	var errs, more field.ErrorList
	if m.Username.Claim == "" && m.Username.Expression == "" {
		errs = append(errs, field.Required(at.Child("username"), "claim or expression is required"))
	} else {
		e.username, errs = v.prefixed(m.Username, at.Child("username"))
	}
	e.groups, more = v.prefixed(m.Groups, at.Child("groups"))
	errs = append(errs, more...)
	switch {
	case m.UID.Claim != "" && m.UID.Expression != "":
		errs = append(errs, field.Invalid(at.Child("uid"), "", "claim and expression can't both be set"))
	case m.UID.Expression != "":
		e.uid, more = v.mapping(m.UID.Expression, at.Child("uid", "expression"))
		errs = append(errs, more...)
	}
	errs = append(errs, v.extra(e, at.Child("extra"))...)
	return append(errs, v.email(e, at.Child("username", "expression"))...)
}

func (v *validator) prefixed(m PrefixedClaim, at *field.Path) (*program, field.ErrorList) {
	switch {
	case m.Claim != "" && m.Expression != "":
		return nil, field.ErrorList{field.Invalid(at, "", "claim and expression can't both be set")}
	case m.Claim != "" && m.Prefix == nil:
		return nil, field.ErrorList{field.Required(at.Child("prefix"), "prefix is required when claim is set. It can be set to an empty string to disable prefixing")}
	case m.Expression != "" && m.Prefix != nil:
		return nil, field.ErrorList{field.Invalid(at.Child("prefix"), *m.Prefix, "may not be specified when expression is set")}
	case m.Expression != "":
		return v.mapping(m.Expression, at.Child("expression"))
	}
	return nil, nil
}

func (v *validator) extra(e *entry, at *field.Path) field.ErrorList {
	var errs field.ErrorList
	seen := map[string]bool{}
	for i, x := range e.ClaimMappings.Extra {
		errs = append(errs, extraKey(x.Key, seen, at.Index(i).Child("key"))...)
		value := at.Index(i).Child("valueExpression")
		if x.ValueExpression == "" {
			errs = append(errs, field.Required(value, ""))
			continue
		}
		program, more := v.mapping(x.ValueExpression, value)
		errs = append(errs, more...)
		e.extra = append(e.extra, attribute{x.Key, program})
	}
	return errs
}

func extraKey(key string, seen map[string]bool, at *field.Path) field.ErrorList {
	if key == "" {
		return field.ErrorList{field.Required(at, "")}
	}
	errs := validation.IsDomainPrefixedPath(at, key)
	if key != strings.ToLower(key) {
		errs = append(errs, field.Invalid(at, key, "must be lowercase"))
	}
	domain, _, _ := strings.Cut(key, "/")
	for _, reserved := range []string{"k8s.io", "kubernetes.io"} {
		if domain == reserved || strings.HasSuffix(domain, "."+reserved) {
			errs = append(errs, field.Invalid(at, key, "k8s.io, kubernetes.io and their subdomains are reserved for Kubernetes use"))
		}
	}
	if seen[key] {
		errs = append(errs, field.Duplicate(at, key))
	}
	seen[key] = true
	return errs
}

// email checks that a configuration which takes the email address for the name of a user looks whether it is verified.
func (v *validator) email(e *entry, at *field.Path) field.ErrorList {
	const address, verified = "email", "email_verified"
	if e.username == nil || !v.claims.Selects(e.username.text, claimsVariable, address) {
		return nil
	}
	of := []string{e.username.text}
	for _, r := range e.rules {
		of = append(of, r.text)
	}
	for _, x := range e.extra {
		if x.program != nil {
			of = append(of, x.text)
		}
	}
	if slices.ContainsFunc(of, func(text string) bool { return v.claims.Selects(text, claimsVariable, verified) }) {
		return nil
	}
	return field.ErrorList{field.Invalid(at, e.username.text, "claims.email_verified must be used in claimMappings.username.expression or claimMappings.extra[*].valueExpression or claimValidationRules[*].expression when claims.email is used in claimMappings.username.expression")}
}
