package handlers_test

import (
	"bytes"
	"cmp"
	"encoding/binary"
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"regexp"
	goruntime "runtime"
	"strings"
	"sync"
	"testing"

	"github.com/keelson-dev/keelson/runtime"
	"github.com/keelson-dev/keelson/runtime/codec"
	"github.com/keelson-dev/keelson/server/handlers"
	"github.com/keelson-dev/keelson/server/registry"
	"github.com/keelson-dev/keelson/storage"
	"github.com/keelson-dev/keelson/storage/cacher"
	"github.com/keelson-dev/keelson/storage/memory"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	metav1beta1 "k8s.io/apimachinery/pkg/apis/meta/v1beta1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/runtime/serializer/cbor/direct"
	"sigs.k8s.io/yaml"
)

const (
	partialV1   = ";as=PartialObjectMetadata;g=meta.k8s.io;v=v1"
	partialList = ";as=PartialObjectMetadataList;g=meta.k8s.io;v=v1"
	partialBeta = ";as=PartialObjectMetadataList;g=meta.k8s.io;v=v1beta1"
)

// cachedMaps is a resource of config maps in all formats over a cache. most is the size of the cache of forms, in bytes.
func cachedMaps(t testing.TB, most int64, tune ...func(*handlers.Options)) (*house, *storage.FormCache) {
	t.Helper()
	gvk := corev1.SchemeGroupVersion.WithKind("ConfigMap")
	scheme := runtime.NewScheme()
	must(t, runtime.Register[*corev1.ConfigMap](scheme, gvk, runtime.KindOptions[*corev1.ConfigMap]{
		Default: func(m *corev1.ConfigMap) { m.Immutable = cmp.Or(m.Immutable, new(false)) }, // bookmarks do not have this default
	}))
	typed, err := codec.NewTyped(scheme, gvk)
	must(t, err)
	backend := memory.New(memory.Options{})
	t.Cleanup(func() { _ = backend.Close() })
	store, err := storage.NewStore(backend, storage.StoreOptions{Prefix: "/registry/configmaps", Codec: typed, Namespaced: true})
	must(t, err)
	forms := storage.NewFormCache(most)
	cache, err := cacher.New(store, cacher.Options{Namespaced: true, Forms: forms})
	must(t, err)
	t.Cleanup(cache.Close)
	reg, err := registry.New(registry.Options{
		Scheme: scheme, Kind: gvk, Resource: schema.GroupResource{Resource: "configmaps"}, Namespaced: true, Storage: cache,
		Strategy: registry.Erase(registry.Strategy[*corev1.ConfigMap]{}),
	})
	must(t, err)
	opts := handlers.Options{
		Scheme: scheme, Resource: gvk.GroupVersion().WithResource("configmaps"), Kind: gvk, Namespaced: true, Storage: reg, Forms: forms,
		Formats: []codec.Format{codec.JSON(), codec.YAML(), codec.Protobuf(), codec.CBOR()},
	}
	for _, f := range tune {
		f(&opts)
	}
	h, err := handlers.New(opts)
	must(t, err)
	return &house{Handler: h, backend: backend, registry: reg, resource: h}, forms
}

// formOf converts text, an answer in JSON, to the answer in the form of accept, for the comparison.
func formOf(t testing.TB, accept string, text []byte) []byte {
	t.Helper()
	switch {
	case strings.HasPrefix(accept, "application/yaml"):
		out, err := codec.YAML().FromJSON(text, false)
		must(t, err)
		return out
	case strings.Contains(accept, "pretty=1"):
		out, err := codec.JSON().FromJSON(text, true)
		must(t, err)
		return out
	case strings.HasPrefix(accept, "application/json"):
		return text
	case strings.HasPrefix(accept, "application/cbor"):
		var v any
		must(t, json.Unmarshal(text, &v))
		out, err := json.Marshal(v)
		must(t, err)
		return out
	}
	var kind metav1.TypeMeta
	must(t, json.Unmarshal(text, &kind))
	objects := map[string]interface{ Marshal() ([]byte, error) }{
		"ConfigMap": &corev1.ConfigMap{}, "ConfigMapList": &corev1.ConfigMapList{}, "PartialObjectMetadata": &metav1.PartialObjectMetadata{},
		"PartialObjectMetadataList": &metav1.PartialObjectMetadataList{}, "Status": &metav1.Status{},
	}
	obj := objects[kind.Kind]
	if kind.APIVersion == "meta.k8s.io/v1beta1" && kind.Kind == "PartialObjectMetadataList" {
		obj = &metav1beta1.PartialObjectMetadataList{}
	}
	must(t, json.Unmarshal(text, obj))
	return []byte(sealed(t, kind.APIVersion, kind.Kind, obj))
}

