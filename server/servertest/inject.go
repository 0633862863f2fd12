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

// Inject makes a fault happen from now on, until remove is called or the server ends. What has befallen a request before
// that goes on: remove does not wait for it. It may be called any number of times, and while requests are under way.
//
// Of several faults that match a request those before, in the order in which they were injected, happen first, delays
// one after the other, up to and with the first that decides the answer; the others do not count that request.
//
// A fault that makes no sense, see [Fault], fails every request for a resource from then on: with 500 and the reason. It
// is part of Close's error too, by which a server that a test made fails that test.
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

// injected is a fault that is injected.
type injected struct {
	Fault
	only []string // the verbs that it is about

	mu      sync.Mutex // guards below
	skipped int
	struck  int
	random  *rand.Rand
}

// eligible reports whether the fault can befall a request that matches.
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

// since is the resourceVersion that a query names; 0: none, or none that could be too old.
func since(q url.Values) uint64 {
	revision, _ := strconv.ParseUint(q.Get("resourceVersion"), 10, 64) // one that is no number is not for us to refuse
	return revision
}

// place is where a list goes on at the state of its first page; false: nowhere, or at the latest state, which is never
// too old.
func place(q url.Values) (storage.Continue, bool) {
	var all storage.Scope
	at, err := all.Continue(q.Get("continue"))
	return at, err == nil && at.Revision != storage.AtLatest
}

// strikes decides whether the fault befalls the next request that it can befall.
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

// delay draws how long a request has to wait.
func (f *injected) delay() time.Duration {
	if f.Jitter == 0 {
		return f.Delay
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	return sum(f.Delay, time.Duration(f.random.Uint64N(uint64(f.Jitter)+1)))
}

// sum adds delays, up to the longest that there is.
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
	rivals *rivalry  // nil: commits are left alone
	end    *injected // decides the answer; nil: the handler does
}

// add adds what a fault does. None comes after one that decides the answer.
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

// serve handles a request as its fate is.
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

// wait lets the delay pass. false says that the request is over.
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
		// In the words of a handler; where it was the deadline, the filter that watches it answers, or has.
		response.Error(w, r, r.Context().Err())
		return false
	}
}

// readBody reads the body, as a handler would: a recording shows what was sent, and the client has sent all of it before
// it gets an answer.
func (f *fate) readBody(r *http.Request) {
	if r.Body != nil {
		_, _ = io.Copy(io.Discard, io.LimitReader(r.Body, int64(f.bodyLimit()))) // the answer is the same if that fails
	}
}

// answer answers in the handler's place.
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

// expiredList is what kube-apiserver answers to a list that is too old: one that goes on gets a token with which it may
// go on at the latest state, see https://kubernetes.io/docs/reference/using-api/api-concepts/#410-gone-responses.
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

// unread is where an answer goes that nobody gets.
type unread struct{ header http.Header }

// Header implements http.ResponseWriter.
func (u unread) Header() http.Header { return u.header }

// WriteHeader implements http.ResponseWriter.
func (unread) WriteHeader(int) {}

// Write implements http.ResponseWriter.
func (unread) Write(p []byte) (int, error) { return len(p), nil }

// Flush implements http.Flusher.
func (unread) Flush() {}

// befall is the filter of faults.
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
