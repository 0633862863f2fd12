package writemodel

import (
	"bytes"
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"net/http"
	"net/http/httptest"
	"net/url"
	"reflect"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"
	"go.uber.org/zap"
	"go.uber.org/zap/zaptest"
	autoscalingv1 "k8s.io/api/autoscaling/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	apiruntime "k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/managedfields"
	"k8s.io/kube-openapi/pkg/validation/spec"
	kjson "sigs.k8s.io/json"

	"github.com/keelson-dev/keelson/runtime/schema"
	"github.com/keelson-dev/keelson/server"
)

// Options are the options of Run. Kinds is required.
type Options struct {
	// Kinds are the kinds to write.
	Kinds []Kind
	// Types returns the model's type converter for the kinds in a scheme. nil means a converter made from this project's
	// definitions.
	Types func(scheme *apiruntime.Scheme) (managedfields.TypeConverter, error)
	// Seed is the seed of the random numbers; 0 means a random seed, which a failure reports.
	Seed uint64
	// Objects is the number of objects of each kind, which are written one after the other; 0 means 10. Steps is the number of
	// requests to each; 0 means 40.
	Objects, Steps int
}

// Run writes to objects of every kind, each kind in a subtest. It fails t if the server differs from the model.
func Run(t *testing.T, o Options) {
	if o.Objects == 0 {
		o.Objects = 10
	}
	if o.Steps == 0 {
		o.Steps = 40
	}
	if o.Seed == 0 {
		o.Seed = rand.Uint64() | 1
	}
	definitions, names := define(o.Kinds)
	for i, k := range o.Kinds {
		t.Run(k.gvk.Kind, func(t *testing.T) {
			t.Parallel()
			m, err := newModelOf(o, k, definitions)
			if err != nil {
				t.Fatal(err)
			}
			synctest.Test(t, func(t *testing.T) { // the model and the server have the same time
				writeObjects(t, o, m, func(n int) *writer {
					g := &generator{rand.New(rand.NewPCG(o.Seed, uint64(i)<<32|uint64(n))), definitions, map[string][]string{}}
					return newWriter(g, k, names[k.goType], fmt.Sprint("x", n))
				})
			})
		})
	}
}

// writeObjects runs a server and writes to one object after the other.
func writeObjects(t *testing.T, o Options, m *model, writers func(n int) *writer) {
	srv, err := server.New(server.Options{Groups: groups(o.Kinds), Observe: server.Observe{Logger: zaptest.NewLogger(t, zaptest.Level(zap.ErrorLevel))}})
	if err != nil {
		t.Fatal(err)
	}
	done := map[int]int{}
	for n := range o.Objects {
		s := &session{t: t, server: srv, model: m, done: done, writer: writers(n)}
		if s.live(o.Steps); t.Failed() {
			t.Errorf("with Options.Seed %d", o.Seed)
			break
		}
	}
	if err := srv.Close(); err != nil {
		t.Error(err)
	}
	if all := o.Objects * o.Steps; !t.Failed() && (done[http.StatusOK] < all/5 || done[http.StatusConflict] == 0) {
		t.Errorf("%d requests were answered as follows, which tells little: %v", all, done)
	}
}

// session is the life of one object.
type session struct {
	t      *testing.T
	server *server.Server
	model  *model
	writer *writer
	now    map[string]any // the stored object; nil before the create
	log    []string       // of the last requests
	done   map[int]int    // number of requests by code of the answer
}

// live writes to the object until there is a difference.
func (s *session) live(steps int) {
	for range steps {
		if s.step(); s.t.Failed() {
			s.t.Logf("the last requests:\n%s", strings.Join(s.log, "\n"))
			return
		}
		time.Sleep(time.Duration(s.writer.IntN(1500)) * time.Millisecond)
	}
}

// define returns the definitions of the kinds, and their names.
func define(kinds []Kind) (map[string]spec.Schema, map[reflect.Type]string) {
	b, names := schema.NewBuilder(schema.Options{}), map[reflect.Type]string{}
	for _, k := range kinds {
		names[k.goType] = b.AddKind(schema.Kind{GVK: k.gvk, Type: k.goType})
	}
	b.AddKind(schema.Kind{GVK: scaleKind, Type: reflect.TypeFor[autoscalingv1.Scale]()})
	return b.Definitions(), names
}

