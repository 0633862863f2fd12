package storage

import (
	"encoding/base64"
	"encoding/json"
	"fmt"
	"path"
	"strings"
)

// atLatest in place of a token's revision goes on at the latest state, which is then not the first page's.
const atLatest = -1

// continueToken is the continuation of a list, as kube-apiserver writes it: the JSON of this struct in base64url
// without padding. Start is relative to the prefix of the keys that the list is about.
type continueToken struct {
	Version  string `json:"v"`
	Revision int64  `json:"rv"`
	Start    string `json:"start"`
}

const tokenVersion = "meta.k8s.io/v1"

// encodeContinue makes the token that goes on from key start, in the interval of a prefix.
func encodeContinue(start, prefix string, revision int64) string {
	t := continueToken{Version: tokenVersion, Revision: revision, Start: strings.TrimPrefix(start, prefix)}
	data, err := json.Marshal(t)
	if err != nil {
		return "" // a string and a number can always be encoded
	}
	return base64.RawURLEncoding.EncodeToString(data)
}

// decodeContinue returns the key from which a token goes on, always within the prefix, and the revision, which is
// positive or atLatest. Its errors are ErrBadContinue.
func decodeContinue(token, prefix string) (start string, revision int64, err error) {
	data, err := base64.RawURLEncoding.DecodeString(token)
	if err != nil {
		return "", 0, fmt.Errorf("%w: %v", ErrBadContinue, err)
	}
	var t continueToken
	if err := json.Unmarshal(data, &t); err != nil {
		return "", 0, fmt.Errorf("%w: %v", ErrBadContinue, err)
	}
	switch {
	case t.Version != tokenVersion:
		return "", 0, fmt.Errorf("%w: server does not recognize this encoded version %v", ErrBadContinue, t.Version)
	case t.Revision == 0 || t.Revision < atLatest:
		return "", 0, fmt.Errorf("%w: incorrect encoded start resourceVersion (version meta.k8s.io/v1)", ErrBadContinue)
	case t.Start == "":
		return "", 0, fmt.Errorf("%w: encoded start key empty (version meta.k8s.io/v1)", ErrBadContinue)
	}
	key := "/" + strings.TrimPrefix(t.Start, "/") // some servers write the slash
	if path.Clean(key) != key {
		return "", 0, fmt.Errorf("%w: %v", ErrBadContinue, t.Start)
	}
	return prefix + key[1:], t.Revision, nil
}