// The answers in all forms have the content of the JSON answer. They are compared by bytes if the form has only one way to write
// the content. Lists are short and long, compressed or not, and cached or not.
func TestForms(t *testing.T) {
	many := 130
	if testing.Short() { // more than a page of 50, and more than the cache keeps
		many = 60
	}
	for name, most := range map[string]int64{"all is kept": 1 << 30, "some is kept": 200 << 10, "nothing is kept": 0} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			h, forms := cachedMaps(t, most)
			made := 0
			for _, n := range []int{0, 1, many} {
				for ; made < n; made++ {
					h.makeMap(t, made)
				}
				for range 2 { // the first answer is made, the second may be cached
					h.compareForms(t, n)
				}
			}
			stats := forms.Stats()
			if stats.Bytes > max(most, 0) || (stats.Hits > 0) != (most > 0) {
				t.Errorf("%+v", stats)
			}
		})
	}
}

// makeMap creates the i-th config map. Each is larger than the one before.
func (h *house) makeMap(t testing.TB, i int) {
	t.Helper()
	m := configMap(fmt.Sprintf("m%05d", i), strings.Repeat(fmt.Sprintf("%d: \"text\" <&>\n", i), 10*i))
	m.Labels = map[string]string{"n": fmt.Sprint(i % 7)}
	body, err := json.Marshal(m)
	must(t, err)
	if w := h.ask("POST", maps, string(body)); w.Code != 201 {
		t.Fatalf("%d %s", w.Code, w.Body)
	}
}

func (h *house) compareForms(t *testing.T, n int) {
	t.Helper()
	targets := []string{maps, "/api/v1/configmaps?limit=50", maps + "?limit=20&labelSelector=n%21%3D3"}
	all := []string{"", partialV1, partialList, partialBeta, ";as=Table;g=meta.k8s.io;v=v1"}
	switch {
	case n == 1:
		targets = append(targets, maps+"/m00000")
	case n > 1:
		all = []string{"", partialList}
	}
	for _, target := range targets {
		for _, as := range all {
			want := h.ask("GET", target, "", "Accept: application/json"+as)
			for _, mediaType := range []string{
				"application/json", "application/json;pretty=1", "application/yaml", "application/vnd.kubernetes.protobuf", "application/cbor",
			} {
				for _, encoding := range []string{"identity", "gzip"} {
					got := h.ask("GET", target, "", "Accept: "+mediaType+as, "Accept-Encoding: "+encoding)
					h.compareForm(t, fmt.Sprintf("%d: GET %s as %s%s, %s", n, target, mediaType, as, encoding), mediaType+as, want, got)
				}
			}
		}
	}
}

func (h *house) compareForm(t *testing.T, what, accept string, want, got *httptest.ResponseRecorder) {
	t.Helper()
	if strings.Contains(accept, "Table") && (strings.Contains(accept, "protobuf") || strings.Contains(accept, "cbor")) {
		if got.Code != 406 {
			t.Errorf("%s: %d", what, got.Code)
		}
		return
	}
	if got.Code != want.Code {
		t.Errorf("%s: %d, in JSON %d: %.300q", what, got.Code, want.Code, got.Body)
		return
	}
	if got.Code != 200 {
		return
	}
	mediaType, _, _ := strings.Cut(accept, ";")
	if got.Header().Get("Content-Type") != mediaType {
		t.Errorf("%s: %v", what, got.Header())
	}
	body := got.Body.Bytes()
	if got.Header().Get("Content-Encoding") == "gzip" {
		body = []byte(unzip(t, body))
	} else if strings.HasSuffix(what, "gzip") && len(body) > 128<<10 {
		t.Errorf("%s: %d bytes are not compressed", what, len(body))
	}
	if strings.HasPrefix(accept, "application/cbor") {
		var v any
		must(t, direct.Unmarshal(body, &v))
		if !bytes.HasPrefix(body, []byte("\xd9\xd9\xf7")) {
			t.Errorf("%s: no tag", what)
		}
		var err error
		body, err = json.Marshal(v)
		must(t, err)
	}
	text := want.Body.Bytes()
	if wanted := formOf(t, accept, text); !bytes.Equal(ages.ReplaceAll(body, nil), ages.ReplaceAll(wanted, nil)) {
		t.Errorf("%s: %d bytes, want %d:\n%.2000q\n%.2000q", what, len(body), len(wanted), body, wanted)
	}
}

