package jwt

import (
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"slices"
	"time"

	kjson "sigs.k8s.io/json"
)

// claims are the claims of a token whose signature is verified.
type claims struct {
	registered
	all map[string]any // as encoding/json reads them
}

// registered are the claims that have a meaning for every token. A token in which one of them is of another type is refused. null is
// like a claim that is missing, except for iat.
type registered struct {
	Subject   string          `json:"sub"`
	Audience  any             `json:"aud"`
	Expires   json.RawMessage `json:"exp"`
	NotBefore json.RawMessage `json:"nbf"`
	Issued    json.RawMessage `json:"iat"`
	Nonce     string          `json:"nonce"`
	Hash      string          `json:"at_hash"`
	// Names has the claims that are elsewhere, each with the name of its source in Sources:
	// https://openid.net/specs/openid-connect-core-1_0.html#AggregatedDistributedClaims.
	Names   map[string]string `json:"_claim_names"`
	Sources map[string]source `json:"_claim_sources"`
}

// source is where claims are. An aggregated claim has no endpoint.
type source struct {
	Endpoint    string `json:"endpoint"`
	AccessToken string `json:"access_token"`
}

// readClaims reads claims, which are an object in JSON without duplicate keys.
func readClaims(text []byte) (*claims, error) {
	c := &claims{}
	if err := kjson.UnmarshalCaseSensitivePreserveInts(text, &c.registered); err != nil {
		return nil, err
	}
	if err := json.Unmarshal(text, &c.all); err != nil {
		return nil, err
	}
	for name, source := range c.Names {
		if _, has := c.Sources[source]; source == "" || !has {
			return nil, fmt.Errorf("the source of the distributed claim %.100q does not exist", name)
		}
	}
	return c, nil
}

// notBeforeLeeway is how early a token may come, because clocks differ.
const notBeforeLeeway = 5 * time.Minute

// inTime checks that a token is valid at a time. It must have an end.
func (c *claims) inTime(now time.Time) error {
	if c.Issued != nil {
		if _, err := readTime(c.Issued); err != nil {
			return fmt.Errorf("iat: %w", err)
		}
	}
	if c.Expires == nil {
		return errors.New("the token has no end")
	}
	expires, err := readTime(c.Expires)
	switch {
	case err != nil:
		return fmt.Errorf("exp: %w", err)
	case expires.Before(now):
		return fmt.Errorf("the token has expired at %v", expires)
	}
	if c.NotBefore == nil || string(c.NotBefore) == "null" {
		return nil
	}
	begins, err := readTime(c.NotBefore)
	switch {
	case err != nil:
		return fmt.Errorf("nbf: %w", err)
	case begins.After(now.Add(notBeforeLeeway)):
		return fmt.Errorf("the token is not valid before %v", begins)
	}
	return nil
}

// readTime reads a time: seconds since 1970, as a number or as a string.
func readTime(text json.RawMessage) (time.Time, error) {
	var number json.Number
	if err := json.Unmarshal(text, &number); err != nil || number == "" {
		return time.Time{}, fmt.Errorf("%.40s is no time", text)
	}
	if seconds, err := number.Int64(); err == nil {
		return time.Unix(seconds, 0), nil
	}
	seconds, err := number.Float64()
	if err != nil || math.Abs(seconds) >= 1<<63 {
		return time.Time{}, fmt.Errorf("%.40s is no time", text)
	}
	return time.Unix(int64(seconds), 0), nil
}

// isFor checks that a token has one of the audiences.
func (c *claims) isFor(audiences []string) error {
	has, err := texts(c.Audience)
	if err != nil {
		return fmt.Errorf("aud: %w", err)
	}
	if !slices.ContainsFunc(has, func(a string) bool { return slices.Contains(audiences, a) }) {
		return fmt.Errorf("expected audience in %q got %q", audiences, has)
	}
	return nil
}

// text returns a claim that must be a string. null is the empty string.
func (c *claims) text(name string) (string, error) {
	value, has := c.all[name]
	switch value := value.(type) {
	case string:
		return value, nil
	case nil:
		if has {
			return "", nil
		}
		return "", fmt.Errorf("the claim %q is not present", name)
	}
	return "", fmt.Errorf("the claim %q is no string", name)
}

// errTexts is the error of texts.
var errTexts = errors.New("want a string or a list of strings")

// texts returns the elements of a string, a list of strings, or nothing. null in a list is the empty string.
func texts(value any) ([]string, error) {
	switch value := value.(type) {
	case nil:
		return nil, nil
	case string:
		return []string{value}, nil
	case []any:
		all := make([]string, 0, len(value))
		for _, one := range value {
			text, ok := one.(string)
			if !ok && one != nil {
				return nil, errTexts
			}
			all = append(all, text)
		}
		return all, nil
	}
	return nil, errTexts
}
