package metrics

import (
	"net/http"
	"strconv"

	"github.com/keelson-dev/keelson/server/request"
)

// TimedOut counts a request that was ended because its time was over.
func (m *Registry) TimedOut(r *http.Request) { m.requests.terminated(r, http.StatusGatewayTimeout) }

// TurnedAway counts a request that was refused because there were too many.
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

// refused finds the labels of a request that need not have reached a handler. What is not served has empty ones: of it,
// there is no end.
func (m *requests) refused(r *http.Request) (*series, dryRun) {
	info := request.InfoFrom(r.Context())
	if info == nil { // outside of the filter that finds it
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
