package server_test

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	gocmp "github.com/google/go-cmp/cmp"
	"github.com/keelson-dev/keelson/authn"
	"github.com/keelson-dev/keelson/runtime"
	"github.com/keelson-dev/keelson/server"
	"github.com/keelson-dev/keelson/server/registry"
	"github.com/keelson-dev/keelson/server/servertest"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

func TestVerbsOfAKind(t *testing.T) {
	t.Parallel()
	group := widgets()
	verbs := []string{"create", "get", "list", "patch", "delete"}
	group.Versions[0].Resources[0] = server.Kind("Widget", server.KindOptions[*Widget]{Verbs: verbs})
	srv := servertest.New(t, group)
	c := srv.Client()
	var list metav1.APIResourceList
	_, body := call(t, c, "GET", srv.URL+"/apis/example.com/v1", "")
	if err := json.Unmarshal([]byte(body), &list); err != nil {
		t.Fatal(err)
	}
	if got := fmt.Sprint(list.APIResources[0].Verbs); got != "[create delete get list patch]" {
		t.Errorf("discovery: %s", got)
	}
	code, body := call(t, c, "POST", srv.URL+widgetsPath, `{"metadata":{"name":"a"}}`)
	wantCode(t, 201, code, body)
	code, body = call(t, c, "PATCH", srv.URL+widgetsPath+"/a", `{"spec":{"size":3}}`, "Content-Type", "application/merge-patch+json")
	wantCode(t, 200, code, body)
	for method, path := range map[string]string{"PUT": widgetsPath + "/a", "DELETE": widgetsPath, "GET": widgetsPath + "?watch=true"} {
		code, body = call(t, c, method, srv.URL+path, `{"metadata":{"name":"a"}}`)
		wantCode(t, 405, code, body)
	}
	code, body = call(t, c, "DELETE", srv.URL+widgetsPath+"/a", "")
	wantCode(t, 200, code, body)

	group.Versions[0].Resources[0] = server.Kind("Widget", server.KindOptions[*Widget]{Verbs: []string{"get", "fetch"}})
	if _, err := server.New(server.Options{Groups: []server.Group{group}}); err == nil || !strings.Contains(err.Error(), `no verb "fetch"`) ||
		!strings.Contains(err.Error(), "want some of create, delete, deletecollection, get, list, patch, update, watch") {
		t.Errorf("a verb there is not: %v", err)
	}
}

func TestTTLOfAKind(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		group := widgets()
		group.Versions[0].Resources[0] = server.Kind("Widget", server.KindOptions[*Widget]{TTL: time.Hour})
		srv, err := server.New(server.Options{Groups: []server.Group{group}})
		if err != nil {
			t.Fatal(err)
		}
		defer func() { _ = srv.Close() }()
		var h *server.Host
		_ = srv.Install(server.ExtensionFunc(func(host *server.Host) error { h = host; return nil }))
		reg, err := h.Registry(widgetsResource())
		if err != nil {
			t.Fatal(err)
		}
		typed, err := registry.For[*Widget](reg, authn.System())
		if err != nil {
			t.Fatal(err)
		}
		ctx := t.Context()
		if _, err := typed.Create(ctx, "default", &Widget{ObjectMeta: metav1.ObjectMeta{Name: "a"}}); err != nil {
			t.Fatal(err)
		}
		change := func(size int32) {
			t.Helper()
			if _, err := typed.Change(ctx, "default", "a", func(w *Widget) error { w.Spec.Size = size; return nil }); err != nil {
				t.Fatal(err)
			}
		}
		time.Sleep(50 * time.Minute)
		change(1)
		time.Sleep(50 * time.Minute)
		change(1) // changes nothing
		time.Sleep(11 * time.Minute)
		if _, err := typed.Get(ctx, "default", "a"); !apierrors.IsNotFound(err) {
			t.Errorf("an hour after its last change: %v", err)
		}
	})
}

