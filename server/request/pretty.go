package request

import (
	"net/http"
	"strconv"
	"strings"
)

// Pretty reports whether JSON is to be indented for people. The value of ?pretty decides, if there is one. Otherwise the result
// is true if accepted, which is the value of the Accept header, is true, or if the client is one that people use directly (curl,
// wget, browsers).
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
