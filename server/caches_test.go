package server_test

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"runtime/pprof"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/keelson-dev/keelson/runtime"
	"github.com/keelson-dev/keelson/server"
	"github.com/keelson-dev/keelson/server/servertest"
	"github.com/keelson-dev/keelson/storage"
	"github.com/keelson-dev/keelson/storage/memory"
)

// part is a Go type for each A and B, for the kinds of manyKinds.
type part[A, B any] struct {
	A A `json:"a,omitempty"`
	B B `json:"b,omitempty"`
}

// row makes eight kinds.
func row[A any](prefix string) []server.Resource {
	return []server.Resource{
		partKind[A, string](prefix + "a"), partKind[A, bool](prefix + "b"), partKind[A, int8](prefix + "c"), partKind[A, int16](prefix + "d"),
		partKind[A, int32](prefix + "e"), partKind[A, int64](prefix + "f"), partKind[A, float32](prefix + "g"), partKind[A, float64](prefix + "h"),
	}
}

func partKind[A, B any](kind string) server.Resource {
	return server.Kind(kind, server.KindOptions[*runtime.Resource[part[A, B], struct{}]]{Plural: strings.ToLower(kind) + "s"})
}

// manyKinds are 56 kinds.
func manyKinds() server.Group {
	var all []server.Resource
	for _, kinds := range [][]server.Resource{
		row[string]("Pa"), row[bool]("Pb"), row[int8]("Pc"), row[int16]("Pd"), row[int32]("Pe"), row[int64]("Pf"), row[float64]("Pg"),
	} {
		all = append(all, kinds...)
	}
	return server.Group{Name: "example.com", Versions: []server.Version{{Name: "v1", Resources: all}}}
}

// cacheGoroutines counts the goroutines of caches with a label, and those that they have started.
func cacheGoroutines(t *testing.T, label string) (n int) {
	t.Helper()
	var all strings.Builder
	if err := pprof.Lookup("goroutine").WriteTo(&all, 1); err != nil {
		t.Fatal(err)
	}
	for group := range strings.SplitSeq(all.String(), "\n\n") {
		if strings.HasPrefix(group, "goroutine profile:") {
			_, group, _ = strings.Cut(group, "\n")
		}
		if !strings.Contains(group, fmt.Sprintf("%q:%q", "test", label)) || !strings.Contains(group, "storage/cacher.") {
			continue
		}
		var count int
		if _, err := fmt.Sscanf(group, "%d @", &count); err != nil {
			t.Fatalf("%v in %s", err, group)
		}
		n += count
	}
	return n
}

// A kind without requests has no goroutine. A kind with requests has at most one, and none at rest if the storage is a Waker.
func TestCachesBeginWithTheFirstRequest(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		open storage.Opener
		each int // goroutines of a cache that has been used
	}{
		"storage that wakes its readers": {memory.Open(), 0},
		"storage whose readers wait":     {storage.Opened(waiting{memory.New(memory.Options{})}), 1},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			label := t.Name()
			pprof.Do(t.Context(), pprof.Labels("test", label), func(context.Context) { beginWithTheFirstRequest(t, label, c.open, c.each) })
		})
	}
}

// waiting is a storage whose feeds are not a storage.Waker.
type waiting struct{ storage.Backend }

func (w waiting) Watch(ctx context.Context, r storage.WatchRange) (storage.Feed, error) {
	feed, err := w.Backend.Watch(ctx, r)
	return struct{ storage.Feed }{feed}, err
}

func beginWithTheFirstRequest(t *testing.T, label string, open storage.Opener, each int) {
	srv, err := server.New(server.Options{Groups: []server.Group{manyKinds()}, Storage: open})
	if err != nil {
		t.Fatal(err)
	}
	get := func(path string) {
		r := httptest.NewRequest("GET", path, nil)
		r.Header.Set("Authorization", "Bearer "+srv.Credentials().Token)
		w := httptest.NewRecorder()
		if srv.Handler().ServeHTTP(w, r); w.Code != 200 {
			t.Errorf("GET %s: %d %s", path, w.Code, w.Body)
		}
	}
	for _, path := range []string{"/readyz", "/apis/example.com/v1", "/openapi/v2"} {
		get(path)
	}
	if n := cacheGoroutines(t, label); n != 0 {
		t.Errorf("%d goroutines of caches that nobody has used", n)
	}
	for i, plural := range []string{"paas", "pabs", "pahs"} {
		get("/apis/example.com/v1/namespaces/default/" + plural)
		get("/apis/example.com/v1/" + plural + "?resourceVersion=0")
		// A read of the store's revision is one for a moment.
		for deadline := time.Now().Add(10 * time.Second); cacheGoroutines(t, label) != each*(i+1); time.Sleep(time.Millisecond) {
			if time.Now().After(deadline) {
				t.Fatalf("%d goroutines of %d caches", cacheGoroutines(t, label), i+1)
			}
		}
	}
	if err := srv.Close(); err != nil {
		t.Error(err)
	}
	if n := cacheGoroutines(t, label); n != 0 {
		t.Errorf("%d goroutines of caches after Close", n)
	}
}

