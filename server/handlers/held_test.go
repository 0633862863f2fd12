package handlers_test

import (
	"bytes"
	"compress/gzip"
	"context"
	"encoding/base64"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"net/http"
	"net/http/httptest"
	"regexp"
	"runtime"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/keelson-dev/keelson/flowcontrol"
	"github.com/keelson-dev/keelson/server/handlers"
	"github.com/keelson-dev/keelson/server/registry"
	"github.com/keelson-dev/keelson/storage"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// atOnce is a registry that ignores portions: its lists are read at once.
type atOnce struct{ *registry.Registry }

func (r atOnce) ListRecords(call *registry.Call, opts storage.ListOptions) (storage.Page, error) {
	opts.Portion = 0
	return r.Registry.ListRecords(call, opts)
}

// copying is a backend that returns a copy of the bytes to each reader, like a backend that reads a file.
type copying struct {
	storage.Backend
	reads  atomic.Int64
	broken atomic.Int64 // the number of the read that fails; 0 is none
}

func (c *copying) Range(ctx context.Context, r storage.Range) (storage.RangeResult, error) {
	if n := c.reads.Add(1); n == c.broken.Load() {
		return storage.RangeResult{}, storage.ErrUnavailable
	}
	res, err := c.Backend.Range(ctx, r)
	for i := range res.KVs {
		res.KVs[i].Value = bytes.Clone(res.KVs[i].Value)
	}
	return res, err
}

// largeHouse returns a house with n widgets of size bytes, and a second handler for it that reads lists at once.
func largeHouse(t testing.TB, n, size int, budget *flowcontrol.Budget) (h *house, whole http.Handler, below *copying) {
	t.Helper()
	var opts handlers.Options
	below = new(copying)
	h = newHouse(t, tune{
		handlers: func(o *handlers.Options) { o.Budget, opts = budget, *o },
		wrap: func(b storage.Backend) storage.Backend {
			below.Backend = b
			return below
		},
	})
	opts.Storage, opts.Budget = atOnce{h.registry}, nil
	opts.Subresources = nil
	var err error
	whole, err = handlers.New(opts)
	must(t, err)
	data := strings.Repeat("x", size)
	for i := range n {
		body := fmt.Sprintf(`{"metadata":{"name":"w%05d","labels":{"odd":"%d"}},"spec":{"size":%d,"data":%q}}`, i, i%2, i, data)
		if w := h.ask("POST", base, body); w.Code != http.StatusCreated {
			t.Fatalf("POST: %d %s", w.Code, w.Body)
		}
	}
	return h, whole, below
}

var age = regexp.MustCompile(`\b([0-9]+m)?[0-9]+s\b`)

// A list that is read in portions is the same as a list that is read at once, in every form.
func TestListsInPortions(t *testing.T) {
	h, whole, below := largeHouse(t, 26, 100<<10, nil)
	now, err := strconv.Atoi(h.now(t))
	must(t, err)
	for _, accept := range []string{
		"", "application/yaml", "application/json;as=Table;v=v1;g=meta.k8s.io", "application/yaml;as=Table;v=v1;g=meta.k8s.io",
		"application/json;as=PartialObjectMetadataList;v=v1;g=meta.k8s.io", "application/vnd.kubernetes.protobuf;as=PartialObjectMetadataList;v=v1;g=meta.k8s.io",
	} {
		queries := []string{"", "?limit=20", "?labelSelector=odd%3D1&limit=12", "?includeObject=Object"}
		if accept == "" {
			queries = append(queries, "?limit=25", "?limit=26", "?limit=5", "?limit=1000", "?labelSelector=odd%3D1", "?labelSelector=odd%3D2",
				"?pretty=true", fmt.Sprintf("?resourceVersion=%d&resourceVersionMatch=Exact", now-5))
		}
		for _, query := range queries {
			for _, zip := range []bool{false, true} {
				if zip && query != "" && accept != "" {
					continue
				}
				ask := func(handler http.Handler) (*httptest.ResponseRecorder, string) {
					r := httptest.NewRequest("GET", base+query, http.NoBody)
					if r.Header.Set("Accept", accept); zip {
						r.Header.Set("Accept-Encoding", "gzip")
					}
					w := httptest.NewRecorder()
					handler.ServeHTTP(w, r)
					if w.Header().Get("Content-Encoding") != "gzip" {
						return w, w.Body.String()
					}
					z, err := gzip.NewReader(w.Body)
					must(t, err)
					text, err := io.ReadAll(z)
					must(t, err)
					return w, string(text)
				}
				want, wantText := ask(whole)
				got, gotText := ask(h)
				if strings.Contains(accept, "Table") { // its ages may be different
					gotText, wantText = age.ReplaceAllString(gotText, "age"), age.ReplaceAllString(wantText, "age")
					got.Header().Del("Content-Length")
					want.Header().Del("Content-Length")
				}
				if got.Code != want.Code || gotText != wantText || fmt.Sprint(got.Header()) != fmt.Sprint(want.Header()) {
					t.Errorf("%s as %q, zip %t: %d, %v, %d bytes; want %d, %v, %d bytes", query, accept, zip,
						got.Code, got.Header(), len(gotText), want.Code, want.Header(), len(wantText))
				}
			}
		}
	}
	reads := int64(0)
	for range 10 { // bytes of earlier reads may still be in memory, and are shared
		runtime.GC()
		runtime.GC()
		below.reads.Store(0)
		h.ask("GET", base, "")
		if reads = below.reads.Load(); reads >= 3 {
			return
		}
	}
	t.Errorf("a list of 2.6 MiB is read in %d portions", reads)
}

// An object that cannot be read is found before the first byte. A later failure aborts the answer.
func TestPortionsThatFail(t *testing.T) {
	h, _, below := largeHouse(t, 26, 100<<10, nil)
	below.reads.Store(0)
	h.ask("GET", base, "")
	reads := below.reads.Load()
	for n := int64(1); n <= reads; n++ {
		runtime.GC() // so that bytes of earlier reads are not shared
		runtime.GC()
		below.reads.Store(0)
		below.broken.Store(n)
		w := httptest.NewRecorder()
		aborted := func() (aborted bool) {
			defer func() {
				if p := recover(); p != nil {
					aborted = aborts(p)
				}
			}()
			h.ServeHTTP(w, httptest.NewRequest("GET", base, http.NoBody))
			return false
		}()
		switch {
		case below.reads.Load() < n: // a portion of another request was still in memory
		case aborted && w.Code == 200 && !strings.HasSuffix(w.Body.String(), "]}\n") && n > reads/2:
		case !aborted && w.Code == http.StatusServiceUnavailable && decodeStatus(t, w.Body.Bytes()).Reason == metav1.StatusReasonServiceUnavailable:
		default:
			t.Errorf("read %d of %d fails: %d, aborted %t, %d bytes", n, reads, w.Code, aborted, w.Body.Len())
		}
	}
}

// unread is a ResponseWriter of a client that does not read.
type unread struct {
	head  http.Header
	began func()
	gone  <-chan struct{}
}

func (s *unread) Header() http.Header { return s.head }
func (s *unread) WriteHeader(int)     {}
func (s *unread) Write([]byte) (int, error) {
	s.began()
	<-s.gone
	return 0, errors.New("the client is gone")
}

// Clients that do not read a list hold portions of it, which are counted. The test is not parallel, because it measures the heap.
func TestStalledReadersHoldPortions(t *testing.T) {
	const readers, n, size = 12, 64, 256 << 10 // 16 MiB
	budget := flowcontrol.NewBudget("bytes", flowcontrol.Bounds{All: 64 << 20, User: -1, Address: -1})
	h, _, _ := largeHouse(t, n, size, budget)
	if held := budget.Held(); held != 0 {
		t.Fatalf("%d bytes are held by nobody", held)
	}
	for _, query := range []string{"", "?resourceVersion=" + h.now(t) + "&resourceVersionMatch=Exact", "?labelSelector=odd%3D1"} {
		before := heap()
		gone := make(chan struct{})
		var began, all sync.WaitGroup
		for range readers {
			began.Add(1)
			all.Go(func() {
				defer func() { _ = recover() }() // the connection is aborted
				w := &unread{head: http.Header{}, began: sync.OnceFunc(began.Done), gone: gone}
				h.ServeHTTP(w, httptest.NewRequest("GET", base+query, http.NoBody))
			})
		}
		began.Wait()
		if grown := heap() - before; grown > readers*3<<20 {
			t.Errorf("LIST%s: %d readers hold %d MiB of the heap", query, readers, grown>>20)
		}
		if held := budget.Held(); held < readers<<20 || held > readers*3<<20 {
			t.Errorf("LIST%s: %d readers have %d KiB of the budget", query, readers, held>>10)
		}
		close(gone)
		all.Wait()
		if held := budget.Held(); held != 0 {
			t.Errorf("LIST%s: %d bytes are held when all are gone", query, held)
		}
	}
}

// Clients that do not read a list with large items hold one of the items each, which is counted, also if the list comes from a cache.
// The test is not parallel, because it measures the heap.
func TestStalledReadersHoldLargeItems(t *testing.T) {
	const readers, n, size = 16, 4, 1 << 20
	const maps = "/api/v1/namespaces/default/configmaps"
	budget := flowcontrol.NewBudget("bytes", flowcontrol.Bounds{All: 256 << 20, User: -1, Address: -1})
	h, _ := cachedMaps(t, 1<<20, func(o *handlers.Options) { o.Budget = budget }) // the cache has no room for the encodings
	random := rand.New(rand.NewPCG(1, 2))
	data := make([]byte, size*3/4)
	for i := range n {
		for j := range data {
			data[j] = byte(random.Uint32())
		}
		body := fmt.Sprintf(`{"metadata":{"name":"w%05d"},"data":{"text":%q}}`, i, base64.StdEncoding.EncodeToString(data))
		if w := h.ask("POST", maps, body); w.Code != http.StatusCreated {
			t.Fatalf("POST: %d %s", w.Code, w.Body)
		}
	}
	for _, header := range [][2]string{
		{"Accept", "application/json"}, {"Accept", "application/yaml"}, {"Accept-Encoding", "gzip"},
		{"Accept", "application/json;as=Table;v=v1;g=meta.k8s.io"}, {"Accept", "application/json;as=PartialObjectMetadataList;v=v1;g=meta.k8s.io"},
	} {
		ask := func(w http.ResponseWriter) {
			defer func() { _ = recover() }() // the connection is aborted
			r := httptest.NewRequest("GET", maps+"?includeObject=Object", http.NoBody)
			r.Header.Set(header[0], header[1])
			h.ServeHTTP(w, r)
		}
		ask(httptest.NewRecorder()) // fills the cache of encodings
		before := heap()
		gone := make(chan struct{})
		var began, all sync.WaitGroup
		for range readers {
			began.Add(1)
			all.Go(func() {
				ask(&unread{head: http.Header{}, began: sync.OnceFunc(began.Done), gone: gone})
			})
		}
		began.Wait()
		grown, held := heap()-before, budget.Held()
		if free := int64(readers * (384 + 64) << 10); grown > held+free {
			t.Errorf("%s: %d readers hold %d KiB of the heap and have %d KiB of the budget", header, readers, grown>>10, held>>10)
		}
		close(gone)
		all.Wait()
		if held := budget.Held(); held != 0 {
			t.Errorf("%s: %d bytes are held when all are gone", header, held)
		}
	}
	share, err := budget.Take(flowcontrol.Holder{}, 255<<20+1)
	must(t, err)
	wantStatus(t, h.ask("GET", maps, ""), 429, metav1.StatusReasonTooManyRequests, "too many bytes in all: the limit is 268435456")
	share.Release()
}

func heap() int64 {
	runtime.GC()
	runtime.GC()
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	return int64(m.HeapAlloc)
}

// A request for a list is refused with TooManyRequests while all bytes of the budget are held.
func TestListsBeyondTheBudget(t *testing.T) {
	budget := flowcontrol.NewBudget("bytes", flowcontrol.Bounds{All: 4 << 20, User: -1, Address: -1})
	h, _, _ := largeHouse(t, 20, 256<<10, budget)
	share, err := budget.Take(flowcontrol.Holder{}, 3<<20+1)
	must(t, err)
	w := h.ask("GET", base, "")
	wantStatus(t, w, 429, metav1.StatusReasonTooManyRequests, "too many bytes in all: the limit is 4194304")
	if w.Header().Get("Retry-After") != "1" {
		t.Errorf("Retry-After %q", w.Header().Get("Retry-After"))
	}
	share.Release()
	if w := h.ask("GET", base, ""); w.Code != 200 || budget.Held() != 0 {
		t.Errorf("%d, and %d bytes are held", w.Code, budget.Held())
	}
}

// chunked is a body of unknown length.
type chunked struct{ io.Reader }

// A body is counted before it is read, with everything that is made from it. If its length is not known, it is counted while it
// is read.
func TestBodiesAreCounted(t *testing.T) {
	const all = 4 << 20
	budget := flowcontrol.NewBudget("bytes", flowcontrol.Bounds{All: all, User: -1, Address: -1})
	h := newHouse(t, tune{handlers: func(o *handlers.Options) { o.Budget = budget }})
	names := 0
	post := func(size int, hidden bool) *httptest.ResponseRecorder {
		names++
		head := fmt.Sprintf(`{"metadata":{"name":"w%d"},"spec":{"size":1,"data":"`, names)
		text := head + strings.Repeat("x", size-len(head)-len(`"}}`)) + `"}}`
		body := io.Reader(strings.NewReader(text))
		if hidden {
			body = chunked{body}
		}
		r := httptest.NewRequest("POST", base, body)
		if hidden {
			r.ContentLength = -1
		}
		w := httptest.NewRecorder()
		h.ServeHTTP(w, r)
		return w
	}
	for _, hidden := range []bool{false, true} {
		for _, c := range []struct {
			size int
			want int64 // counted
		}{{1000, 0}, {16 << 10, 0}, {16<<10 + 1, 16 * (16<<10 + 1)}, {100 << 10, 1600 << 10}, {1 << 20, all}} {
			budget.Peak()
			if w := post(c.size, hidden); w.Code != 201 {
				t.Errorf("a body of %d bytes: %d %.300s", c.size, w.Code, w.Body)
			}
			if peak := budget.Peak(); peak != c.want || budget.Held() != 0 {
				t.Errorf("of a body of %d bytes, hidden %t, %d were counted, want %d; %d are held", c.size, hidden, peak, c.want, budget.Held())
			}
		}
		share, err := budget.Take(flowcontrol.Holder{}, all-1<<20)
		must(t, err)
		for size, want := range map[int]int{1000: 201, 16 << 10: 201, 64 << 10: 201, 64<<10 + 1: 429, 1 << 20: 429} {
			w := post(size, hidden)
			if w.Code != want {
				t.Errorf("a body of %d bytes, hidden %t: %d %.300s", size, hidden, w.Code, w.Body)
			}
			if want == 429 {
				wantStatus(t, w, 429, metav1.StatusReasonTooManyRequests, "too many bytes in all: the limit is 4194304")
				if w.Header().Get("Retry-After") != "1" {
					t.Errorf("Retry-After %q", w.Header().Get("Retry-After"))
				}
			}
		}
		share.Release()
	}
}

// A user who holds bytes does not block other users.
func TestBytesOfUsers(t *testing.T) {
	budget := flowcontrol.NewBudget("bytes", flowcontrol.Bounds{All: 4 << 20, User: 2 << 20, Address: -1})
	h := newHouse(t, tune{handlers: func(o *handlers.Options) { o.Budget = budget }})
	share, err := budget.Take(flowcontrol.Holder{User: "system:anonymous"}, 2<<20)
	must(t, err)
	defer share.Release()
	body := `{"metadata":{"name":"w"},"spec":{"size":1,"data":"` + strings.Repeat("x", 20<<10) + `"}}`
	wantStatus(t, h.ask("POST", base, body), 429, metav1.StatusReasonTooManyRequests, "too many bytes of one user: the limit is 2097152")
}

// A small request that changes a large stored object is counted like a request with a large body.
func TestLargeStoredObjectsAreCounted(t *testing.T) {
	const size = 500 << 10
	budget := flowcontrol.NewBudget("bytes", flowcontrol.Bounds{All: 17 * size, User: -1, Address: -1})
	var opts handlers.Options
	h := newHouse(t, tune{handlers: func(o *handlers.Options) { o.Budget, opts = budget, *o }})
	opts.Storage, opts.Subresources, opts.Budget = h.registry, nil, nil
	writer, err := handlers.New(opts) // this handler counts nothing
	must(t, err)
	w := httptest.NewRecorder()
	body := fmt.Sprintf(`{"metadata":{"name":"large"},"spec":{"size":1,"data":%q}}`, strings.Repeat("x", size-4096))
	if writer.ServeHTTP(w, httptest.NewRequest("POST", base, strings.NewReader(body))); w.Code != http.StatusCreated {
		t.Fatalf("POST: %d %s", w.Code, w.Body)
	}
	ask := func(method, query, body string, headers ...string) *httptest.ResponseRecorder {
		t.Helper()
		w := h.ask(method, base+"/large"+query, body, headers...)
		return w
	}
	put := `{"metadata":{"name":"large"},"spec":{"size":3}}`
	changes := []func() *httptest.ResponseRecorder{
		func() *httptest.ResponseRecorder {
			return ask("PATCH", "?dryRun=All", `{"spec":{"size":2}}`, "Content-Type: application/merge-patch+json")
		},
		func() *httptest.ResponseRecorder {
			return ask("PATCH", "?dryRun=All", `[{"op":"replace","path":"/spec/size","value":2}]`, "Content-Type: application/json-patch+json")
		},
		func() *httptest.ResponseRecorder {
			return ask("PATCH", "?dryRun=All&fieldManager=m&force=true", `{"apiVersion":"example.com/v1","kind":"Widget","spec":{"size":2}}`, "Content-Type: application/apply-patch+yaml")
		},
		func() *httptest.ResponseRecorder { return ask("PUT", "?dryRun=All", put) },
		func() *httptest.ResponseRecorder { return ask("DELETE", "?dryRun=All", "") },
		func() *httptest.ResponseRecorder { return ask("GET", "", "", "Accept: application/yaml") },
		func() *httptest.ResponseRecorder {
			return ask("GET", "", "", "Accept: application/json;as=Table;v=v1;g=meta.k8s.io")
		},
	}
	full := fmt.Sprintf("too many bytes in all: the limit is %d", 17*size)
	other, err := budget.Take(flowcontrol.Holder{}, 2*size)
	must(t, err)
	for i, change := range changes {
		w := change()
		if w.Code != 429 || w.Header().Get("Retry-After") == "" || !strings.Contains(w.Body.String(), full) {
			t.Errorf("change %d: %d, %v, %.200s", i, w.Code, w.Header(), w.Body)
		}
	}
	if w := ask("GET", "", ""); w.Code != http.StatusOK || w.Body.Len() < size-4096 { // only its own text, once
		t.Errorf("GET: %d", w.Code)
	}
	must(t, other.Grow(14*size+size/2))
	wantStatus(t, ask("GET", "", ""), 429, metav1.StatusReasonTooManyRequests, full)
	other.Release()
	for i, change := range changes {
		if w := change(); w.Code != http.StatusOK {
			t.Errorf("change %d when nothing else is held: %d %.300s", i, w.Code, w.Body)
		}
		if held := budget.Held(); held != 0 {
			t.Errorf("change %d: %d bytes are held afterwards", i, held)
		}
	}
}

// A small body is counted by the size of its values, if that is much larger than its text.
func TestSmallBodiesOfManyValuesAreCounted(t *testing.T) {
	const all, n = 8 << 20, 2500
	budget := flowcontrol.NewBudget("bytes", flowcontrol.Bounds{All: all, User: -1, Address: -1})
	h := newHouse(t, tune{handlers: func(o *handlers.Options) { o.Budget = budget }})
	h.make(t, "a")
	owners := `[` + strings.Repeat(`{},`, n) + `{}]`
	object := func(name string) string {
		return fmt.Sprintf(`{"apiVersion":"example.com/v1","kind":"Widget","metadata":{"name":%q,"ownerReferences":%s},"spec":{"size":1}}`, name, owners)
	}
	for what, ask := range map[string]func() *httptest.ResponseRecorder{
		"create": func() *httptest.ResponseRecorder { return h.ask("POST", base, object("b")) },
		"in YAML": func() *httptest.ResponseRecorder {
			return h.ask("POST", base, object("b"), "Content-Type: application/yaml")
		},
		"update": func() *httptest.ResponseRecorder { return h.ask("PUT", base+"/a", object("a")) },
		"patch": func() *httptest.ResponseRecorder {
			return h.ask("PATCH", base+"/a", `{"metadata":{"ownerReferences":`+owners+`}}`, "Content-Type: application/merge-patch+json")
		},
		"apply": func() *httptest.ResponseRecorder {
			return h.ask("PATCH", base+"/a?fieldManager=m", object("a"), "Content-Type: application/apply-patch+yaml")
		},
	} {
		budget.Peak()
		w := ask()
		if peak := budget.Peak(); w.Code == 429 || peak < n*8*64 || budget.Held() != 0 {
			t.Errorf("%s: %d; %d bytes were counted, %d are held", what, w.Code, peak, budget.Held())
		}
		rest, err := budget.Take(flowcontrol.Holder{}, all-1<<20)
		must(t, err)
		wantStatus(t, ask(), 429, metav1.StatusReasonTooManyRequests, fmt.Sprintf("too many bytes in all: the limit is %d", all))
		rest.Release()
	}
}

// A collection that is in no cache is read, deleted and answered in portions, which are counted.
func TestCollectionsAreDeletedInPortions(t *testing.T) {
	const n, size = 60, 100 << 10
	budget := flowcontrol.NewBudget("bytes", flowcontrol.Bounds{All: 64 << 20, User: -1, Address: -1})
	h, _, below := largeHouse(t, n, size, budget)
	list := h.ask("GET", base, "").Body.String()
	for _, query := range []string{"?dryRun=All", ""} {
		runtime.GC() // so that bytes of earlier reads are not shared
		runtime.GC()
		budget.Peak()
		below.reads.Store(0)
		w := h.ask("DELETE", base+query, "")
		if w.Code != http.StatusOK || w.Body.String() != list {
			t.Errorf("%q: %d, %d bytes; want the %d of the list", query, w.Code, w.Body.Len(), len(list))
		}
		if peak := budget.Peak(); peak < 1<<20 || peak > n*size || budget.Held() != 0 {
			t.Errorf("%q: %d bytes were counted, %d are held", query, peak, budget.Held())
		}
		if reads := below.reads.Load(); reads < 4 {
			t.Errorf("%q: %d reads of portions", query, reads)
		}
	}
	if w := h.ask("GET", base, ""); strings.Contains(w.Body.String(), `"name":"w`) {
		t.Errorf("what is left: %.300s", w.Body)
	}
	share, err := budget.Take(flowcontrol.Holder{}, 64<<20)
	must(t, err)
	wantStatus(t, h.ask("DELETE", base, ""), 429, metav1.StatusReasonTooManyRequests, "too many bytes in all: the limit is 67108864")
	share.Release()
}
