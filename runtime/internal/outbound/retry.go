package outbound

import (
	"context"
	"net/http"
	"strconv"
	"time"
)

// RetryAfter returns the time that an answer asks the client to wait before the request is sent again, and whether it asks for
// that (RFC 9110, section 10.2.3, in seconds). A date is ignored, as in client-go.
func RetryAfter(resp *http.Response) (time.Duration, bool) {
	seconds, err := strconv.Atoi(resp.Header.Get("Retry-After"))
	if err != nil {
		return 0, false
	}
	return time.Duration(min(max(seconds, 0), 1<<20)) * time.Second, true
}

// Lasts reports whether ctx lasts longer than d.
func Lasts(ctx context.Context, d time.Duration) bool {
	until, ok := ctx.Deadline()
	return ctx.Err() == nil && (!ok || time.Until(until) > d)
}

// Sleep waits for d or until ctx ends, and reports whether d has passed.
func Sleep(ctx context.Context, d time.Duration) bool {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C:
		return ctx.Err() == nil
	case <-ctx.Done():
		return false
	}
}