func TestMistakesOfCachesAreNamed(t *testing.T) {
	t.Parallel()
	type options = server.KindOptions[*Widget]
	resource := func(o options) []server.Resource { return []server.Resource{server.Kind("Widget", o)} }
	for name, c := range map[string]struct {
		opts server.Options
		want []string
	}{
		"field":         {want: []string{"widgets in example.com/v1", `IndexFields: "spec.color"`, "SelectableFields"}, opts: one(resource(options{IndexFields: []string{"spec.color"}}))},
		"field twice":   {want: []string{`"metadata.name" comes twice`}, opts: one(resource(options{IndexFields: []string{"metadata.name", "metadata.name"}}))},
		"label":         {want: []string{"widgets in example.com/v1", `IndexLabels: "a b"`}, opts: one(resource(options{IndexLabels: []string{"a b"}}))},
		"label twice":   {want: []string{`"app" comes twice`}, opts: one(resource(options{IndexLabels: []string{"app", "x", "app"}}))},
		"none to index": {want: []string{"NoCache", "IndexLabels"}, opts: one(resource(options{NoCache: true, IndexLabels: []string{"app"}}))},
		"own storage":   {want: []string{"Storage or Computed is set", "NoCache"}, opts: one(resource(options{Storage: clocks{}, NoCache: true}))},
		"nobody's kubeconfig": {want: []string{"Serving.Kubeconfig has the credentials of the administrator, whom Policy.NoAdministrator refuses"}, opts: server.Options{
			Serving: server.Serving{Kubeconfig: "kubeconfig"}, Policy: server.Policy{NoAdministrator: true},
		}},
		"spoke's cache":  {want: []string{"only the hub", "NoCache"}, opts: spoke(server.KindOptions[*SailV1Beta1]{NoCache: true})},
		"spoke's index":  {want: []string{"only the hub", "IndexFields"}, opts: spoke(server.KindOptions[*SailV1Beta1]{IndexFields: []string{"metadata.name"}})},
		"spoke's labels": {want: []string{"only the hub", "IndexLabels"}, opts: spoke(server.KindOptions[*SailV1Beta1]{IndexLabels: []string{"app"}})},
	} {
		srv, err := server.New(c.opts)
		if err == nil {
			_ = srv.Close()
			t.Errorf("%s: accepted", name)
			continue
		}
		for _, want := range c.want {
			if !strings.Contains(err.Error(), want) {
				t.Errorf("%s: %v\nwant it to name %q", name, err, want)
			}
		}
	}
}

func one(resources []server.Resource) server.Options {
	return server.Options{Groups: []server.Group{{Name: "example.com", Versions: []server.Version{{Name: "v1", Resources: resources}}}}}
}

// spoke serves sails with other options for v1beta1.
func spoke(o server.KindOptions[*SailV1Beta1]) server.Options {
	g := sails()
	g.Versions[2].Resources[0] = server.Kind("Sail", o)
	return server.Options{Groups: []server.Group{g}}
}

// watched is a backend that can fail and recover, and counts calls.
type watched struct {
	*flaky
	ranges atomic.Int32 // of objects
	open   atomic.Int32 // feeds

	mu   sync.Mutex // guards both below
	line context.Context
	cut  context.CancelFunc
}

func newWatched() *watched {
	b := &watched{flaky: &flaky{Backend: memory.New(memory.Options{})}}
	b.line, b.cut = context.WithCancel(context.Background())
	return b
}

// lose lets all calls and feeds fail until find is called.
func (b *watched) lose() {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.down.Store(true)
	b.cut()
}

func (b *watched) find() {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.line, b.cut = context.WithCancel(context.Background())
	b.down.Store(false)
}

func (b *watched) Range(ctx context.Context, r storage.Range) (storage.RangeResult, error) {
	if !r.CountOnly {
		b.ranges.Add(1)
	}
	return b.flaky.Range(ctx, r)
}

