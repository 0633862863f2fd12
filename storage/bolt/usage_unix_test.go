//go:build unix

package bolt_test

import (
	"fmt"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/keelson-dev/keelson/storage"
	"github.com/keelson-dev/keelson/storage/bolt"
)

// cpuTime returns the CPU time of this process.
func cpuTime() time.Duration {
	var r syscall.Rusage
	_ = syscall.Getrusage(0, &r)
	return time.Duration(r.Utime.Nano() + r.Stime.Nano())
}

// BenchmarkDurable creates and updates objects of the size of a small Kubernetes object beside 10,000 others, and reports the
// CPU time of that. The time of one writer does not show it, because it includes the wait for the disk.
func BenchmarkDurable(b *testing.B) {
	value := strings.Repeat("v", 1700)
	for _, update := range []bool{false, true} {
		for _, creators := range []int{1, 16} {
			b.Run(fmt.Sprint("update=", update, "/", creators), func(b *testing.B) {
				s := open(b, filepath.Join(b.TempDir(), "test.db"), bolt.Options{})
				putAll(b, s, 10000, value)
				b.ResetTimer()
				c0 := cpuTime()
				var all sync.WaitGroup
				for c := range creators {
					all.Go(func() {
						for i := c; i < b.N; i += creators {
							w := create(fmt.Sprint("/registry/widgets/", (i*7919)%1000003), value)
							if update {
								w = storage.Commit{Key: fmt.Sprintf("k%05d", (i*7919)%10000), Expect: storage.AnyRevision, Value: []byte(value)}
							}
							if _, err := s.Commit(b.Context(), w); err != nil {
								b.Error(err)
								return
							}
						}
					})
				}
				all.Wait()
				b.ReportMetric(float64((cpuTime()-c0).Nanoseconds())/float64(b.N), "cpu-ns/op")
			})
		}
	}
}
