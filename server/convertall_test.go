package server_test

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/keelson-dev/keelson/server"
	"github.com/keelson-dev/keelson/server/registry"
	"github.com/keelson-dev/keelson/server/servertest"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/validation/field"
)

// repainter converts shapes between v1, which has spec.color, and v2, which has spec.colour, many at once, and counts.
type repainter struct {
	mu      sync.Mutex // guards all below
	calls   int
	objects int
	broken  bool
	entered chan<- context.Context // receives the context of each call, which then waits for its end; nil: none
}

func (r *repainter) convert(ctx context.Context, in []*unstructured.Unstructured, to schema.GroupVersion) ([]*unstructured.Unstructured, error) {
	r.mu.Lock()
	r.calls++
	r.objects += len(in)
	broken, entered := r.broken, r.entered
	r.mu.Unlock()
	if entered != nil {
		select {
		case entered <- ctx:
			<-ctx.Done()
		case <-ctx.Done():
		}
		return nil, ctx.Err()
	}
	if broken {
		return nil, &apierrors.StatusError{ErrStatus: metav1.Status{Status: metav1.StatusFailure, Code: 500, Message: "out of paint"}}
	}
	names := map[string][2]string{"v1": {"colour", "color"}, "v2": {"color", "colour"}}[to.Version]
	for _, u := range in {
		spec, _ := u.Object["spec"].(map[string]any)
		if v, ok := spec[names[0]]; ok {
			delete(spec, names[0])
			spec[names[1]] = v
		}
		u.SetAPIVersion(to.String())
		u.SetAnnotations(map[string]string{"shown-in": to.Version})
	}
	return in, nil
}

// spent returns the number of calls and objects since the last call.
func (r *repainter) spent() (calls, objects int) {
	r.mu.Lock()
	defer r.mu.Unlock()
	calls, objects = r.calls, r.objects
	r.calls, r.objects = 0, 0
	return calls, objects
}

func (r *repainter) set(broken bool, entered chan<- context.Context) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.broken, r.entered = broken, entered
}

func (r *repainter) shapes(stored int) server.Group {
	return shapes(func(o *untypedOptions, version int) { o.ConvertAll, o.Stored = r.convert, version == stored }, specFields{"color": nil}, specFields{"colour": nil})
}

// TestManyAreConvertedAtOnce reads 1,100 objects in the version that is not stored, by every request that reads many.
func TestManyAreConvertedAtOnce(t *testing.T) {
	t.Parallel()
	const n = 1100
	r := &repainter{}
	srv := servertest.New(t, r.shapes(1))
	for i := range n {
		untypedAsk(t, srv, "POST", shapePath(1), "application/json", shape(1, fmt.Sprintf("x%04d", i), `,"spec":{"color":"red"}`), 201)
	}
	if calls, _ := r.spent(); calls != 0 {
		t.Errorf("%d calls for objects in the version that is stored", calls)
	}
	few := func(t *testing.T, what string) {
		t.Helper()
		switch calls, objects := r.spent(); {
		case objects < n || objects > 2*n:
			t.Errorf("%s: %d objects of %d were converted", what, objects, n)
		case calls > objects/50:
			t.Errorf("%s: %d calls for %d objects", what, calls, objects)
		}
	}
	for _, query := range []string{"", "?labelSelector=%21none", "?limit=1099"} {
		list := untypedAsk(t, srv, "GET", shapePath(2)+query, "", "", 200)
		items := list["items"].([]any)
		if len(items) < n-1 || specOf(t, items[n-2].(map[string]any)) != `{"colour":"red"}` {
			t.Fatalf("list%s: %d items, the last %v", query, len(items), items[len(items)-1])
		}
		if query == "" {
			few(t, "a list")
			continue
		}
		r.spent() // a page, or a kept result
	}
	for what, accept := range map[string]string{
		"a table":        "application/json;as=Table;g=meta.k8s.io;v=v1",
		"metadata":       "application/json;as=PartialObjectMetadataList;g=meta.k8s.io;v=v1",
		"proto metadata": "application/vnd.kubernetes.protobuf;as=PartialObjectMetadataList;g=meta.k8s.io;v=v1",
	} {
		_, text := untypedText(t, srv, "GET", shapePath(2)+"?labelSelector=%21none", "", "", "Accept", accept)
		if what != "a table" && strings.Count(text, "shown-in") != n {
			t.Errorf("%s: %d objects are shown as in v2", what, strings.Count(text, "shown-in"))
		}
		if what != "a table" { // its columns need only metadata
			few(t, what)
		}
		r.spent()
	}
	watch := func() (events int) {
		_, text := untypedText(t, srv, "GET", shapePath(2)+"?watch=true&sendInitialEvents=true&resourceVersionMatch=NotOlderThan&allowWatchBookmarks=true&timeoutSeconds=3", "", "")
		return strings.Count(text, `"colour":"red"`)
	}
	var all sync.WaitGroup
	for range 5 {
		all.Go(func() {
			if events := watch(); events != n {
				t.Errorf("a watch had %d of %d initial events", events, n)
			}
		})
	}
	all.Wait()
	if calls, objects := r.spent(); objects > 5*n || calls > 200 {
		t.Errorf("five watches: %d calls for %d objects", calls, objects)
	}
}

