package metrics

import (
	"net/http"
	"strconv"

	"github.com/keelson-dev/keelson/server/request"
)

// TimedOut counts a request that was ended at its deadline.
func (m *Registry) TimedOut(r *http.Request) { m.requests.terminated(r, http.StatusGatewayTimeout) }

// TurnedAway counts a request that was refused because there were too many concurrent requests.
func (m *Registry) TurnedAway(r *http.Request) {
	s, dry := m.requests.refused(r)
	m.requests.counter(s, dry, http.StatusTooManyRequests).Inc()
	m.requests.terminated(r, http.StatusTooManyRequests)
}

// Aborted counts a request whose connection was aborted.
func (m *Registry) Aborted(r *http.Request) {
	s, _ := m.requests.refused(r)
	m.requests.aborts.WithLabelValues(s.labels(s.verb.String())...).Inc()
}

func (m *requests) terminated(r *http.Request, code int) {
	s, _ := m.refused(r)
	m.terminations.WithLabelValues(s.labels(s.verb.String(), component, strconv.Itoa(code))...).Inc()
}

// refused returns the labels of a request that need not have reached a handler. The labels of a resource that is not served are
// empty, since clients could request any number of such resources.
func (m *requests) refused(r *http.Request) (*series, dryRun) {
	info := request.InfoFrom(r.Context())
	if info == nil { // the filter RequestInfo is behind the caller
		var err error
		if info, err = request.Resolve(r); err != nil {
			info = &request.Info{}
		}
	}
	about := m.subjects.of(r, info)
	s := &series{subject: &subject{component: component}}
	switch {
	case about == nil:
		s.scope = scopeOf(info, named(info))
		s.verb = verbOf(r, info, nil)
	default:
		s.subject, s.verb, s.scope = about, verbOf(r, info, about.connect), scopeOf(info, named(info))
	}
	dry, _ := options(r.URL)
	return s, dry
}
