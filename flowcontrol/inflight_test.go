package flowcontrol_test

import (
	"errors"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/keelson-dev/keelson/authn"
	"github.com/keelson-dev/keelson/authz"
	"github.com/keelson-dev/keelson/flowcontrol"
)

func TestInFlight(t *testing.T) {
	l := flowcontrol.NewInFlight(2, 1)
	admit := func(verb string, groups ...string) (func(), error) {
		return l.Admit(t.Context(), authz.Attributes{User: &authn.User{Groups: groups}, Verb: verb})
	}
	var releases []func()
	for _, verb := range []string{"get", "list", "create"} {
		release, err := admit(verb)
		if err != nil {
			t.Fatalf("%s: %v", verb, err)
		}
		releases = append(releases, release)
	}
	for _, verb := range []string{"get", "watch", "head", "update", "deletecollection", "post", ""} {
		release, err := admit(verb)
		var rejection *flowcontrol.RejectedError
		if !errors.As(err, &rejection) || rejection.RetryAfter != time.Second || release != nil {
			t.Errorf("%s beyond the limit: %v", verb, err)
		}
	}
	if release, err := admit("patch", "system:masters"); err != nil {
		t.Errorf("system:masters: %v", err)
	} else {
		release()
	}
	if reads, writes := l.Served(); reads != 2 || writes != 1 {
		t.Errorf("%d reads and %d writes, want 2 and 1", reads, writes)
	}
	for _, release := range releases {
		release()
	}
	if reads, writes := l.Served(); reads != 0 || writes != 0 {
		t.Errorf("%d reads and %d writes, want none", reads, writes)
	}
	if _, err := l.Admit(t.Context(), authz.Attributes{Verb: "create"}); err != nil {
		t.Errorf("after release, by nobody: %v", err)
	}
}

func TestInFlightBounds(t *testing.T) {
	for _, tc := range []struct {
		given, want int // want < 0: no rejection below 1000
		verb        string
	}{{0, 400, "get"}, {0, 200, "create"}, {-1, -1, "get"}, {-1, -1, "create"}, {7, 7, "get"}, {7, 7, "create"}} {
		l := flowcontrol.NewInFlight(tc.given, tc.given)
		n := 0
		for ; n < 1000; n++ {
			if _, err := l.Admit(t.Context(), authz.Attributes{Verb: tc.verb}); err != nil {
				break
			}
		}
		if (tc.want >= 0 && n != tc.want) || (tc.want < 0 && n != 1000) {
			t.Errorf("%s with %d: %d were admitted, want %d", tc.verb, tc.given, n, tc.want)
		}
	}
}

func TestInFlightConcurrently(t *testing.T) {
	l := flowcontrol.NewInFlight(3, 3)
	var now, most, admitted atomic.Int64
	var wg sync.WaitGroup
	for range 8 {
		wg.Go(func() {
			for range 500 {
				release, err := l.Admit(t.Context(), authz.Attributes{Verb: "get"})
				if err != nil {
					continue
				}
				admitted.Add(1)
				n := now.Add(1)
				for m := most.Load(); n > m && !most.CompareAndSwap(m, n); m = most.Load() {
				}
				now.Add(-1)
				release()
			}
		})
	}
	wg.Wait()
	if reads, _ := l.Served(); most.Load() > 3 || admitted.Load() == 0 || reads != 0 {
		t.Errorf("at most %d at once, %d admitted, %d left", most.Load(), admitted.Load(), reads)
	}
}
