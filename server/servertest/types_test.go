package servertest_test

import (
	"errors"
	"net/http"
	"strings"
	"testing"

	keelson "github.com/keelson-dev/keelson/runtime"
	"github.com/keelson-dev/keelson/server"
	"github.com/keelson-dev/keelson/server/builtin"
	"github.com/keelson-dev/keelson/server/registry"
	"github.com/keelson-dev/keelson/server/servertest"
	appsv1 "k8s.io/api/apps/v1"
	appsv1beta1 "k8s.io/api/apps/v1beta1"
	autoscalingv1 "k8s.io/api/autoscaling/v1"
	autoscalingv2 "k8s.io/api/autoscaling/v2"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	apiruntime "k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

// addAll is an AddToScheme for several packages.
func addAll(s *apiruntime.Scheme) error {
	b := apiruntime.NewSchemeBuilder(corev1.AddToScheme, appsv1beta1.AddToScheme, appsv1.AddToScheme, autoscalingv1.AddToScheme, autoscalingv2.AddToScheme)
	return b.AddToScheme(s)
}

func TestTypesOfKubernetes(t *testing.T) {
	t.Parallel()
	srv := servertest.New(t, builtin.New(builtin.Options{}), servertest.Types{AddToScheme: addAll})
	// The kinds of the extension are served by it, and not by Types.
	ask(t, srv, "POST", "/api/v1/namespaces/missing/pods", `{"metadata":{"name":"p"}}`).want(404, `namespaces "missing" not found`)
	ask(t, srv, "POST", "/api/v1/namespaces/default/pods", `{"metadata":{"name":"p"},"spec":{"containers":[{"name":"c","image":"i"}]},"status":{"phase":"Running"}}`).want(201, `"image":"i"`).not("Running")
	ask(t, srv, "PUT", "/api/v1/namespaces/default/pods/p/status", `{"metadata":{"name":"p"},"status":{"phase":"Running"}}`).want(200, "Running")
	ask(t, srv, "POST", "/api/v1/nodes", `{"metadata":{"name":"n"}}`).want(201)
	ask(t, srv, "GET", "/apis/apps/v1/deployments", "").want(200, `"kind":"DeploymentList"`)
	// The scheme cannot convert between these versions.
	ask(t, srv, "GET", "/apis/apps/v1beta1/deployments", "").want(404)
	ask(t, srv, "GET", "/apis/autoscaling/v2/horizontalpodautoscalers", "").want(200)
	ask(t, srv, "GET", "/apis/autoscaling/v1/horizontalpodautoscalers", "").want(404)
	// The scheme has no list of these, so they are not served.
	ask(t, srv, "POST", "/api/v1/namespaces/default/bindings", `{}`).want(404)
	// Lists merge as in Kubernetes.
	const apply = `{"apiVersion":"v1","kind":"Service","metadata":{"name":"s"},"spec":{"ports":[{"port":`
	for i, port := range []string{"80", "81"} {
		r := ask(t, srv, "PATCH", "/api/v1/namespaces/default/services/s?fieldManager=m"+port, apply+port+`,"protocol":"TCP"}]}}`)
		r.want([]int{201, 200}[i], `"port":80`)
	}
}

// Fleet and FleetList are types as in an operator's api package.
type Fleet struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata,omitempty"`
	Spec              struct {
		Ships int32 `json:"ships"`
	} `json:"spec"`
	Status struct {
		Ships int32 `json:"ships,omitempty"`
	} `json:"status,omitempty"`
}

func (f *Fleet) DeepCopyObject() keelson.Object { return keelson.DeepCopy(f) }

type FleetList struct {
	metav1.TypeMeta `json:",inline"`
	metav1.ListMeta `json:"metadata,omitempty"`
	Items           []Fleet `json:"items"`
}

func (l *FleetList) DeepCopyObject() keelson.Object { return keelson.DeepCopy(l) }

func addFleet(s *apiruntime.Scheme) error {
	gv := schema.GroupVersion{Group: "sea.example.com", Version: "v1"}
	s.AddKnownTypes(gv, &Fleet{}, &FleetList{})
	s.AddTypeDefaultingFunc(&Fleet{}, func(o any) {
		if f := o.(*Fleet); f.Spec.Ships == 0 {
			f.Spec.Ships = 7
		}
	})
	return nil
}

func TestTypesOfAnOperator(t *testing.T) {
	t.Parallel()
	srv := servertest.New(t, servertest.Types{
		AddToScheme:   addFleet,
		ClusterScoped: []string{"Fleet"},
		Plurals:       map[string]string{"Fleet": "armada"},
		Scales:        map[string]registry.Scale{"Fleet": {SpecReplicas: ".spec.ships", StatusReplicas: ".status.ships"}},
	})
	ask(t, srv, "POST", "/apis/sea.example.com/v1/armada", `{"metadata":{"name":"f"},"status":{"ships":3}}`).want(201, `"ships":7`).not(`"ships":3`)
	ask(t, srv, "GET", "/apis/sea.example.com/v1/armada/f/scale", "").want(200, `"replicas":7`)

	srv = servertest.New(t, servertest.Types{AddToScheme: addFleet, NoStatus: []string{"Fleet"}})
	ask(t, srv, "POST", "/apis/sea.example.com/v1/namespaces/a/fleets", `{"metadata":{"name":"f"},"status":{"ships":3}}`).want(201, `"ships":3`)
	ask(t, srv, "GET", "/apis/sea.example.com/v1/namespaces/a/fleets/f/status", "").want(404)
}

// FleetRefs is a list in the form of some generators.
type FleetRefs struct {
	metav1.TypeMeta `json:",inline"`
	metav1.ListMeta `json:"metadata,omitempty"`
	Items           []*Fleet `json:"items"`
}

