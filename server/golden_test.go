package server_test

// Golden files of the wire: what a server answers to requests that write, file by file in testdata/wire. The files
// hold for kube-apiserver as for Keelson, where their heads do not say otherwise, and run against both.
//
//	go test ./server -run 'TestGolden$'                  # against a server in memory
//	go test ./server -run 'TestGolden$/apply' -update    # and rewrite the answers in the files, for review
//
// To run them against any server, give its address, a bearer token of somebody who may do everything, the CA that
// signed its certificate (else those that the system trusts are asked), and what it is:
//
//	KEELSON_WIRE_SERVER=https://127.0.0.1:6443 KEELSON_WIRE_TOKEN=... KEELSON_WIRE_CA=ca.crt \
//	KEELSON_WIRE_IS="kube-apiserver custom" go test ./server -run TestGoldenAtAddress
//
// KEELSON_WIRE_IS is "keelson typed" unless it is given: either keelson or kube-apiserver, and either typed, when the
// server's Widget is a Go type, or custom, when it is a custom resource, and cbor where it serves that. The server must serve v1 ConfigMap, Secret, Event,
// Service and Pod, apps/v1 Deployment, coordination.k8s.io/v1 Lease, events.k8s.io/v1 Event, the kinds of
// rbac.authorization.k8s.io/v1 and example.com/v1 Widget;
// goldenWidget below is its type, and testdata/wire/widget.crd.yaml is the same as a custom resource; and for the files below
// untyped, what testdata/wire/untyped.crd.yaml has. Each file has a
// namespace of its own, which is made if the server has namespaces, and what is in it is deleted at the end, and so are the
// CustomResourceDefinitions with the name of the namespace in theirs: their group is ${ns}.example.com, or ends in that.
//
// A file has a head and exchanges. The head is comments, which say what the file shows, and one line "servers:" with
// what a server must be for the file to hold: all (nothing in particular), or some of keelson, kube-apiserver, typed,
// custom, cbor, without-cbor, crds, which is a server of CustomResourceDefinitions, and fast, which is one without the race
// detector: for requests that would meet the 34 s of a write otherwise. A file for one kind of server says why in a comment.
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
// An exchange begins with "###" and a title, perhaps comment lines, and then is a request and its answer as HTTP writes
// them. In a request
//
//	${ns}                  is the namespace of the file
//	${rv1}, ${uid1}, ...   is what an earlier answer brought
//	${repeat 3 "ab"}       is ababab
//
// and these headers have values unless they are given: Authorization (an empty one: nobody), User-Agent (wire/1) and,
// with a body, Content-Type (application/json, other than for PATCH). A header "Wait: 1100ms" is not sent: the request is
// made that much later, so that the clock, which objects show in seconds, has moved on. With a header "Within: 60s", which is
// not sent either, a request is made again and again until its answer is the one in the file, for so long: it waits for what
// the server does by itself, such as to establish a CustomResourceDefinition.
//
// A body whose Content-Type is one of CBOR stands in the file as JSON, or as its bytes: h'd9d9f7a0'.
//
// Of an answer the code is compared, and the body as JSON: members of objects in any order, lists in theirs, other than
// managedFields, which the server sorts by time, and the causes of a Status. After "HTTP 200 exact", and when it is no
// JSON, the body is compared byte for byte (an exact body on one line ends with a line end too). No body in the file:
// none is to come. The headers in the file must come, all of a name and in their order. Warning, Retry-After and Location
// must not come if they are not in the file, and the Content-Type of JSON is application/json. Of the answer to a watch as
// many events are read as the file has, and then the request is ended; after "HTTP 200 ends" the server has to end it after
// these events. In strings of an answer, and in headers,
//
//	<uid>, <time>, <rv>    is any uid, any time of this century in seconds, any resourceVersion
//	<any>                  is any text; as the value of a member it is any value, and as a member's name it says that an
//	                       object may have other members too, such as those that kube-apiserver gives a default; as the
//	                       last element of a list it says that others may stand between those in the file
//	<match ^x-[a-z]+$>     is, as a whole value, what matches
//	${rv1}, ${uid1}, ...   is what it was before, or where it comes up first anything of its form (its name without
//	                       digits: rv, uid, time; others, any text) that is not the value of another variable of the
//	                       form: rv2 after rv1 shows that there was a write

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
	"github.com/keelson-dev/keelson/server/builtin/rbac"
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
}

func TestGolden(t *testing.T) {
	t.Parallel()
	srv := servertest.Start(t, server.Options{Groups: goldenGroups()})
	installBuiltin(t, srv)
	collectGarbage(t, srv) // the collector itself is no part of this
	if err := srv.Install(rbac.New(rbac.Options{})); err != nil {
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
	if err := srv.Install(rbac.New(rbac.Options{})); err != nil {
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
	for _, path := range paths {
		name, _ := filepath.Rel(goldenFiles, strings.TrimSuffix(path, ".txt"))
		t.Run(filepath.ToSlash(name), func(t *testing.T) {
			t.Parallel()
			text, err := os.ReadFile(path)
			if err != nil {
				t.Fatal(err)
			}
			file, err := parseScenario(string(text))
			if err != nil {
				t.Fatalf("%s: %v", path, err)
			}
			if !file.holdsFor(s.is) || s.only != "" && !slices.Contains(file.servers, s.only) {
				t.Skipf("is about other servers: %s", strings.Join(file.servers, " "))
			}
			s.run(t, file)
			if *updateGolden && file.String() != string(text) {
				if err := os.WriteFile(path, []byte(file.String()), 0o644); err != nil {
					t.Fatal(err)
				}
			}
		})
	}
}
