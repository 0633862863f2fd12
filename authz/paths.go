package authz

import (
	"context"
	"slices"
	"strings"

	"github.com/keelson-dev/keelson/authn"
)

// AllowPaths returns an authorizer that allows every user, including the anonymous user, to read (get, head) paths that are not
// resources. It has no opinion of other requests. A path that ends in "/*" matches all paths below it: "/healthz/*" does not
// match /healthz itself. Paths with a segment "." or "..", or with an empty segment before the end, match no "/*", because the
// server may clean such a path to another one. A star in another position has no special meaning.
func AllowPaths(paths ...string) Authorizer {
	rules := Rules{Paths: []PathRule{{Verbs: []string{"get", "head"}, NonResourceURLs: slices.Clone(paths)}}}
	exact, below := map[string]struct{}{}, []string(nil)
	for _, p := range paths {
		if strings.HasSuffix(p, "/*") {
			below = append(below, strings.TrimSuffix(p, "*"))
			continue
		}
		exact[p] = struct{}{}
	}
	return fixed{func(_ context.Context, a Attributes) (Verdict, string, error) {
		if a.ResourceRequest || (a.Verb != "get" && a.Verb != "head") {
			return NoOpinion, "", nil
		}
		if _, ok := exact[a.Path]; ok {
			return Allow, "", nil
		}
		for _, prefix := range below {
			if strings.HasPrefix(a.Path, prefix) && isPlain(a.Path) {
				return Allow, "", nil
			}
		}
		return NoOpinion, "", nil
	}, func(*authn.User) Rules { return rules }, everybody()}
}

// isPlain reports whether cleaning a path would not change its meaning.
func isPlain(path string) bool {
	segments := strings.Split(strings.TrimPrefix(path, "/"), "/")
	for i, s := range segments {
		if s == "." || s == ".." || (s == "" && i < len(segments)-1) {
			return false
		}
	}
	return true
}