// TestLongObjectsAreConvertedInRuns reads long objects, about ten of which are converted at once.
func TestLongObjectsAreConvertedInRuns(t *testing.T) {
	t.Parallel()
	const n = 30
	r := &repainter{}
	srv := servertest.New(t, r.shapes(1))
	long := strings.Repeat("x", 100<<10)
	for i := range n {
		untypedAsk(t, srv, "POST", shapePath(1), "application/json", shape(1, fmt.Sprintf("x%04d", i), fmt.Sprintf(`,"spec":{"color":%q}`, long)), 201)
	}
	for _, query := range []string{"", "?labelSelector=%21none"} {
		if list := untypedAsk(t, srv, "GET", shapePath(2)+query, "", "", 200); len(list["items"].([]any)) != n {
			t.Fatal("items are missing")
		}
		if calls, objects := r.spent(); calls > 4 || objects != n {
			t.Errorf("list%s: %d calls for %d objects", query, calls, objects)
		}
	}
}

// TestAConversionThatFails checks that a conversion that fails affects only requests in the converted version.
func TestAConversionThatFails(t *testing.T) {
	t.Parallel()
	r := &repainter{}
	srv := servertest.New(t, r.shapes(1))
	untypedAsk(t, srv, "POST", shapePath(1), "application/json", shape(1, "x", `,"spec":{"color":"red"}`), 201)
	r.set(true, nil)
	want := func(what string, got map[string]any) {
		t.Helper()
		if !strings.HasSuffix(fmt.Sprint(got["message"]), "out of paint") || got["reason"] != nil {
			t.Errorf("%s: %v", what, got)
		}
	}
	want("list", untypedAsk(t, srv, "GET", shapePath(2), "", "", 500))
	want("get", untypedAsk(t, srv, "GET", shapePath(2)+"/x", "", "", 500))
	want("create", untypedAsk(t, srv, "POST", shapePath(2), "application/json", shape(2, "y", ""), 500))
	want("patch", untypedAsk(t, srv, "PATCH", shapePath(2)+"/x", "application/merge-patch+json", `{"spec":{"colour":"blue"}}`, 500))
	want("apply", untypedAsk(t, srv, "PATCH", shapePath(2)+"/x?fieldManager=me", "application/apply-patch+yaml", shape(2, "x", `,"spec":{"colour":"blue"}`), 500))
	_, text := untypedText(t, srv, "GET", shapePath(2)+"?watch=true&resourceVersion=0&timeoutSeconds=5", "", "")
	var event struct {
		Type   string
		Object map[string]any
	}
	if err := json.Unmarshal([]byte(text), &event); err != nil || event.Type != "ERROR" {
		t.Errorf("watch: %s, %v", text, err)
	}
	want("watch", event.Object)
	want("delete", untypedAsk(t, srv, "DELETE", shapePath(2)+"/x", "", "", 500))
	want("deletecollection", untypedAsk(t, srv, "DELETE", shapePath(2), "", "", 500))
	untypedAsk(t, srv, "GET", shapePath(1)+"/y", "", "", 404)
	if got := untypedAsk(t, srv, "GET", shapePath(1)+"/x", "", "", 200); specOf(t, got) != `{"color":"red"}` {
		t.Errorf("what was stored: %v", got)
	}
	r.set(false, nil)
	if got := untypedAsk(t, srv, "PATCH", shapePath(2)+"/x", "application/merge-patch+json", `{"spec":{"colour":"blue"}}`, 200); specOf(t, got) != `{"colour":"blue"}` {
		t.Errorf("afterwards: %v", got)
	}
}

