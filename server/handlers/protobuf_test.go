package handlers_test

import (
	"bytes"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/keelson-dev/keelson/runtime"
	"github.com/keelson-dev/keelson/runtime/codec"
	"github.com/keelson-dev/keelson/server/handlers"
	"github.com/keelson-dev/keelson/server/registry"
	"github.com/keelson-dev/keelson/storage"
	"github.com/keelson-dev/keelson/storage/memory"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	apiruntime "k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

const (
	protobufType   = "Content-Type: application/vnd.kubernetes.protobuf"
	acceptProtobuf = "Accept: application/vnd.kubernetes.protobuf"
	acceptEither   = "Accept: application/vnd.kubernetes.protobuf,application/json"
	maps           = "/api/v1/namespaces/default/configmaps"
)

// newHouseOf is a resource of a kind of k8s.io/api over a memory backend.
func newHouseOf[P runtime.Pointer[T], T any](t testing.TB, gvk schema.GroupVersionKind, resource string) *house {
	t.Helper()
	scheme := runtime.NewScheme()
	must(t, runtime.Register[P](scheme, gvk, runtime.KindOptions[P]{}))
	typed, err := codec.NewTyped(scheme, gvk)
	must(t, err)
	backend := memory.New(memory.Options{})
	t.Cleanup(func() { _ = backend.Close() })
	store, err := storage.NewStore(backend, storage.StoreOptions{Prefix: "/registry/" + resource, Codec: typed, Namespaced: true})
	must(t, err)
	reg, err := registry.New(registry.Options{
		Scheme: scheme, Kind: gvk, Resource: schema.GroupResource{Group: gvk.Group, Resource: resource},
		Namespaced: true, Storage: store, Strategy: registry.Erase(registry.Strategy[P]{}),
	})
	must(t, err)
	h, err := handlers.New(handlers.Options{
		Scheme: scheme, Resource: gvk.GroupVersion().WithResource(resource), Kind: gvk, Namespaced: true, Storage: reg,
	})
	must(t, err)
	return &house{Handler: h, backend: backend, registry: reg, resource: h}
}

func newMaps(t testing.TB) *house {
	return newHouseOf[*corev1.ConfigMap](t, corev1.SchemeGroupVersion.WithKind("ConfigMap"), "configmaps")
}

// sealed is a message in its envelope.
func sealed(t testing.TB, apiVersion, kind string, m interface{ Marshal() ([]byte, error) }) string {
	t.Helper()
	raw, err := m.Marshal()
	must(t, err)
	text, err := (&apiruntime.Unknown{TypeMeta: apiruntime.TypeMeta{APIVersion: apiVersion, Kind: kind}, Raw: raw}).Marshal()
	must(t, err)
	return "k8s\x00" + string(text)
}

// opened decodes an answer in protobuf. The answer must be of a kind.
func opened(t testing.TB, w *httptest.ResponseRecorder, code int, apiVersion, kind string, into interface {
	Reset()
	Unmarshal(message []byte) error
}) {
	t.Helper()
	var e apiruntime.Unknown
	rest, ok := bytes.CutPrefix(w.Body.Bytes(), []byte("k8s\x00"))
	if w.Code != code || w.Header().Get("Content-Type") != apiruntime.ContentTypeProtobuf || !ok {
		t.Fatalf("%d %v %q", w.Code, w.Header(), w.Body)
	}
	must(t, e.Unmarshal(rest))
	if e.APIVersion != apiVersion || e.Kind != kind {
		t.Errorf("the envelope says %+v", e.TypeMeta)
	}
	into.Reset() // otherwise decoding would keep the old fields
	must(t, into.Unmarshal(e.Raw))
}

func configMap(name, value string) *corev1.ConfigMap {
	return &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Name: name}, Data: map[string]string{"k": value}}
}

