package handlers_test

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"io"
	"net/http"
	"net/http/httptest"
	"strconv"
	"strings"
	"sync"
	"testing"

	"github.com/keelson-dev/keelson/authn"
	"github.com/keelson-dev/keelson/runtime"
	"github.com/keelson-dev/keelson/runtime/codec"
	"github.com/keelson-dev/keelson/server/handlers"
	"github.com/keelson-dev/keelson/server/registry"
	"github.com/keelson-dev/keelson/storage"
	"github.com/keelson-dev/keelson/storage/memory"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

type WidgetSpec struct {
	Size     int32  `json:"size"`
	Color    string `json:"color,omitempty"`
	Data     string `json:"data,omitempty"`
	Replicas int32  `json:"replicas"`
}

type WidgetStatus struct {
	Ready    bool   `json:"ready,omitempty"`
	Replicas int32  `json:"replicas,omitempty"`
	Selector string `json:"selector,omitempty"`
}

type Widget = runtime.Resource[WidgetSpec, WidgetStatus]

var gv = schema.GroupVersion{Group: "example.com", Version: "v1"}

// house is a resource of widgets over a memory backend.
type house struct {
	http.Handler
	backend  *memory.Backend
	registry *registry.Registry
	resource *handlers.Resource
}

// tune has the options of newHouse.
type tune struct {
	strategy registry.Strategy[*Widget]
	handlers func(o *handlers.Options)
	backend  memory.Options
	wrap     func(storage.Backend) storage.Backend
	kind     runtime.KindOptions[*Widget]
}

func newHouse(t testing.TB, how tune) *house {
	t.Helper()
	scheme := runtime.NewScheme()
	must(t, runtime.Register[*Widget](scheme, gv.WithKind("Widget"), how.kind))
	must(t, runtime.Register[*runtime.Scale](scheme, runtime.ScaleKind(), runtime.KindOptions[*runtime.Scale]{}))
	typed, err := codec.NewTyped(scheme, gv.WithKind("Widget"))
	must(t, err)
	backend := memory.New(how.backend)
	t.Cleanup(func() { _ = backend.Close() })
	below := storage.Backend(backend)
	if how.wrap != nil {
		below = how.wrap(backend)
	}
	store, err := storage.NewStore(below, storage.StoreOptions{Prefix: "/registry/example.com/widgets", Codec: typed, Namespaced: true, Fields: how.kind.SelectableFields})
	must(t, err)
	reg, err := registry.New(registry.Options{
		Scheme: scheme, Kind: gv.WithKind("Widget"), Resource: schema.GroupResource{Group: gv.Group, Resource: "widgets"},
		Namespaced: true, Storage: store, Strategy: registry.Erase(how.strategy),
	})
	must(t, err)
	status, err := reg.Status()
	must(t, err)
	scale, err := reg.ScaleView(registry.Scale{SpecReplicas: ".spec.replicas", StatusReplicas: ".status.replicas", LabelSelector: ".status.selector"})
	must(t, err)
	o := handlers.Options{
		Scheme: scheme, Resource: gv.WithResource("widgets"), Kind: gv.WithKind("Widget"), Namespaced: true, Storage: reg,
		Subresources: map[string]handlers.Subresource{
			"status": {Storage: status},
			"scale":  {Storage: scale, Kind: runtime.ScaleKind()},
		},
	}
	if how.handlers != nil {
		how.handlers(&o)
	}
	h, err := handlers.New(o)
	must(t, err)
	return &house{Handler: h, backend: backend, registry: reg, resource: h}
}

