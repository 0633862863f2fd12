package storage

import (
	"encoding/base64"
	"encoding/json"
	"fmt"
	"path"
	"strings"
)

// AtLatest as the Revision of a Continue continues at the latest state, which differs from the state of the first page.
const AtLatest = -1

// Continue is the content of a continue token: where a list continues.
type Continue struct {
	Revision int64  // the revision of the list, or AtLatest
	From     string // the first key that may follow, relative to the resource; never before the scope
}

// continueToken is the continuation of a list in the format of kube-apiserver: the JSON of this struct in base64url without
// padding. Start is relative to the key prefix of the list.
type continueToken struct {
	Version  string `json:"v"`
	Revision int64  `json:"rv"`
	Start    string `json:"start"`
}

const tokenVersion = "meta.k8s.io/v1"

// Token makes the token with which a list of the scope continues. c.From is after a key of the scope.
func (sc Scope) Token(c Continue) string {
	t := continueToken{Version: tokenVersion, Revision: c.Revision, Start: strings.TrimPrefix(c.From, sc.From)}
	data, err := json.Marshal(t)
	if err != nil {
		return "" // a string and a number can always be encoded
	}
	return base64.RawURLEncoding.EncodeToString(data)
}

// Continue decodes a token of a list of the scope. Its From is never before the scope's From, and may be after the scope's
// To. Its Revision is positive or AtLatest. Errors are ErrBadContinue.
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

// Place returns where a list with these options continues in its scope. o.Continue must not be empty. Errors are
// ErrBadContinue.
func (o ListOptions) Place(sc Scope) (Continue, error) {
	if o.At.Match == NotOlderThan || o.At.Match == Exact {
		return Continue{}, fmt.Errorf("%w: specifying resource version is not allowed when using continue", ErrBadContinue)
	}
	return sc.Continue(o.Continue)
}