// Requests like those of a client of k8s.io/api's kinds: the client sends protobuf, and prefers it to JSON in answers.
func TestProtobuf(t *testing.T) {
	h := newMaps(t)
	var made, got corev1.ConfigMap
	opened(t, h.ask("POST", maps, sealed(t, "v1", "ConfigMap", configMap("a", "1")), protobufType, acceptEither), 201, "v1", "ConfigMap", &made)
	if made.UID == "" || made.ResourceVersion == "" || made.Namespace != "default" || made.Data["k"] != "1" {
		t.Errorf("%+v", made)
	}
	opened(t, h.ask("GET", maps+"/a", "", acceptProtobuf), 200, "v1", "ConfigMap", &got)
	if got.String() != made.String() {
		t.Errorf("got %s, made %s", &got, &made)
	}
	made.Data["k"] = "2"
	opened(t, h.ask("PUT", maps+"/a", sealed(t, "v1", "ConfigMap", &made), protobufType, acceptEither), 200, "v1", "ConfigMap", &got)
	if got.Data["k"] != "2" || got.ResourceVersion == made.ResourceVersion || got.UID != made.UID {
		t.Errorf("%+v", got)
	}
	wantStatus(t, h.ask("PUT", maps+"/a", sealed(t, "v1", "ConfigMap", &made), protobufType), 409, metav1.StatusReasonConflict,
		`Operation cannot be fulfilled on configmaps "a": the object has been modified; please apply your changes to the latest version and try again`)
	opened(t, h.ask("PATCH", maps+"/a", `{"data":{"k":"3"}}`, mergeType, acceptProtobuf), 200, "v1", "ConfigMap", &got)
	if got.Data["k"] != "3" {
		t.Errorf("%+v", got)
	}
	opened(t, h.ask("POST", maps+"?dryRun=All", sealed(t, "", "", configMap("b", strings.Repeat("x", 200_000))), protobufType, acceptEither), 201, "v1", "ConfigMap", &made)

	var list corev1.ConfigMapList
	opened(t, h.ask("GET", maps+"?limit=1", "", acceptEither), 200, "v1", "ConfigMapList", &list)
	if len(list.Items) != 1 || list.Items[0].String() != got.String() || list.ResourceVersion != h.now(t) {
		t.Errorf("%s", &list)
	}
	var status metav1.Status
	opened(t, h.ask("GET", maps+"/b", "", acceptProtobuf), 404, "v1", "Status", &status)
	if status.Message != `configmaps "b" not found` || status.Reason != metav1.StatusReasonNotFound || status.Code != 404 {
		t.Errorf("%s", &status)
	}
	uid := got.UID
	opts := &metav1.DeleteOptions{Preconditions: &metav1.Preconditions{UID: &uid}}
	opened(t, h.ask("DELETE", maps+"/a", sealed(t, "v1", "DeleteOptions", opts), protobufType, acceptEither), 200, "v1", "Status", &status)
	if status.Status != metav1.StatusSuccess || status.Details.UID != uid || status.Code != 0 {
		t.Errorf("%s", &status)
	}
	opened(t, h.ask("GET", maps, "", acceptProtobuf), 200, "v1", "ConfigMapList", &list)
	if len(list.Items) != 0 {
		t.Errorf("%s", &list)
	}
}

// A long answer is compressed in protobuf, too.
func TestProtobufIsCompressed(t *testing.T) {
	h := newMaps(t)
	for _, name := range []string{"a", "b"} {
		if w := h.ask("POST", maps, sealed(t, "v1", "ConfigMap", configMap(name, strings.Repeat("x", 100_000))), protobufType); w.Code != 201 {
			t.Fatalf("%d %s", w.Code, w.Body)
		}
	}
	w := h.ask("GET", maps, "", acceptProtobuf, "Accept-Encoding: gzip")
	if w.Header().Get("Content-Encoding") != "gzip" || w.Header().Get("Content-Type") != apiruntime.ContentTypeProtobuf || w.Body.Len() > 10_000 {
		t.Errorf("%v, %d bytes", w.Header(), w.Body.Len())
	}
}

