package server

import (
	"fmt"
	"net/http"
	"slices"
	"time"

	"github.com/keelson-dev/keelson/server/filters"
)

// NamedFilter is a member of the filter chain.
type NamedFilter struct {
	Name   string
	Filter filters.Filter
}

// chain is the filter chain, outermost first, with the reason why each filter stands where it does.
func (s *Server) chain() []NamedFilter {
	o, m := s.opts, s.metrics
	list := []NamedFilter{
		{"recover", filters.Recover(o.Logger, m.Aborted)}, // around all others: a panic anywhere is one failed request
		{"audit-id", filters.AuditID()},                   // before anything can answer: every answer carries it
		{"received-at", filters.ReceivedAt(time.Now)},     // deadlines count from here, by the real clock
		{"request-info", filters.RequestInfo()},           // what all below ask for
		{"log", filters.Log(o.Logger)},                    // sees the final code of every answer below
		{"cache-control", filters.CacheControl()},         // answers must not be cached, refusals included
		{"in-flight-wait", s.requests.Filter()},           // shutdown lets what passed here finish, and nothing else in
		{"deadline", filters.Deadline(o.RequestTimeout)},  // the time authentication takes counts
		{"timeout", filters.Timeout(m.TimedOut)},          // answers when the deadline passes below
		{"warnings", filters.Warnings()},                  // collects from all below, and writes headers
		{"authenticate", filters.Authenticate(m.Authenticator(s.authenticator), filters.AuthenticateOptions{Failed: s.unauthenticated})}, // who: before anything that depends on whom
		{"impersonate", filters.RefuseImpersonation()},               // before all that goes by who asks
		{"in-flight", filters.FlowControl(s.inFlight, m.TurnedAway)}, // after who (masters pass), before the work of authorization
		{"authorize", filters.Authorize(m.Authorizer(s.authorizer))}, // whoever is behind it may do what he asks
		{"metrics", filters.Metrics(m)},                              // last: what a handler answers is counted, and not what filters refuse
	}
	if o.CBOR {
		list = slices.Insert(list, 0, NamedFilter{"cbor", filters.CBOR()}) // whatever answers with an error may do so in CBOR
	}
	return list
}

// Chain lists the names of the filters a server with these options has, outermost first.
func (s *Server) Chain() []string {
	var out []string
	for _, f := range s.filters {
		out = append(out, f.Name)
	}
	return out
}

// buildHandler puts the chain around the router.
func (s *Server) buildHandler() (http.Handler, error) {
	s.filters = s.chain()
	if s.opts.Filters != nil {
		s.filters = s.opts.Filters(s.filters)
	}
	list := make([]filters.Filter, 0, len(s.filters))
	for _, f := range s.filters {
		if f.Filter == nil {
			return nil, fmt.Errorf("server: Options.Filters: the filter %q is nil", f.Name)
		}
		list = append(list, f.Filter)
	}
	return filters.Chain(s.router.Handler(s.fixed), list...), nil
}
