package servertest

import (
	"testing"
	"testing/synctest"
	"time"
)

// Golden waits for answers to the requests that it shows, but not for answers to other requests.
func TestSettleWaitsForItsOwn(t *testing.T) {
	t.Parallel()
	for name, tc := range map[string]struct {
		req   Request
		waits bool
	}{
		"its user's":          {Request{User: "jane"}, true},
		"of who knows":        {Request{}, true},
		"somebody else's":     {Request{User: "john"}, false},
		"answered":            {Request{User: "jane", Code: 200}, false},
		"over without answer": {Request{User: "jane", Ended: true}, false},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				rec := &Recording{match: Match{User: "jane"}, change: make(chan struct{})}
				rec.add(&entry{req: tc.req})
				began := time.Now()
				if rec.settle(); (time.Since(began) > 0) != tc.waits {
					t.Errorf("it has waited %v", time.Since(began))
				}
			})
		})
	}
}
