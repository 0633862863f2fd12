package server_test

// Golden files of requests: requests that write, and the answers of a server, in the files of testdata/wire. The files hold for
// kube-apiserver and for Keelson, unless their heads say otherwise, and run against both.
//
//	go test ./server -run 'TestGolden$'                  # against a server in memory
//	go test ./server -run 'TestGolden$/apply' -update    # and rewrite the answers in the files, for review
//
// To run them against any server, set its address, the bearer token of a user who may do everything, the CA that signed its
// certificate (without it the CAs that the system trusts are used), and its properties:
//
//	KEELSON_WIRE_SERVER=https://127.0.0.1:6443 KEELSON_WIRE_TOKEN=... KEELSON_WIRE_CA=ca.crt \
//	KEELSON_WIRE_IS="kube-apiserver custom" go test ./server -run TestGoldenAtAddress
//
// KEELSON_WIRE_IS is "keelson typed" by default. It has keelson or kube-apiserver; typed if the server's Widget is a Go type, or
// custom if it is a custom resource; and cbor if the server serves CBOR.
//
// The server must serve v1 ConfigMap, Secret, Event, ServiceAccount, Service and Pod, apps/v1 Deployment, coordination.k8s.io/v1 Lease,
// events.k8s.io/v1 Event, the kinds of rbac.authorization.k8s.io/v1, and example.com/v1 Widget. The type of Widget is goldenWidget
// below, and testdata/wire/widget.crd.yaml is the same as a custom resource. The files below untyped need the kinds of
// testdata/wire/untyped.crd.yaml.
//
// Each file has a separate namespace, which is made if the server has namespaces. At the end its contents are deleted, and so are
// the CustomResourceDefinitions with the name of the namespace in their names: their group is ${ns}.example.com, or ends in that.
//
// A file has a head and exchanges. The head has comments, which say what the file tests, and one line "servers:" with the
// properties that a server must have for the file to hold. The value is all (no requirement), or some of keelson, kube-apiserver,
// typed, custom, cbor, without-cbor, crds (a server with CustomResourceDefinitions), and fast (a server without the race detector,
// for requests that could otherwise reach the timeout of a write, 34 s). A file for one kind of server has a comment with the
// reason.
//
//	# POST of an object that is there.
//	servers: all
//
//	### the second one is refused
//	POST /api/v1/namespaces/${ns}/configmaps
//	User-Agent: me/1.0
//
//	{"metadata": {"name": "a"}}
//
//	HTTP 409
//	Retry-After: 1
//
//	{"kind": "Status", ...}
//
// An exchange begins with "###" and a title, and may have comment lines. Then it has a request and its answer in the form of HTTP.
// A request may have
//
//	${ns}                  the namespace of the file
//	${rv1}, ${uid1}, ...   values of an earlier answer
//	${repeat 3 "ab"}       ababab
//
// These headers have default values: Authorization (an empty one sends no credential), User-Agent (wire/1) and, with a body,
// Content-Type (application/json, except for PATCH). Two headers are not sent. With "Wait: 1100ms" the request is sent that much
// later, so that the time in objects, which is in seconds, has changed. With "Within: 60s" the request is repeated for that time,
// until its answer matches the file: it waits for what the server does in the background, such as establishing a
// CustomResourceDefinition.
//
// A body whose Content-Type is one of CBOR is in the file as JSON, or as its bytes: h'd9d9f7a0'.
//
// Of an answer the code is compared, and the body as JSON. The order of the members of objects does not matter. The order of lists
// matters, except in managedFields, which the server sorts by time, and in the causes of a Status. After "HTTP 200 exact", and if
// the body is not JSON, it is compared byte for byte (an exact body on one line also ends with a line end). If the file has no
// body, the answer must have none. The headers in the file must be in the answer, all of a name and in their order. Warning,
// Retry-After and Location must not be in the answer if they are not in the file, and the Content-Type of JSON is
// application/json. A Location is compared as the path and query to which it leads. Of the answer to a watch as many events are read as the file has, and then the request is ended. After
// "HTTP 200 ends" the server has to end it after these events. Strings of an answer, and headers, may have
//
//	<uid>, <time>, <rv>    any uid, any time of this century in seconds, any resourceVersion
//	<any>                  any text. As the value of a member it is any value. As the name of a member it allows further members
//	                       in the object, such as those with defaults of kube-apiserver. As the last element of a list it
//	                       allows further elements between those in the file
//	<match ^x-[a-z]+$>     as a whole value: a text that matches
//	${rv1}, ${uid1}, ...   the same value as before. At its first use it is any value of its form, which is its name without
//	                       digits (rv, uid, time; others: any text), that is not the value of another variable of the form:
//	                       rv2 after rv1 means that there was a write