func (b *watched) Watch(ctx context.Context, r storage.WatchRange) (storage.Feed, error) {
	b.mu.Lock()
	line := b.line
	b.mu.Unlock()
	if err := b.err(); err != nil {
		return nil, err
	}
	f, err := b.Backend.Watch(ctx, r)
	if err != nil {
		return nil, err
	}
	b.open.Add(1)
	return &watchedFeed{dyingFeed: dyingFeed{Feed: f, d: &dying{err: errCut, life: line}}, closed: sync.OnceFunc(func() { b.open.Add(-1) })}, nil
}

// Close returns an error if the server has not closed a feed.
func (b *watched) Close() error {
	if n := b.open.Load(); n != 0 {
		return fmt.Errorf("closed with %d open feeds", n)
	}
	return b.Backend.Close()
}

type watchedFeed struct {
	dyingFeed
	closed func()
}

func (f *watchedFeed) Close() {
	f.Feed.Close()
	f.closed()
}

// Every cache, also of groups of extensions, is closed before the storage.
func TestCachesAreClosedBeforeTheStorage(t *testing.T) {
	t.Parallel()
	store := newWatched()
	srv := servertest.Start(t, server.Options{Storage: storage.Opened(store), Groups: []server.Group{widgets()}})
	if err := srv.Install(server.ExtensionFunc(func(h *server.Host) error { return h.Serve(sails()) })); err != nil {
		t.Fatal(err)
	}
	c := srv.Client()
	for _, path := range []string{widgetsPath, sailsPath("v1beta1"), sailsPath("v1")} {
		code, body := call(t, c, "GET", srv.URL+path, "")
		wantCode(t, 200, code, body)
	}
	if n := store.open.Load(); n != 2 {
		t.Errorf("%d feeds for two kinds", n)
	}
	_ = srv.Close() // the Close of the storage fails the test
	err := srv.Install(server.ExtensionFunc(func(h *server.Host) error { return h.Serve(server.Group{Name: "late.example.com"}) }))
	if err == nil || !strings.Contains(err.Error(), "the server has ended") {
		t.Errorf("Install after the end: %v", err)
	}
}

// eventually waits for done to be true.
func eventually(t *testing.T, what string, done func() bool) {
	t.Helper()
	for deadline := time.Now().Add(30 * time.Second); !done(); time.Sleep(5 * time.Millisecond) {
		if time.Now().After(deadline) {
			t.Fatalf("not in time: %s", what)
		}
	}
}

// /readyz names the caches that cannot follow the storage. Meanwhile reads that may be old are answered from memory, and watches
// stay open. Afterwards the watches get the events.
func TestCacheReadiness(t *testing.T) {
	t.Parallel()
	store := newWatched()
	w := newWire(t, func(o *server.Options) { o.Storage = storage.Opened(store) })
	ready := func() (int, string) {
		return call(t, w.client, "GET", w.URL+"/readyz/cache-readiness", "")
	}
	code, body := ready()
	wantCode(t, 200, code, body)
	w.make(t, widgetList, `{"metadata":{"name":"a"}}`)
	w.make(t, planetList, `{"metadata":{"name":"mars"}}`)
	s := w.watch(t, widgetList+"?watch=1&resourceVersion=0")
	s.want("ADDED a")
	if names := w.list(t, widgetList).names(); names != "a" {
		t.Errorf("widgets %q", names)
	}
	code, body = ready()
	wantCode(t, 200, code, body)

	store.lose()
	eventually(t, "the readiness of a cache that was cut off", func() bool {
		code, body = ready()
		return code == 500
	})
	for _, want := range []string{"widgets.example.com: the cache is complete up to revision ", errCut.Error()} {
		if !strings.Contains(body, want) {
			t.Errorf("%s\nwant it to say %q", body, want)
		}
	}
	if strings.Contains(body, "planets") {
		t.Errorf("a cache that is not in use is named: %s", body)
	}
	for path, want := range map[string]int{"/livez": 200, "/readyz?exclude=storage-readiness": 500, "/livez/cache-readiness": 404, widgetList: 503, widgetList + "?resourceVersion=0": 200} {
		if a := w.ask(t, "GET", path, ""); a.code != want {
			t.Errorf("GET %s: %d, want %d: %s", path, a.code, want, a.body)
		}
	}

	store.find()
	eventually(t, "the readiness of a cache that can follow again", func() bool { code, _ := ready(); return code == 200 })
	w.make(t, widgetList, `{"metadata":{"name":"b"}}`)
	s.want("ADDED b")
}

