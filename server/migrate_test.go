package server_test

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"strings"
	"sync"
	"testing"

	"github.com/keelson-dev/keelson/admission"
	"github.com/keelson-dev/keelson/runtime"
	"github.com/keelson-dev/keelson/server"
	"github.com/keelson-dev/keelson/server/registry"
	"github.com/keelson-dev/keelson/server/servertest"
	"github.com/keelson-dev/keelson/storage"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/validation/field"
)

var ropeResource = schema.GroupResource{Group: "sea.example.com", Resource: "ropes"}

// refusing is a strategy that refuses all changes. A migration changes nothing, and does not call it.
func refusing(t *testing.T) server.KindOptions[*Rope] {
	asked := func(what string) { t.Errorf("the strategy was asked: %s", what) }
	return server.KindOptions[*Rope]{Strategy: registry.Strategy[*Rope]{
		PrepareForUpdate: func(*registry.Call, *Rope, *Rope) { asked("prepare") },
		ValidateUpdate: func(*registry.Call, *Rope, *Rope) field.ErrorList {
			asked("validate")
			return field.ErrorList{field.Forbidden(field.NewPath("spec"), "nothing may be changed")}
		},
	}}
}

func TestMigrateStorage(t *testing.T) {
	t.Parallel()
	b := mixed(t)
	old := ropeServer(t, b, "v1alpha1", server.KindOptions[*Rope]{})
	for i := range 20 {
		old.ask(t, "POST", ropesPath("v1beta1"), rope("v1beta1", fmt.Sprintf("r%02d", i), "blue", i)).want(t, 201)
	}
	_ = old.Close()

	srv := servertest.Start(t, server.Options{
		Storage: storage.Opened(b), Groups: []server.Group{ropes("v1beta1", refusing(t))},
		Policy: server.Policy{
			Admission: admission.Chain{
				{Mutator: admission.MutatorFunc(func(context.Context, *admission.Request) error {
					t.Error("admission was asked")
					return errors.New("nothing may be changed")
				})},
			},
		},
	})
	w := &wire{Server: srv, client: srv.Client()}
	before := map[string]string{}
	for _, v := range ropeVersions {
		before[v] = w.ask(t, "GET", ropesPath(v)+"/in-v1", "").body
	}
	list := w.ask(t, "GET", ropesPath("v1"), "").meta(t).ResourceVersion
	watches := map[string]*stream{}
	for _, v := range ropeVersions {
		watches[v] = w.watch(t, ropesPath(v)+"?watch=1&resourceVersion="+list)
	}

	calls := 0
	done, err := srv.MigrateStorage(t.Context(), ropeResource, storage.MigrateOptions{PageSize: 5, Writers: 2, Progress: func(storage.Migrated) { calls++ }})
	if err != nil {
		t.Fatal(err)
	}
	if done.Examined != 23 || done.Rewritten != 22 || done.Unchanged != 1 || done.Failed != 0 || calls != 5 {
		t.Errorf("migrated %+v, told %d times", done, calls)
	}
	stored := storedIn(t, b)
	maps.DeleteFunc(stored, func(_, version string) bool { return version == "v1beta1" })
	if len(stored) != 0 {
		t.Errorf("not in v1beta1: %v", stored)
	}

	// Watches get each object once more, unchanged, at a new resourceVersion.
	for _, v := range ropeVersions {
		seen := map[string]bool{}
		for range 22 {
			e := watches[v].next()
			name := e.name(t)
			if e.Type != "MODIFIED" || seen[name] || name == "in-v1beta1" || !strings.Contains(e.text, `"apiVersion":"sea.example.com/`+v+`"`) {
				t.Fatalf("in %s: %s", v, e.text)
			}
			seen[name] = true
		}
		a := w.ask(t, "GET", ropesPath(v)+"/in-v1", "")
		was, is := answer{body: before[v]}.meta(t), a.meta(t)
		if was.ResourceVersion == is.ResourceVersion || strings.Replace(before[v], `"resourceVersion":"`+was.ResourceVersion+`"`, `"resourceVersion":"`+is.ResourceVersion+`"`, 1) != a.body {
			t.Errorf("in %s:\nbefore %safter  %s", v, before[v], a.body)
		}
	}
	again, err := srv.MigrateStorage(t.Context(), ropeResource, storage.MigrateOptions{})
	if err != nil || again.Rewritten != 0 || again.Unchanged != 23 {
		t.Errorf("a second time: %+v, %v", again, err)
	}
}

