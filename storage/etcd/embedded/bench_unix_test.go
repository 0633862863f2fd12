//go:build unix

package embedded_test

import (
	"context"
	"fmt"
	"runtime"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/keelson-dev/keelson/storage"
	"github.com/keelson-dev/keelson/storage/etcd"
	"github.com/keelson-dev/keelson/storage/etcd/embedded"
	clientv3 "go.etcd.io/etcd/client/v3"
)

// BenchmarkCPU compares the CPU time of the Backend and of etcd's own client for the same requests. The server is another
// process, so that the time of this one is the client's. The two take turns, so that both run under the same conditions.
func BenchmarkCPU(b *testing.B) {
	p := serveElsewhere(b, embedded.Options{Dir: b.TempDir(), UnsafeNoFsync: true})
	backend := open(b, etcd.Options{Endpoints: []string{p.endpoint}})
	client := raw(b, clientv3.Config{Endpoints: []string{p.endpoint}})
	value := strings.Repeat("v", 1<<10)
	for i := range 1000 {
		mustPut(b, client, fmt.Sprintf("/range/%04d", i), value)
	}
	get, put := mustPut(b, client, "/get", value), [2]int64{mustPut(b, client, "/put/0", value), mustPut(b, client, "/put/1", value)}
	ctx := context.Background()
	n := 0
	for _, op := range []struct {
		name           string
		turn           int // number of requests before the other's turn
		backend, plain func() error
	}{
		{"create", 500, func() error {
			n++
			_, err := backend.Commit(ctx, storage.Commit{Key: fmt.Sprint("/create/", n), Value: []byte(value)})
			return err
		}, func() error {
			n++
			key := fmt.Sprint("/create/", n)
			r, err := client.Txn(ctx).If(clientv3.Compare(clientv3.ModRevision(key), "=", 0)).
				Then(clientv3.OpPut(key, value)).Else(clientv3.OpGet(key)).Commit()
			return succeeded(r, err)
		}},
		{"update", 500, func() error {
			res, err := backend.Commit(ctx, storage.Commit{Key: "/put/0", Expect: put[0], Value: []byte(value)})
			put[0] = res.Revision
			return err
		}, func() error {
			r, err := client.Txn(ctx).If(clientv3.Compare(clientv3.ModRevision("/put/1"), "=", put[1])).
				Then(clientv3.OpPut("/put/1", value)).Else(clientv3.OpGet("/put/1")).Commit()
			if err := succeeded(r, err); err != nil {
				return err
			}
			put[1] = r.Header.Revision
			return nil
		}},
		{"get", 500, func() error {
			r, err := backend.Get(ctx, "/get", 0)
			return found(r.KV.Revision == get, err)
		}, func() error {
			r, err := client.Get(ctx, "/get")
			return found(err == nil && r.Kvs[0].ModRevision == get, err)
		}},
		{"range of 1000", 20, func() error {
			r, err := backend.Range(ctx, storage.Range{From: "/range/", To: "/range0"})
			return found(len(r.KVs) == 1000, err)
		}, func() error {
			r, err := client.Get(ctx, "/range/", clientv3.WithPrefix())
			return found(err == nil && len(r.Kvs) == 1000, err)
		}},
	} {
		b.Run(op.name, func(b *testing.B) {
			var spent [2]time.Duration
			var done [2]int
			for i := 0; i < b.N; i += op.turn {
				for who, do := range []func() error{op.backend, op.plain} {
					runtime.GC() // each pays for its own garbage
					begun := cpu(b)
					for range op.turn {
						if err := do(); err != nil {
							b.Fatal(err)
						}
					}
					runtime.GC()
					spent[who] += cpu(b) - begun
					done[who] += op.turn
				}
			}
			each := func(who int) float64 { return float64(spent[who]) / float64(done[who]) }
			b.ReportMetric(each(0), "cpu-ns/op")
			b.ReportMetric(each(1), "bare-cpu-ns/op")
			b.ReportMetric(each(0)/each(1), "ratio")
		})
	}
}

func succeeded(r *clientv3.TxnResponse, err error) error {
	return found(err == nil && r.Succeeded, err)
}

func found(ok bool, err error) error {
	if err == nil && !ok {
		return fmt.Errorf("the answer is another one")
	}
	return err
}

// cpu returns the CPU time of this process, in user and system mode.
func cpu(b *testing.B) time.Duration {
	b.Helper()
	var u syscall.Rusage
	if err := syscall.Getrusage(syscall.RUSAGE_SELF, &u); err != nil {
		b.Fatal(err)
	}
	return time.Duration(u.Utime.Nano() + u.Stime.Nano())
}
