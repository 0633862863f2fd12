package server_test

import (
	"strings"
	"sync"
	"testing"

	"github.com/keelson-dev/keelson/runtime"
	"github.com/keelson-dev/keelson/server"
	"github.com/keelson-dev/keelson/server/registry"
	"github.com/keelson-dev/keelson/server/servertest"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

// ruled is a kind with rules that the backend does not keep.
type ruled = runtime.Resource[struct {
	Quality int32  `json:"quality" minimum:"1" maximum:"10" default:"5"`
	Zone    string `json:"zone,omitempty" immutable:"true"`
}, struct {
	Grade string `json:"grade,omitempty" enum:"a,b"`
}]

// ruledStore keeps one object, and is the storage of the program's own.
type ruledStore struct {
	mu  sync.Mutex
	obj *ruled
}

func (s *ruledStore) Get(*registry.Call, string, *metav1.GetOptions) (runtime.Object, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.obj == nil {
		return nil, apierrors.NewNotFound(schema.GroupResource{Group: "example.com", Resource: "ruleds"}, "x")
	}
	return s.obj.DeepCopyObject().(*ruled), nil
}

func (s *ruledStore) Create(_ *registry.Call, obj runtime.Object, _ *metav1.CreateOptions) (runtime.Object, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.obj = obj.(*ruled)
	return s.obj.DeepCopyObject().(*ruled), nil
}

func (s *ruledStore) Update(call *registry.Call, name string, update registry.ObjectUpdate, _ *metav1.UpdateOptions) (runtime.Object, bool, error) {
	current, err := s.Get(call, name, nil)
	if err != nil {
		return nil, false, err
	}
	obj, err := update(call, current)
	if err != nil {
		return nil, false, err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.obj = obj.(*ruled)
	return s.obj.DeepCopyObject().(*ruled), false, nil
}

// polishing is the kind of a subresource.
type polishing = runtime.Resource[struct {
	Strength int32 `json:"strength,omitempty" minimum:"1" maximum:"3"`
}, struct{}]

type polisher struct{}

func (polisher) Create(_ *registry.Call, obj runtime.Object, _ *metav1.CreateOptions) (runtime.Object, error) {
	return obj, nil
}

// The rules in struct tags that are published hold for kinds with a Storage of the program's own, and for those of subresources.
func TestRulesOfComputedKinds(t *testing.T) {
	t.Parallel()
	srv := servertest.New(t, server.Group{Name: "example.com", Versions: []server.Version{{Name: "v1", Resources: []server.Resource{
		server.Kind("Ruled", server.KindOptions[*ruled]{Storage: &ruledStore{}, Subresources: map[string]server.Subresource{
			"polish": server.SubresourceKind[*polishing]("Polishing", polisher{}),
		}}),
	}}}})
	const path = "/apis/example.com/v1/namespaces/default/ruleds"
	for _, c := range []struct {
		method, path, body string
		code               int
		want               string
	}{
		{"POST", "", `{"metadata":{"name":"x"},"spec":{"quality":99}}`, 422, `spec.quality: Invalid value: 99: spec.quality in body should be less than or equal to 10`},
		{"POST", "", `{"metadata":{"name":"a/b"},"spec":{}}`, 422, `metadata.name: Invalid value: \"a/b\": may not contain '/'`},
		{"POST", "", `{"metadata":{"generateName":"x-"},"spec":{"zone":"n"},"status":{"grade":"z"}}`, 201, `"name":"x-`},
		{"POST", "", `{"metadata":{"name":"x"},"spec":{"zone":"n"}}`, 201, `"quality":5`},
		{"PUT", "/x", `{"metadata":{"name":"x"},"spec":{"quality":11,"zone":"n"}}`, 422, `Ruled.example.com \"x\" is invalid: spec.quality: Invalid value: 11`},
		{"PUT", "/x", `{"metadata":{"name":"x"},"spec":{"quality":6,"zone":"s"}}`, 422, `spec.zone: Invalid value`},
		{"PATCH", "/x", `{"spec":{"quality":-1}}`, 422, `spec.quality: Invalid value: -1`},
		{"PATCH", "/x", `{"spec":{"quality":7}}`, 200, `"quality":7`},
		{"POST", "/x/polish", `{"spec":{"strength":4}}`, 422, `Polishing.example.com \"x\" is invalid: spec.strength: Invalid value: 4`},
		{"POST", "/x/polish", `{"spec":{"strength":3}}`, 201, `"strength":3`},
	} {
		contentType := "application/json"
		if c.method == "PATCH" {
			contentType = mergePatch
		}
		code, text := call(t, srv.Client(), c.method, srv.URL+path+c.path, c.body, "Content-Type", contentType)
		if code != c.code || !strings.Contains(text, c.want) {
			t.Errorf("%s %s %s: %d %s\nwant %d with %s", c.method, c.path, c.body, code, text, c.code, c.want)
		}
	}
}
