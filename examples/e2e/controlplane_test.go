package e2e_test

import (
	"bytes"
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/keelson-dev/keelson/examples/e2e/harness"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/envtest"
)

// testServer is the controlplane as envtest runs it.
type testServer struct {
	api    *envtest.APIServer
	ca     []byte // of the serving certificate
	output *harness.Output
}

// startByEnvtest starts the controlplane on an etcd or on a file. dir may have certificates of an earlier start; ca is then the
// authority of its serving certificate.
func startByEnvtest(t *testing.T, endpoint, file, dir string, ca []byte) *testServer {
	t.Helper()
	etcd, err := url.Parse(endpoint)
	if err != nil {
		t.Fatal(err)
	}
	s := &testServer{output: new(harness.Output)}
	s.api = &envtest.APIServer{
		Path: harness.ControlPlane(t), EtcdURL: etcd, CertDir: dir, Out: s.output, Err: s.output,
		StartTimeout: harness.StartTimeout, StopTimeout: harness.ExitTimeout,
	}
	if file != "" {
		s.api.Configure().Disable("etcd-servers").Set("storage-file", file)
	}
	if err := s.api.Start(); err != nil {
		t.Fatalf("%v\n%s", err, s.output)
	}
	if s.ca = s.api.SecureServing.CA; s.ca == nil {
		s.ca = ca
	}
	t.Cleanup(func() { s.stop(t) })
	return s
}

func (s *testServer) stop(t *testing.T) {
	t.Helper()
	if s.api == nil {
		return
	}
	if err := s.api.Stop(); err != nil {
		t.Errorf("%v\n%s", err, s.output)
	}
	s.api = nil
}

// user returns a configuration for a user that envtest creates with a client certificate.
func (s *testServer) user(t *testing.T, name string, groups ...string) *rest.Config {
	t.Helper()
	base := &rest.Config{Host: s.api.SecureServing.URL("https", "/").String(), QPS: -1}
	base.CAData = s.ca
	config, err := s.api.SecureServing.AddUser(envtest.User{Name: name, Groups: groups}, base)
	if err != nil {
		t.Fatal(err)
	}
	return config
}

func clientset(t *testing.T, config *rest.Config) kubernetes.Interface {
	t.Helper()
	client, err := kubernetes.NewForConfig(config)
	if err != nil {
		t.Fatal(err)
	}
	return client
}

// envtest can run the controlplane in place of kube-apiserver.
func TestControlPlaneInEnvtest(t *testing.T) {
	t.Parallel()
	for _, where := range []string{"etcd", "file"} {
		t.Run(where, func(t *testing.T) {
			t.Parallel()
			endpoint, file, dir := "http://127.0.0.1:1", filepath.Join(t.TempDir(), "plane.db"), t.TempDir()
			if where == "etcd" {
				endpoint, file = harness.StartEtcd(t), ""
			}
			s := startByEnvtest(t, endpoint, file, dir, nil)
			admin := s.user(t, "admin", "system:masters")
			fillByClient(t, admin)
			if _, err := clientset(t, s.user(t, "carol", "dev")).CoreV1().Pods("default").List(t.Context(), metav1.ListOptions{}); !apierrors.IsForbidden(err) || !strings.Contains(err.Error(), `User "carol" cannot list`) {
				t.Errorf("a user without roles: %v", err)
			}
			for _, flag := range []string{"--allow-privileged", "--service-cluster-ip-range"} {
				if !strings.Contains(strings.SplitN(s.output.String(), "\n", 2)[0], flag) {
					t.Errorf("%s has no effect, and is not in the first line of\n%s", flag, s.output)
				}
			}
			ca := s.ca
			s.stop(t)
			if !strings.Contains(s.output.String(), "stopped") {
				t.Errorf("it did not stop in order:\n%s", s.output)
			}
			if where == "etcd" {
				keys := strings.Join(stored(t, endpoint), " ")
				for _, key := range []string{"/registry/deployments/team/web", "/registry/namespaces/team", "/registry/example.com/things/team/a"} {
					if !strings.Contains(keys, key) {
						t.Errorf("etcd has no %s, but %s", key, keys)
					}
				}
			}

			s = startByEnvtest(t, endpoint, file, dir, ca)
			admin = s.user(t, "admin", "system:masters")
			d, err := clientset(t, admin).AppsV1().Deployments("team").Get(t.Context(), "web", metav1.GetOptions{})
			if err != nil || d.Labels["app"] != "web" {
				t.Errorf("after a restart: %v, %v", d, err)
			}
			if got, err := things(t, admin).Get(t.Context(), "a", metav1.GetOptions{}); err != nil {
				t.Errorf("after a restart: %v, %v", got, err)
			}
			s.stop(t)
		})
	}
}

