package filters

import (
	"net/url"
	"slices"
	"strings"
)

// shownURI returns the path and the query of a URL for a line in a log. Of parameters that the API does not have, which may be
// credentials, it returns only the names.
func shownURI(u *url.URL) string {
	if u.RawQuery == "" {
		return u.EscapedPath()
	}
	var b strings.Builder
	b.WriteString(u.EscapedPath())
	sep := byte('?')
	for pair := range strings.SplitSeq(u.RawQuery, "&") {
		b.WriteByte(sep)
		sep = '&'
		if name, _, valued := strings.Cut(pair, "="); valued && !slices.Contains(shownParameters(), name) {
			pair = name + "=..."
		}
		b.WriteString(pair)
		if b.Len() > maxShown {
			break
		}
	}
	return b.String()
}

// maxShown is a length above which a URI is cut in any case.
const maxShown = 4 << 10

// shownParameters returns the parameters of the API, none of which has a secret.
func shownParameters() []string {
	return []string{
		"allowWatchBookmarks", "continue", "dryRun", "exclude", "fieldManager", "fieldSelector", "fieldValidation", "force", "gracePeriodSeconds",
		"includeObject", "labelSelector", "limit", "orphanDependents", "pretty", "propagationPolicy", "resourceVersion", "resourceVersionMatch", "sendInitialEvents",
		"timeout", "timeoutSeconds", "verbose", "watch",
	}
}
