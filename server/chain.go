package server

import (
	"cmp"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"time"

	"github.com/keelson-dev/keelson/server/filters"
)

// NamedFilter is a filter of the filter chain, with its name.
type NamedFilter struct {
	// Name is the name of the filter, such as "authenticate"; see [Server.Chain].
	Name string
	// Filter is the filter. It is nil where the filter may not be changed: see Serving.Filters.
	Filter filters.Filter
}

// The names of the filters of a server, outermost filter first. The comment of each name has the function of package filters that
// makes the filter. FilterCBOR exists with Options.CBOR only.
const (
	FilterCBOR         = "cbor"           // filters.CBOR
	FilterRecover      = "recover"        // filters.Recover
	FilterUnreadBody   = "unread-body"    // filters.UnreadBody
	FilterAuditID      = "audit-id"       // filters.AuditID
	FilterHeaderFields = "header-fields"  // filters.HeaderFields
	FilterReceivedAt   = "received-at"    // filters.ReceivedAt
	FilterAddress      = "address"        // filters.Address
	FilterRequestInfo  = "request-info"   // filters.RequestInfo
	FilterSlow         = "slow"           // filters.Slow
	FilterLog          = "log"            // filters.Log
	FilterStarting     = "starting"       // filters.Starting
	FilterRetryAfter   = "retry-after"    // filters.RetryAfter
	FilterHSTS         = "hsts"           // filters.HSTS
	FilterCacheControl = "cache-control"  // filters.CacheControl
	FilterGoAway       = "goaway"         // filters.GoAway
	FilterOrigin       = "origin"         // filters.Origin
	FilterInFlightWait = "in-flight-wait" // filters.WaitGroup.Filter
	FilterLasting      = "lasting"        // filters.Lasting.Filter
	FilterDeadline     = "deadline"       // filters.Deadline
	FilterTimeout      = "timeout"        // filters.Timeout
	FilterWarnings     = "warnings"       // filters.Warnings
	FilterCORS         = "cors"           // filters.CORS
	FilterPolicy       = "policy"         // filters.Policy
	FilterAuthenticate = "authenticate"   // filters.Authenticate
	FilterAudit        = "audit"          // filters.Audit
	FilterImpersonate  = "impersonate"    // filters.Impersonate
	FilterInFlight     = "in-flight"      // filters.FlowControl
	FilterHeaderBytes  = "header-bytes"   // filters.HeaderBytes
	FilterAuthorize    = "authorize"      // filters.Authorize
	FilterLongRunning  = "long-running"   // filters.LongRunning
	FilterMetrics      = "metrics"        // filters.Metrics
)

// InsertBefore returns chain with more filters directly before, and so around, the filter with that name. It is for
// Serving.Filters. Without TrustFilters, name must be that of a filter behind FilterAuthorize. If the chain has no filter with
// that name, New fails.
func InsertBefore(chain []NamedFilter, name string, more ...NamedFilter) []NamedFilter {
	return insert(chain, name, 0, more)
}

// InsertAfter returns chain with more filters directly behind the filter with that name. It is for Serving.Filters. Without
// TrustFilters, name must be FilterAuthorize or that of a filter behind it. If the chain has no filter with that name, New fails.
//
// A filter that traces requests, such as that of otelhttp, belongs behind FilterAuthenticate, where kube-apiserver has its own.
// Clients that are not authenticated then make no spans, and do not decide what is sampled by their header traceparent. The filter
// finds the user, the request.Info and the audit ID in the context of the request, and receives the code of the answer, except
// when a request takes too long: FilterTimeout answers such a request. The user there is the one who was authenticated; an
// impersonated user is known behind FilterImpersonate. A filter that ignores traceparent may be behind
// FilterRequestInfo instead, and receives the code of every answer. Both places need TrustFilters. The filter's http.ResponseWriter
// needs the method Unwrap, or all optional methods of that of net/http.
func InsertAfter(chain []NamedFilter, name string, more ...NamedFilter) []NamedFilter {
	return insert(chain, name, 1, more)
}

func insert(chain []NamedFilter, name string, offset int, more []NamedFilter) []NamedFilter {
	at := slices.IndexFunc(chain, func(f NamedFilter) bool { return f.Name == name })
	if at < 0 {
		return append(slices.Clone(chain), NamedFilter{name, noPlace})
	}
	return slices.Insert(slices.Clone(chain), at+offset, more...)
}

// noPlace is the filter that insert adds under a name that the chain does not have. buildHandler makes an error of it.
func noPlace(next http.Handler) http.Handler { return misplaced{next} }

// misplaced is the handler of noPlace.
type misplaced struct{ http.Handler }

