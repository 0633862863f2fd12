package crd_test

import (
	"fmt"
	"slices"
	"testing"
)

// TestCallsOfAWrite counts the calls to a webhook for writes in a version that is not stored.
func TestCallsOfAWrite(t *testing.T) {
	t.Parallel()
	h := startHooks(t)
	s := newHooked(t, h, nil)
	v2 := cratesIn(hooked, "v2")
	count := func(what string, want int) {
		t.Helper()
		if n := h.spent(hooked); n != want {
			t.Errorf("%s: %d calls, want %d", what, n, want)
		}
	}
	h.spent(hooked)
	s.want(201, "POST", v2, crate(hooked, "v2", "a", `,"spec":{"box":{"width":3}}`))
	count("POST", 3)                // to the hub, and back for defaults, managedFields and the answer; the default height, which is set again, to the hub
	s.want(200, "GET", v2+"/a", "") // fills the cache
	// Each attempt has the same calls, but an update is repeated if the state in the cache was outdated, which may happen to one.
	var calls []int
	for i := range 10 {
		h.spent(hooked)
		body := fmt.Sprintf(`{"spec":{"box":{"width":%d}}}`, 4+i)
		s.want(200, "PATCH", v2+"/a", body, "Content-Type", "application/merge-patch+json")
		calls = append(calls, h.spent(hooked))
	}
	if least := slices.Min(calls); least != 3 { // the stored object; the patched one to the hub, and back
		t.Errorf("PATCH: %v calls, want 3", calls)
	}
}
