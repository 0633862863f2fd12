package lifecycle_test

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/keelson-dev/keelson/admission"
	"github.com/keelson-dev/keelson/authn"
	"github.com/keelson-dev/keelson/runtime"
	"github.com/keelson-dev/keelson/server"
	"github.com/keelson-dev/keelson/server/builtin/internal/lifecycle"
	"github.com/keelson-dev/keelson/server/registry"
	"github.com/keelson-dev/keelson/storage"
	authorizationv1 "k8s.io/api/authorization/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

func namespacesResource() schema.GroupResource { return schema.GroupResource{Resource: "namespaces"} }

func revisionOf(t *testing.T, m metav1.Object) int64 {
	t.Helper()
	n, err := strconv.ParseInt(m.GetResourceVersion(), 10, 64)
	if err != nil {
		t.Fatal(err)
	}
	return n
}

// refuseDeletes refuses deletions of ConfigMaps while on is set.
func refuseDeletes(on *atomic.Bool) admission.Chain {
	return admission.Chain{{Validator: admission.ValidatorFunc(func(_ context.Context, r *admission.Request) error {
		if r.Operation == admission.Delete && r.Kind.Kind == "ConfigMap" && on.Load() {
			return errors.New("not now")
		}
		return nil
	})}}
}

// notes is a computed kind that can only be created.
type notes struct{ made atomic.Int64 }

func (s *notes) Create(_ *registry.Call, obj runtime.Object, _ *metav1.CreateOptions) (runtime.Object, error) {
	s.made.Add(1)
	return obj, nil
}

// Admission of a create depends only on the namespace, whatever request creates the object.
func TestWhatIsLetIn(t *testing.T) {
	t.Parallel()
	stamps := &notes{}
	n := start(t, newBackend(t), lifecycle.Options{},
		server.Group{Name: "stamps.example.com", Versions: []server.Version{{Name: "v1", Resources: []server.Resource{
			server.Kind("Note", server.KindOptions[*runtime.Resource[toySpec, struct{}]]{Storage: stamps}),
			server.Kind("World", server.KindOptions[*runtime.Resource[worldSpec, struct{}]]{ClusterScoped: true}),
			server.Kind("Stamp", server.KindOptions[*runtime.Resource[stampSpec, struct{}]]{Subresources: map[string]server.Subresource{"sign": {Storage: stamps}}}),
		}}}},
		server.Group{Name: "authorization.k8s.io", Versions: []server.Version{{Name: "v1", Resources: []server.Resource{
			server.Kind("LocalSubjectAccessReview", server.KindOptions[*authorizationv1.LocalSubjectAccessReview]{Storage: stamps}),
		}}}})
	n.makeNamespace("ending")
	n.makeConfigMap("ending", "old", held)
	n.makeNamespace("there")
	n.deleteNamespace("ending")
	const notesPath = "/apis/stamps.example.com/v1/namespaces/%s/notes"
	for _, c := range []struct {
		method, path, body string
		missing, ending    int
	}{
		{"POST", "/api/v1/namespaces/%s/configmaps", `{"metadata":{"name":"x"}}`, 404, 403},
		{"POST", "/api/v1/namespaces/%s/configmaps?dryRun=All", `{"metadata":{"generateName":"x"}}`, 404, 403},
		{"POST", "/apis/example.com/v1/namespaces/%s/gadgets", `{"metadata":{"name":"x"}}`, 404, 403},
		{"PATCH", "/api/v1/namespaces/%s/configmaps/y?fieldManager=a", `{"apiVersion":"v1","kind":"ConfigMap","metadata":{"name":"y"}}`, 404, 403},
		{"PUT", "/apis/coordination.k8s.io/v1/namespaces/%s/leases/z", `{"metadata":{"name":"z"}}`, 404, 403},
		{"POST", notesPath, `{"metadata":{"name":"x"}}`, 404, 403},
		{"POST", "/apis/stamps.example.com/v1/namespaces/%s/stamps/s/sign", `{"metadata":{"name":"s"}}`, 404, 403},
		{"POST", "/apis/authorization.k8s.io/v1/namespaces/%s/localsubjectaccessreviews", `{"metadata":{"name":"s"}}`, 201, 201},
	} {
		for namespace, code := range map[string]int{"missing": c.missing, "ending": c.ending} {
			text := n.must(code, c.method, fmt.Sprintf(c.path, namespace), c.body)
			want := map[int]string{404: `namespaces \"missing\" not found`, 403: `"causes":[{"reason":"NamespaceTerminating","message":"namespace ending is being terminated","field":"metadata.namespace"}]`}[code]
			if !strings.Contains(text, want) {
				t.Errorf("%s %s: %s", c.method, c.path, text)
			}
		}
		n.must(201, c.method, fmt.Sprintf(c.path, "there"), c.body)
	}
	if made := stamps.made.Load(); made != 5 { // those in the existing namespace, and the reviews
		t.Errorf("%d were made", made)
	}
	n.must(201, "POST", "/apis/stamps.example.com/v1/worlds", `{"metadata":{"name":"w"}}`)
	n.must(200, "GET", "/api/v1/namespaces/missing/configmaps", "")
	n.must(404, "PUT", "/api/v1/namespaces/missing/configmaps/x", `{"metadata":{"name":"x"}}`)
	n.must(200, "PUT", "/api/v1/namespaces/ending/configmaps/old", `{"metadata":{"name":"old","finalizers":["example.com/held"]},"data":{"k":"v"}}`)
	n.must(200, "DELETE", "/api/v1/namespaces/ending/configmaps/old", "")
	n.must(200, "PUT", "/api/v1/namespaces/ending/configmaps/old", `{"metadata":{"name":"old"}}`)
}