// Tables are not available in protobuf. The answer is JSON, or 406 if the client accepts only protobuf.
func TestProtobufForms(t *testing.T) {
	h := newMaps(t)
	if w := h.ask("POST", maps, sealed(t, "v1", "ConfigMap", configMap("a", "1")), protobufType); w.Code != 201 || w.Header().Get("Content-Type") != "application/json" {
		t.Fatalf("%d %s", w.Code, w.Body)
	}
	const asMetadata, asTable = ";as=PartialObjectMetadata;g=meta.k8s.io;v=v1", ";as=Table;g=meta.k8s.io;v=v1"
	for _, c := range []struct{ target, accept, mediaType, message string }{
		{maps + "/a", acceptProtobuf + asMetadata + ",application/json" + asMetadata, "application/vnd.kubernetes.protobuf", ""},
		{maps + "/a", acceptProtobuf + asTable + ",application/json" + asTable, "application/json", ""},
		{maps + "/a", acceptProtobuf + asTable, "", "only the following media types are accepted: application/json, application/yaml, application/vnd.kubernetes.protobuf"},
		{maps, acceptProtobuf + ";as=Table;g=meta.k8s.io;v=v1", "", "only the following media types are accepted: application/json, application/yaml, application/vnd.kubernetes.protobuf"},
		{maps + "/a", "Accept: application/json;q=0.5,application/vnd.kubernetes.protobuf", "application/vnd.kubernetes.protobuf", ""},
		{maps + "/a", "Accept: application/json,application/vnd.kubernetes.protobuf", "application/json", ""},
		{maps + "/a", "Accept: */*", "application/json", ""},
		{maps + "?watch=1&timeoutSeconds=1&resourceVersion=" + h.now(t), acceptEither, "application/vnd.kubernetes.protobuf;stream=watch", ""},
		{maps + "?watch=1&timeoutSeconds=1&resourceVersion=" + h.now(t), acceptProtobuf + ";stream=watch", "application/vnd.kubernetes.protobuf;stream=watch", ""},
		{maps + "?watch=1", acceptProtobuf + asTable, "", "only the following media types are accepted: application/json, application/yaml, application/vnd.kubernetes.protobuf"},
	} {
		w := h.ask("GET", c.target, "", c.accept)
		if c.message == "" {
			if w.Code != 200 || w.Header().Get("Content-Type") != c.mediaType {
				t.Errorf("%s %s: %d %v", c.target, c.accept, w.Code, w.Header())
			}
			continue
		}
		message := w.Body.String()
		if w.Header().Get("Content-Type") == apiruntime.ContentTypeProtobuf {
			var status metav1.Status
			opened(t, w, 406, "v1", "Status", &status)
			message = status.Message
		}
		if w.Code != 406 || !strings.Contains(message, c.message) {
			t.Errorf("%s %s: %d %s", c.target, c.accept, w.Code, message)
		}
	}
}

func TestProtobufBodyRefused(t *testing.T) {
	h := newMaps(t)
	good := sealed(t, "v1", "ConfigMap", configMap("a", "1"))
	for name, c := range map[string]struct{ body, message string }{
		"nothing":         {"", "the object provided is unrecognized (must be of type ConfigMap): empty data (<empty>)"},
		"the mark":        {"k8s\x00", "the object provided is unrecognized (must be of type ConfigMap): empty body (6b387300)"},
		"no envelope":     {good[20:], "the object provided is unrecognized (must be of type ConfigMap): provided data does not appear to be a protobuf message, expected prefix [107 56 115 0] ("},
		"cut":             {good[:len(good)-5], "the object provided is unrecognized (must be of type ConfigMap): unexpected EOF (6b3873000a0f0a0276311209436f6e6669674d6170"},
		"an overflow":     {"k8s\x00" + strings.Repeat("\xff", 12), "the object provided is unrecognized (must be of type ConfigMap): proto: integer overflow (6b387300ffffffffffffffffffffffff)"},
		"another kind":    {sealed(t, "v1", "Secret", configMap("a", "1")), `Secret in version "v1" cannot be handled as a ConfigMap: no kind "Secret" is registered`},
		"another version": {sealed(t, "v2", "ConfigMap", configMap("a", "1")), `ConfigMap in version "v2" cannot be handled as a ConfigMap: no kind "ConfigMap" is registered for version "v2"`},
		"another message": {sealed(t, "v1", "ConfigMap", &metav1.ObjectMeta{Name: "a"}), `ConfigMap in version "v1" cannot be handled as a ConfigMap: `},
	} {
		for method, target := range map[string]string{"POST": maps, "PUT": maps + "/a"} {
			w := h.ask(method, target, c.body, protobufType)
			s := decodeStatus(t, w.Body.Bytes())
			if w.Code != 400 || s.Reason != metav1.StatusReasonBadRequest || !strings.HasPrefix(s.Message, c.message) {
				t.Errorf("%s: %s: %d %s", name, method, w.Code, w.Body)
			}
		}
	}
	for body, message := range map[string]string{
		"k8s\x00":     "empty body",
		"{}":          "provided data does not appear to be a protobuf message, expected prefix [107 56 115 0]",
		good[:20]:     "unexpected EOF",
		"k8s\x00\xff": "unexpected EOF",
		sealed(t, "v1", "ConfigMap", &metav1.DeleteOptions{}): `no kind "ConfigMap" is registered for version "v1" in scheme "keelson"`,
	} {
		wantStatus(t, h.ask("DELETE", maps+"/a", body, protobufType), 400, metav1.StatusReasonBadRequest, message)
	}
}