var ages = regexp.MustCompile(`\d+s`)

// A watch in each form has the events of the JSON watch.
func TestFormsOfWatches(t *testing.T) {
	h, _ := cachedMaps(t, 1<<20)
	for i := range 5 {
		h.makeMap(t, i)
	}
	if w := h.ask("PATCH", maps+"/m00001", `{"metadata":{"labels":{"n":"9"}}}`, mergeType); w.Code != 200 {
		t.Fatal(w.Body)
	}
	if w := h.ask("DELETE", maps+"/m00002", ""); w.Code != 200 {
		t.Fatal(w.Body)
	}
	for _, query := range []string{
		"timeoutSeconds=1&resourceVersion=1", "timeoutSeconds=1&resourceVersion=1&labelSelector=n%3D1",
		"timeoutSeconds=1&sendInitialEvents=true&resourceVersionMatch=NotOlderThan&allowWatchBookmarks=true",
		"timeoutSeconds=9&sendInitialEvents=true&resourceVersionMatch=NotOlderThan&resourceVersion=1000000", // this one is refused
	} {
		for _, as := range []string{"", partialV1} {
			t.Run(query+as, func(t *testing.T) {
				t.Parallel()
				h.compareWatches(t, maps+"?watch=1&"+query, as)
			})
		}
	}
}

func (h *house) compareWatches(t *testing.T, target, as string) {
	t.Helper()
	want := h.ask("GET", target, "", "Accept: application/json"+as).Body.String()
	lines := strings.SplitAfter(strings.TrimSpace(want), "\n")
	var all sync.WaitGroup
	for mediaType, contentType := range map[string]string{
		"application/vnd.kubernetes.protobuf": "application/vnd.kubernetes.protobuf;stream=watch", "application/cbor": "application/cbor-seq",
	} {
		for _, encoding := range []string{"identity", "gzip"} {
			all.Go(func() {
				got := h.ask("GET", target, "", "Accept: "+mediaType+as, "Accept-Encoding: "+encoding)
				if got.Code != 200 || got.Header().Get("Content-Type") != contentType {
					t.Errorf("%s: %d %v %.300q", mediaType, got.Code, got.Header(), got.Body)
					return
				}
				body := got.Body.String()
				if got.Header().Get("Content-Encoding") == "gzip" {
					body = unzip(t, got.Body.Bytes())
				}
				events := protobufEvents
				if mediaType == "application/cbor" {
					events = cborEvents
				}
				compareEvents(t, mediaType, lines, events(t, body))
			})
		}
	}
	all.Wait()
}

// compareEvents compares events with those of the JSON watch.
func compareEvents(t *testing.T, mediaType string, lines, events []string) {
	t.Helper()
	if len(events) != len(lines) {
		t.Errorf("%s: %d events, in JSON %d", mediaType, len(events), len(lines))
		return
	}
	for i, line := range lines {
		var e struct {
			Type   string
			Object json.RawMessage
		}
		if err := json.Unmarshal([]byte(line), &e); err != nil {
			t.Errorf("%q: %v", line, err)
			return
		}
		if wanted := e.Type + " " + string(formOf(t, mediaType, e.Object)); events[i] != wanted {
			t.Errorf("%s: event %d:\n%q\nwant\n%q", mediaType, i, events[i], wanted)
		}
	}
}

// protobufEvents returns the events of a stream: the type and the envelope of each.
func protobufEvents(t *testing.T, body string) (events []string) {
	t.Helper()
	for rest := []byte(body); len(rest) > 0; {
		n := binary.BigEndian.Uint32(rest)
		var e metav1.WatchEvent
		must(t, e.Unmarshal(rest[4:4+n]))
		events = append(events, e.Type+" "+string(e.Object.Raw))
		rest = rest[4+n:]
	}
	return events
}

