package server

import (
	"cmp"
	"fmt"
	"net/http"
	"slices"
	"time"

	"github.com/keelson-dev/keelson/server/filters"
)

// NamedFilter is a member of the filter chain.
type NamedFilter struct {
	Name string
	// Filter is nil where the member guards the server and may not be changed: see Serving.Filters.
	Filter filters.Filter
}

// chain is the filter chain, outermost first, with the reason why each filter stands where it does.
func (s *Server) chain() []NamedFilter {
	o, m, resolver := s.opts, s.metrics, s.opts.Limits.resolver()
	list := []NamedFilter{
		{"recover", filters.Recover(o.Observe.Logger, m.Aborted)}, // around all others: a panic anywhere is one failed request
		{"unread-body", filters.UnreadBody(0)},                    // before anything can answer without reading the body
		{"audit-id", filters.AuditID()},                           // before anything can answer: every answer carries it
		{"header-fields", filters.HeaderFields(maxHeaderFields)},  // before anything looks at them
		{"received-at", filters.ReceivedAt(time.Now)},             // deadlines count from here, by the real clock
		{"address", filters.Address(o.Serving.Proxies)},           // before anything that is bounded by address
		{"request-info", filters.RequestInfo(resolver)},           // what all below ask for
		{"log", filters.Log(o.Observe.Logger)},                    // sees the final code of every answer below
		{"cache-control", filters.CacheControl()},                 // answers must not be cached, refusals included
		{"origin", filters.Origin(o.Serving.AllowOrigin)},         // before a browser's certificate says who it is
		{"in-flight-wait", s.requests.Filter()},                   // shutdown lets what passed here finish, and nothing else in
		{"deadline", filters.Deadline(o.Limits.RequestTimeout)},   // the time authentication takes counts
		{"timeout", filters.Timeout(m.TimedOut)},                  // answers when the deadline passes; what is below runs in a goroutine of its own
		{"warnings", filters.Warnings()},                          // collects from all below, and writes headers
		{"policy", filters.Policy(s.policy)},                      // one state of all policy for the rest of the request
		{"authenticate", filters.Authenticate(m.Authenticator(s.authenticator), filters.AuthenticateOptions{
			Audiences: o.Policy.Audiences, Failed: s.unauthenticated,
		})}, // who: before anything that depends on the user
		{"impersonate", filters.RefuseImpersonation()},                    // before anything that depends on the user
		{"in-flight", filters.FlowControl(turns{s.policy}, m.TurnedAway)}, // after who (masters pass), before the work of authorization
		{"authorize", filters.Authorize(m.Authorizer(pinned{s.policy}))},  // past this point the request is authorized
		{"long-running", filters.LongRunning(s.watches, m.TurnedAway)},    // after authorization: a watch that may not be made takes no place
		{"metrics", filters.Metrics(m)},                                   // last: what a handler answers is counted, and not what filters refuse
	}
	if o.CBOR {
		list = slices.Insert(list, 0, NamedFilter{"cbor", filters.CBOR()}) // whatever answers with an error may do so in CBOR
	}
	return list
}

// Guards are the names of the filters that guard a server: Serving.Filters may not change them, unless TrustFilters is set.
func Guards() []string {
	return []string{"policy", "authenticate", "audit", "impersonate", "authorize"}
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
	if s.opts.Serving.Filters != nil {
		var err error
		if s.opts.Serving.TrustFilters {
			s.filters = s.opts.Serving.Filters(s.filters)
		} else if s.filters, err = Rearrange(s.filters, s.opts.Serving.Filters); err != nil {
			return nil, err
		}
	}
	list := make([]filters.Filter, 0, len(s.filters))
	for _, f := range s.filters {
		if f.Filter == nil {
			return nil, fmt.Errorf("server: Serving.Filters: the filter %q is nil", f.Name)
		}
		list = append(list, f.Filter)
	}
	return filters.Chain(s.set.Handler(), list...), nil
}

// Rearrange returns the chain own as filters, a Serving.Filters, wants it, or says what filters may not do without
// TrustFilters. It is for a program that rearranges a chain on behalf of others.
func Rearrange(own []NamedFilter, filters func([]NamedFilter) []NamedFilter) ([]NamedFilter, error) {
	const cure = "; leave it as it is, or set Serving.TrustFilters"
	guarded, last := map[string]func(http.Handler) http.Handler{}, "" // what stands in front of the last guard, and that
	var guards []string
	shown := slices.Clone(own)
	for i, f := range slices.Backward(own) {
		if slices.Contains(Guards(), f.Name) {
			guards = append(guards, f.Name)
			last = cmp.Or(last, f.Name)
		}
		if last != "" {
			guarded[f.Name], shown[i].Filter = f.Filter, nil
		}
	}
	slices.Reverse(guards)
	out, left := slices.Clone(filters(shown)), guards
	for _, guard := range guards {
		if !slices.ContainsFunc(out, func(f NamedFilter) bool { return f.Name == guard }) {
			return nil, fmt.Errorf("server: Serving.Filters removes the filter %q, which guards the server"+cure, guard)
		}
	}
	for i, f := range out {
		filter, known := guarded[f.Name]
		switch {
		case known && (f.Filter != nil || filter == nil):
			return nil, fmt.Errorf("server: Serving.Filters replaces or repeats the filter %q, which every request passes before it is authorized"+cure, f.Name)
		case known && slices.Contains(guards, f.Name):
			if len(left) == 0 || left[0] != f.Name {
				return nil, fmt.Errorf("server: Serving.Filters moves the filter %q, which guards the server"+cure, f.Name)
			}
			left = left[1:]
		case !known && len(left) > 0:
			return nil, fmt.Errorf("server: Serving.Filters puts the filter %q in front of %q, where it could answer requests of anybody; put it behind %q, or set Serving.TrustFilters", f.Name, left[0], last)
		}
		if known {
			out[i].Filter, guarded[f.Name] = filter, nil
		}
	}
	return out, nil
}