// A kind without a cache is read from the storage each time; others are not.
func TestKindWithoutACache(t *testing.T) {
	t.Parallel()
	for name, change := range map[string]func(*server.Options){"cached": func(*server.Options) {}, "uncached": uncached} {
		store := newWatched()
		w := newWire(t, change, func(o *server.Options) { o.Storage = storage.Opened(store) })
		w.make(t, widgetList, `{"metadata":{"name":"a"}}`)
		w.list(t, widgetList)
		before := store.ranges.Load()
		for range 10 {
			for _, query := range []string{"", "?resourceVersion=0", "?limit=1"} {
				if names := w.list(t, widgetList+query).names(); names != "a" {
					t.Errorf("%s, %s: %q", name, query, names)
				}
			}
		}
		if n, want := store.ranges.Load()-before, map[string]int32{"cached": 0, "uncached": 30}[name]; n != want {
			t.Errorf("%s: the storage was asked %d times for 30 lists, want %d", name, n, want)
		}
		if n, want := store.open.Load(), map[string]int32{"cached": 1, "uncached": 0}[name]; n != want {
			t.Errorf("%s: %d feeds, want %d", name, n, want)
		}
	}
}

// Lists by an indexed field and an indexed label are those without the indexes.
func TestIndexesChangeNoAnswer(t *testing.T) {
	t.Parallel()
	for _, indexed := range []bool{false, true} {
		o := server.KindOptions[*Widget]{SelectableFields: []string{"spec.color"}}
		if indexed {
			o.IndexFields, o.IndexLabels = []string{"spec.color", "metadata.name"}, []string{"app"}
		}
		srv := servertest.Start(t, one([]server.Resource{server.Kind("Widget", o)}))
		w := &wire{srv, srv.Client()}
		for i, color := range []string{"red", "blue", "red", "green"} {
			w.make(t, widgetList, fmt.Sprintf(`{"metadata":{"name":"w%d","labels":{"app":"a%d"}},"spec":{"color":%q}}`, i, i%2, color))
		}
		for query, want := range map[string]string{
			"?fieldSelector=spec.color%3Dred": "w0 w2", "?fieldSelector=spec.color%3Dred,metadata.name!%3Dw0": "w2", "?fieldSelector=spec.color!%3Dred": "w1 w3",
			"?labelSelector=app%3Da1": "w1 w3", "?labelSelector=app%3Da1&fieldSelector=spec.color%3Dblue": "w1", "?labelSelector=app%3Dnone": "", "?labelSelector=!app": "",
		} {
			if got := w.list(t, widgetList+query).names(); got != want {
				t.Errorf("indexed %v, %s: %q, want %q", indexed, query, got, want)
			}
		}
	}
}

// fastened are sails in two versions whose conversions from the hub are counted.
func fastened(conversions *atomic.Int32) server.Group {
	g := sails()
	g.Versions = g.Versions[1:2]
	g.Versions = append(g.Versions, server.Version{Name: "v2", Resources: []server.Resource{server.Kind("Sail", server.KindOptions[*SailV1Alpha1]{})}})
	g.Conversions = []server.Conversion{server.Convert(
		func(in *SailV1Alpha1, out *Sail) error { out.Spec.Area = in.Area; return nil },
		func(in *Sail, out *SailV1Alpha1) error {
			conversions.Add(1)
			if in.Spec.Color == "none" {
				return errors.New("it has no color")
			}
			out.Area = in.Spec.Area
			return nil
		})}
	return g
}

// An event in a version that is not stored is converted once, however many watches there are.
func TestWatchersShareConversions(t *testing.T) {
	t.Parallel()
	var conversions atomic.Int32
	srv := servertest.New(t, fastened(&conversions))
	w := &wire{srv, srv.Client()}
	const watchers, events = 20, 10
	first := w.make(t, sailsPath("v1"), `{"metadata":{"name":"s"},"spec":{"area":1}}`)
	from := "?watch=1&resourceVersion=" + first.ResourceVersion
	var streams []*stream
	for range watchers {
		streams = append(streams, w.watch(t, sailsPath("v2")+from))
	}
	table := w.watch(t, sailsPath("v2")+from, "Accept", "application/json;as=PartialObjectMetadata;v=v1;g=meta.k8s.io")
	before := conversions.Load()
	for i := range events {
		w.ask(t, "PATCH", sailsPath("v1")+"/s", fmt.Sprintf(`{"spec":{"area":%d}}`, i+2), "Content-Type", mergePatch).want(t, 200)
	}
	w.ask(t, "DELETE", sailsPath("v1")+"/s", "").want(t, 200)
	streams = append(streams, w.watch(t, sailsPath("v2")+from)) // a later watch shares the conversion, too
	var texts []string
	for n, s := range streams {
		for i := range events + 1 {
			e := s.next()
			if n == 0 {
				if !strings.Contains(e.text, `"apiVersion":"sea.example.com/v2"`) || !strings.Contains(e.text, fmt.Sprintf(`"area":%d`, min(i+2, events+1))) {
					t.Errorf("%s", e.text)
				}
				texts = append(texts, e.text)
			} else if e.text != texts[i] {
				t.Errorf("watcher %d: %s\nwant %s", n, e.text, texts[i])
			}
		}
	}
	for range events {
		table.want("MODIFIED s")
	}
	table.want("DELETED s")
	if n := conversions.Load() - before; n != events+1 {
		t.Errorf("%d conversions for %d events and %d watchers", n, events+1, watchers+1)
	}
}

