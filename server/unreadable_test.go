package server_test

import (
	"context"
	"encoding/json"
	"fmt"
	"strings"
	"testing"

	"github.com/keelson-dev/keelson/authz"
	"github.com/keelson-dev/keelson/server/servertest"
	"github.com/keelson-dev/keelson/storage"
	"github.com/keelson-dev/keelson/storage/memory"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	apiruntime "k8s.io/apimachinery/pkg/runtime"
)

const unsafely = "?ignoreStoreReadErrorWithClusterBreakingPotential=true"

// damaged is a server with stored values that are broken.
type damaged struct {
	*wire
	backend *memory.Backend
}

func newDamaged(t *testing.T, authorizer authz.Authorizer) *damaged {
	t.Helper()
	d := &damaged{backend: memory.New(memory.Options{})}
	opts := wireOptions()
	opts.Storage, opts.Policy.Authorizer = storage.Opened(d.backend), authorizer
	srv := servertest.Start(t, opts)
	d.wire = &wire{Server: srv, client: srv.Client()}
	return d
}

// plant stores a value that the server would not write.
func (d *damaged) plant(t *testing.T, key, value string) {
	t.Helper()
	c := storage.Commit{Key: "/registry/" + key, Expect: storage.AnyRevision, Value: []byte(value)}
	if _, err := d.backend.Commit(t.Context(), c); err != nil {
		t.Fatal(err)
	}
}

// must sends a request, and fails the test if the answer does not have the code.
func (d *damaged) must(t *testing.T, code int, method, path, body string, header ...string) answer {
	t.Helper()
	a := d.ask(t, method, path, body, header...)
	a.want(t, code)
	return a
}

// now returns the revision of the store.
func (d *damaged) now(t *testing.T) int64 {
	t.Helper()
	res, err := d.backend.Get(t.Context(), "k", 0)
	if err != nil {
		t.Fatal(err)
	}
	return res.Revision
}

func TestUnreadableObjects(t *testing.T) {
	t.Parallel()
	d := newDamaged(t, nil)
	good := d.ask(t, "POST", widgetList, `{"metadata":{"name":"good"}}`)
	d.plant(t, "example.com/widgets/default/bad", "\x01")
	d.plant(t, "example.com/widgets/default/sealed", "k8s:enc:aescbc:v1:key1:\x00")
	const stored = "/registry/example.com/widgets/default/"
	wantCauses := func(s metav1.Status, want ...string) {
		t.Helper()
		var got []string
		for _, c := range s.Details.Causes {
			if c.Type != metav1.CauseTypeUnexpectedServerResponse || c.Message == "" {
				t.Errorf("cause %+v", c)
			}
			got = append(got, c.Field)
		}
		if s.Code != 500 || s.Reason != metav1.StatusReasonStoreReadError || fmt.Sprint(got) != fmt.Sprint(want) ||
			!strings.HasPrefix(s.Message, "failed to read one or more widgets.example.com from the storage") {
			t.Errorf("got %+v, want causes %q", s, want)
		}
	}
	for _, path := range []string{widgetList, allWidgets, widgetList + "?limit=3", allWidgets + "?resourceVersion=0"} {
		s := d.must(t, 500, "GET", path, "").status(t)
		wantCauses(s, stored+"bad", stored+"sealed")
		if why := s.Details.Causes[1].Message; s.Details.Name != "list" || !strings.Contains(why, `provider "aescbc"`) || !strings.Contains(s.Message, why) {
			t.Errorf("%s: %+v", path, s)
		}
	}
	if got := d.must(t, 200, "GET", widgetList+"/good", ""); got.body != good.body {
		t.Errorf("the readable object: %s", got.body)
	}
	if got := d.must(t, 200, "GET", widgetList+"?fieldSelector=metadata.name%3Dgood", ""); !strings.Contains(got.body, `"name":"good"`) {
		t.Errorf("the readable object by a list: %s", got.body)
	}
	before := d.now(t)
	for method, body := range map[string]string{"GET": "", "PUT": `{"metadata":{"name":"bad"}}`, "PATCH": `{"spec":{"size":1}}`, "DELETE": ""} {
		a := d.must(t, 500, method, widgetList+"/bad", body, "Content-Type", map[bool]string{true: mergePatch, false: "application/json"}[method == "PATCH"])
		if s := a.status(t); s.Reason != metav1.StatusReasonInternalError || !strings.HasPrefix(s.Message, "Internal error occurred: StorageError: corrupt object, Code: 7, Key: "+stored+"bad, ") {
			t.Errorf("%s: %+v", method, s)
		}
	}
	d.must(t, 500, "DELETE", widgetList, "")
	if after := d.now(t); after != before {
		t.Errorf("the store changed from %d to %d", before, after)
	}
}

