package request

import (
	"net/http"
	"strconv"
	"strings"
)

// AcceptsGzip reports whether the client accepts gzip: its header Accept-Encoding (RFC 9110, section 12.5.3) names gzip with a
// weight above zero, or without a weight. A wildcard does not count.
func AcceptsGzip(r *http.Request) bool {
	for clause := range strings.SplitSeq(strings.Join(r.Header.Values("Accept-Encoding"), ","), ",") {
		coding, params, _ := strings.Cut(clause, ";")
		if !strings.EqualFold(strings.TrimSpace(coding), "gzip") {
			continue
		}
		q, weighed := strings.CutPrefix(strings.ToLower(strings.TrimSpace(params)), "q=")
		weight, err := strconv.ParseFloat(strings.TrimSpace(q), 64)
		return !weighed || err != nil || weight > 0
	}
	return false
}
