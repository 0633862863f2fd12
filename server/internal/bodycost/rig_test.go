package bodycost_test

import (
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	goruntime "runtime"
	"strings"
	"testing"
	"time"

	"github.com/keelson-dev/keelson/server"
	"github.com/keelson-dev/keelson/server/builtin"
	"github.com/keelson-dev/keelson/server/builtin/rbac"
	"github.com/keelson-dev/keelson/server/crd"
	"github.com/keelson-dev/keelson/server/servertest"
	"google.golang.org/protobuf/encoding/protowire"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	apiruntime "k8s.io/apimachinery/pkg/runtime"
	cbor "k8s.io/apimachinery/pkg/runtime/serializer/cbor/direct"
)

// mostAllocated is the bound of this package: one request of at most bodySize bytes allocates no more, whatever its body is.
const (
	bodySize      = 3 << 20
	mostAllocated = 150 << 20
)

// request is a request to the rig.
type request struct{ name, method, path, contentType, body string }

const (
	jsonPatch      = "application/json-patch+json"
	mergePatch     = "application/merge-patch+json"
	strategicPatch = "application/strategic-merge-patch+json"
	applyPatch     = "application/apply-patch+yaml"
	yamlType       = "application/yaml"
	jsonType       = "application/json"
	cborType       = "application/cbor"
	protobufType   = "application/vnd.kubernetes.protobuf"

	configMaps = "/api/v1/namespaces/default/configmaps"
	pods       = "/api/v1/namespaces/default/pods"
	endpoints  = "/api/v1/namespaces/default/endpoints"
	secrets    = "/api/v1/namespaces/default/secrets"
	bindings   = "/apis/rbac.authorization.k8s.io/v1/clusterrolebindings"
	roles      = "/apis/rbac.authorization.k8s.io/v1/clusterroles"
	crds       = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions"
	things     = "/apis/e.example.com/v1/namespaces/default/things"
	frees      = "/apis/e.example.com/v1/namespaces/default/frees"
)

// rig is a server with kinds of Go types, roles, definitions and custom resources, with and without a schema. It is called in the
// process of the test, with one request at a time, so that all allocations of the process are those of the request.
type rig struct{ *servertest.Server }

func newRig(t testing.TB) rig {
	t.Helper()
	r := rig{servertest.Start(t, server.Options{CBOR: true}, parts()...)}
	if err := r.seed(); err != nil {
		t.Fatal(err)
	}
	return r
}

// seed makes the custom resources, and an object of each kind that is changed.
func (r rig) seed() error {
	return errors.Join(
		r.define("thing", "Thing", `{"type":"object","properties":{"spec":{"type":"object","properties":{
			"list":{"type":"array","items":{"type":"object"}},
			"strings":{"type":"array","items":{"type":"string"}},
			"defaulted":{"type":"array","items":{"type":"object","properties":{"a":{"type":"array","items":{"type":"integer"},"default":[1,2,3]},
				"c":{"type":"string","default":"some longer string"}}}}}}}}`),
		r.define("free", "Free", `{"type":"object","x-kubernetes-preserve-unknown-fields":true}`),
		r.make(things, `{"apiVersion":"e.example.com/v1","kind":"Thing","metadata":{"name":"a"},"spec":{}}`),
		r.make(frees, `{"apiVersion":"e.example.com/v1","kind":"Free","metadata":{"name":"a"},"spec":{}}`),
		r.make(configMaps, `{"metadata":{"name":"a"},"data":{"a":"b"}}`),
	)
}

// parts returns the kinds that are served, and the extensions that serve more.
func parts() []server.Extension {
	return []server.Extension{
		builtin.New(builtin.Options{NoControllers: true}), rbac.New(rbac.Options{}), crd.New(crd.Options{}),
		servertest.Types{AddToScheme: func(s *apiruntime.Scheme) error {
			b := apiruntime.NewSchemeBuilder(corev1.AddToScheme, appsv1.AddToScheme)
			return b.AddToScheme(s)
		}},
	}
}