func newModelOf(o Options, k Kind, definitions map[string]spec.Schema) (*model, error) {
	scheme := apiruntime.NewScheme()
	for _, k := range o.Kinds {
		scheme.AddKnownTypeWithName(k.gvk, k.new())
		if k.setDefault != nil {
			scheme.AddTypeDefaultingFunc(k.new(), k.setDefault)
		}
	}
	scheme.AddKnownTypeWithName(scaleKind, &autoscalingv1.Scale{})
	models := map[string]*spec.Schema{}
	for name, s := range definitions {
		models[name] = &s
	}
	ours, err := managedfields.NewTypeConverter(models, false)
	if err != nil {
		return nil, err
	}
	types := ours
	if o.Types != nil {
		if types, err = o.Types(scheme); err != nil {
			return nil, err
		}
	}
	m, err := newModel(k, scheme, types)
	if err == nil && k.scale != nil {
		m.scaler, err = newScaler(m, ours)
	}
	return m, err
}

// logged is the number of requests in a failure.
const logged = 3

// step sends one request and compares the results.
func (s *session) step() {
	r := s.writer.next(s.now)
	s.log = append(s.log, fmt.Sprintf("%s %s status=%t scale=%t manager=%q force=%t dryRun=%t: %s", r.method, r.contentType, r.status, r.scale, r.managerName(), r.force, r.dryRun, r.body))
	predict := s.model.predict
	if r.scale {
		predict = s.model.scaler.predict
	}
	want, err := predict(r, s.now)
	if err != nil {
		s.t.Errorf("model: %v", err)
		return
	}
	s.log = s.log[max(0, len(s.log)-logged):]
	code, answer := s.send(r)
	s.done[code]++
	if code != want.code && !(want.code == 0 && code >= 400 && code != http.StatusConflict && (code < 500 || want.unmergeable)) {
		if code == http.StatusUnprocessableEntity && invalid(answer) {
			s.unchanged()
			return // the model does not validate
		}
		s.t.Errorf("answer %d %s\nwant %d %v", code, answer, want.code, want.conflict)
		return
	}
	if code >= 400 {
		s.refused(want, answer)
		return
	}
	got := s.fields(answer)
	if r.scale {
		s.scaled(r, got, want.object)
		return
	}
	s.compare("answer", got, want.object)
	if r.dryRun {
		s.unchanged()
		return
	}
	before := s.now
	if s.now = s.get(); !reflect.DeepEqual(s.now, got) {
		s.t.Errorf("stored is not as answered (-stored +answered):\n%s", cmp.Diff(s.now, got))
	}
	if before == nil {
		return
	}
	same := reflect.DeepEqual(versionless(before), versionless(s.now))
	if kept := resourceVersion(before) == resourceVersion(s.now); kept != same {
		s.t.Errorf("resourceVersion kept: %t, object the same: %t", kept, same)
	}
}

// scaled compares the object after an update of the Scale.
func (s *session) scaled(r request, scale, want map[string]any) {
	replicas := func(fields map[string]any, path string) int64 {
		n, _, _ := unstructured.NestedInt64(fields, strings.Split(strings.TrimPrefix(path, "."), ".")...)
		return n
	}
	if got, want := replicas(scale, "spec.replicas"), replicas(want, s.writer.kind.scale.SpecReplicas); got != want {
		s.t.Errorf("scaled to %d, want %d", got, want)
	}
	if r.dryRun {
		s.unchanged()
		return
	}
	before, after := s.now, s.get()
	s.compare("scaled", after, want)
	s.now = after
	if same := reflect.DeepEqual(versionless(before), versionless(s.now)); same != (resourceVersion(before) == resourceVersion(s.now)) {
		s.t.Errorf("scaled object is the same: %t, but not its resourceVersion", same)
	}
}

