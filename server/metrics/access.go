package metrics

import (
	"context"
	"net/http"
	"strings"
	"sync"
	"time"

	"github.com/keelson-dev/keelson/authn"
	"github.com/keelson-dev/keelson/authz"
	"github.com/prometheus/client_golang/prometheus"
)

// access has the metrics of authentication, authorization and concurrent requests.
type access struct {
	users  map[string]func() prometheus.Counter // immutable
	authn  map[string]func() outcome            // keys are results; immutable
	authz  map[string]func() outcome            // keys are results; immutable
	flight flight
}

// outcome has the number of decisions with one result, and the time that they took.
type outcome struct {
	count prometheus.Counter
	took  prometheus.Observer
}

func (o outcome) add(since time.Time) {
	o.count.Inc()
	o.took.Observe(time.Since(since).Seconds())
}

func newAccess(in *prometheus.Registry) *access {
	buckets := prometheus.ExponentialBuckets(0.001, 2, 15)
	users := counters(in, "authenticated_user_requests", "Requests that were authenticated, by the name of the user if it is well known.", "username")
	attempts := counters(in, "authentication_attempts", "Requests whose credentials were looked at, by result: success, failure or error.", "result")
	took := histograms(in, "authentication_duration_seconds", "Time that authentication took, by result.", buckets, "result")
	judged := counters(in, "authorization_attempts_total", "Requests that were judged, by result: allowed, denied, no-opinion or error.", "result")
	judging := histograms(in, "authorization_duration_seconds", "Time that authorization took, by result.", buckets, "result")
	m := &access{users: map[string]func() prometheus.Counter{}, authn: map[string]func() outcome{}, authz: map[string]func() outcome{}}
	for _, name := range []string{"admin", "client", "kube_proxy", "kubelet", "system:serviceaccount:kube-system:default", emailUser, otherUser} {
		m.users[name] = sync.OnceValue(func() prometheus.Counter { return users.WithLabelValues(name) })
	}
	for _, result := range []string{"success", "failure", "error"} {
		m.authn[result] = sync.OnceValue(func() outcome {
			return outcome{attempts.WithLabelValues(result), took.WithLabelValues(result)}
		})
	}
	for _, result := range []string{"allowed", "denied", "no-opinion", "error"} {
		m.authz[result] = sync.OnceValue(func() outcome {
			return outcome{judged.WithLabelValues(result), judging.WithLabelValues(result)}
		})
	}
	in.MustRegister(&m.flight)
	return m
}

// Labels of users whose names are not well known.
const (
	emailUser = "email_id"
	otherUser = "other"
)

// user counts a request of a user.
func (a *access) user(name string) {
	count := a.users[name]
	switch {
	case count != nil:
	case strings.Contains(name, "@"):
		count = a.users[emailUser]
	default:
		count = a.users[otherUser]
	}
	count().Inc()
}

// Authenticator returns a, with its calls counted.
func (m *Registry) Authenticator(a authn.Authenticator) authn.Authenticator {
	return authenticator{a, m.access}
}

type authenticator struct {
	authn.Authenticator
	m *access
}

// Authenticate implements authn.Authenticator.
func (a authenticator) Authenticate(r *http.Request) (*authn.Response, error) {
	began := time.Now()
	resp, err := a.Authenticator.Authenticate(r)
	switch {
	case err != nil:
		a.m.authn["error"]().add(began)
	case resp == nil:
		a.m.authn["failure"]().add(began)
	default:
		a.m.authn["success"]().add(began)
		a.m.user(resp.User.Name)
	}
	return resp, err
}

// Authorizer returns a, with its calls counted.
func (m *Registry) Authorizer(a authz.Authorizer) authz.Authorizer { return authorizer{a, m.access} }

type authorizer struct {
	authz.Authorizer
	m *access
}

// Authorize implements authz.Authorizer.
func (a authorizer) Authorize(ctx context.Context, asked authz.Attributes) (authz.Verdict, string, error) {
	began := time.Now()
	verdict, reason, err := a.Authorizer.Authorize(ctx, asked)
	switch {
	case verdict == authz.Allow:
		a.m.authz["allowed"]().add(began)
	case err != nil:
		a.m.authz["error"]().add(began)
	case verdict == authz.Deny:
		a.m.authz["denied"]().add(began)
	default:
		a.m.authz["no-opinion"]().add(began)
	}
	return verdict, reason, err
}