func (e event) name(t *testing.T) string {
	t.Helper()
	return answer{body: string(e.Object)}.meta(t).Name
}

// Writes at the same time are not lost, and are stored in the right version.
func TestMigrateStorageAmongWriters(t *testing.T) {
	t.Parallel()
	b := newLasting(t)
	old := ropeServer(t, b, "v1alpha1", server.KindOptions[*Rope]{})
	const n = 40
	for i := range n {
		old.ask(t, "POST", ropesPath("v1"), rope("v1", fmt.Sprintf("r%02d", i), "red", 0)).want(t, 201)
	}
	_ = old.Close()
	w := ropeServer(t, b, "v1", server.KindOptions[*Rope]{})
	var writers sync.WaitGroup
	for _, v := range []string{"v1", "v1beta1"} {
		writers.Go(func() {
			for i := range n {
				change := map[string]string{"v1": `{"spec":{"color":"green"}}`, "v1beta1": `{"spec":{"length":"7m"}}`}[v]
				a := w.ask(t, "PATCH", fmt.Sprintf("%s/r%02d", ropesPath(v), n-1-i), change, "Content-Type", mergePatchType)
				if a.code != 200 {
					t.Errorf("PATCH: %d %s", a.code, a.body)
				}
			}
		})
	}
	done, err := w.MigrateStorage(t.Context(), ropeResource, storage.MigrateOptions{PageSize: 3})
	writers.Wait()
	if err != nil || done.Failed != 0 || done.Examined != n {
		t.Errorf("migrated %+v, %v", done, err)
	}
	for name, version := range storedIn(t, b) {
		if version != "v1" {
			t.Errorf("%s is stored in %s", name, version)
		}
		wantRope(t, name, w.ask(t, "GET", ropesPath("v1")+"/"+name, ""), 200, ropeShown("v1", "green", 7, ""))
	}
}

func TestMigrateStorageRefuses(t *testing.T) {
	t.Parallel()
	b := newLasting(t)
	old := ropeServer(t, b, "v1alpha1", server.KindOptions[*Rope]{})
	old.ask(t, "POST", ropesPath("v1"), rope("v1", "a", "red", 0)).want(t, 201)
	_ = old.Close()
	g := ropes("", server.KindOptions[*Rope]{})
	g.Versions = append(g.Versions, server.Version{Name: "v2", Resources: []server.Resource{server.Kind("Moon", server.KindOptions[*Moon]{Storage: moons{}})}})
	srv := servertest.Start(t, server.Options{Storage: storage.Opened(b), Groups: []server.Group{g}})
	for resource, want := range map[string]string{"boats": "server: migrate boats.sea.example.com: the server serves no such resource", "moons": "has a Storage of its own"} {
		_, err := srv.MigrateStorage(t.Context(), schema.GroupResource{Group: "sea.example.com", Resource: resource}, storage.MigrateOptions{})
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v, want %q", resource, err, want)
		}
	}
	canceled, cancel := context.WithCancel(t.Context())
	cancel()
	if done, err := srv.MigrateStorage(canceled, ropeResource, storage.MigrateOptions{}); !errors.Is(err, context.Canceled) || done.Rewritten != 0 {
		t.Errorf("canceled: %+v, %v", done, err)
	}

	// It ends with the server.
	stopped := false
	_, err := srv.MigrateStorage(t.Context(), ropeResource, storage.MigrateOptions{PageSize: 1, Progress: func(storage.Migrated) {
		if !stopped {
			stopped = true
			_ = srv.Close()
		}
	}})
	if err != nil { // there was only one page
		t.Errorf("one page: %v", err)
	}
	if _, err = srv.MigrateStorage(t.Context(), ropeResource, storage.MigrateOptions{}); err == nil || !strings.Contains(err.Error(), "the server has ended") {
		t.Errorf("after the end: %v", err)
	}
}