func (l *FleetRefs) DeepCopyObject() keelson.Object { return keelson.DeepCopy(l) }

// A kind that cannot be served is an error, unless it is in Without. If versions cannot be converted the first one is served.
// Types that are not kinds are ignored.
func TestTypesOfOddSchemes(t *testing.T) {
	t.Parallel()
	gv := schema.GroupVersion{Group: "sea.example.com", Version: "v1beta1"}
	refs := func(s *apiruntime.Scheme) error {
		s.AddKnownTypeWithName(gv.WithKind("Fleet"), &Fleet{})
		s.AddKnownTypeWithName(gv.WithKind("FleetList"), &FleetRefs{})
		return nil
	}
	const want = "cannot be served: Fleet (servertest_test.FleetRefs); name them in Without"
	if _, err := servertest.Run(server.Options{}, servertest.Types{AddToScheme: refs}); err == nil || !strings.Contains(err.Error(), want) {
		t.Errorf("%v; want %q", err, want)
	}
	srv := servertest.New(t, servertest.Types{AddToScheme: refs, Without: []string{"Fleet"}})
	ask(t, srv, "GET", "/apis/sea.example.com/v1beta1/fleets", "").want(404)

	srv = servertest.New(t, servertest.Types{AddToScheme: func(s *apiruntime.Scheme) error {
		s.AddKnownTypeWithName(gv.WithKind("Fleet"), &Fleet{})
		s.AddKnownTypeWithName(gv.WithKind("FleetList"), &FleetList{})
		return errors.Join(addFleet(s), metav1.AddMetaToScheme(s))
	}})
	ask(t, srv, "GET", "/apis/sea.example.com/v1/fleets", "").want(200)
	ask(t, srv, "GET", "/apis/sea.example.com/v1beta1/fleets", "").want(404)
}

// The first part that has a kind serves it. Two parts with the same scheme are no mistake, and a program's own scheme is not
// changed.
func TestTypesAreServedOnce(t *testing.T) {
	t.Parallel()
	scheme := keelson.NewScheme()
	if _, err := scheme.Import(addFleet); err != nil {
		t.Fatal(err)
	}
	client := apiruntime.NewScheme()
	if err := addFleet(client); err != nil {
		t.Fatal(err)
	}
	srv := servertest.Start(t, server.Options{Scheme: scheme}, servertest.Types{Scheme: client}, servertest.Types{AddToScheme: addFleet})
	ask(t, srv, "GET", "/apis/sea.example.com/v1/fleets", "").want(200)
}

// Versions of one kind in two parts cannot be combined, which is an error.
func TestTypesInPartsRefused(t *testing.T) {
	t.Parallel()
	srv, err := servertest.Run(server.Options{}, servertest.Types{AddToScheme: appsv1.AddToScheme}, servertest.Types{AddToScheme: appsv1beta1.AddToScheme})
	if err == nil {
		t.Fatalf("served; %v", srv.Close())
	}
	for _, want := range []string{"apps/v1, Kind=", "apps/v1beta1, Kind=", "install all versions of a kind together"} {
		if !strings.Contains(err.Error(), want) {
			t.Errorf("%v; want %s", err, want)
		}
	}
	servertest.New(t, servertest.Types{AddToScheme: appsv1.AddToScheme},
		servertest.Types{AddToScheme: appsv1beta1.AddToScheme, Without: []string{"Deployment", "StatefulSet", "ControllerRevision"}})
}

func TestTypesRefused(t *testing.T) {
	t.Parallel()
	for want, types := range map[string]servertest.Types{
		"the scheme has no kind with a list type":        {AddToScheme: func(*apiruntime.Scheme) error { return nil }},
		"set AddToScheme or Scheme, one of both":         {},
		`ClusterScoped names the kind "Flet"`:            {AddToScheme: addFleet, ClusterScoped: []string{"Flet"}},
		`Without names the kind "FleetList"`:             {AddToScheme: addFleet, Without: []string{"FleetList"}},
		"AddToScheme: " + http.ErrBodyNotAllowed.Error(): {AddToScheme: func(*apiruntime.Scheme) error { return http.ErrBodyNotAllowed }},
		`Plurals names the kind "Boat"`:                  {AddToScheme: addFleet, Plurals: map[string]string{"Boat": "boats"}},
		`kind "Fleet" and plural "A B"`:                  {AddToScheme: addFleet, Plurals: map[string]string{"Fleet": "A B"}},
	} {
		srv, err := servertest.Run(server.Options{}, types)
		if err == nil {
			t.Errorf("%s: served; %v", want, srv.Close())
		} else if !strings.Contains(err.Error(), want) {
			t.Errorf("want %q: %v", want, err)
		}
	}
}

func TestUntypedKinds(t *testing.T) {
	t.Parallel()
	srv := servertest.New(t, servertest.Untyped("sea.example.com/v1", "Buoy", "Anchor"), servertest.Untyped("v1", "Thing"))
	const buoys = "/apis/sea.example.com/v1/namespaces/a/buoies"
	ask(t, srv, "POST", buoys, `{"apiVersion":"sea.example.com/v1","kind":"Buoy","metadata":{"name":"b"},"spec":{"deep":[{"er":1}]},"free":true}`).want(201, `"free":true`, `{"er":1}`)
	ask(t, srv, "GET", "/apis/sea.example.com/v1/anchors", "").want(200, `"kind":"AnchorList"`)
	ask(t, srv, "GET", "/api/v1/things", "").want(200)
	if _, err := servertest.Run(server.Options{}, servertest.Untyped("a/b/c", "X")); err == nil || !strings.Contains(err.Error(), "a/b/c") {
		t.Errorf("an apiVersion that is none: %v", err)
	}
}
