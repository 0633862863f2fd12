package servertest

import (
	"context"
	"fmt"
	"runtime/pprof"
	"strings"
	"time"
)

// labelled runs f with a label for the goroutines that it starts, and for those that they start: goroutines inherit the labels of
// the goroutine that starts them.
func (s *Server) labelled(ctx context.Context, f func(ctx context.Context)) {
	pprof.Do(ctx, pprof.Labels("servertest", s.label), f)
}

// leaked waits a bounded time for the end of a server's goroutines, and describes those that remain.
func leaked(label string) string {
	var left string
	for wait := time.Millisecond; wait < 3*time.Second; wait *= 2 {
		if left = labelled(label); left == "" {
			return ""
		}
		time.Sleep(wait)
	}
	return left
}

// labelled describes the goroutines with a label.
func labelled(label string) string {
	var all, out strings.Builder
	if err := pprof.Lookup("goroutine").WriteTo(&all, 1); err != nil {
		return err.Error()
	}
	want := fmt.Sprintf("%q:%q", "servertest", label)
	for group := range strings.SplitSeq(all.String(), "\n\n") {
		if strings.Contains(group, want) {
			out.WriteString(group + "\n\n")
		}
	}
	return out.String()
}