import (
	"crypto/tls"
	"crypto/x509"
	"flag"
	"io/fs"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/keelson-dev/keelson/runtime"
	"github.com/keelson-dev/keelson/server"
	"github.com/keelson-dev/keelson/server/builtin"
	"github.com/keelson-dev/keelson/server/builtin/accounts"
	"github.com/keelson-dev/keelson/server/builtin/rbac"
	authreviews "github.com/keelson-dev/keelson/server/builtin/reviews"
	"github.com/keelson-dev/keelson/server/crd"
	"github.com/keelson-dev/keelson/server/registry"
	"github.com/keelson-dev/keelson/server/servertest"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

var updateGolden = flag.Bool("update", false, "rewrite the answers in the golden files in testdata/wire")

const goldenFiles = "testdata/wire"

// goldenWidget is the Widget of the golden files.
type goldenWidget struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata,omitempty"`
	Spec              goldenSpec   `json:"spec,omitzero"`
	Status            goldenStatus `json:"status,omitzero"`
}

// DeepCopyObject implements runtime.Object.
func (w *goldenWidget) DeepCopyObject() runtime.Object { return runtime.DeepCopy(w) }

type goldenSpec struct {
	Size     int32    `json:"size,omitempty"`
	Color    string   `json:"color,omitempty"`
	Replicas *int32   `json:"replicas,omitempty"`
	Tags     []string `json:"tags,omitempty" listType:"set"`
	Parts    []struct {
		Name  string `json:"name"`
		Count int32  `json:"count,omitempty"`
	} `json:"parts,omitempty" listType:"map" listMapKey:"name"`
}

type goldenStatus struct {
	Ready    bool  `json:"ready,omitempty"`
	Replicas int32 `json:"replicas,omitempty"`
}

func goldenGroups() []server.Group {
	return []server.Group{
		{Name: "example.com", Versions: []server.Version{{Name: "v1", Resources: []server.Resource{
			server.Kind("Widget", server.KindOptions[*goldenWidget]{
				Strategy: registry.Strategy[*goldenWidget]{RequireResourceVersion: true}, // as custom resources do
				Scale:    &registry.Scale{SpecReplicas: ".spec.replicas", StatusReplicas: ".status.replicas"},
			}),
		}}}},
		untypedGolden(),
		{Name: "apps", Versions: []server.Version{{Name: "v1", Resources: []server.Resource{
			server.Kind("Deployment", server.KindOptions[*appsv1.Deployment]{ShortNames: []string{"deploy"}, Categories: []string{"all"}}),
		}}}},
		{Versions: []server.Version{{Name: "v1", Resources: []server.Resource{
			server.Kind("Service", server.KindOptions[*corev1.Service]{Strategy: registry.Strategy[*corev1.Service]{NoGeneration: true, ReturnDeleted: true}}),
			server.Kind("Pod", server.KindOptions[*corev1.Pod]{Strategy: registry.Strategy[*corev1.Pod]{ReturnDeleted: true}}),
		}}}},
	}
}

// installBuiltin gives a server the kinds that kube-apiserver has without a controller: namespaces that are deleted stay until
// something finalizes them.
func installBuiltin(t *testing.T, srv *servertest.Server) {
	t.Helper()
	if err := srv.Install(builtin.New(builtin.Options{NoControllers: true})); err != nil {
		t.Fatal(err)
	}
	for _, e := range []server.Extension{accounts.New(accounts.Options{NoControllers: true}), authreviews.New(authreviews.Options{})} {
		if err := srv.Install(e); err != nil {
			t.Fatal(err)
		}
	}
}

func TestGolden(t *testing.T) {
	t.Parallel()
	srv := servertest.Start(t, server.Options{Groups: goldenGroups()})
	installBuiltin(t, srv)
	collectGarbage(t, srv) // the collector itself is no part of this
	if err := srv.Install(rbac.New(rbac.Options{NoControllers: true})); err != nil {
		t.Fatal(err)
	}
	if err := srv.Install(crd.New(crd.Options{})); err != nil {
		t.Fatal(err)
	}
	runGolden(t, &goldenServer{
		url: srv.URL, client: srv.Anonymous(), token: srv.Token,
		is: map[string]bool{keelsonServer: true, typedWidgets: true, withoutCBOR: true, withCRDs: true},
	})
}