// compare compares an object with the model's. Values that only the server can choose are taken from the answer.
func (s *session) compare(what string, got, want map[string]any) {
	for _, name := range []string{"uid", "creationTimestamp", "resourceVersion"} {
		take(want["metadata"].(map[string]any), got["metadata"].(map[string]any), name)
	}
	got, err := s.model.canonical(got)
	if err != nil {
		s.t.Errorf("%s: %v", what, err)
		return
	}
	if diff := cmp.Diff(want, got); diff != "" {
		s.t.Errorf("%s (-model +server):\n%s\nbefore: %s", what, diff, s.writer.encode(s.now))
	}
}

// refused compares the causes of a conflict, and checks that nothing has changed.
func (s *session) refused(want outcome, answer []byte) {
	var status metav1.Status
	if err := json.Unmarshal(answer, &status); err != nil {
		s.t.Errorf("answer %s: %v", answer, err)
		return
	}
	if want.conflict != nil {
		if diff := cmp.Diff([]any{want.conflict.Message, want.conflict.Reason, causes(want.conflict)}, []any{status.Message, status.Reason, causes(&status)}); diff != "" {
			s.t.Errorf("conflict (-model +server):\n%s", diff)
		}
	}
	s.unchanged()
}

// causes returns the causes sorted, because the library lists them in any order.
func causes(status *metav1.Status) []metav1.StatusCause {
	if status.Details == nil {
		return nil
	}
	return slices.SortedFunc(slices.Values(status.Details.Causes), func(a, b metav1.StatusCause) int {
		return strings.Compare(a.Field+a.Message, b.Field+b.Message)
	})
}

func (s *session) unchanged() {
	if now := s.get(); !reflect.DeepEqual(now, s.now) {
		s.t.Errorf("nothing was to be stored (-before +after):\n%s", cmp.Diff(s.now, now))
	}
}

// invalid reports whether an answer has only errors that the model does not check: of metadata, and of elements of a list of the
// program with the same key.
func invalid(answer []byte) bool {
	var status metav1.Status
	if json.Unmarshal(answer, &status) != nil || status.Details == nil || len(status.Details.Causes) == 0 {
		return false
	}
	return !slices.ContainsFunc(status.Details.Causes, func(c metav1.StatusCause) bool {
		return !strings.HasPrefix(c.Field, "metadata.") && c.Type != metav1.CauseTypeFieldValueDuplicate
	})
}

func (s *session) send(r request) (int, []byte) {
	query := url.Values{}
	if r.manager != "" {
		query.Set("fieldManager", r.manager)
	}
	if r.force {
		query.Set("force", "true")
	}
	if r.dryRun {
		query.Set("dryRun", "All")
	}
	path := s.writer.kind.path()
	if r.method != http.MethodPost {
		path += "/" + s.writer.name
	}
	if r.status {
		path += "/status"
	}
	if r.scale {
		path += "/scale"
	}
	req := httptest.NewRequest(r.method, path+"?"+query.Encode(), bytes.NewReader(r.body))
	req.Header.Set("User-Agent", r.userAgent)
	if req.Header.Set("Content-Type", "application/json"); r.contentType != "" {
		req.Header.Set("Content-Type", r.contentType)
	}
	return s.serve(req)
}

func (s *session) serve(req *http.Request) (int, []byte) {
	req.Header.Set("Authorization", "Bearer "+s.server.Credentials().Token)
	w := httptest.NewRecorder()
	s.server.Handler().ServeHTTP(w, req)
	return w.Code, w.Body.Bytes()
}

// get returns the object, or nil if there is none.
func (s *session) get() map[string]any {
	code, body := s.serve(httptest.NewRequest(http.MethodGet, s.writer.kind.path()+"/"+s.writer.name, nil))
	if code == http.StatusNotFound {
		return nil
	}
	if code != http.StatusOK {
		s.t.Errorf("GET: %d %s", code, body)
	}
	return s.fields(body)
}

func (s *session) fields(body []byte) map[string]any {
	out := map[string]any{}
	if err := kjson.UnmarshalCaseSensitivePreserveInts(body, &out); err != nil {
		s.t.Errorf("answer %s: %v", body, err)
	}
	return out
}

func resourceVersion(fields map[string]any) any {
	return fields["metadata"].(map[string]any)["resourceVersion"]
}

func versionless(fields map[string]any) map[string]any {
	out := apiruntime.DeepCopyJSON(fields)
	delete(out["metadata"].(map[string]any), "resourceVersion")
	return out
}