// TestAWatchShowsWhatCanBeConverted has one object that cannot be converted: a watch sends all events before it.
func TestAWatchShowsWhatCanBeConverted(t *testing.T) {
	t.Parallel()
	const n, bad = 60, 41
	calls := atomic.Int64{}
	convert := func(_ context.Context, in []*unstructured.Unstructured, to schema.GroupVersion) ([]*unstructured.Unstructured, error) {
		calls.Add(1)
		for _, u := range in {
			if u.GetName() == fmt.Sprintf("x%02d", bad) {
				return nil, &apierrors.StatusError{ErrStatus: metav1.Status{Status: metav1.StatusFailure, Code: 500, Message: "not this one"}}
			}
			u.SetAPIVersion(to.String())
		}
		return in, nil
	}
	srv := servertest.New(t, shapes(func(o *untypedOptions, _ int) { o.ConvertAll = convert }, specFields{"a": nil}, specFields{"a": nil}))
	for i := range n {
		untypedAsk(t, srv, "POST", shapePath(1), "application/json", shape(1, fmt.Sprintf("x%02d", i), ""), 201)
	}
	calls.Store(0)
	_, text := untypedText(t, srv, "GET", shapePath(2)+"?watch=true&resourceVersion=0&timeoutSeconds=60", "", "")
	if added := strings.Count(text, `"type":"ADDED"`); added != bad || !strings.Contains(text, "not this one") {
		t.Errorf("%d objects were shown before the one that cannot be, of %d: %.300s", added, bad, text[max(0, len(text)-300):])
	}
	if got := calls.Load(); got > 30 {
		t.Errorf("%d calls", got)
	}
}

// TestAConversionEndsWithWhoWaits cancels requests that wait for a conversion.
func TestAConversionEndsWithWhoWaits(t *testing.T) {
	t.Parallel()
	r := &repainter{}
	srv := servertest.New(t, r.shapes(1))
	untypedAsk(t, srv, "POST", shapePath(1), "application/json", shape(1, "x", `,"spec":{"color":"red"}`), 201)
	for _, path := range []string{"/x", "", "?watch=true&resourceVersion=0"} {
		entered := make(chan context.Context)
		r.set(false, entered)
		for begin := time.Now(); ; {
			ctx, leave := context.WithTimeout(t.Context(), time.Minute)
			ended := make(chan string, 1)
			go func() { ended <- answerUntil(ctx, srv, shapePath(2)+path) }()
			select {
			case inside := <-entered:
				leave()
				select {
				case <-inside.Done():
				case <-time.After(30 * time.Second): // less than the time of a request
					t.Fatalf("%s: the conversion goes on after its request", path)
				}
				<-ended
			case answer := <-ended: // a busy server may refuse the request before the conversion
				leave()
				if time.Since(begin) > 2*time.Minute {
					t.Fatalf("%s: the objects were not converted: %s", path, answer)
				}
				time.Sleep(100 * time.Millisecond)
				continue
			}
			break
		}
	}
	r.set(false, nil)
	untypedAsk(t, srv, "GET", shapePath(2)+"/x", "", "", 200)
}

// answerUntil sends a GET, and returns the error or the beginning of the answer, at the latest when ctx ends.
func answerUntil(ctx context.Context, srv *servertest.Server, path string) string {
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, srv.URL+path, nil)
	if err != nil {
		return err.Error()
	}
	resp, err := srv.Client().Do(req)
	if err != nil {
		return err.Error()
	}
	defer resp.Body.Close()
	text, err := io.ReadAll(io.LimitReader(resp.Body, 1000))
	return fmt.Sprint(resp.Status, " ", string(text), " ", err)
}

