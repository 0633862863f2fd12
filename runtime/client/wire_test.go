package client_test

import (
	"encoding/json"
	"fmt"
	"maps"
	"net/http"
	"net/http/httptest"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/keelson-dev/keelson/runtime/client"
)

var boatKind = schema.GroupVersionKind{Group: "example.com", Version: "v1", Kind: "Boat"}

// wire is a server of boats that speaks the protocol of Kubernetes, and fails in the ways that a test selects.
type wire struct {
	*httptest.Server
	t testing.TB

	mu        sync.Mutex // guards all fields below
	more      sync.Cond  // signals that there are events, or that watches must end
	revision  int64
	objects   map[string]*unstructured.Unstructured // by namespace/name
	events    []wireEvent
	floor     int64 // events up to it are no longer available
	epoch     int   // watches that began in an earlier epoch end
	cutAfter  int   // bytes of the next event that watches of an earlier epoch still send; -1: they end properly
	initial   bool  // watches may begin by sending all objects
	away      bool
	gone      bool // the resource is not served
	silent    bool // watches send nothing
	lists     int
	pages     int
	watches   int
	snapshots map[string][]*unstructured.Unstructured // by continue token
	refuse    error                                   // the answer to all requests except discovery
	ended     bool                                    // watches that begin now end at once
}

type wireEvent struct {
	revision int64
	text     []byte
}

func newWire(t testing.TB) *wire {
	w := &wire{t: t, revision: 100, objects: map[string]*unstructured.Unstructured{}, snapshots: map[string][]*unstructured.Unstructured{}, initial: true}
	w.more.L = &w.mu
	w.Server = httptest.NewServer(w)
	t.Cleanup(w.close)
	return w
}

func (w *wire) close() {
	w.do(func() { w.ended = true }) // a handler may begin after its client has disconnected
	w.cut(-1)
	w.Server.CloseClientConnections()
	w.cut(-1)
	w.Server.Close()
}

// do changes the server.
func (w *wire) do(f func()) {
	w.mu.Lock()
	defer w.mu.Unlock()
	f()
	w.more.Broadcast()
}

// put creates or changes a boat, and returns the revision.
func (w *wire) put(namespace, name, color string) int64 {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.revision++
	k, t := namespace+"/"+name, "ADDED"
	uid := fmt.Sprint("uid-", w.revision)
	if old, ok := w.objects[k]; ok {
		t, uid = "MODIFIED", string(old.GetUID())
	}
	w.objects[k] = &unstructured.Unstructured{Object: map[string]any{
		"apiVersion": "example.com/v1", "kind": "Boat",
		"metadata": map[string]any{"namespace": namespace, "name": name, "uid": uid, "resourceVersion": fmt.Sprint(w.revision),
			"labels": map[string]any{"color": color}},
		"spec": map[string]any{"color": color, "length": int64(len(color))},
	}}
	w.log(t, w.objects[k])
	return w.revision
}

// delete deletes a boat if it exists, and returns the revision.
func (w *wire) delete(namespace, name string) int64 {
	w.mu.Lock()
	defer w.mu.Unlock()
	k := namespace + "/" + name
	old, ok := w.objects[k]
	if !ok {
		return w.revision
	}
	w.revision++
	delete(w.objects, k)
	last := old.DeepCopy()
	last.SetResourceVersion(fmt.Sprint(w.revision))
	w.log("DELETED", last)
	return w.revision
}

func (w *wire) log(t string, obj any) {
	text, err := json.Marshal(map[string]any{"type": t, "object": obj})
	if err != nil {
		w.t.Error(err)
	}
	w.events = append(w.events, wireEvent{w.revision, append(text, '\n')})
	w.more.Broadcast()
}

// bookmark makes watches send a bookmark with a revision that no boat has.
func (w *wire) bookmark() int64 {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.revision++
	w.log("BOOKMARK", mark(w.revision, false))
	return w.revision
}

func mark(revision int64, end bool) any {
	m := map[string]any{"resourceVersion": fmt.Sprint(revision)}
	if end {
		m["annotations"] = map[string]any{metav1.InitialEventsAnnotationKey: "true"}
	}
	return map[string]any{"kind": "Boat", "apiVersion": "example.com/v1", "metadata": m}
}

// expire removes all events.
func (w *wire) expire() { w.do(func() { w.floor = w.revision }) }

// cut ends all watches: after the given number of bytes of their next event, or properly if it is negative.
func (w *wire) cut(after int) {
	w.do(func() { w.epoch++; w.cutAfter = after })
}

// leave makes the server unreachable, or reachable again.
func (w *wire) leave(away bool) {
	w.do(func() { w.away = away; w.epoch++; w.cutAfter = 0 })
}

func (w *wire) sorted() []*unstructured.Unstructured {
	keys := slices.Sorted(maps.Keys(w.objects))
	out := make([]*unstructured.Unstructured, len(keys))
	for i, k := range keys {
		out[i] = w.objects[k]
	}
	return out
}