// A kind whose Go type has no protobuf form neither accepts nor returns protobuf, except for the options of a delete.
func TestProtobufOfPlainType(t *testing.T) {
	h := newHouse(t, tune{})
	h.make(t, "a")
	const refused = "the body of the request was in an unknown format - accepted media types include: application/json, application/yaml"
	body := sealed(t, "example.com/v1", "Widget", &metav1.ObjectMeta{Name: "b"})
	wantStatus(t, h.ask("POST", base, body, protobufType), 415, metav1.StatusReasonUnsupportedMediaType, refused)
	wantStatus(t, h.ask("PUT", base+"/a", body, protobufType), 415, metav1.StatusReasonUnsupportedMediaType, refused)
	if w := h.ask("GET", base+"/a", "", acceptEither); w.Code != 200 || w.Header().Get("Content-Type") != "application/json" {
		t.Errorf("%d %v", w.Code, w.Header())
	}
	var status metav1.Status
	opened(t, h.ask("GET", base+"/a", "", acceptProtobuf), 406, "v1", "Status", &status)
	if want := "only the following media types are accepted: application/json, application/yaml"; status.Message != want {
		t.Errorf("%s", &status)
	}
	if w := h.ask("GET", base+"/a/scale", "", acceptProtobuf); w.Code != 200 || w.Header().Get("Content-Type") != apiruntime.ContentTypeProtobuf {
		t.Errorf("scale, whose type has protobuf: %d %v", w.Code, w.Header())
	}
	all := sealed(t, "example.com/v1", "DeleteOptions", &metav1.DeleteOptions{DryRun: []string{metav1.DryRunAll}})
	for _, target := range []string{base + "/a", base} {
		if w := h.ask("DELETE", target, all, protobufType, acceptEither); w.Code != 200 || w.Header().Get("Content-Type") != "application/json" {
			t.Errorf("%s: %d %s", target, w.Code, w.Body)
		}
	}
	if w := h.ask("GET", base+"/a", ""); w.Code != 200 {
		t.Errorf("what was to be tried was done: %d", w.Code)
	}
}

func FuzzProtobufBody(f *testing.F) {
	revisions := "/apis/apps/v1/namespaces/default/controllerrevisions"
	houses := map[string]*house{
		maps:      newMaps(f),
		revisions: newHouseOf[*appsv1.ControllerRevision](f, appsv1.SchemeGroupVersion.WithKind("ControllerRevision"), "controllerrevisions"),
	}
	f.Add([]byte(sealed(f, "v1", "ConfigMap", configMap("a", "1"))))
	f.Add([]byte(sealed(f, "apps/v1", "ControllerRevision", &appsv1.ControllerRevision{ObjectMeta: metav1.ObjectMeta{Name: "a", ManagedFields: []metav1.ManagedFieldsEntry{
		{Manager: "m", Operation: metav1.ManagedFieldsOperationUpdate, APIVersion: "apps/v1", FieldsType: "FieldsV1", FieldsV1: metav1.NewFieldsV1(`{"f:revision":{}}`)},
	}}, Data: apiruntime.RawExtension{Raw: []byte("{}")}, Revision: 1})))
	f.Add([]byte(sealed(f, "v1", "DeleteOptions", &metav1.DeleteOptions{DryRun: []string{"All"}})))
	f.Add([]byte("k8s\x00"))
	for base, h := range houses {
		if w := h.ask("POST", base, `{"metadata":{"name":"a"},"revision":1}`); w.Code != 201 {
			f.Fatalf("%d %s", w.Code, w.Body)
		}
	}
	f.Fuzz(func(t *testing.T, body []byte) {
		for base, h := range houses {
			for method, target := range map[string]string{"POST": base, "PUT": base + "/a", "DELETE": base + "/a"} {
				r := httptest.NewRequest(method, target+"?dryRun=All", bytes.NewReader(body))
				r.Header.Set("Content-Type", apiruntime.ContentTypeProtobuf)
				r.Header.Set("Accept", apiruntime.ContentTypeProtobuf)
				w := httptest.NewRecorder()
				h.ServeHTTP(w, r)
				if w.Code >= http.StatusInternalServerError {
					t.Errorf("%s %s %q: %d %s", method, target, body, w.Code, w.Body)
				}
			}
		}
	})
}
