package server_test

import (
	"strings"
	"testing"

	"github.com/keelson-dev/keelson/server"
	"github.com/keelson-dev/keelson/server/registry"
	"github.com/keelson-dev/keelson/server/servertest"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	apiruntime "k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

// kubernetesTypes serves types of k8s.io/api: of the core group, cluster-scoped and namespaced, and of apps.
func kubernetesTypes() []server.Group {
	return []server.Group{
		{Versions: []server.Version{{Name: "v1", Resources: []server.Resource{
			server.Kind("ConfigMap", server.KindOptions[*corev1.ConfigMap]{
				ShortNames: []string{"cm"}, Strategy: registry.Strategy[*corev1.ConfigMap]{NoGeneration: true},
			}),
			server.Kind("Namespace", server.KindOptions[*corev1.Namespace]{ShortNames: []string{"ns"}, ClusterScoped: true}),
			server.Kind("Pod", server.KindOptions[*corev1.Pod]{SelectableFields: []string{"spec.nodeName", "status.phase"}}),
		}}}},
		{Name: "apps", Versions: []server.Version{{Name: "v1", Resources: []server.Resource{
			server.Kind("Deployment", server.KindOptions[*appsv1.Deployment]{
				Default: func(d *appsv1.Deployment) {
					if d.Spec.Replicas == nil {
						d.Spec.Replicas = new(int32(1))
					}
				},
				Scale: &registry.Scale{SpecReplicas: ".spec.replicas", StatusReplicas: ".status.replicas"},
			}),
		}}}},
	}
}

func TestCoreGroupIsBelowAPI(t *testing.T) {
	t.Parallel()
	srv := servertest.Start(t, server.Options{Groups: kubernetesTypes()})
	c := srv.Client()
	code, body := call(t, c, "POST", srv.URL+"/api/v1/namespaces/team/configmaps", `{"apiVersion":"v1","kind":"ConfigMap","metadata":{"name":"cm"},"data":{"b":"1","a":"2"},"binaryData":{"x":"AAE="}}`)
	wantCode(t, 201, code, body)
	if !strings.HasPrefix(body, `{"kind":"ConfigMap","apiVersion":"v1","metadata":{"name":"cm","namespace":"team","uid":"`) ||
		!strings.HasSuffix(body, `},"data":{"a":"2","b":"1"},"binaryData":{"x":"AAE="}}`+"\n") || strings.Contains(body, "generation") {
		t.Errorf("created: %s", body)
	}
	for _, row := range []struct {
		path string
		code int
		want string
	}{
		{"/api/v1/configmaps", 200, `{"kind":"ConfigMapList","apiVersion":"v1","metadata":{"resourceVersion":"`},
		{"/api/v1/namespaces/team/configmaps/none", 404, `"message":"configmaps \"none\" not found","reason":"NotFound","details":{"name":"none","kind":"configmaps"},"code":404`},
		{"/api", 200, `{"kind":"APIVersions","versions":["v1"]`},
		{"/api/v1", 200, `{"name":"configmaps","singularName":"configmap","namespaced":true,"kind":"ConfigMap",`},
		{"/apis", 200, `"groups":[{"name":"apps",`},
		{"/apis/apps/v1", 200, `"groupVersion":"apps/v1"`},
	} {
		code, body := call(t, c, "GET", srv.URL+row.path, "")
		if code != row.code || !strings.Contains(body, row.want) {
			t.Errorf("GET %s: %d %s\nwant %d with %s", row.path, code, body, row.code, row.want)
		}
	}
	code, body = call(t, c, "GET", srv.URL+"/apis/v1/configmaps", "")
	wantCode(t, 404, code, body)
	code, body = call(t, c, "GET", srv.URL+"/", "")
	wantCode(t, 200, code, body)
	if !strings.Contains(body, `"/api"`) || !strings.Contains(body, `"/api/v1"`) {
		t.Errorf("index: %s", body)
	}
}

func TestNamespacesAreClusterScoped(t *testing.T) {
	t.Parallel()
	srv := servertest.Start(t, server.Options{Groups: kubernetesTypes()})
	c := srv.Client()
	const list = "/api/v1/namespaces"
	code, body := call(t, c, "POST", srv.URL+list, `{"metadata":{"name":"team"}}`)
	wantCode(t, 201, code, body)
	if !strings.HasPrefix(body, `{"kind":"Namespace","apiVersion":"v1","metadata":{"name":"team","uid":"`) {
		t.Errorf("created: %s", body)
	}
	code, body = call(t, c, "PATCH", srv.URL+list+"/team/status", `{"status":{"phase":"Active"}}`, "Content-Type", mergePatchType)
	wantCode(t, 200, code, body)
	code, body = call(t, c, "GET", srv.URL+list+"/team", "")
	wantCode(t, 200, code, body)
	if !strings.Contains(body, `"status":{"phase":"Active"}`) {
		t.Errorf("read: %s", body)
	}
	code, body = call(t, c, "GET", srv.URL+list+"?fieldSelector=metadata.name%3Dteam", "")
	wantCode(t, 200, code, body)
	if strings.Count(body, `"name":"team"`) != 1 {
		t.Errorf("selected: %s", body)
	}
	code, body = call(t, c, "DELETE", srv.URL+list+"/team", "")
	wantCode(t, 200, code, body)
	if !strings.Contains(body, `"status":"Success","details":{"name":"team","kind":"namespaces","uid":"`) {
		t.Errorf("deleted: %s", body)
	}
}

func TestKubernetesTypesKeepTheirForms(t *testing.T) {
	t.Parallel()
	srv := servertest.Start(t, server.Options{Groups: kubernetesTypes()})
	c := srv.Client()
	// Quantities are canonical, an IntOrString stays what it was, and fields are selectable also in the status.
	code, body := call(t, c, "POST", srv.URL+"/api/v1/namespaces/team/pods", `{"metadata":{"name":"x"},"spec":{"nodeName":"n1","containers":[{"name":"c","image":"i",
		"resources":{"limits":{"cpu":"0.5","memory":"1024Mi"}},"livenessProbe":{"httpGet":{"port":"http"}},"readinessProbe":{"httpGet":{"port":80}}}]}}`)
	wantCode(t, 201, code, body)
	for _, want := range []string{`"limits":{"cpu":"500m","memory":"1Gi"}`, `"httpGet":{"port":"http"}`, `"httpGet":{"port":80}`} {
		if !strings.Contains(body, want) {
			t.Errorf("created: %s\nlacks %s", body, want)
		}
	}
	code, body = call(t, c, "PATCH", srv.URL+"/api/v1/namespaces/team/pods/x/status", `{"status":{"phase":"Running"}}`, "Content-Type", mergePatchType)
	wantCode(t, 200, code, body)
	for selector, want := range map[string]int{"spec.nodeName%3Dn1,status.phase%3DRunning": 1, "spec.nodeName%3Dn2": 0, "status.phase!%3DRunning": 0} {
		code, body := call(t, c, "GET", srv.URL+"/api/v1/pods?fieldSelector="+selector, "")
		wantCode(t, 200, code, body)
		if got := strings.Count(body, `"nodeName":"n1"`); got != want {
			t.Errorf("%s selects %d, want %d", selector, got, want)
		}
	}
	code, body = call(t, c, "GET", srv.URL+"/api/v1/pods?fieldSelector=spec.hostname%3Dn", "")
	wantCode(t, 400, code, body)
	if !strings.Contains(body, `"message":"field label not supported: spec.hostname"`) {
		t.Errorf("unknown field: %s", body)
	}
}

func TestScaleOfADeployment(t *testing.T) {
	t.Parallel()
	srv := servertest.Start(t, server.Options{Groups: kubernetesTypes()})
	c := srv.Client()
	const path = "/apis/apps/v1/namespaces/team/deployments"
	code, body := call(t, c, "POST", srv.URL+path, `{"metadata":{"name":"d"},"spec":{"selector":{"matchLabels":{"a":"b"}},"template":{"metadata":{"labels":{"a":"b"}},"spec":{"containers":[{"name":"c","image":"i"}]}}}}`)
	wantCode(t, 201, code, body)
	for _, step := range []struct{ method, body, want string }{
		{"GET", "", `"spec":{"replicas":1},"status":{"replicas":0}`},
		{"PUT", `{"metadata":{"name":"d","namespace":"team"},"spec":{"replicas":3}}`, `"spec":{"replicas":3}`},
		{"PATCH", `{"spec":{"replicas":0}}`, `"spec":{}`}, // zero is omitted, as in autoscaling/v1
	} {
		code, body := call(t, c, step.method, srv.URL+path+"/d/scale", step.body, "Content-Type", contentType(step.method))
		wantCode(t, 200, code, body)
		if !strings.HasPrefix(body, `{"kind":"Scale","apiVersion":"autoscaling/v1",`) || !strings.Contains(body, step.want) {
			t.Errorf("%s: %s\nwant %s", step.method, body, step.want)
		}
	}
	code, body = call(t, c, "GET", srv.URL+path+"/d", "")
	wantCode(t, 200, code, body)
	if !strings.Contains(body, `"generation":3`) || !strings.Contains(body, `"spec":{"replicas":0,`) {
		t.Errorf("after scaling: %s", body)
	}
}

func TestServersSchemeFillsAClients(t *testing.T) {
	t.Parallel()
	srv := servertest.Start(t, server.Options{Groups: append(kubernetesTypes(), widgets())})
	fresh, known := apiruntime.NewScheme(), apiruntime.NewScheme()
	// A client's scheme usually has the types of k8s.io/api already, with list types of their own.
	for _, add := range []func(*apiruntime.Scheme) error{corev1.AddToScheme, appsv1.AddToScheme} {
		if err := add(known); err != nil {
			t.Fatal(err)
		}
	}
	for name, dst := range map[string]*apiruntime.Scheme{"fresh": fresh, "known": known} {
		if err := srv.Scheme().AddTo(dst); err != nil {
			t.Errorf("%s: %v", name, err)
			continue
		}
		for _, kind := range []string{"Widget", "WidgetList", "ListOptions"} {
			if gv := (schema.GroupVersion{Group: "example.com", Version: "v1"}); !dst.Recognizes(gv.WithKind(kind)) {
				t.Errorf("%s: no %s", name, kind)
			}
		}
		list, err := dst.New(corev1.SchemeGroupVersion.WithKind("ConfigMapList"))
		if err != nil {
			t.Fatal(err)
		}
		if _, own := list.(*corev1.ConfigMapList); own != (name == "known") {
			t.Errorf("%s: ConfigMapList is a %T", name, list)
		}
	}
}
