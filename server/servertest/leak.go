package servertest

import (
	"context"
	"fmt"
	"runtime/pprof"
	"strings"
	"time"
)

// labelled runs f so that the goroutines it starts, and those that they start, can be told from others: goroutines
// inherit the labels of the one that starts them.
func (s *Server) labelled(ctx context.Context, f func(ctx context.Context)) {
	pprof.Do(ctx, pprof.Labels("servertest", s.label), f)
}

// leaked waits for the goroutines of a server that has ended, a bounded time, and describes those that stay.
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

// labelled describes the goroutines that carry a label.
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
