package server_test

import (
	"testing"

	"github.com/keelson-dev/keelson/runtime"
	"github.com/keelson-dev/keelson/server"
	"github.com/keelson-dev/keelson/server/registry"
	"github.com/keelson-dev/keelson/server/servertest"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// A Choir is in two groups, with the same field for the voices.
type (
	choirSpec struct {
		Voices int32 `json:"voices"`
	}
	Choir     = runtime.Resource[choirSpec, choirSpec]
	YoungSpec struct {
		Voices int32 `json:"voices"`
	}
	YoungChoir = runtime.Resource[YoungSpec, choirSpec]
)

// A change of the replicas of a kind in two groups is recorded for the version of the request.
func TestScaleOfAKindInTwoGroups(t *testing.T) {
	t.Parallel()
	srv := servertest.New(t,
		server.Group{Name: "old.example.com", Versions: []server.Version{{Name: "v1", Resources: []server.Resource{
			server.Kind("Choir", server.KindOptions[*Choir]{Scale: &registry.Scale{SpecReplicas: ".spec.voices", StatusReplicas: ".status.voices"}}),
		}}}},
		server.Group{
			Name:     "young.example.com",
			Versions: []server.Version{{Name: "v1", Resources: []server.Resource{server.Kind("Choir", server.KindOptions[*YoungChoir]{})}}},
			Conversions: []server.Conversion{server.Convert(
				func(in *YoungChoir, out *Choir) error {
					out.Spec.Voices, out.Status = in.Spec.Voices, in.Status
					return nil
				},
				func(in *Choir, out *YoungChoir) error {
					out.Spec.Voices, out.Status = in.Spec.Voices, in.Status
					return nil
				}),
			},
		})
	for _, group := range []string{"old.example.com", "young.example.com"} {
		choir := srv.URL + "/apis/" + group + "/v1/namespaces/default/choirs"
		roundTrip(t, srv.Client(), "POST", choir+"?fieldManager=maker", `{"metadata":{"name":"`+group[:3]+`"},"spec":{"voices":1}}`).want(t, 201)
		choir += "/" + group[:3]
		roundTrip(t, srv.Client(), "PATCH", choir+"/scale?fieldManager=scaler", `{"spec":{"replicas":4}}`, "Content-Type", mergePatchType).want(t, 200)
		var m metav1.PartialObjectMetadata
		roundTrip(t, srv.Client(), "GET", choir, "").into(t, &m)
		for _, e := range m.ManagedFields {
			if e.Manager == "scaler" {
				if e.APIVersion != group+"/v1" {
					t.Errorf("scaled in %s, and managed in %s", group, e.APIVersion)
				}
				m.ManagedFields = nil
			}
		}
		if m.ManagedFields != nil {
			t.Errorf("%s: no entry of scaler in %+v", group, m.ManagedFields)
		}
	}
}
