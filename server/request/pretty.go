package request

import (
	"net/http"
	"strconv"
	"strings"
)

// Pretty reports whether JSON is to be laid out for reading: what ?pretty says counts, then whether people read what
// the client shows (curl, wget, browsers), then accepted, which is what the Accept header says.
func Pretty(r *http.Request, accepted bool) bool {
	if strings.Contains(r.URL.RawQuery, "pretty") {
		if value := r.URL.Query().Get("pretty"); value != "" {
			pretty, err := strconv.ParseBool(value)
			return err == nil && pretty
		}
	}
	agent := r.UserAgent()
	return accepted || strings.HasPrefix(agent, "curl") || strings.HasPrefix(agent, "Wget") || strings.HasPrefix(agent, "Mozilla/5.0")
}