// A watch with an unreadable object ends like one of kube-apiserver. After the object is deleted, clients can list and watch
// again.
func TestWatchesOfUnreadableObjects(t *testing.T) {
	t.Parallel()
	d := newDamaged(t, nil)
	good := d.make(t, widgetList, `{"metadata":{"name":"good"}}`)
	since := d.watch(t, widgetList+"?watch=1&resourceVersion="+good.ResourceVersion)
	d.plant(t, "example.com/widgets/default/zbad", "\x01")
	initial := d.watch(t, widgetList+"?watch=1&sendInitialEvents=true&resourceVersionMatch=NotOlderThan&allowWatchBookmarks=true")
	middle := d.watch(t, widgetList+"?watch=1&resourceVersion="+fmt.Sprint(d.now(t)))
	wantError := func(name string, s *stream) {
		t.Helper()
		e := s.next()
		var status metav1.Status
		if err := json.Unmarshal(e.Object, &status); err != nil || e.Type != "ERROR" || status.Code != 500 || status.Reason != metav1.StatusReasonStoreReadError || status.Kind != "Status" {
			t.Errorf("%s: %s", name, e.text)
		}
		s.end()
	}
	wantError("since before", since)
	wantError("with initial events", initial)
	answer := d.must(t, 200, "DELETE", widgetList+"/zbad"+unsafely, "")
	if want := `{"kind":"Status","apiVersion":"v1","metadata":{},"status":"Success","details":{"name":"zbad","kind":"Widget"},"code":200}` + "\n"; answer.body != want {
		t.Errorf("got %swant %s", answer.body, want)
	}
	wantError("that saw it go", middle)
	again := d.watch(t, widgetList+"?watch=1&sendInitialEvents=true&resourceVersionMatch=NotOlderThan&allowWatchBookmarks=true")
	again.want("ADDED good")
	if e := again.next(); e.Type != "BOOKMARK" {
		t.Errorf("after the initial events: %s", e.text)
	}
	d.must(t, 201, "POST", widgetList, `{"metadata":{"name":"zbad"}}`)
	again.want("ADDED zbad")
}

// The additional verb is authorized, on the resource and the name; the administrator has it.
func TestUnsafeDeleteIsAuthorized(t *testing.T) {
	t.Parallel()
	asked := make(chan authz.Attributes, 10)
	d := newDamaged(t, authz.Func(func(_ context.Context, a authz.Attributes) (authz.Verdict, string, error) {
		if a.Verb != "unsafe-delete-ignore-read-errors" {
			return authz.Allow, "", nil
		}
		asked <- a
		if a.Name == "may" {
			return authz.Allow, "", nil
		}
		return authz.NoOpinion, "nobody said so", nil
	}))
	d.plant(t, "example.com/widgets/default/may", "\x01")
	d.plant(t, "example.com/widgets/default/bad", "\x01")
	s := d.must(t, 403, "DELETE", widgetList+"/bad"+unsafely, "").status(t)
	if want := `widgets.example.com "bad" is forbidden: not permitted to do "unsafe-delete-ignore-read-errors", reason: nobody said so`; s.Message != want || s.Reason != metav1.StatusReasonForbidden {
		t.Errorf("got %q, want %q", s.Message, want)
	}
	a := <-asked
	if a.APIGroup != "example.com" || a.Resource != "widgets" || a.Namespace != "default" || a.Name != "bad" || a.User.Name == "" || !a.ResourceRequest {
		t.Errorf("asked about %+v", a)
	}
	d.must(t, 500, "GET", widgetList+"/bad", "")
	d.must(t, 200, "DELETE", widgetList+"/may"+unsafely, "")
	d.must(t, 404, "GET", widgetList+"/may", "")

	ordinary := newDamaged(t, nil)
	ordinary.plant(t, "example.com/widgets/default/bad", "\x01")
	if code, body := call(t, ordinary.Anonymous(), "DELETE", ordinary.URL+widgetList+"/bad"+unsafely, ""); code != 403 {
		t.Errorf("by anybody: %d %s", code, body)
	}
	ordinary.must(t, 200, "DELETE", widgetList+"/bad", `{"ignoreStoreReadErrorWithClusterBreakingPotential":true}`)
	ordinary.must(t, 404, "GET", widgetList+"/bad", "")
}

// Values that kube-apiserver has written in protobuf can be read, and are JSON after the next update.
func TestProtobufValuesOpen(t *testing.T) {
	t.Parallel()
	d := newDamaged(t, nil)
	raw, err := (&corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Name: "old", Namespace: "default", UID: "1"}, Data: map[string]string{"a": "b"}}).Marshal()
	if err != nil {
		t.Fatal(err)
	}
	envelope := apiruntime.Unknown{TypeMeta: apiruntime.TypeMeta{APIVersion: "v1", Kind: "ConfigMap"}, Raw: raw}
	text, err := envelope.Marshal()
	if err != nil {
		t.Fatal(err)
	}
	const key = "configmaps/default/old"
	d.plant(t, key, "k8s\x00"+string(text))
	d.plant(t, "example.com/widgets/default/foreign", "k8s\x00"+string(text))
	if got := d.must(t, 200, "GET", configMapList+"/old", ""); !strings.Contains(got.body, `"data":{"a":"b"}`) {
		t.Errorf("%s", got.body)
	}
	if got := d.must(t, 200, "GET", configMapList, ""); !strings.Contains(got.body, `"data":{"a":"b"}`) {
		t.Errorf("%s", got.body)
	}
	d.must(t, 200, "PATCH", configMapList+"/old", `{}`, "Content-Type", mergePatch)
	res, err := d.backend.Get(t.Context(), "/registry/"+key, 0)
	if err != nil || !strings.HasPrefix(string(res.KV.Value), `{"kind":"ConfigMap","apiVersion":"v1",`) {
		t.Errorf("stored after an update that changes nothing: %q, %v", res.KV.Value, err)
	}
	d.must(t, 500, "GET", widgetList+"/foreign", "")
}