type (
	worldSpec struct{}
	stampSpec struct{}
)

func TestMissingNamespacesMayBeAllowed(t *testing.T) {
	t.Parallel()
	b := newBackend(t)
	b.lag = 100 * time.Millisecond // objects created just after the end of the namespace exist when that is observed
	n := start(t, b, lifecycle.Options{AllowMissingNamespaces: true})
	n.must(201, "POST", "/api/v1/namespaces/missing/configmaps", `{"metadata":{"name":"x"}}`)
	n.makeNamespace("a")
	n.deleteNamespace("a")
	n.must(403, "POST", "/api/v1/namespaces/a/configmaps", `{"metadata":{"name":"x"}}`)
	n.run()
	n.waitGone("a")
	n.must(201, "POST", "/api/v1/namespaces/a/configmaps", `{"metadata":{"name":"x"}}`)
	n.stays("what is in no namespace is there", func() bool { return len(n.content("a")) == 1 })
}

func TestNoAdmission(t *testing.T) {
	t.Parallel()
	n := start(t, newBackend(t), lifecycle.Options{NoAdmission: true})
	n.must(201, "POST", "/api/v1/namespaces/missing/configmaps", `{"metadata":{"name":"x"}}`)
	n.makeNamespace("a")
	n.deleteNamespace("a")
	n.must(201, "POST", "/api/v1/namespaces/a/configmaps", `{"metadata":{"name":"x"}}`)
	n.must(200, "DELETE", "/api/v1/namespaces/default", "")
	n.run()
	n.waitGone("a")
	n.wait("what was in it is gone", func() bool { return len(n.content("a")) == 0 })
}

// A create in a namespace that is active according to the cache does not read the storage.
func TestCreatesAreCheap(t *testing.T) {
	t.Parallel()
	b := newBackend(t)
	n := start(t, b, lifecycle.Options{})
	n.makeNamespace("a")
	r, err := n.host.Registry(namespacesResource())
	if err != nil {
		t.Fatal(err)
	}
	n.wait("the cache knows it", func() bool {
		_, err := r.GetRecord(registry.NewCall(t.Context(), authn.System(), ""), "a", storage.Read{Match: storage.Any})
		return err == nil
	})
	var reads atomic.Int64
	count := func(key string) error {
		if strings.HasSuffix(key, "/namespaces/a") {
			reads.Add(1)
		}
		return nil
	}
	b.broken.Store(&count)
	for i := range 50 {
		n.makeConfigMap("a", fmt.Sprint("c", i))
	}
	if n := reads.Load(); n > 0 {
		t.Errorf("50 creates asked the storage for the namespace %d times", n)
	}
}

// Even if its cache is far behind, a server knows that it received a DELETE for a namespace, and finds namespaces that another
// server has created or marked.
func TestTheCacheIsNotTrustedToRefuse(t *testing.T) {
	t.Parallel()
	b := newBackend(t)
	n := start(t, b, lifecycle.Options{})
	n.makeNamespace("a")
	n.makeNamespace("c")
	b.lag = 2 * time.Second
	late := start(t, b, lifecycle.Options{})
	late.must(201, "POST", "/api/v1/namespaces/a/configmaps", `{"metadata":{"name":"w"}}`) // uses the cache
	n.makeNamespace("b")
	late.must(200, "DELETE", "/api/v1/namespaces/a", "")
	late.must(403, "POST", "/api/v1/namespaces/a/configmaps", `{"metadata":{"name":"x"}}`)
	late.must(201, "POST", "/api/v1/namespaces/b/configmaps", `{"metadata":{"name":"x"}}`)
	late.must(200, "DELETE", "/api/v1/namespaces/c?dryRun=All", "")
	late.must(201, "POST", "/api/v1/namespaces/c/configmaps", `{"metadata":{"name":"y"}}`)
}

// The plug-in is called before those of the program.
func TestMissingNamespacesAreReportedFirst(t *testing.T) {
	t.Parallel()
	var asked atomic.Int64
	refuse := admission.MutatorFunc(func(_ context.Context, r *admission.Request) error {
		if r.Kind.Kind != "ConfigMap" {
			return nil
		}
		asked.Add(1)
		return errors.New("nothing may be made")
	})
	n := startWith(t, server.Options{Policy: server.Policy{Admission: admission.Chain{{Mutator: refuse}}}}, newBackend(t), lifecycle.Options{})
	_, err := n.configMaps.Create(t.Context(), "missing", &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Name: "x"}})
	if !apierrors.IsNotFound(err) || asked.Load() != 0 {
		t.Errorf("%v, asked %d times", err, asked.Load())
	}
}
