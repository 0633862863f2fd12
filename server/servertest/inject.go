package servertest

import (
	"context"
	"errors"
	"io"
	"math"
	"math/rand/v2"
	"net/http"
	"net/url"
	"slices"
	"strconv"
	"sync"
	"time"

	"github.com/keelson-dev/keelson/authn"

	"github.com/keelson-dev/keelson/server/request"
	"github.com/keelson-dev/keelson/server/response"
	"github.com/keelson-dev/keelson/storage"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
)

// Inject adds a fault until remove is called or the server ends. A request that the fault has already affected is not changed by
// remove, and remove does not wait for it. remove may be called several times. Inject and remove may be called during requests.
//
// If several faults match a request, they apply in the order in which they were injected, up to and including the first one that
// decides the answer. Their delays add up. Later faults do not count the request.
//
// A mistaken fault, see [Fault], makes every later request for a resource fail with 500 and the reason. The error is also part of
// the error of Close, so that the test of a server that New or Start made fails.
func (s *Server) Inject(f Fault) (remove func()) {
	if err := f.check(s.Catalogue().Kinds()); err != nil {
		s.intercept.mistaken("Inject", err)
		return func() {}
	}
	f.Verbs, f.Resources = slices.Clone(f.Verbs), slices.Clone(f.Resources)
	one := &injected{Fault: f, only: f.about(), random: rand.New(rand.NewPCG(f.Seed, 0))}
	s.intercept.change(func(now *interception) { now.faults = append(now.faults, one) })
	return func() {
		s.intercept.change(func(now *interception) {
			now.faults = slices.DeleteFunc(now.faults, func(f *injected) bool { return f == one })
		})
	}
}

// injected is an injected fault with its state.
type injected struct {
	Fault
	only []string // the verbs that it affects

	mu      sync.Mutex // guards the fields below
	skipped int
	struck  int
	random  *rand.Rand
}

// eligible reports whether the fault can affect a matching request.
func (f *injected) eligible(r *http.Request, info *request.Info) bool {
	if len(f.only) < len(verbs()) && !slices.Contains(f.only, info.Verb) {
		return false
	}
	switch {
	case f.cuts() || f.Expired && info.Verb == "watch":
		return r.Header.Get("Upgrade") == "" && (f.cuts() || since(r.URL.Query()) > 0)
	case f.Expired:
		q := r.URL.Query()
		_, goesOn := place(q)
		return goesOn || since(q) > 0
	case f.commits():
		return !r.URL.Query().Has("dryRun")
	}
	return true
}

// since returns the resourceVersion of a query, or 0 if there is none or it cannot be too old.
func since(q url.Values) uint64 {
	revision, _ := strconv.ParseUint(q.Get("resourceVersion"), 10, 64) // the handler refuses an invalid number
	return revision
}

// place returns the position of a list that continues at the state of its first page. It returns false for other lists: a list
// that continues at the latest state is never too old.
func place(q url.Values) (storage.Continue, bool) {
	var all storage.Scope
	at, err := all.Continue(q.Get("continue"))
	return at, err == nil && at.Revision != storage.AtLatest
}

// strikes decides whether the fault affects the next eligible request.
func (f *injected) strikes() bool {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.skipped < f.Skip {
		f.skipped++
		return false
	}
	if f.Times > 0 && f.struck >= f.Times || f.Rate > 0 && f.random.Float64() >= f.Rate {
		return false
	}
	f.struck++
	return true
}

