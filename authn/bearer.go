package authn

import (
	"context"
	"encoding/base64"
	"errors"
	"net/http"
	"strings"
	"unicode/utf8"
)

// TokenAuthenticator identifies the user of a bearer token. It may be called concurrently, and should take the same time for
// wrong tokens as for right ones.
type TokenAuthenticator interface {
	// AuthenticateToken returns the user of a token, which is never empty. A nil Response with a nil error means no opinion. The
	// context carries the audiences of the server ([AudiencesFrom]), and ends with the request.
	AuthenticateToken(ctx context.Context, token string) (*Response, error)
}

// errInvalidToken is returned for a token without a user.
var errInvalidToken = errors.New("invalid bearer token")

// BearerToken authenticates requests by a bearer token, with the users of tokens. The token is in the header "Authorization:
// Bearer TOKEN" (RFC 6750). Browsers cannot set this header in requests that open a WebSocket. In such requests the token may be
// one of the subprotocols in Sec-WebSocket-Protocol: base64url.bearer.authorization.k8s.io. followed by the token in base64url
// without padding. There must be another subprotocol that the server can choose.
//
// If tokens has no opinion of the token, the result is an error. For a request without a token the result is no opinion.
//
// If tokens has a method Ready(context.Context) error, the result has it too.
func BearerToken(tokens TokenAuthenticator) Authenticator { return bearer{tokens: tokens} }

type bearer struct {
	tokens TokenAuthenticator
	names  string // before the errors that are not those of tokens; may be empty
}

// Authenticate implements Authenticator.
func (b bearer) Authenticate(r *http.Request) (*Response, error) {
	token := headerToken(r.Header)
	if token == "" {
		var err error
		if token, err = protocolToken(r.Header); token == "" || err != nil {
			return nil, named(b.names, err)
		}
	}
	resp, err := b.tokens.AuthenticateToken(r.Context(), token)
	switch {
	case err != nil:
		return nil, err
	case resp == nil:
		return nil, named(b.names, errInvalidToken)
	}
	return resp, nil
}

// Ready calls the method Ready of the authenticator of tokens, if it has one.
func (b bearer) Ready(ctx context.Context) error {
	return ready(ctx, b.tokens)
}

// headerToken returns the token of the Authorization header, or "" if there is none.
func headerToken(h http.Header) string {
	scheme, rest, _ := strings.Cut(strings.TrimSpace(h.Get("Authorization")), " ")
	if !strings.EqualFold(scheme, "bearer") {
		return ""
	}
	token, _, _ := strings.Cut(rest, " ")
	return token
}

const (
	protocolHeader = "Sec-Websocket-Protocol"
	tokenProtocol  = "base64url.bearer.authorization.k8s.io."
)

// protocolToken returns the token among the WebSocket subprotocols, or "" if there is none.
func protocolToken(h http.Header) (string, error) {
	if len(h[protocolHeader]) == 0 || !OpensWebSocket(h) {
		return "", nil
	}
	token, seen, others := "", false, 0
	for p := range protocols(h) {
		encoded, ok := strings.CutPrefix(p, tokenProtocol)
		switch {
		case !ok:
			others++
			continue
		case seen:
			return "", errors.New("multiple base64.bearer.authorization tokens specified")
		}
		decoded, err := base64.RawURLEncoding.DecodeString(encoded)
		if err != nil {
			return "", errors.New("invalid base64.bearer.authorization token encoding")
		}
		if !utf8.Valid(decoded) {
			return "", errors.New("invalid base64.bearer.authorization token")
		}
		token, seen = string(decoded), true
	}
	if token != "" && others == 0 {
		return "", errors.New("missing additional subprotocol")
	}
	return token, nil
}

// protocols returns the subprotocols of all headers.
func protocols(h http.Header) func(yield func(string) bool) {
	return func(yield func(string) bool) {
		for _, line := range h[protocolHeader] {
			for p := range strings.SplitSeq(line, ",") {
				if !yield(strings.TrimSpace(p)) {
					return
				}
			}
		}
	}
}

// OpensWebSocket reports whether the headers are those of a WebSocket handshake (RFC 6455, section 4.1).
func OpensWebSocket(h http.Header) bool {
	if !strings.EqualFold(h.Get("Upgrade"), "websocket") {
		return false
	}
	for _, line := range h["Connection"] {
		for token := range strings.SplitSeq(line, ",") {
			if strings.EqualFold(strings.TrimSpace(token), "upgrade") {
				return true
			}
		}
	}
	return false
}
