package authz

import (
	"context"
	"slices"
	"strings"

	"github.com/keelson-dev/keelson/authn"
	authorizationv1 "k8s.io/api/authorization/v1"
)

// AllowPaths allows everybody, the anonymous included, to read (get, head) paths that are no resources, and has no
// opinion of all else. A path ending in "/*" is all paths below it, "/healthz/*" for one, but not /healthz itself.
// Paths with the segments "." or "..", or an empty one before the end, match no "/*": what serves them may take them
// for others. A star anywhere else is a star.
func AllowPaths(paths ...string) Authorizer {
	rules := Rules{Paths: []authorizationv1.NonResourceRule{{Verbs: []string{"get", "head"}, NonResourceURLs: slices.Clone(paths)}}}
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
	}, func(*authn.User) Rules { return rules }}
}

// isPlain reports whether cleaning a path would not change where it leads.
func isPlain(path string) bool {
	segments := strings.Split(strings.TrimPrefix(path, "/"), "/")
	for i, s := range segments {
		if s == "." || s == ".." || (s == "" && i < len(segments)-1) {
			return false
		}
	}
	return true
}