func (w *wire) ServeHTTP(rw http.ResponseWriter, req *http.Request) {
	w.mu.Lock()
	away, gone, refuse := w.away, w.gone, w.refuse
	w.mu.Unlock()
	if away {
		panic(http.ErrAbortHandler)
	}
	parts := strings.Split(strings.TrimPrefix(req.URL.Path, "/"), "/")
	switch {
	case gone:
		http.NotFound(rw, req)
	case req.URL.Path == "/apis/example.com/v1":
		w.answer(rw, metav1.APIResourceList{TypeMeta: metav1.TypeMeta{Kind: "APIResourceList", APIVersion: "v1"}, GroupVersion: "example.com/v1",
			APIResources: []metav1.APIResource{{Name: "boats/status", Kind: "Boat", Namespaced: true},
				{Name: "boats", SingularName: "boat", Kind: "Boat", Namespaced: true, Verbs: metav1.Verbs{"get", "list", "watch"}}}})
	case refuse != nil:
		w.fail(rw, refuse)
	case req.URL.Path == "/apis/example.com/v1/boats" && req.URL.Query().Get("watch") == "true":
		w.watch(rw, req)
	case req.URL.Path == "/apis/example.com/v1/boats":
		w.list(rw, req)
	case len(parts) == 7 && parts[5] == "boats":
		w.mu.Lock()
		obj, ok := w.objects[parts[4]+"/"+parts[6]]
		w.mu.Unlock()
		if !ok {
			w.fail(rw, apierrors.NewNotFound(schema.GroupResource{Group: "example.com", Resource: "boats"}, parts[6]))
			return
		}
		w.answer(rw, obj)
	default:
		http.NotFound(rw, req)
	}
}

func (w *wire) answer(rw http.ResponseWriter, v any) {
	rw.Header().Set("Content-Type", "application/json")
	if err := json.NewEncoder(rw).Encode(v); err != nil {
		w.t.Log(err) // the client has disconnected
	}
}

func (w *wire) fail(rw http.ResponseWriter, err error) {
	s := err.(apierrors.APIStatus).Status()
	s.Kind, s.APIVersion = "Status", "v1"
	text, _ := json.Marshal(s)
	rw.Header().Set("Content-Type", "application/json")
	rw.WriteHeader(int(s.Code))
	_, _ = rw.Write(text)
}

func (w *wire) list(rw http.ResponseWriter, req *http.Request) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.pages++
	q := req.URL.Query()
	items, revision := w.sorted(), w.revision
	if token := q.Get("continue"); token != "" {
		revisionText, _, _ := strings.Cut(token, ".")
		revision, _ = strconv.ParseInt(revisionText, 10, 64)
		items = w.snapshots[token]
		delete(w.snapshots, token)
		if revision < w.floor {
			w.fail(rw, apierrors.NewResourceExpired("the continue token is too old"))
			return
		}
	} else {
		w.lists++
		if s := q.Get("fieldSelector"); s != "" {
			color := strings.TrimPrefix(s, "spec.color=")
			items = slices.DeleteFunc(items, func(u *unstructured.Unstructured) bool { return u.GetLabels()["color"] != color })
		}
	}
	meta := map[string]any{"resourceVersion": fmt.Sprint(revision)}
	if limit, _ := strconv.Atoi(q.Get("limit")); limit > 0 && limit < len(items) {
		token := fmt.Sprintf("%d.%d", revision, w.pages)
		w.snapshots[token] = items[limit:]
		items, meta["continue"] = items[:limit], token
	}
	w.answer(rw, map[string]any{"kind": "BoatList", "apiVersion": "example.com/v1", "metadata": meta, "items": items})
}

func (w *wire) watch(rw http.ResponseWriter, req *http.Request) {
	w.mu.Lock()
	defer w.mu.Unlock()
	q := req.URL.Query()
	from, _ := strconv.ParseInt(q.Get("resourceVersion"), 10, 64)
	w.watches++
	epoch := w.epoch
	send := func(text []byte) {
		_, _ = rw.Write(text)
		rw.(http.Flusher).Flush()
	}
	rw.Header().Set("Content-Type", "application/json")
	switch {
	case q.Get("sendInitialEvents") == "true":
		if !w.initial {
			w.fail(rw, apierrors.NewInvalid(schema.GroupKind{Group: "meta.k8s.io", Kind: "ListOptions"}, "", nil))
			return
		}
		for _, obj := range w.sorted() {
			text, _ := json.Marshal(map[string]any{"type": "ADDED", "object": obj})
			send(append(text, '\n'))
		}
		text, _ := json.Marshal(map[string]any{"type": "BOOKMARK", "object": mark(w.revision, true)})
		send(append(text, '\n'))
		from = w.revision
	case from < w.floor:
		w.fail(rw, apierrors.NewResourceExpired("too old resource version"))
		return
	}
	rw.(http.Flusher).Flush()
	for {
		next := slices.IndexFunc(w.events, func(e wireEvent) bool { return e.revision > from })
		switch {
		case w.ended || w.epoch != epoch && w.cutAfter < 0:
			return
		case w.epoch != epoch && next >= 0 && w.cutAfter > 0:
			text := w.events[next].text
			send(text[:min(w.cutAfter, len(text)-2)])
			panic(http.ErrAbortHandler)
		case w.epoch != epoch:
			panic(http.ErrAbortHandler)
		case next < 0 || w.silent:
			w.more.Wait()
			continue
		}
		if w.events[next].revision <= w.floor {
			text, _ := json.Marshal(map[string]any{"type": "ERROR", "object": map[string]any{"kind": "Status", "apiVersion": "v1",
				"status": "Failure", "code": 410, "reason": "Expired", "message": "too old resource version"}})
			send(text)
			return
		}
		send(w.events[next].text)
		from = w.events[next].revision
	}
}

// dial returns a client of the server, which is closed at the end of the test.
func (w *wire) dial(o client.Options) *client.Client {
	c, err := client.New(client.Config{Server: w.URL}, o)
	if err != nil {
		w.t.Fatal(err)
	}
	w.t.Cleanup(c.Close)
	return c
}