func TestFinalizingKind(t *testing.T) {
	t.Parallel()
	group := widgets()
	group.Versions[0].Resources[0] = server.Kind("Widget", server.KindOptions[*Widget]{Strategy: registry.Strategy[*Widget]{
		Terminate: func(_ *registry.Call, w *Widget, now metav1.Time) bool {
			if w.DeletionTimestamp == nil {
				w.DeletionTimestamp, w.Status.Ready = &now, false
				return true
			}
			return w.Spec.Size > 0
		},
		Finalizing: func(w *Widget) bool { return w.Spec.Size > 0 },
	}})
	srv := servertest.New(t, group)
	ask := func(method, path, body string) answer {
		return roundTrip(t, srv.Client(), method, srv.URL+path, body)
	}
	ask("POST", widgetsPath, `{"metadata":{"name":"a"},"spec":{"size":2}}`).want(t, 201)
	ask("PUT", widgetsPath+"/a/status", `{"metadata":{"name":"a"},"status":{"ready":true}}`).want(t, 200)
	var w Widget
	ask("DELETE", widgetsPath+"/a", "").into(t, &w)
	if w.DeletionTimestamp == nil || w.Status.Ready {
		t.Errorf("not prepared: %+v", w)
	}
	ask("PUT", widgetsPath+"/a", `{"metadata":{"name":"a"},"spec":{"size":1}}`).want(t, 200)
	ask("GET", widgetsPath+"/a", "").want(t, 200)
	ask("PUT", widgetsPath+"/a", `{"metadata":{"name":"a"},"spec":{"size":0}}`).want(t, 200)
	ask("GET", widgetsPath+"/a", "").want(t, 404)
	ask("POST", widgetsPath, `{"metadata":{"name":"b"}}`).want(t, 201)
	ask("DELETE", widgetsPath+"/b", "").want(t, 200)
	ask("GET", widgetsPath+"/b", "").want(t, 200)
	ask("DELETE", widgetsPath+"/b", `{"preconditions":{"uid":"x"}}`).want(t, 409)
	ask("DELETE", widgetsPath+"/b", "").want(t, 200)
	ask("GET", widgetsPath+"/b", "").want(t, 404)
}

// Barge has its columns in struct tags.
type Barge struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata,omitempty"`
	Spec              struct {
		Load int64  `json:"load" print:"Load"`
		Quay string `json:"quay" print:"Quay,wide"`
	} `json:"spec"`
}

func (b *Barge) DeepCopyObject() runtime.Object { return runtime.DeepCopy(b) }

func TestPrintTags(t *testing.T) {
	t.Parallel()
	srv := servertest.New(t, server.Group{Name: "sea.example.com", Versions: []server.Version{{Name: "v1", Resources: []server.Resource{
		server.Kind("Barge", server.KindOptions[*Barge]{ClusterScoped: true}),
	}}}})
	c := srv.Client()
	code, body := call(t, c, "POST", srv.URL+"/apis/sea.example.com/v1/barges", `{"metadata":{"name":"a"},"spec":{"load":7,"quay":"west"}}`)
	wantCode(t, 201, code, body)
	var table metav1.Table
	_, body = call(t, c, "GET", srv.URL+"/apis/sea.example.com/v1/barges", "", "Accept", "application/json;as=Table;v=v1;g=meta.k8s.io")
	if err := json.Unmarshal([]byte(body), &table); err != nil {
		t.Fatal(err)
	}
	var columns []string
	for _, d := range table.ColumnDefinitions {
		columns = append(columns, fmt.Sprint(d.Name, " ", d.Type, " ", d.Format, " ", d.Priority))
	}
	if diff := gocmp.Diff([]string{"Name string name 0", "Load integer  0", "Quay string  1", "Age date  0"}, columns); diff != "" {
		t.Errorf("(-want +got)\n%s", diff)
	}
	if cells := table.Rows[0].Cells; cells[0] != "a" || cells[1] != 7.0 || cells[2] != "west" {
		t.Errorf("cells %v", cells)
	}
	type Wrong struct {
		Load map[string]string `json:"load" print:"Load"`
	}
	_, err := server.New(server.Options{Groups: []server.Group{{Name: "sea.example.com", Versions: []server.Version{{Name: "v1", Resources: []server.Resource{
		server.Kind("Tug", server.KindOptions[*runtime.Resource[Wrong, struct{}]]{}),
	}}}}}})
	if err == nil || !strings.Contains(err.Error(), "spec.load") || !strings.Contains(err.Error(), "no cell can show") {
		t.Errorf("a wrong tag: %v", err)
	}
}
