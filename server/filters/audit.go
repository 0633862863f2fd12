package filters

import (
	"context"
	"iter"
	"net/http"
	"net/netip"
	"slices"
	"strings"
	"time"

	"github.com/keelson-dev/keelson/authn"
	"github.com/keelson-dev/keelson/server/audit"
	"github.com/keelson-dev/keelson/server/request"
	"github.com/keelson-dev/keelson/server/response"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// Auditor makes the audit events of requests.
type Auditor struct {
	// Backends returns the backends that record a request.
	Backends func(ctx context.Context) audit.Backends
	Hooks    audit.Hooks
	// Refused is called for each request that is answered with 500 because a strict backend has not recorded it; nil does nothing.
	Refused func(r *http.Request)
}

// Audit makes the audit events of the requests that reach it: RequestReceived before the handlers behind it, ResponseStarted when a
// long-running request ([request.IsLongRunning]) is answered, and ResponseComplete or Panic at the end. An answer that its handler
// breaks off by a panic with http.ErrAbortHandler, as those of package handlers do when the client is gone, is complete: kube-apiserver
// ends its own without a panic then. The filters and handlers behind it add what they know by [request.RecordingFrom] and
// [request.Annotate], and the times that they take by [request.Latency]. If a strict backend cannot record RequestReceived, the answer
// is 500. Audit belongs behind [Authenticate], since the policies name users. A filter before it that
// refuses requests has to call [Auditor.Answered].
//
// A request that no backend records passes unchanged.
func Audit(a Auditor) Filter {
	return steps(func(p *passage, next http.Handler) bool {
		info, ok := p.info()
		if !ok {
			return false
		}
		rec := a.begin(p, p.user(), info)
		if rec == nil {
			return true
		}
		a.follow(p, rec, next)
		return false
	})
}

// begin returns what makes the events of a request, or nil if there are none.
func (a Auditor) begin(p *passage, user *authn.User, info *request.Info) *audit.Recording {
	backends := a.Backends(p)
	if backends.Empty() {
		return nil
	}
	facts := p.values.Annotations
	if facts == nil {
		facts = new(request.Annotations)
	}
	received := p.values.Received
	if received.IsZero() {
		received = time.Now()
	}
	attributes := info.Attributes(user)
	if p.values.Latency == nil && !request.IsLongRunning(info) { // no Slow records the times
		p.values.Latency = new(request.Latency)
		p.values.Latency.Add(request.Authentication, p.authentication)
		p.watch().seen().latency = p.values.Latency
	}
	rec := backends.Begin(audit.Arrival{
		Attributes: &attributes, AuditID: p.values.AuditID, RequestURI: p.r.RequestURI, UserAgent: p.r.UserAgent(),
		LongRunning: request.IsLongRunning(info), SourceIPs: func() []string { return sourceIPs(p.r) }, Received: received, Annotations: facts.All,
		Spent: spent(p.values.Latency), Hooks: a.Hooks,
	})
	if rec != nil {
		p.values.Annotations, p.values.Recording = facts, rec
	}
	return rec
}

// spent returns the parts of a request by the names that they have in the annotations of kube-apiserver. Those of parts that are not
// the same there have none.
func spent(l *request.Latency) iter.Seq2[string, time.Duration] {
	return func(yield func(string, time.Duration) bool) {
		for _, part := range []struct {
			name string
			took time.Duration
		}{
			{"authentication", l.Of(request.Authentication)},
			{"apf-queue-wait", l.Of(request.Queueing) / time.Millisecond * time.Millisecond}, // 0 if it did not wait
			{"authorization", l.Of(request.Authorization)},
			{"etcd", l.Of(request.Storing)},
			{"serialize-response-object", l.Of(request.Encoding) + l.Of(request.Writing)},
			{"response-write", l.Of(request.Writing)},
		} {
			if part.took > 0 && !yield(part.name, part.took) {
				return
			}
		}
	}
}

// follow serves a request that is recorded.
func (a Auditor) follow(p *passage, rec *audit.Recording, next http.Handler) {
	if err := rec.Reached(p, audit.RequestReceived, p.values.Received, 0); err != nil {
		if a.Refused != nil {
			a.Refused(p.r)
		}
		internalError(p.w, p.r, "failed to store audit event")
		return
	}
	ctx, answer := context.WithoutCancel(p.r.Context()), p.watch().seen()
	if request.IsLongRunning(p.values.Info) {
		answer.started = func(code int) { _ = rec.Reached(ctx, audit.ResponseStarted, time.Now(), code) }
	}
	returned := false
	defer func() {
		if returned {
			return
		}
		value := recover()
		if isAbort(value) {
			a.complete(ctx, rec, answer)
		} else {
			rec.Panicked(ctx, time.Now(), value)
		}
		if value != nil {
			panic(value)
		}
	}()
	p.to(next)
	returned = true
	a.complete(ctx, rec, answer)
}

// complete makes the events of a request whose answer has ended.
func (a Auditor) complete(ctx context.Context, rec *audit.Recording, answer *recorder) {
	if !answer.begun() {
		a.silent(ctx, rec, answer)
	}
	_ = rec.Reached(ctx, audit.ResponseComplete, time.Now(), answer.final(ctx)) // Hooks.Failed is called
}

// silent makes the events of a request that ends without an answer.
func (a Auditor) silent(ctx context.Context, rec *audit.Recording, answer *recorder) {
	rec.Answered(&metav1.Status{Status: metav1.StatusSuccess, Message: "Connection closed early"})
	if answer.started != nil {
		answer.started(http.StatusOK)
	}
}

// Answered makes the event of a request that a filter before [Audit] answers with err. As in kube-apiserver, there is only one
// event, of the stage ResponseStarted and without a user.
func (a Auditor) Answered(r *http.Request, err error) {
	info := request.InfoFrom(r.Context())
	if info == nil {
		return
	}
	p := begin(nil, r)
	rec := a.begin(p, nil, info)
	if rec == nil {
		return
	}
	status := response.Status(err)
	response.Record(rec, &status)
	_ = rec.Reached(p, audit.ResponseStarted, time.Now(), int(status.Code)) // Hooks.Failed is called
}

// maxSourceIPs bounds how many addresses an audit event has. A header of 1 MiB could have a hundred thousand.
const maxSourceIPs = 32

// sourceIPs returns the addresses that a request has passed, as kube-apiserver finds them: those of X-Forwarded-For, that of
// X-Real-Ip, and that of the connection. If there are more than maxSourceIPs, the farthest are left out.
func sourceIPs(r *http.Request) []string {
	var nearest []string // first the nearest
	if peer, err := netip.ParseAddrPort(r.RemoteAddr); err == nil {
		nearest = append(nearest, peer.Addr().Unmap().WithZone("").String())
	}
	var forwarded []string
	for text := range request.ForwardedFor(r.Header) {
		if ip, ok := address(text); ok {
			forwarded = append(forwarded, ip)
		}
		if len(forwarded) == maxSourceIPs {
			break
		}
	}
	if real, ok := address(r.Header.Get("X-Real-Ip")); ok && !slices.Contains(forwarded, real) && !slices.Contains(nearest, real) {
		nearest = append(nearest, real)
	}
	if len(nearest) == 1 && len(forwarded) > 0 && forwarded[0] == nearest[0] { // the proxy named itself last
		forwarded = forwarded[1:]
	}
	nearest = append(nearest, forwarded...)
	nearest = nearest[:min(len(nearest), maxSourceIPs)]
	slices.Reverse(nearest)
	return nearest
}

// address returns an IP address in its canonical form.
func address(text string) (string, bool) {
	ip, err := netip.ParseAddr(strings.TrimSpace(text))
	return ip.WithZone("").String(), err == nil
}