func must(t testing.TB, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

const (
	base = "/apis/example.com/v1/namespaces/default/widgets"
	all  = "/apis/example.com/v1/widgets"
)

// ask sends one request. head has lines of the header, such as "Accept: text/plain".
func (h *house) ask(method, target, body string, head ...string) *httptest.ResponseRecorder {
	r := httptest.NewRequest(method, target, strings.NewReader(body))
	if body == "" {
		r.Body = http.NoBody
	}
	for _, line := range head {
		name, value, _ := strings.Cut(line, ": ")
		r.Header.Add(name, value)
	}
	w := httptest.NewRecorder()
	h.ServeHTTP(w, r)
	return w
}

// make creates widgets of the names.
func (h *house) make(t testing.TB, names ...string) {
	t.Helper()
	for _, name := range names {
		w := h.ask("POST", base, `{"metadata":{"name":"`+name+`","labels":{"n":"`+name+`"}},"spec":{"size":1}}`)
		if w.Code != http.StatusCreated {
			t.Fatalf("POST %s: %d %s", name, w.Code, w.Body)
		}
	}
}

// record is the record stored under a name.
func (h *house) record(t testing.TB, name string) storage.Record {
	t.Helper()
	rec, err := h.registry.GetRecord(registry.NewCall(context.Background(), authn.System(), "default"), name, storage.Read{})
	must(t, err)
	return rec
}

// whole returns a stored widget as JSON.
func (h *house) whole(t testing.TB, name string) string {
	rec := h.record(t, name)
	return string(rec.Body.AppendObject(nil, rec.Revision))
}

func (h *house) listed(t testing.TB, name string) string {
	rec := h.record(t, name)
	return string(rec.Body.AppendItem(nil, rec.Revision))
}

func (h *house) metadata(t testing.TB, name string) string {
	rec := h.record(t, name)
	return string(rec.Body.AppendMetadata(nil, rec.Revision))
}

func decodeStatus(t testing.TB, body []byte) metav1.Status {
	t.Helper()
	var s metav1.Status
	if err := json.Unmarshal(body, &s); err != nil || s.Kind != "Status" {
		t.Fatalf("not a Status: %v: %s", err, body)
	}
	return s
}

// wantStatus checks code, reason and message of a failure.
func wantStatus(t testing.TB, w *httptest.ResponseRecorder, code int, reason metav1.StatusReason, message string) metav1.Status {
	t.Helper()
	if w.Code != code {
		t.Fatalf("code %d, want %d: %s", w.Code, code, w.Body)
	}
	s := decodeStatus(t, w.Body.Bytes())
	if s.Reason != reason || s.Message != message {
		t.Errorf("got  %s %q\nwant %s %q", s.Reason, s.Message, reason, message)
	}
	return s
}

func wantBody(t testing.TB, w *httptest.ResponseRecorder, code int, want string) {
	t.Helper()
	if w.Code != code || w.Body.String() != want {
		t.Errorf("got  %d %s\nwant %d %s", w.Code, w.Body, code, want)
	}
}

// stream is a ResponseWriter whose body can be read while it is written.
type stream struct {
	head    http.Header
	mu      sync.Mutex // guards all below
	code    int
	written bytes.Buffer
	flushed bytes.Buffer
	flushes int
}

func newStream() *stream { return &stream{head: http.Header{}} }

func (s *stream) Header() http.Header { return s.head }

func (s *stream) WriteHeader(code int) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.code = code
}

func (s *stream) Write(p []byte) (int, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.written.Write(p)
}

func (s *stream) Flush() {
	s.mu.Lock()
	defer s.mu.Unlock()
	_, _ = io.Copy(&s.flushed, &s.written)
	s.flushes++
}

// text returns everything that was flushed.
func (s *stream) text() string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.flushed.String()
}

// watching runs a watch in the background. stop ends the watch and waits.
func (h *house) watching(target string, head ...string) (s *stream, done <-chan struct{}, stop func()) {
	ctx, cancel := context.WithCancel(context.Background())
	r := httptest.NewRequest(http.MethodGet, target, nil).WithContext(ctx)
	for _, line := range head {
		name, value, _ := strings.Cut(line, ": ")
		r.Header.Add(name, value)
	}
	s = newStream()
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		h.ServeHTTP(s, r)
	}()
	return s, ended, func() {
		cancel()
		<-ended
	}
}

// now returns the current resourceVersion of the storage.
func (h *house) now(t testing.TB) string {
	t.Helper()
	got, err := h.backend.Range(context.Background(), storage.Range{From: "/", CountOnly: true})
	must(t, err)
	return strconv.FormatInt(got.Revision, 10)
}

type widgetList struct {
	metav1.TypeMeta `json:",inline"`
	metav1.ListMeta `json:"metadata"`
	Items           []Widget `json:"items"`
}

func decodeList(t testing.TB, w *httptest.ResponseRecorder) widgetList {
	t.Helper()
	var l widgetList
	if err := json.Unmarshal(w.Body.Bytes(), &l); err != nil || w.Code != 200 {
		t.Fatalf("%d %v: %s", w.Code, err, w.Body)
	}
	return l
}

// aborts reports whether p is the value of a panic that aborts a connection.
func aborts(p any) bool {
	err, _ := p.(error)
	return errors.Is(err, http.ErrAbortHandler)
}