func (r rig) define(name, kind, schema string) error {
	return r.make(crds, fmt.Sprintf(`{"apiVersion":"apiextensions.k8s.io/v1","kind":"CustomResourceDefinition","metadata":{"name":"%[1]ss.e.example.com"},"spec":{"group":"e.example.com",
		"scope":"Namespaced","names":{"plural":"%[1]ss","kind":"%[2]s"},"versions":[{"name":"v1","served":true,"storage":true,"schema":{"openAPIV3Schema":%[3]s}}]}}`, name, kind, schema))
}

// make creates an object, as soon as its kind is served.
func (r rig) make(path, body string) error {
	var got answer
	for range 500 {
		if got = r.send(request{method: "POST", path: path, contentType: jsonType, body: body}); got.code == http.StatusCreated {
			return nil
		}
		time.Sleep(20 * time.Millisecond)
	}
	return fmt.Errorf("POST %s: %d %s", path, got.code, got.head)
}

// answer has the cost of a request, and the beginning of its answer. It is a ResponseWriter.
type answer struct {
	header    http.Header
	code      int
	size      int
	head      []byte
	allocated uint64
	cpu       time.Duration // of the whole process
}

func (a *answer) Header() http.Header              { return a.header }
func (a *answer) SetReadDeadline(time.Time) error  { return nil }
func (a *answer) SetWriteDeadline(time.Time) error { return nil }
func (a *answer) Flush()                           {}

func (a *answer) WriteHeader(code int) {
	if a.code == 0 {
		a.code = code
	}
}

func (a *answer) Write(b []byte) (int, error) {
	a.WriteHeader(http.StatusOK)
	a.size += len(b)
	if most := 400; len(a.head) < most {
		a.head = append(a.head, b[:min(len(b), most)]...)
	}
	return len(b), nil
}

// send makes a request, and measures it.
func (r rig) send(q request) answer {
	req := httptest.NewRequest(q.method, q.path, nil)
	req.Body, req.ContentLength = io.NopCloser(strings.NewReader(q.body)), int64(len(q.body))
	req.ProtoMajor, req.ProtoMinor = 2, 0
	req.Header.Set("Authorization", "Bearer "+r.Token)
	req.Header.Set("Accept", jsonType)
	req.Header.Set("Content-Type", q.contentType)
	a := answer{header: http.Header{}}
	before, spent := allocated(), cpuTime()
	r.Handler().ServeHTTP(&a, req)
	a.allocated, a.cpu = allocated()-before, cpuTime()-spent
	return a
}

func allocated() uint64 {
	var m goruntime.MemStats
	goruntime.ReadMemStats(&m)
	return m.TotalAlloc
}

// fillTo repeats an item until the body has a size.
func fillTo(size int, head, item, tail string) string {
	n := max(0, size-len(head)-len(tail)-8) / len(item)
	return strings.TrimSuffix(head+strings.Repeat(item, n), ",") + tail
}

// fillEachTo is like fillTo, with items that differ and a comma between them.
func fillEachTo(size int, head, tail string, item func(i int) string) string {
	var b strings.Builder
	b.WriteString(head)
	for i := 0; ; i++ {
		next := item(i)
		if b.Len()+len(next)+len(tail)+8 > size {
			break
		}
		if i > 0 {
			b.WriteByte(',')
		}
		b.WriteString(next)
	}
	return b.String() + tail
}

// numbered is an item of fillEach.
func numbered(format string) func(int) string {
	return func(i int) string { return fmt.Sprintf(format, i) }
}

func selfDescribed(v any) string {
	b, err := cbor.Marshal(v)
	if err != nil {
		return err.Error()
	}
	return "\xd9\xd9\xf7" + string(b)
}

// enveloped wraps a protobuf message.
func enveloped(apiVersion, kind string, message []byte) string {
	u := apiruntime.Unknown{TypeMeta: apiruntime.TypeMeta{APIVersion: apiVersion, Kind: kind}, Raw: message}
	b, err := u.Marshal()
	if err != nil {
		return err.Error()
	}
	return "k8s\x00" + string(b)
}

// pb is a field of a protobuf message.
func pb(number int, content []byte) []byte {
	return protowire.AppendBytes(protowire.AppendTag(nil, protowire.Number(number), protowire.BytesType), content)
}