// TestGoldenCBOR is TestGolden for a server that serves CBOR, and the files about that.
func TestGoldenCBOR(t *testing.T) {
	t.Parallel()
	srv := servertest.Start(t, server.Options{Groups: goldenGroups(), CBOR: true})
	installBuiltin(t, srv)
	collectGarbage(t, srv)
	if err := srv.Install(rbac.New(rbac.Options{NoControllers: true})); err != nil {
		t.Fatal(err)
	}
	runGolden(t, &goldenServer{
		url: srv.URL, client: srv.Anonymous(), token: srv.Token, only: withCBOR,
		is: map[string]bool{keelsonServer: true, typedWidgets: true, withCBOR: true},
	})
}

func TestGoldenAtAddress(t *testing.T) {
	t.Parallel()
	url := os.Getenv("KEELSON_WIRE_SERVER")
	if url == "" {
		t.Skip("no KEELSON_WIRE_SERVER; see the top of golden_test.go")
	}
	config := &tls.Config{MinVersion: tls.VersionTLS12}
	if path := os.Getenv("KEELSON_WIRE_CA"); path != "" {
		ca, err := os.ReadFile(path)
		if err != nil {
			t.Fatal(err)
		}
		config.RootCAs = x509.NewCertPool()
		if !config.RootCAs.AppendCertsFromPEM(ca) {
			t.Fatalf("%s: no certificate in PEM", path)
		}
	}
	s := &goldenServer{
		url: strings.TrimSuffix(url, "/"), token: os.Getenv("KEELSON_WIRE_TOKEN"), is: map[string]bool{},
		client: &http.Client{Transport: &http.Transport{TLSClientConfig: config, ForceAttemptHTTP2: true}},
	}
	words, given := os.LookupEnv("KEELSON_WIRE_IS")
	if !given {
		words = keelsonServer + " " + typedWidgets
	}
	for _, word := range strings.Fields(words) {
		s.is[word] = true
	}
	s.is[withoutCBOR] = !s.is[withCBOR]
	if s.is[keelsonServer] == s.is[kubeServer] || s.is[typedWidgets] == s.is[customWidgets] || len(s.is) != 4 && s.is[withCBOR] || len(s.is) != 3 && !s.is[withCBOR] {
		t.Fatalf("KEELSON_WIRE_IS is %q; want keelson or kube-apiserver, and typed or custom, and perhaps cbor", words)
	}
	definitions, err := s.exchange(t.Context(), &step{method: "GET", target: "/apis/apiextensions.k8s.io/v1"}, nil)
	if err != nil {
		t.Fatal(err)
	}
	s.is[withCRDs] = definitions.code == http.StatusOK
	runGolden(t, s)
}

// runGolden makes the requests of every file that holds for the server.
func runGolden(t *testing.T, s *goldenServer) {
	s.client.CheckRedirect = func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }
	t.Cleanup(s.client.CloseIdleConnections)
	for _, path := range goldenPaths(t) {
		name := goldenName(path)
		t.Run(name, func(t *testing.T) {
			text, err := os.ReadFile(path)
			if err != nil {
				t.Fatal(err)
			}
			if !strings.Contains(string(text), "${etag") { // the others run first, since definitions change the documents of the server
				t.Parallel()
			}
			file, err := parseScenario(string(text))
			if err != nil {
				t.Fatalf("%s: %v", path, err)
			}
			if !file.holdsFor(s.is) || s.only != "" && !slices.Contains(file.servers, s.only) {
				t.Skipf("is about other servers: %s", strings.Join(file.servers, " "))
			}
			s.run(t, name, file)
			if *updateGolden && file.String() != string(text) {
				if err := os.WriteFile(path, []byte(file.String()), 0o644); err != nil {
					t.Fatal(err)
				}
			}
		})
	}
}

// goldenPaths returns the golden files.
func goldenPaths(t *testing.T) []string {
	t.Helper()
	var paths []string
	err := filepath.WalkDir(goldenFiles, func(path string, _ fs.DirEntry, err error) error {
		if filepath.Ext(path) == ".txt" {
			paths = append(paths, path)
		}
		return err
	})
	if err != nil || len(paths) == 0 {
		t.Fatalf("%s: %d files, %v", goldenFiles, len(paths), err)
	}
	return paths
}

// goldenName returns the name of a golden file.
func goldenName(path string) string {
	name, _ := filepath.Rel(goldenFiles, strings.TrimSuffix(path, ".txt"))
	return filepath.ToSlash(name)
}
