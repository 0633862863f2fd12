package storage

import (
	"encoding/base64"
	"encoding/json"
	"fmt"
	"path"
	"strings"
)

// AtLatest in place of a Continue's revision goes on at the latest state, which is then not the first page's.
const AtLatest = -1

// Continue says where a list goes on: what a continue token means.
type Continue struct {
	Revision int64  // of the list, or AtLatest
	From     string // the first key that may come, relative to the resource; always within the scope
}

// continueToken is the continuation of a list, as kube-apiserver writes it: the JSON of this struct in base64url
// without padding. Start is relative to the prefix of the keys that the list is about.
type continueToken struct {
	Version  string `json:"v"`
	Revision int64  `json:"rv"`
	Start    string `json:"start"`
}

const tokenVersion = "meta.k8s.io/v1"

// Token makes the token by which a list of the scope goes on. c.From is after a key of the scope.
func (sc Scope) Token(c Continue) string {
	t := continueToken{Version: tokenVersion, Revision: c.Revision, Start: strings.TrimPrefix(c.From, sc.From)}
	data, err := json.Marshal(t)
	if err != nil {
		return "" // a string and a number can always be encoded
	}
	return base64.RawURLEncoding.EncodeToString(data)
}

// Continue reads a token of a list of the scope. Its From is never before the scope's, and may be after its To; its
// Revision is positive or AtLatest. Errors are ErrBadContinue.
func (sc Scope) Continue(token string) (Continue, error) {
	data, err := base64.RawURLEncoding.DecodeString(token)
	if err != nil {
		return Continue{}, fmt.Errorf("%w: %v", ErrBadContinue, err)
	}
	var t continueToken
	if err := json.Unmarshal(data, &t); err != nil {
		return Continue{}, fmt.Errorf("%w: %v", ErrBadContinue, err)
	}
	switch {
	case t.Version != tokenVersion:
		return Continue{}, fmt.Errorf("%w: server does not recognize this encoded version %v", ErrBadContinue, t.Version)
	case t.Revision == 0 || t.Revision < AtLatest:
		return Continue{}, fmt.Errorf("%w: incorrect encoded start resourceVersion (version meta.k8s.io/v1)", ErrBadContinue)
	case t.Start == "":
		return Continue{}, fmt.Errorf("%w: encoded start key empty (version meta.k8s.io/v1)", ErrBadContinue)
	}
	key := "/" + strings.TrimPrefix(t.Start, "/") // some servers write the slash
	if path.Clean(key) != key {
		return Continue{}, fmt.Errorf("%w: %v", ErrBadContinue, t.Start)
	}
	return Continue{Revision: t.Revision, From: sc.From + key[1:]}, nil
}

// Place returns where a list with the options goes on in its scope; Continue is not empty. Its errors are
// ErrBadContinue.
func (o ListOptions) Place(sc Scope) (Continue, error) {
	if o.At.Match == NotOlderThan || o.At.Match == Exact {
		return Continue{}, fmt.Errorf("%w: specifying resource version is not allowed when using continue", ErrBadContinue)
	}
	return sc.Continue(o.Continue)
}