// A conversion that fails ends the watches that need it, and no others.
func TestAFailedConversionEndsItsWatches(t *testing.T) {
	t.Parallel()
	var conversions atomic.Int32
	srv := servertest.New(t, fastened(&conversions))
	w := &wire{srv, srv.Client()}
	first := w.make(t, sailsPath("v1"), `{"metadata":{"name":"s"},"spec":{"area":1}}`)
	from := "?watch=1&resourceVersion=" + first.ResourceVersion
	stored, converted, other := w.watch(t, sailsPath("v1")+from), w.watch(t, sailsPath("v2")+from), w.watch(t, sailsPath("v2")+from)
	w.make(t, sailsPath("v1"), `{"metadata":{"name":"n"},"spec":{"color":"none"}}`)
	stored.want("ADDED n")
	for _, s := range []*stream{converted, other} {
		if e := s.next(); e.Type != "ERROR" || !strings.Contains(e.text, "it has no color") || !strings.Contains(e.text, fmt.Sprint(http.StatusInternalServerError)) {
			t.Errorf("%s", e.text)
		}
		s.end()
	}
}

// A watch that allows bookmarks gets the revision before it leaves the window, and another watch does not.
func TestBookmarksBeforeTheWindowPasses(t *testing.T) {
	t.Parallel()
	w := newWire(t)
	idleList := strings.Replace(widgetList, "default", "quiet", 1)
	first := w.make(t, idleList, `{"metadata":{"name":"a"}}`)
	with := w.watch(t, idleList+"?watch=1&allowWatchBookmarks=1&resourceVersion="+first.ResourceVersion)
	without := w.watch(t, idleList+"?watch=1&resourceVersion="+first.ResourceVersion)
	w.make(t, widgetList, `{"metadata":{"name":"b"}}`)
	for i := range 10 { // the log of a small kind may have 8 MiB
		body := fmt.Sprintf(`{"spec":{"size":%d,"data":%q}}`, i+1, strings.Repeat("x", 1<<20))
		w.ask(t, "PATCH", widgetList+"/b", body, "Content-Type", mergePatch).want(t, 200)
	}
	if e := with.next(); e.Type != "BOOKMARK" || e.meta(t).ResourceVersion == first.ResourceVersion {
		t.Errorf("%s", e.text)
	}
	w.make(t, idleList, `{"metadata":{"name":"c"}}`)
	without.want("ADDED c")
}

// slowly is a backend whose reads take five seconds.
type slowly struct{ storage.Backend }

func (s slowly) Range(ctx context.Context, r storage.Range) (storage.RangeResult, error) {
	select {
	case <-time.After(5 * time.Second):
		return s.Backend.Range(ctx, r)
	case <-ctx.Done():
		return storage.RangeResult{}, ctx.Err()
	}
}

// A list waits for the cache for at most CacheWait, and is then answered with 429.
func TestWaitsForCaches(t *testing.T) {
	t.Parallel()
	for wait, want := range map[time.Duration]struct {
		code  int
		least time.Duration
	}{0: {429, 3 * time.Second}, time.Second: {429, time.Second}, time.Minute: {200, 5 * time.Second}} {
		synctest.Test(t, func(t *testing.T) {
			srv := servertest.Start(t, server.Options{
				Storage: storage.Opened(slowly{memory.New(memory.Options{})}), Limits: server.Limits{CacheWait: wait},
			}, widgets())
			began := time.Now()
			code, text := call(t, srv.Client(), "GET", srv.URL+widgetsPath, "")
			if took := time.Since(began); code != want.code || took < want.least || code == 429 && took > want.least+5*time.Second+500*time.Millisecond { // the request may have asked for the revision first
				t.Errorf("with %v: %d after %v, want %d after %v; %.200s", wait, code, took, want.code, want.least, text)
			}
			if err := srv.Close(); err != nil {
				t.Error(err)
			}
		})
	}
}
