package jwt

import (
	"context"
	"errors"
	"fmt"
	"slices"

	"github.com/keelson-dev/keelson/authn"
	"github.com/keelson-dev/keelson/runtime/cel"
)

// user makes a user of claims, by the mappings and the rules of the entry.
func (e *entry) user(ctx context.Context, c *claims) (*authn.User, error) {
	eval := &evaluation{ctx: ctx, budget: cel.MaxObjectCost}
	if err := e.checkClaims(eval, c); err != nil {
		return nil, err
	}
	user := &authn.User{}
	var err error
	if user.Name, err = e.nameOf(eval, c); err != nil {
		return nil, err
	}
	if user.Groups, err = e.groupsOf(eval, c); err != nil {
		return nil, err
	}
	if user.UID, err = e.uidOf(eval, c); err != nil {
		return nil, err
	}
	if user.Extra, err = e.extraOf(eval, c); err != nil {
		return nil, err
	}
	return user, e.checkUser(eval, user)
}

// checkClaims checks the rules about claims.
func (e *entry) checkClaims(eval *evaluation, c *claims) error {
	for _, rule := range e.ClaimValidationRules {
		if rule.Claim == "" {
			continue
		}
		value, err := c.text(rule.Claim)
		switch {
		case err != nil:
			return fmt.Errorf("oidc: required claim: %w", err)
		case value != rule.RequiredValue:
			return fmt.Errorf("oidc: required claim %s value does not match", rule.Claim)
		}
	}
	for _, rule := range e.rules {
		if err := eval.holds(rule, claimsVariable, c.all); err != nil {
			return err
		}
	}
	return nil
}

// checkUser checks the rules about the user.
func (e *entry) checkUser(eval *evaluation, u *authn.User) error {
	if len(e.userRules) == 0 {
		return nil
	}
	extra := make(map[string]any, len(u.Extra))
	for key, values := range u.Extra {
		extra[key] = values
	}
	value := map[string]any{"username": u.Name, "uid": u.UID, "groups": u.Groups, "extra": extra}
	for _, rule := range e.userRules {
		if err := eval.holds(rule, userVariable, value); err != nil {
			return err
		}
	}
	return nil
}

func (e *entry) nameOf(eval *evaluation, c *claims) (string, error) {
	if e.username != nil {
		value, err := eval.of(e.username, claimsVariable, c.all)
		if err != nil {
			return "", err
		}
		if name, ok := value.(string); ok && name != "" {
			return name, nil
		}
		return "", errors.New("oidc: the expression of the username is empty or no string")
	}
	claim := e.ClaimMappings.Username.Claim
	name, err := c.text(claim)
	if err != nil {
		return "", fmt.Errorf("oidc: parse username: %w", err)
	}
	if verified, has := c.all["email_verified"]; claim == "email" && has && verified != true {
		return "", errors.New("oidc: email not verified")
	}
	if name = *e.ClaimMappings.Username.Prefix + name; name == "" {
		return "", errors.New("oidc: the username is empty")
	}
	return name, nil
}

func (e *entry) groupsOf(eval *evaluation, c *claims) ([]string, error) {
	if e.groups != nil {
		value, err := eval.of(e.groups, claimsVariable, c.all)
		if err != nil {
			return nil, err
		}
		return textsOrNone("groups", value)
	}
	claim := e.ClaimMappings.Groups.Claim
	if claim == "" {
		return nil, nil
	}
	groups, err := texts(c.all[claim])
	if err != nil {
		return nil, fmt.Errorf("oidc: parse groups claim %q: %w", claim, err)
	}
	for n := range groups {
		groups[n] = *e.ClaimMappings.Groups.Prefix + groups[n]
	}
	return groups, nil
}

func (e *entry) uidOf(eval *evaluation, c *claims) (string, error) {
	if e.uid != nil {
		value, err := eval.of(e.uid, claimsVariable, c.all)
		if err != nil {
			return "", err
		}
		uid, ok := value.(string)
		if !ok {
			return "", errors.New("oidc: the expression of the uid is no string")
		}
		return uid, nil
	}
	if e.ClaimMappings.UID.Claim == "" {
		return "", nil
	}
	uid, err := c.text(e.ClaimMappings.UID.Claim)
	if err != nil {
		return "", fmt.Errorf("oidc: parse uid: %w", err)
	}
	return uid, nil
}

// extraOf returns the attributes of a user, with the id of the token.
func (e *entry) extraOf(eval *evaluation, c *claims) (map[string][]string, error) {
	all := map[string][]string{}
	for _, x := range e.extra {
		value, err := eval.of(x.program, claimsVariable, c.all)
		if err != nil {
			return nil, err
		}
		values, err := textsOrNone("extra "+x.key, value)
		if err != nil {
			return nil, err
		}
		if len(values) > 0 {
			all[x.key] = values
		}
	}
	if id, ok := c.all["jti"].(string); ok && id != "" {
		all[authn.CredentialIDKey] = []string{"JTI=" + id}
	}
	if len(all) == 0 {
		return nil, nil
	}
	return all, nil
}

// textsOrNone returns the texts that an expression has as its value, without those that are empty.
func textsOrNone(what string, value any) ([]string, error) {
	if all, ok := value.([]any); ok && slices.Contains(all, nil) {
		return nil, fmt.Errorf("oidc: the expression of %s has null in its list", what)
	}
	values, err := texts(value)
	if err != nil {
		return nil, fmt.Errorf("oidc: the expression of %s: %w", what, err)
	}
	return slices.DeleteFunc(values, func(text string) bool { return text == "" }), nil
}