// chain returns the filter chain, outermost filter first. The comment of each filter has the reason for its place.
func (s *Server) chain() []NamedFilter {
	o, m, resolver, auditor := s.opts, s.metrics, s.opts.Limits.resolver(), s.auditor()
	list := []NamedFilter{
		{FilterRecover, filters.Recover(o.Observe.Logger, m.Aborted)},                 // around all other filters: a panic anywhere fails only one request
		{FilterUnreadBody, filters.UnreadBody(0)},                                     // before any filter can answer without reading the body
		{FilterAuditID, filters.AuditID()},                                            // before any filter can answer: every answer has the ID
		{FilterHeaderFields, filters.HeaderFields(maxHeaderFields)},                   // before any filter looks at the fields
		{FilterReceivedAt, filters.ReceivedAt(time.Now)},                              // deadlines count from here, by time.Now and not Options.Now
		{FilterAddress, filters.Address(o.Serving.Proxies)},                           // before anything that is bounded by address
		{FilterRequestInfo, filters.RequestInfo(resolver)},                            // all filters below use it
		{FilterSlow, filters.Slow(o.Observe.Logger, o.Observe.SlowRequest)},           // around all parts of a request whose time is measured
		{FilterLog, filters.Log(o.Observe.Logger)},                                    // receives the final code of every answer below
		{FilterStarting, filters.Starting(s.whole.Load)},                              // before any work: what was not served when a request came may be served when it is routed
		{FilterRetryAfter, filters.RetryAfter(s.turnsAway)},                           // at shutdown; the log has these answers
		{FilterHSTS, filters.HSTS(o.Serving.HSTS...)},                                 // before any filter can answer: every answer has the header
		{FilterCacheControl, filters.CacheControl()},                                  // answers must not be cached, refusals included
		{FilterGoAway, filters.GoAway(o.Serving.GoAwayChance)},                        // outside of in-flight-wait: requests that end a connection finish
		{FilterOrigin, filters.Origin(o.Serving.AllowOrigin)},                         // before a browser's certificate authenticates the request
		{FilterInFlightWait, s.requests.Filter()},                                     // at shutdown, requests that are past here finish, and no others pass
		{FilterLasting, s.lasting.Filter()},                                           // behind in-flight-wait: those that are refused at shutdown do not count
		{FilterDeadline, filters.Deadline(o.Limits.RequestTimeout, auditor.Answered)}, // the time authentication takes counts
		{FilterTimeout, filters.Timeout(m.TimedOut)},                                  // answers at the deadline; the filters below run in another goroutine
		{FilterWarnings, filters.Warnings()},                                          // collects warnings from all below, and writes their headers
		{FilterCORS, filters.CORS(o.Serving.AllowOrigin)},                             // before authentication: a preflight request has no credentials
		{FilterPolicy, filters.Policy(s.policy)},                                      // one state of all policy for the rest of the request
		{FilterAuthenticate, filters.Authenticate(m.Authenticator(s.authenticator), filters.AuthenticateOptions{
			Audiences: o.Policy.Audiences, Strip: s.policy.withoutCredentials, Failed: s.unauthenticated, Answered: auditor.Answered,
		})}, // before anything that depends on the user
		{FilterAudit, filters.Audit(auditor)},                                    // after authentication: policies name users; before anybody can refuse the request
		{FilterImpersonate, filters.Impersonate(m.Authorizer(pinned{s.policy}))}, // behind audit, which has both users; before anything that depends on the user
		{FilterInFlight, filters.FlowControl(turns{s.policy}, m.TurnedAway)},     // after authentication (masters pass), before the work of authorization
		{FilterHeaderBytes, filters.HeaderBytes(s.bytes, m.TurnedAway)},          // after authentication: the user pays for large headers
		{FilterAuthorize, filters.Authorize(m.Authorizer(pinned{s.policy}))},     // past this point the request is authorized
		{FilterLongRunning, filters.LongRunning(s.watches, m.TurnedAway)},        // after authorization: forbidden watches take no place
		{FilterMetrics, filters.Metrics(m)},                                      // last: answers of handlers are counted, and not refusals of filters
	}
	if o.CBOR {
		list = slices.Insert(list, 0, NamedFilter{FilterCBOR, filters.CBOR()}) // errors of all other filters may be in CBOR
	}
	return list
}

// Guards returns the names of the filters that guard a server. Serving.Filters may not change them, unless TrustFilters is set.
func Guards() []string {
	return []string{FilterPolicy, FilterAuthenticate, FilterAudit, FilterImpersonate, FilterAuthorize}
}

// turnsAway reports whether new requests are to go to another server, because this one ends.
func (s *Server) turnsAway() bool {
	return s.opts.Serving.ShutdownRetryAfter && (s.draining.Load() || s.life.Err() != nil)
}

// Chain returns the names of the filters of this server, outermost filter first.
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
	places := s.Chain()
	if s.opts.Serving.Filters != nil {
		var err error
		if s.opts.Serving.TrustFilters {
			s.filters = s.opts.Serving.Filters(s.filters)
		} else if s.filters, err = Rearrange(s.filters, s.opts.Serving.Filters); err != nil {
			return nil, err
		}
	}
	h := s.set.Handler()
	for _, f := range slices.Backward(s.filters) {
		if f.Filter == nil {
			return nil, fmt.Errorf("server: Serving.Filters: the filter %q is nil: set its Filter, or leave it out", f.Name)
		}
		h = f.Filter(h)
		if h == nil {
			return nil, fmt.Errorf("server: Serving.Filters: the filter %q returns no handler: return one, such as the handler that it is given", f.Name)
		}
		if _, ok := h.(misplaced); ok {
			return nil, fmt.Errorf("server: Serving.Filters: there is no filter %q: insert before or after one of %s", f.Name, strings.Join(places, ", "))
		}
	}
	return h, nil
}

// Rearrange calls filters, a function as in Serving.Filters, with the chain own, and returns the chain that the function makes of
// it. The error says which change is not allowed without TrustFilters. Rearrange is for a program that sets Serving.Filters
// itself and has to apply the Filters of its users, too.
func Rearrange(own []NamedFilter, filters func([]NamedFilter) []NamedFilter) ([]NamedFilter, error) {
	const cure = "; leave it as it is, or set Serving.TrustFilters"
	guarded, last := map[string]func(http.Handler) http.Handler{}, "" // the filters up to the last guard, and the name of that guard
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