// delay returns the delay of one request.
func (f *injected) delay() time.Duration {
	if f.Jitter == 0 {
		return f.Delay
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	return sum(f.Delay, time.Duration(f.random.Uint64N(uint64(f.Jitter)+1)))
}

// sum adds delays, up to the maximum Duration.
func sum(a, b time.Duration) time.Duration {
	if a > math.MaxInt64-b {
		return math.MaxInt64
	}
	return a + b
}

// fate is what faults do to one request.
type fate struct {
	*interceptor
	info   *request.Info
	delay  time.Duration
	rivals *rivalry  // nil if commits are not affected
	end    *injected // the fault that decides the answer; nil if the handler does
}

// add adds the effects of a fault. It must not be called after a fault that decides the answer.
func (f *fate) add(one *injected) {
	f.delay = sum(f.delay, one.delay())
	if one.commits() {
		if f.rivals == nil {
			f.rivals = &rivalry{}
		}
		f.rivals.add(&one.Fault)
	}
	if one.Error != nil || one.Drop || one.Expired || one.cuts() {
		f.end = one
	}
}

// serve handles a request with its faults.
func (f *fate) serve(w http.ResponseWriter, r *http.Request, next http.Handler) {
	if !f.wait(w, r) {
		return
	}
	if f.rivals != nil {
		r = r.WithContext(context.WithValue(r.Context(), rivalryKey{}, f.rivals))
	}
	end := f.end
	switch {
	case end == nil:
		next.ServeHTTP(w, r)
	case end.cuts() || end.Expired && f.info.Verb == "watch":
		end.serveWatch(w, r, next)
	case end.Lost:
		next.ServeHTTP(unread{w.Header().Clone()}, r)
		end.answer(w, r)
	default:
		f.readBody(r)
		end.answer(w, r)
	}
}

// wait waits for the delay. It returns false if the request has ended.
func (f *fate) wait(w http.ResponseWriter, r *http.Request) bool {
	if f.delay == 0 {
		return true
	}
	timer := time.NewTimer(f.delay)
	defer timer.Stop()
	select {
	case <-timer.C:
		return true
	case <-f.ended:
		panic(http.ErrAbortHandler)
	case <-r.Context().Done():
		// This is the answer of a handler. If the deadline has passed, the filter for deadlines answers, or has answered.
		response.Error(w, r, r.Context().Err())
		return false
	}
}

// readBody reads the body as a handler would, so that a recording shows it, and so that the client has sent all of it before it
// gets an answer.
func (f *fate) readBody(r *http.Request) {
	if r.Body != nil {
		_, _ = io.Copy(io.Discard, io.LimitReader(r.Body, int64(f.bodyLimit()))) // an error does not change the answer
	}
}

// answer writes the answer in place of the handler.
func (f *injected) answer(w http.ResponseWriter, r *http.Request) {
	switch {
	case f.Drop:
		panic(http.ErrAbortHandler)
	case f.Expired:
		response.Error(w, r, expiredList(r.URL.Query()))
	default:
		response.Error(w, r, f.Error)
	}
}

// expiredList returns kube-apiserver's error for a list that is too old. With a continue token it has a new token for continuing
// at the latest state, see https://kubernetes.io/docs/reference/using-api/api-concepts/#410-gone-responses.
func expiredList(q url.Values) error {
	at, goesOn := place(q)
	if !goesOn {
		return apierrors.NewResourceExpired("The resourceVersion for the provided list is too old.")
	}
	gone := apierrors.NewResourceExpired("The provided continue parameter is too old to display a consistent list result. " +
		"You can start a new list without the continue parameter, or use the continue token in this response to retrieve the " +
		"remainder of the results. Continuing with the provided token results in an inconsistent list - objects that were " +
		"created, modified, or deleted between the time the first chunk was returned and now may show up in the list.")
	at.Revision = storage.AtLatest
	var all storage.Scope
	gone.ErrStatus.Continue = all.Token(at)
	return gone
}

// unread is a ResponseWriter that drops the answer.
type unread struct{ header http.Header }

// Header implements http.ResponseWriter.
func (u unread) Header() http.Header { return u.header }

// WriteHeader implements http.ResponseWriter.
func (unread) WriteHeader(int) {}

// Write implements http.ResponseWriter.
func (unread) Write(p []byte) (int, error) { return len(p), nil }

// Flush implements http.Flusher.
func (unread) Flush() {}

// befall is the filter for faults.
func (i *interceptor) befall(now *interception, w http.ResponseWriter, r *http.Request, info *request.Info, next http.Handler) {
	user := authn.UserFrom(r.Context())
	if len(now.mistakes) > 0 {
		response.Error(w, r, errors.Join(now.mistakes...))
		return
	}
	f := fate{interceptor: i, info: info}
	for _, one := range now.faults {
		if f.end == nil && one.matches(r, info) && one.matchesUser(user) && one.eligible(r, info) && one.strikes() {
			f.add(one)
		}
	}
	f.serve(w, r, next)
}