// cborEvents returns the events of a stream: the type and the JSON of each.
func cborEvents(t *testing.T, body string) (events []string) {
	t.Helper()
	for _, item := range strings.Split(body, "\xd9\xd9\xf7\xa2\x44type") { // the first bytes of each event
		if item == "" {
			continue
		}
		var e struct {
			Type   string         `json:"type"`
			Object map[string]any `json:"object"`
		}
		must(t, direct.Unmarshal([]byte("\xd9\xd9\xf7\xa2\x44type"+item), &e))
		text, err := json.Marshal(e.Object)
		must(t, err)
		events = append(events, e.Type+" "+string(text))
	}
	return events
}

// meter is a ResponseWriter that measures the memory at each write.
type meter struct {
	header        http.Header
	written       int64
	largest, most uint64
	check         int64
}

func (m *meter) Header() http.Header { return m.header }
func (m *meter) WriteHeader(int)     {}
func (m *meter) Write(b []byte) (int, error) {
	m.written += int64(len(b))
	m.largest = max(m.largest, uint64(len(b)))
	if m.written > m.check {
		m.check = m.written + 4<<20
		m.most = max(m.most, live())
	}
	return len(b), nil
}

func live() uint64 {
	var stats goruntime.MemStats
	goruntime.GC()
	goruntime.ReadMemStats(&stats)
	return stats.HeapAlloc
}

// The memory for a list does not grow with the length of the list.
func TestListsAreStreamed(t *testing.T) {
	if testing.Short() {
		t.Skip("a list of 16 MB in nine forms")
	}
	h, _ := cachedMaps(t, 0)
	text := strings.Repeat("some words of it\n", 500)
	for i := range 2000 {
		body, err := json.Marshal(configMap(fmt.Sprintf("m%05d", i), text))
		must(t, err)
		if w := h.ask("POST", maps, string(body)); w.Code != 201 {
			t.Fatalf("%d %s", w.Code, w.Body)
		}
	}
	for _, accept := range []string{
		"application/json", "application/json;pretty=1", "application/yaml", "application/vnd.kubernetes.protobuf", "application/cbor",
		"application/json;as=Table;g=meta.k8s.io;v=v1", "application/yaml" + partialList,
	} {
		for _, target := range []string{maps, maps + "?labelSelector=%21n"} {
			if strings.Contains(accept, "Table") {
				target = strings.Replace(target+"?includeObject=Object", "?labelSelector=%21n?", "?labelSelector=%21n&", 1)
			}
			r := httptest.NewRequest("GET", target, http.NoBody)
			r.Header.Set("Accept", accept)
			before := live()
			m := &meter{header: http.Header{}}
			h.ServeHTTP(m, r)
			if most := int64(8 << 20); int64(m.most)-int64(before) > most || m.largest > 2<<20 {
				t.Errorf("%s as %s: of %d bytes %d are in memory, and %d written at once", target, accept, m.written, int64(m.most)-int64(before), m.largest)
			}
			if m.written < 8<<20 && !strings.Contains(accept, "Partial") {
				t.Errorf("%s as %s: %d bytes", target, accept, m.written)
			}
		}
	}
}

// The YAML of a list can be parsed for all contents.
func TestListsInYAML(t *testing.T) {
	h, _ := cachedMaps(t, 0)
	odd := []string{"", "\n", "a\n\nb", " lead", "trail ", "# no comment", "- item", "key: value", strings.Repeat("word ", 60), "'", `"`, "\t", "…", "~", "null", "1e3", "[", "{}", "---\n"}
	for i, text := range odd {
		m := configMap(fmt.Sprintf("m%05d", i), text)
		m.Annotations = map[string]string{"text": text}
		body, err := json.Marshal(m)
		must(t, err)
		if w := h.ask("POST", maps, string(body)); w.Code != 201 {
			t.Fatalf("%d %s", w.Code, w.Body)
		}
	}
	w := h.ask("GET", maps, "", "Accept: application/yaml")
	var list corev1.ConfigMapList
	must(t, yaml.UnmarshalStrict(w.Body.Bytes(), &list))
	for i, text := range odd {
		if got := list.Items[i]; got.Data["k"] != text || got.Annotations["text"] != text {
			t.Errorf("%q became %+v", text, got)
		}
	}
}