// fillByClient creates objects of each kind: typed ones, ones with several versions, and custom ones.
func fillByClient(t *testing.T, config *rest.Config) {
	t.Helper()
	client := clientset(t, config)
	for _, name := range []string{"default", "kube-system", "kube-public", "kube-node-lease"} {
		if ns, err := client.CoreV1().Namespaces().Get(t.Context(), name, metav1.GetOptions{}); err != nil || ns.Status.Phase != corev1.NamespaceActive {
			t.Errorf("namespace %s: %v, %v", name, ns.Status, err)
		}
	}
	if _, err := client.CoreV1().Namespaces().Create(t.Context(), &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: "team"}}, metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
	web := &appsv1.Deployment{ObjectMeta: metav1.ObjectMeta{Name: "web", Labels: map[string]string{"app": "web"}}}
	if _, err := client.AppsV1().Deployments("team").Create(t.Context(), web, metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
	if _, err := client.AppsV1().Deployments("missing").Create(t.Context(), web, metav1.CreateOptions{}); !apierrors.IsNotFound(err) {
		t.Errorf("in a namespace that does not exist: %v", err)
	}
	_, err := envtest.InstallCRDs(config, envtest.CRDInstallOptions{CRDs: []*apiextensionsv1.CustomResourceDefinition{thingDefinition()}, MaxTime: time.Minute, PollInterval: 10 * time.Millisecond})
	if err != nil {
		t.Fatal(err)
	}
	thing := &unstructured.Unstructured{Object: map[string]any{"apiVersion": "example.com/v1", "kind": "Thing", "metadata": map[string]any{"name": "a"}}}
	if _, err := things(t, config).Create(t.Context(), thing, metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
}

func things(t *testing.T, config *rest.Config) dynamic.ResourceInterface {
	t.Helper()
	client, err := dynamic.NewForConfig(config)
	if err != nil {
		t.Fatal(err)
	}
	return client.Resource(schema.GroupVersionResource{Group: "example.com", Version: "v1", Resource: "things"}).Namespace("team")
}

func thingDefinition() *apiextensionsv1.CustomResourceDefinition {
	preserve := true
	return &apiextensionsv1.CustomResourceDefinition{
		ObjectMeta: metav1.ObjectMeta{Name: "things.example.com"},
		Spec: apiextensionsv1.CustomResourceDefinitionSpec{
			Group: "example.com", Scope: apiextensionsv1.NamespaceScoped,
			Names: apiextensionsv1.CustomResourceDefinitionNames{Plural: "things", Singular: "thing", Kind: "Thing", ListKind: "ThingList"},
			Versions: []apiextensionsv1.CustomResourceDefinitionVersion{{
				Name: "v1", Served: true, Storage: true,
				Schema: &apiextensionsv1.CustomResourceValidation{OpenAPIV3Schema: &apiextensionsv1.JSONSchemaProps{Type: "object", XPreserveUnknownFields: &preserve}},
			}},
		},
	}
}

const webManifest = `apiVersion: apps/v1
kind: Deployment
metadata: {name: web, labels: {app: web}}
spec:
  replicas: 2
  selector: {matchLabels: {app: web}}
  template:
    metadata: {labels: {app: web}}
    spec: {containers: [{name: web, image: nginx}]}
`

// kubectl works for the users of a token file, before and after a restart, on a file and on an etcd.
func TestControlPlaneKubectl(t *testing.T) {
	t.Parallel()
	for _, where := range []string{"etcd", "file"} {
		t.Run(where, func(t *testing.T) {
			t.Parallel()
			dir := t.TempDir()
			tokens := filepath.Join(dir, "tokens.csv")
			if err := os.WriteFile(tokens, []byte("t-admin,root,0,\"ops,system:masters\"\nt-dev,dev,1\n"), 0o600); err != nil {
				t.Fatal(err)
			}
			o := harness.Options{Example: "controlplane", Dir: dir, Data: filepath.Join(dir, "plane.db"), Flags: []string{"--token-auth-file=" + tokens, "--authorization-mode=RBAC"}}
			if where == "etcd" {
				o.Data, o.Etcd = "", harness.StartEtcd(t)
			}
			s := harness.Start(t, o)
			admin, dev := withToken(t, s, "t-admin"), withToken(t, s, "t-dev")
			admin(webManifest, "apply", "--server-side", "-f", "-").OK()
			admin(webManifest, "apply", "--server-side", "-f", "-").OK()
			admin("", "get", "deploy,po,svc,no,crd,hpa,pdb,sc", "-o", "name").Want("deployment.apps/web\n", "")
			admin("", "get", "namespaces", "-o", "name").Want("namespace/default\nnamespace/kube-node-lease\nnamespace/kube-public\nnamespace/kube-system\n", "")
			admin("", "explain", "deployment.spec.replicas").Contains("Number of desired pods")
			admin("", "api-resources", "--no-headers", "-o", "name").Contains("deployments.apps", "customresourcedefinitions.apiextensions.k8s.io", "resourceclaims.resource.k8s.io")
			dev("", "get", "deploy").Fails(`User "dev" cannot list resource "deployments" in API group "apps"`)
			withToken(t, s, "wrong")("", "get", "deploy").Fails("You must be logged in to the server")
			before := admin("", "get", "deploy", "web", "-o", "json").OK().Stdout
			s.Stop()

			s = harness.Start(t, o)
			if after := withToken(t, s, "t-admin")("", "get", "deploy", "web", "-o", "json").OK().Stdout; after != before {
				t.Errorf("after the restart it is\n%s\nbefore it was\n%s", after, before)
			}
			s.Stop()
		})
	}
}

// withToken returns a kubectl for a user with a token, which trusts the certificate in the server's directory.
func withToken(t *testing.T, s *harness.Server, token string) func(stdin string, args ...string) harness.Result {
	t.Helper()
	ca := filepath.Join(s.Dir, "certs", "apiserver.crt")
	if content, err := os.ReadFile(ca); err != nil || bytes.Count(content, []byte("BEGIN CERTIFICATE")) != 2 {
		t.Fatalf("%s: %s, %v", ca, content, err)
	}
	empty := filepath.Join(t.TempDir(), "kubeconfig")
	if err := os.WriteFile(empty, []byte("apiVersion: v1\nkind: Config\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	kubectl := harness.NewKubectl(t, empty)
	return func(stdin string, args ...string) harness.Result {
		t.Helper()
		return kubectl.Run(stdin, append(args, "--server="+s.URL, "--certificate-authority="+ca, "--token="+token)...)
	}
}

// Without flags for users, the controlplane writes a kubeconfig, as the other examples do.
func TestControlPlaneKubeconfig(t *testing.T) {
	t.Parallel()
	s := harness.Start(t, harness.Options{Example: "controlplane"})
	s.KubectlWith(webManifest, "create", "-f", "-").OK()
	s.Kubectl("get", "deploy", "-o", "name").Want("deployment.apps/web\n", "")
	s.Stop()
}