func TestMigrateStorageEndsWithTheServer(t *testing.T) {
	t.Parallel()
	b := mixed(t)
	w := ropeServer(t, b, "v1", server.KindOptions[*Rope]{})
	done, err := w.MigrateStorage(t.Context(), ropeResource, storage.MigrateOptions{PageSize: 1, Progress: func(m storage.Migrated) {
		if m.Examined == 2 {
			_ = w.Close()
		}
	}})
	if err == nil || !strings.Contains(err.Error(), "the server has ended") || done.Examined != 2 || done.Continue == "" {
		t.Fatalf("%+v, %v", done, err)
	}
	next := ropeServer(t, b, "v1", server.KindOptions[*Rope]{})
	done, err = next.MigrateStorage(t.Context(), ropeResource, storage.MigrateOptions{Continue: done.Continue})
	if err != nil || done.Examined != 1 {
		t.Errorf("gone on: %+v, %v", done, err)
	}
	for name, version := range storedIn(t, b) {
		if version != "v1" {
			t.Errorf("%s is stored in %s", name, version)
		}
	}
}

// NewScheme returns the scheme that a server with the groups has.
func TestNewScheme(t *testing.T) {
	t.Parallel()
	s, err := server.NewScheme(ropes("", server.KindOptions[*Rope]{}), widgets())
	if err != nil {
		t.Fatal(err)
	}
	for _, obj := range []runtime.Object{&Rope{}, &RopeV1Alpha1{}, &Widget{}} {
		if k := s.KindOf(obj); k == nil || !s.Converts(k.GVK) {
			t.Errorf("%T is not known", obj)
		}
	}
	bad := ropes("", server.KindOptions[*Rope]{})
	bad.Conversions = bad.Conversions[1:]
	if _, err := server.NewScheme(bad); err == nil || !strings.Contains(err.Error(), "server.Convert") {
		t.Errorf("without a conversion: %v", err)
	}
	if _, err := server.NewScheme(server.Group{Name: "Bad!"}); err == nil || !strings.Contains(err.Error(), "DNS name") {
		t.Errorf("a bad name: %v", err)
	}
}

// TestMigrateStorageEndsWithWhatItIsOf replaces a kind while its objects are migrated. Fields that were written by the new schema
// stay; the migration would prune them by the old one.
func TestMigrateStorageEndsWithWhatItIsOf(t *testing.T) {
	t.Parallel()
	srv := servertest.New(t, shapes(nil, specFields{"old": nil, "a": nil}))
	h := host(t, srv)
	for _, name := range []string{"x", "y"} {
		untypedAsk(t, srv, "POST", shapePath(1), "application/json", shape(1, name, `,"spec":{"old":"1","a":"1"}`), 201)
	}
	replace := func(schemas ...specFields) {
		if err := h.Replace([]schema.GroupResource{shapesResource}, shapes(nil, schemas...)); err != nil {
			t.Error(err)
		}
	}
	replace(specFields{"a": nil})
	replaced := false
	_, err := srv.MigrateStorage(t.Context(), shapesResource, storage.MigrateOptions{PageSize: 1, Progress: func(storage.Migrated) {
		if replaced {
			return
		}
		replaced = true
		replace(specFields{"a": nil, "b": nil})
		untypedText(t, srv, "PATCH", shapePath(1)+"/y", "application/merge-patch+json", `{"spec":{"b":"2"}}`)
	}})
	if err == nil || !strings.Contains(err.Error(), "withdrawn, or replaced") {
		t.Errorf("the migration ended with %v", err)
	}
	if spec := specOf(t, untypedAsk(t, srv, "GET", shapePath(1)+"/y", "", "", 200)); spec != `{"a":"1","b":"2"}` {
		t.Errorf("after the migration: %s", spec)
	}
}
