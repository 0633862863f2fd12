//go:build unix

package server_test

import (
	"net/http/httptest"
	"syscall"
	"testing"
	"time"
)

func cpuTime() time.Duration {
	var u syscall.Rusage
	_ = syscall.Getrusage(syscall.RUSAGE_SELF, &u)
	return time.Duration(u.Utime.Nano() + u.Stime.Nano())
}

// BenchmarkCostlyWrites measures the most expensive writes.
func BenchmarkCostlyWrites(b *testing.B) {
	for _, c := range costlyWrites() {
		b.Run(c.name, func(b *testing.B) {
			w := newWriter(b)
			for _, s := range c.before {
				if a := w.do(b.Context(), s); a.Code >= 300 {
					b.Logf("%s %s: %d %.300s", s.method, s.path, a.Code, a.Body)
				}
			}
			b.ReportAllocs()
			var a *httptest.ResponseRecorder
			before := cpuTime()
			for b.Loop() {
				a = w.do(b.Context(), c.write)
			}
			b.ReportMetric(float64(cpuTime()-before)/float64(b.N)/1e6, "cpu-ms")
			b.ReportMetric(float64(a.Code), "code")
			b.ReportMetric(float64(a.Body.Len()), "answer-B")
			b.ReportMetric(float64(len(c.body)), "body-B")
			if testing.Verbose() {
				b.Logf("%d %.200s %.300v", a.Code, a.Body, a.Header())
			}
		})
	}
}