// TestStoredInAnotherVersion reads objects that are stored in a version that is neither the hub nor the requested one.
func TestStoredInAnotherVersion(t *testing.T) {
	t.Parallel()
	r := &repainter{}
	srv := servertest.New(t, r.shapes(2)) // v1 is the hub
	for i := range 100 {
		untypedAsk(t, srv, "POST", shapePath(2), "application/json", shape(2, fmt.Sprint("x", i), `,"spec":{"colour":"red"}`), 201)
	}
	r.spent()
	list := untypedAsk(t, srv, "GET", shapePath(1), "", "", 200)
	if items := list["items"].([]any); len(items) != 100 || specOf(t, items[99].(map[string]any)) != `{"color":"red"}` {
		t.Fatalf("%d items: %v", len(items), items[len(items)-1])
	}
	if calls, objects := r.spent(); calls > 2 || objects > 200 {
		t.Errorf("%d calls for %d objects", calls, objects)
	}
	if got := untypedAsk(t, srv, "GET", shapePath(2), "", "", 200); len(got["items"].([]any)) != 100 {
		t.Errorf("in the version that is stored: %v", got)
	}
	if calls, _ := r.spent(); calls != 0 {
		t.Errorf("%d calls for what is stored so", calls)
	}
}

// TestScaleOfAConvertedVersion has the replicas at another path in the version that is not stored: /scale reads and sets them
// there.
func TestScaleOfAConvertedVersion(t *testing.T) {
	t.Parallel()
	r := &repainter{}
	srv := servertest.New(t, shapes(func(o *untypedOptions, version int) {
		o.ConvertAll = r.convert
		o.Scale = &registry.Scale{SpecReplicas: []string{"", ".spec.color", ".spec.colour"}[version], StatusReplicas: ".status.n"}
	}, specFields{"color": nil}, specFields{"colour": nil}))
	untypedAsk(t, srv, "POST", shapePath(1), "application/json", shape(1, "x", `,"spec":{"color":3}`), 201)
	for version, field := range map[int]string{1: "color", 2: "colour"} {
		path := shapePath(version) + "/x"
		if got := specOf(t, untypedAsk(t, srv, "GET", path+"/scale", "", "", 200)); got != `{"replicas":3}` {
			t.Errorf("v%d: %s", version, got)
		}
		if got := specOf(t, untypedAsk(t, srv, "PATCH", path+"/scale?fieldManager=me", "application/merge-patch+json", `{"spec":{"replicas":5}}`, 200)); got != `{"replicas":5}` {
			t.Errorf("v%d, patched: %s", version, got)
		}
		got := untypedAsk(t, srv, "GET", path, "", "", 200)
		if spec := specOf(t, got); spec != fmt.Sprintf(`{%q:5}`, field) {
			t.Errorf("v%d, the object: %s", version, spec)
		}
		if managed := fmt.Sprint(got["metadata"].(map[string]any)["managedFields"]); !strings.Contains(managed, "subresource:scale") || !strings.Contains(managed, "f:"+field) {
			t.Errorf("v%d: %s", version, managed)
		}
		untypedAsk(t, srv, "PATCH", path+"/scale", "application/merge-patch+json", `{"spec":{"replicas":-1}}`, 422)
		untypedAsk(t, srv, "PATCH", path+"/scale?fieldManager=me", "application/merge-patch+json", `{"spec":{"replicas":3}}`, 200)
	}
}

// TestScaleSetsNoDefaults makes a spec by a scale: the object that is judged has only the replicas, and gets its defaults when it
// is read.
func TestScaleSetsNoDefaults(t *testing.T) {
	t.Parallel()
	var judged atomic.Value
	srv := servertest.New(t, shapes(func(o *untypedOptions, _ int) {
		o.Scale = &registry.Scale{SpecReplicas: ".spec.n", StatusReplicas: ".status.n"}
		o.Strategy.ValidateUpdate = func(_ *registry.Call, obj, _ *unstructured.Unstructured) field.ErrorList {
			judged.Store(fmt.Sprint(obj.Object["spec"]))
			return nil
		}
	}, specFields{"n": nil, "d": "one"}))
	untypedAsk(t, srv, "POST", shapePath(1), "application/json", shape(1, "x", ""), 201)
	untypedAsk(t, srv, "PATCH", shapePath(1)+"/x/scale", "application/merge-patch+json", `{"spec":{"replicas":5}}`, 200)
	if got := judged.Load(); got != "map[n:5]" {
		t.Errorf("judged: %v", got)
	}
	if got := specOf(t, untypedAsk(t, srv, "GET", shapePath(1)+"/x", "", "", 200)); got != `{"d":"one","n":5}` {
		t.Errorf("read: %s", got)
	}
}
