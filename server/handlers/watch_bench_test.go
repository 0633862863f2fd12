package handlers_test

import (
	"context"
	"fmt"
	"net/http"
	"net/http/httptest"
	"testing"
	"time"

	"github.com/keelson-dev/keelson/server/handlers"
	"github.com/keelson-dev/keelson/server/registry"
	"github.com/keelson-dev/keelson/storage"
	apiwatch "k8s.io/apimachinery/pkg/watch"
)

// repeated is a registry whose watches repeat events, until they have returned as many as times.
type repeated struct {
	*registry.Registry
	events []storage.Event
	times  int
}

func (r *repeated) WatchRecords(*registry.Call, storage.WatchOptions) (storage.Watch, error) {
	return r, nil
}

func (r *repeated) Next(context.Context) ([]storage.Event, error) {
	if r.times -= len(r.events); r.times < 0 {
		return nil, storage.ErrClosed
	}
	return r.events, nil
}

func (r *repeated) RequestProgress() {}
func (r *repeated) Close()           {}

// unheard is a ResponseWriter whose client reads everything at once.
type unheard struct{ header http.Header }

func (u unheard) Header() http.Header              { return u.header }
func (u unheard) WriteHeader(int)                  {}
func (u unheard) Write(p []byte) (int, error)      { return len(p), nil }
func (u unheard) Flush()                           {}
func (u unheard) SetWriteDeadline(time.Time) error { return nil }

// BenchmarkWatchEvent measures one event of one watch, from the storage's watch to the connection. The storage returns several
// events at a time. They are records of 300 bytes in the version of the URL. Nothing is allocated.
func BenchmarkWatchEvent(b *testing.B) {
	for _, n := range []int{1, 100} {
		b.Run(fmt.Sprintf("batch-%d", n), func(b *testing.B) {
			var source *repeated
			h := newHouse(b, tune{handlers: func(o *handlers.Options) {
				source = &repeated{Registry: o.Storage.(*registry.Registry)}
				o.Storage = source
			}})
			h.make(b, "a")
			for range n {
				source.events = append(source.events, storage.Event{Type: apiwatch.Modified, Record: h.record(b, "a")})
			}
			source.times = max(b.N, n)
			b.ReportAllocs()
			b.ResetTimer()
			h.ServeHTTP(unheard{http.Header{}}, httptest.NewRequest(http.MethodGet, base+"?watch=1", nil))
		})
	}
}
