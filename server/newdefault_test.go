package server_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/keelson-dev/keelson/runtime"
	"github.com/keelson-dev/keelson/server"
	"github.com/keelson-dev/keelson/server/servertest"
	"github.com/keelson-dev/keelson/storage"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

// Lamps get defaults after some have been stored.
type (
	LampBefore = runtime.Resource[struct {
		Color string `json:"color,omitempty"`
		Bulbs map[string]struct {
			Watts *int32 `json:"watts,omitempty"`
		} `json:"bulbs,omitempty"`
	}, struct{}]
	Lamp = runtime.Resource[struct {
		Color string `json:"color,omitempty" default:"red"`
		Bulbs map[string]struct {
			Watts *int32 `json:"watts,omitempty" default:"5"`
		} `json:"bulbs,omitempty"`
	}, struct{}]
)

func lampServer[P runtime.Pointer[T], T any](t *testing.T, b lasting, o server.KindOptions[P]) *wire {
	t.Helper()
	o.SelectableFields = []string{"spec.color"}
	srv := servertest.Start(t, server.Options{Storage: storage.Opened(b), Groups: []server.Group{{
		Name: "light.example.com", Versions: []server.Version{{Name: "v1", Resources: []server.Resource{server.Kind("Lamp", o)}}},
	}}})
	return &wire{Server: srv, client: srv.Client()}
}

// A default that is added later applies to stored objects, in reads, selectors, watches, deletions and migrations. It is not a
// change of an object.
func TestDefaultsOfStoredObjects(t *testing.T) {
	t.Parallel()
	const path = "/apis/light.example.com/v1/namespaces/default/lamps"
	const red = "fieldSelector=spec.color%3Dred"
	for layout, o := range map[string]server.KindOptions[*Lamp]{
		"cache": {}, "index": {IndexFields: []string{"spec.color"}}, "no cache": {NoCache: true},
	} {
		t.Run(layout, func(t *testing.T) {
			t.Parallel()
			b := newLasting(t)
			w := lampServer(t, b, server.KindOptions[*LampBefore]{})
			for _, name := range []string{"a", "b", "c"} {
				w.ask(t, "POST", path, `{"metadata":{"name":"`+name+`"},"spec":{"bulbs":{"x":{}}}}`).want(t, 201)
			}
			w.ask(t, "POST", path, `{"metadata":{"name":"blue"},"spec":{"color":"blue"}}`).want(t, 201)
			_ = w.Close()

			w = lampServer(t, b, o)
			selected := func() string {
				a := w.ask(t, "GET", path+"?"+red, "")
				return fmt.Sprint(a.code, " ", strings.Count(a.body, `"color":"red"`), " ", strings.Count(a.body, `"watts":5`))
			}
			if got := selected(); got != "200 3 3" {
				t.Errorf("selected: %s", got)
			}
			watch := w.watch(t, path+"?watch=1&"+red+"&resourceVersion="+w.ask(t, "GET", path, "").meta(t).ResourceVersion)
			was := w.ask(t, "GET", path+"/a", "").meta(t)
			is := w.ask(t, "PATCH", path+"/a", `{}`, "Content-Type", mergePatchType).meta(t)
			again := w.ask(t, "PATCH", path+"/a", `{}`, "Content-Type", mergePatchType).meta(t)
			if was.ResourceVersion == is.ResourceVersion || is.ResourceVersion != again.ResourceVersion || is.Generation != 1 {
				t.Errorf("an update that changes nothing: %s, %s, %s, generation %d", was.ResourceVersion, is.ResourceVersion, again.ResourceVersion, is.Generation)
			}
			done, err := w.MigrateStorage(t.Context(), schema.GroupResource{Group: "light.example.com", Resource: "lamps"}, storage.MigrateOptions{})
			if err != nil || done.Rewritten != 2 || done.Unchanged != 2 {
				t.Errorf("migrated %+v, %v", done, err)
			}
			for _, name := range []string{"a", "b", "c"} {
				if e := watch.next(); e.Type != "MODIFIED" || e.name(t) != name {
					t.Errorf("watched %s, want %s MODIFIED", e.text, name)
				}
			}
			w.ask(t, "DELETE", path+"?"+red, "").want(t, 200)
			if left := w.ask(t, "GET", path, "").body; strings.Count(left, `"name"`) != 1 || !strings.Contains(left, `"blue"`) {
				t.Errorf("left: %s", left)
			}
		})
	}
}
