package crd_test

import (
	"context"
	"fmt"
	"net/http"
	"strings"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/keelson-dev/keelson/admission"
	"github.com/keelson-dev/keelson/runtime"
	"github.com/keelson-dev/keelson/server"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

// TestPluginReadsWhileTheDefinitionChanges checks that an admission plug-in that reads the objects of a definition by its request
// never gets an error or an empty list while the schema changes.
func TestPluginReadsWhileTheDefinitionChanges(t *testing.T) {
	t.Parallel()
	const objects, changes, clients = 3, 6, 4
	boats := schema.GroupVersionKind{Group: "example.com", Version: "v1", Kind: "Boat"}
	var judged atomic.Int64
	var wrong sync.Map // the plug-in's errors
	s := newSite(t, nil, server.ExtensionFunc(func(h *server.Host) error {
		return h.Admit(admission.Plugin{
			Name:    "reads",
			Handles: admission.Handles{Resources: []schema.GroupResource{{Group: "example.com", Resource: "crews"}}},
			Validator: admission.ValidatorFunc(func(ctx context.Context, r *admission.Request) error {
				judged.Add(1)
				l, err := runtime.ReadKind(r, boats).List(ctx, runtime.Query{Namespace: "default"})
				if err != nil || len(l.Items) != objects {
					wrong.Store(fmt.Sprintf("a list has %d objects, %v", len(l.Items), err), true)
				}
				if _, err := runtime.ReadKind(r, boats).Get(ctx, "default", "b1", runtime.Freshness{}); err != nil {
					wrong.Store(fmt.Sprint("Get: ", err), true)
				}
				return nil
			}),
		})
	}))
	s.establish(definitionOf("boats", "Boat"))
	s.establish(definitionOf("crews", "Crew"))
	for i := range objects {
		s.want(http.StatusCreated, "POST", "/apis/example.com/v1/namespaces/default/boats", object("Boat", fmt.Sprint("b", i)))
	}
	var over atomic.Bool
	var creating sync.WaitGroup
	for client := range clients {
		own := &site{t, s.srv, s.c}
		creating.Go(func() {
			for n := 0; !over.Load() && !t.Failed(); n++ {
				var body string
				code := own.do("POST", "/apis/example.com/v1/namespaces/default/crews?dryRun=All", object("Crew", fmt.Sprint("c", client, "-", n)), &body)
				if code != http.StatusCreated {
					t.Errorf("%d %s", code, body)
				}
			}
		})
	}
	for i := range changes {
		before := judged.Load()
		d := s.get("boats.example.com")
		withDefault(fmt.Sprint("g", i))(d)
		s.want(http.StatusOK, "PUT", crdsPath+"/"+d.Name, text(t, d))
		want := fmt.Sprintf(`"grade":"g%d"`, i)
		eventually(t, func() bool {
			return judged.Load() > before+clients && strings.Contains(s.want(http.StatusOK, "GET", "/apis/example.com/v1/namespaces/default/boats/b1", ""), want)
		}, func() string { return "the schema with " + want })
	}
	over.Store(true)
	creating.Wait()
	wrong.Range(func(what, _ any) bool {
		t.Error(what)
		return true
	})
}
