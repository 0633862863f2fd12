package server

import (
	"context"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/keelson-dev/keelson/storage"
	"go.uber.org/zap"
)

// Check is a named health check.
type Check struct {
	// Name is the name of the check, which is also the end of its path, as in /readyz/<name>.
	Name string
	// Check returns an error if the check fails. It is called for every request to a health path that does not exclude it
	// (?exclude=NAME), by several goroutines at a time, and should return within a second or two. If it fails, /readyz shows only
	// its name, /readyz/<name> shows the error, and both are logged.
	Check func(ctx context.Context) error
	// ReadyOnly leaves the check out of /healthz and /livez. Its failure means that the server is alive, but not ready to serve.
	ReadyOnly bool

	starts  bool // of a hook: /livez passes while Serving.LivezGrace lasts
	advises bool // if it fails, ?verbose and its own path say so, and the endpoint still succeeds
}

// health serves /healthz, /livez and /readyz, in the form of
// https://kubernetes.io/docs/reference/using-api/health-checks/.
type health struct {
	logger  *zap.Logger
	onCheck func(name, endpoint string, err error) // called after each check
	grace   time.Time                              // until then checks of hooks do not fail /livez

	mu     sync.RWMutex // guards checks
	checks []Check
}

func (h *health) add(checks ...Check) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.checks = append(h.checks, checks...)
}

// replace replaces the checks of a name.
func (h *health) replace(name string, checks ...Check) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.checks = append(slices.DeleteFunc(slices.Clone(h.checks), func(c Check) bool { return c.Name == name }), checks...)
}

// of returns the checks of an endpoint.
func (h *health) of(endpoint string) []Check {
	h.mu.RLock()
	defer h.mu.RUnlock()
	var out []Check
	for _, c := range h.checks {
		switch {
		case c.ReadyOnly && endpoint != "readyz":
		case c.starts && endpoint == "livez" && time.Now().Before(h.grace):
			out = append(out, Check{Name: c.Name, Check: func(context.Context) error { return nil }})
		default:
			out = append(out, c)
		}
	}
	return out
}

// paths returns every path that the health endpoints serve.
func (h *health) paths() []string {
	var out []string
	for _, endpoint := range []string{"healthz", "livez", "readyz"} {
		out = append(out, "/"+endpoint)
		for _, c := range h.of(endpoint) {
			out = append(out, "/"+endpoint+"/"+c.Name)
		}
	}
	return out
}

// all returns the handler of an endpoint as a whole.
func (h *health) all(endpoint string) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		query := r.URL.Query()
		excluded := map[string]bool{} // name -> used
		for _, name := range query["exclude"] {
			excluded[name] = false
		}
		var report, failures strings.Builder
		for _, c := range h.of(endpoint) {
			if _, ok := excluded[c.Name]; ok {
				excluded[c.Name] = true
				fmt.Fprintf(&report, "[+]%s excluded: ok\n", c.Name)
				continue
			}
			err := c.Check(r.Context())
			h.onCheck(c.Name, endpoint, err)
			if err != nil && c.advises {
				fmt.Fprintf(&report, "[-]%s failed, and does not count: reason withheld\n", c.Name)
				continue
			}
			if err != nil {
				fmt.Fprintf(&report, "[-]%s failed: reason withheld\n", c.Name)
				fmt.Fprintf(&failures, "%s: %v; ", c.Name, err)
				continue
			}
			fmt.Fprintf(&report, "[+]%s ok\n", c.Name)
		}
		if unknown := unused(excluded); len(unknown) > 0 {
			fmt.Fprintf(&report, "warn: some health checks cannot be excluded: no matches for %s\n", strings.Join(unknown, ", "))
		}
		w.Header().Set("Content-Type", "text/plain; charset=utf-8")
		w.Header().Set("X-Content-Type-Options", "nosniff")
		if failures.Len() > 0 {
			h.logger.Warn("health check failed", zap.String("endpoint", endpoint), zap.String("failures", failures.String()))
			w.WriteHeader(http.StatusInternalServerError)
			fmt.Fprintf(w, "%s%s check failed\n", report.String(), endpoint)
			return
		}
		if _, verbose := query["verbose"]; !verbose {
			fmt.Fprint(w, "ok")
			return
		}
		fmt.Fprintf(w, "%s%s check passed\n", report.String(), endpoint)
	}
}

// unused returns the names that match no check, quoted and sorted.
func unused(excluded map[string]bool) []string {
	var out []string
	for name, used := range excluded {
		if !used {
			out = append(out, fmt.Sprintf("%q", name))
		}
	}
	slices.Sort(out)
	return out
}

// one answers the request of a single check of an endpoint. It returns false, having written nothing, if there is no check of
// that name.
func (h *health) one(endpoint, name string, w http.ResponseWriter, r *http.Request) bool {
	checks := h.of(endpoint)
	i := slices.IndexFunc(checks, func(c Check) bool { return c.Name == name })
	if i < 0 {
		return false
	}
	w.Header().Set("Content-Type", "text/plain; charset=utf-8")
	err := checks[i].Check(r.Context())
	h.onCheck(name, endpoint, err)
	if err != nil {
		h.logger.Warn("health check failed", zap.String("endpoint", endpoint), zap.String("failures", fmt.Sprintf("%s: %v", name, err)))
		http.Error(w, fmt.Sprintf("internal server error: %s", storage.Public(err)), http.StatusInternalServerError)
		return true
	}
	fmt.Fprint(w, "ok")
	return true
}
