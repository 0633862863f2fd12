package server_test

import (
	"context"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"net/http"
	"net/url"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/keelson-dev/keelson/runtime"
	"github.com/keelson-dev/keelson/server"
	"github.com/keelson-dev/keelson/server/registry"
	"github.com/keelson-dev/keelson/server/servertest"
	"github.com/keelson-dev/keelson/storage"
	"github.com/keelson-dev/keelson/storage/bolt"
	"github.com/keelson-dev/keelson/storage/memory"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	apiruntime "k8s.io/apimachinery/pkg/runtime"
)

// The kinds of TestOddNames. Pebbles have names by the usual rule; shells and wrecks may have any names.
type (
	Pebble = runtime.Resource[struct {
		Size int `json:"size,omitempty"`
	}, struct {
		Wet bool `json:"wet,omitempty"`
	}]
	Shell = runtime.Resource[struct {
		Size int32 `json:"size,omitempty"`
	}, struct {
		Wet bool `json:"wet,omitempty"`
	}]
	Wreck = runtime.Resource[struct {
		Size int64 `json:"size,omitempty"`
	}, struct {
		Wet bool `json:"wet,omitempty"`
	}]
)

func anyName(string, bool) []string { return nil }

// oddGroups are groups of kinds whose names reach a storage in several ways.
func oddGroups(t *testing.T) server.Options {
	t.Helper()
	scheme := runtime.NewScheme()
	kinds, err := scheme.Import(corev1.AddToScheme)
	noError(t, err)
	at := slices.IndexFunc(kinds, func(k *runtime.Kind) bool { return k.GVK.Kind == "ConfigMap" })
	return server.Options{
		Scheme: scheme,
		Groups: []server.Group{
			{Versions: []server.Version{{Name: "v1", Resources: []server.Resource{
				server.ImportedKind(kinds[at], server.KindOptions[runtime.Object]{Strategy: registry.Strategy[runtime.Object]{ValidateName: anyName, CreateOnUpdate: true}}),
			}}}},
			{Name: "beach.example.com", Versions: []server.Version{{Name: "v1", Resources: []server.Resource{
				server.Kind("Pebble", server.KindOptions[*Pebble]{}),
				server.Kind("Shell", server.KindOptions[*Shell]{Strategy: registry.Strategy[*Shell]{ValidateName: anyName, CreateOnUpdate: true}}),
				server.Kind("Wreck", server.KindOptions[*Wreck]{Strategy: registry.Strategy[*Wreck]{ValidateName: anyName, CreateOnUpdate: true}, ClusterScoped: true, NoCache: true}),
			}}}},
		},
	}
}

// A name or a namespace with any bytes, in any place of a request, gets an answer that is not an error of the server. An object
// that is created can be read by its name.
func TestOddNames(t *testing.T) {
	t.Parallel()
	backends := map[string]func(context.Context) (storage.Backend, error){
		"memory": memory.Open(),
		"bolt": func(context.Context) (storage.Backend, error) {
			return bolt.Open(filepath.Join(t.TempDir(), "db"), bolt.Options{})
		},
	}
	names := []string{
		"\x00", "a\x00b", "a\x00", "\xff\xfe", "a\xffb", "\xed\xa0\x80", "a\nb", "\x7f", "\u202e", "\U0001F600", "\ufffd", "a b", "a+b", "a?b#c", "a&b=c", `a"b`, `a\b`, "a;b", "a,b=c",
		".", "..", "...", "a/b", "/", "a%2Fb", "%", "%00", strings.Repeat("n", 254), strings.Repeat("ä", 200), strings.Repeat("l", 33<<10), strings.Repeat("v", 70<<10),
	}
	for name, open := range backends {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			o := oddGroups(t)
			o.Storage = open
			srv := servertest.Start(t, o)
			for _, k := range []struct {
				kind, group, plural string
				namespaced, free    bool
			}{
				{"Pebble", "/apis/beach.example.com/v1", "pebbles", true, false},
				{"Shell", "/apis/beach.example.com/v1", "shells", true, true},
				{"Wreck", "/apis/beach.example.com/v1", "wrecks", false, true},
			} {
				for _, odd := range names {
					list := k.group + "/" + k.plural
					if k.namespaced {
						list = k.group + "/namespaces/default/" + k.plural
					}
					oddName(t, srv, strings.TrimPrefix(strings.TrimPrefix(k.group, "/apis/"), "/api/"), k.kind, list, odd, k.free)
					if k.namespaced {
						oddNamespace(t, srv, k.group, k.plural, odd)
					}
				}
			}
			for _, odd := range names {
				oddProtobuf(t, srv, odd)
			}
		})
	}
}

// rawJSON returns a JSON string of s, with the bytes of s unchanged where JSON allows this.
func rawJSON(s string) string {
	escaped := strings.NewReplacer(`\`, `\\`, `"`, `\"`, "\n", `\n`, "\x00", `\u0000`, "\x7f", `\u007f`).Replace(s)
	return `"` + escaped + `"`
}

// shortened returns a name for messages.
func shortened(s string) string { return fmt.Sprintf("%.40q", s) }

func answered(t *testing.T, srv *servertest.Server, what, method, path, body string, header ...string) (int, string) {
	t.Helper()
	code, text := tryCall(t, srv.Client(), method, srv.URL+path, body, header...)
	if code == 0 || code >= 500 {
		t.Errorf("%s, %s %.80s: %d %.300s", what, method, path, code, text)
	}
	return code, text
}

func oddName(t *testing.T, srv *servertest.Server, apiVersion, kind, list, odd string, free bool) {
	t.Helper()
	at := list + "/" + url.PathEscape(odd)
	what := kind + " " + shortened(odd)
	object := func(meta string) string {
		return fmt.Sprintf(`{"apiVersion":%q,"kind":%q,"metadata":{%s}}`, apiVersion, kind, meta)
	}
	named := object(`"name":` + rawJSON(odd))
	selector := "?fieldSelector=" + url.QueryEscape("metadata.name="+odd)
	token := func(start string) string {
		text, err := json.Marshal(map[string]any{"v": "meta.k8s.io/v1", "rv": 1, "start": start})
		noError(t, err)
		return base64.RawURLEncoding.EncodeToString(text)
	}
	// There is no object of the name.
	for _, path := range []string{at, at + "/status"} {
		if code, text := answered(t, srv, what, "GET", path, ""); code != http.StatusNotFound && code != http.StatusBadRequest && odd != "." && odd != ".." {
			t.Errorf("%s: GET of what is not there: %d %.200s", what, code, text)
		}
	}
	for _, step := range []struct{ method, path, body, contentType string }{
		{"DELETE", at, "", ""},
		{"PATCH", at, `{"metadata":{"labels":{"a":"b"}}}`, mergePatchType},
		{"PATCH", at, `[{"op":"add","path":"/metadata/labels","value":{}}]`, "application/json-patch+json"},
		{"PATCH", at + "/status", `{}`, mergePatchType},
		{"PUT", at + "/status", named, "application/json"},
		{"GET", list + selector, "", ""},
		{"GET", list + selector + "&resourceVersion=0", "", ""},
		{"GET", list + selector + "&limit=1", "", ""},
		{"GET", list + selector + "&watch=true&timeoutSeconds=1&resourceVersion=999999999999999999999", "", ""},
		{"DELETE", list + selector, "", ""},
		{"GET", list + "?labelSelector=" + url.QueryEscape("a="+odd), "", ""},
		{"GET", list + "?resourceVersion=" + url.QueryEscape(odd), "", ""},
		{"GET", list + "?continue=" + url.QueryEscape(odd), "", ""},
		{"GET", list + "?limit=1&continue=" + token(odd), "", ""},
		{"GET", list + "?limit=1&continue=" + token("default/"+odd), "", ""},
		{"GET", at + "?resourceVersion=" + url.QueryEscape(odd), "", ""},
		{"POST", list, object(`"generateName":` + rawJSON(odd)), "application/json"},
	} {
		if step.contentType == "" {
			step.contentType = "application/json"
		}
		if len(step.path) > 200<<10 {
			continue // too long for any server
		}
		answered(t, srv, what, step.method, step.path, step.body, "Content-Type", step.contentType)
	}
	for _, step := range []struct{ method, path, body, contentType string }{
		{"POST", list, named, "application/json"},
		{"PUT", at, named, "application/json"},
		{"PUT", at, object(""), "application/json"},
		{"PATCH", at + "?fieldManager=m", object(""), "application/apply-patch+yaml"},
	} {
		code, text := answered(t, srv, what, step.method, step.path, step.body, "Content-Type", step.contentType)
		if code >= 300 {
			continue
		}
		if code == http.StatusCreated && !free && !strings.HasPrefix(odd, "n") {
			t.Errorf("%s: %s of a name that the kind does not have: %d %.200s", what, step.method, code, text)
		}
		var made struct{ Metadata struct{ Name string } }
		noError(t, json.Unmarshal([]byte(text), &made))
		there := list + "/" + url.PathEscape(made.Metadata.Name)
		if code, text := answered(t, srv, what, "GET", there, ""); code != http.StatusOK {
			t.Errorf("%s: GET of what %s has made: %d %.200s", what, step.method, code, text)
		}
		if code, text := answered(t, srv, what, "GET", list+"?fieldSelector="+url.QueryEscape("metadata.name="+strings.NewReplacer(`\`, `\\`, `,`, `\,`, `=`, `\=`).Replace(made.Metadata.Name)), ""); code != http.StatusOK || !strings.Contains(text, `"uid"`) {
			t.Errorf("%s: LIST of what %s has made: %d %.300s", what, step.method, code, text)
		}
		answered(t, srv, what, "GET", list+"?limit=1", "")
		if code, text := answered(t, srv, what, "DELETE", there, ""); code != http.StatusOK {
			t.Errorf("%s: DELETE of what %s has made: %d %.200s", what, step.method, code, text)
		}
	}
	answered(t, srv, what, "GET", list, "")
	answered(t, srv, what, "DELETE", list, "")
}

func oddNamespace(t *testing.T, srv *servertest.Server, group, plural, odd string) {
	t.Helper()
	list := group + "/namespaces/" + url.PathEscape(odd) + "/" + plural
	what := plural + " in " + shortened(odd)
	for _, step := range []struct{ method, path, body, contentType string }{
		{"GET", list, "", ""},
		{"GET", list + "/a", "", ""},
		{"GET", list + "?limit=1", "", ""},
		{"POST", list, `{"metadata":{"name":"a"}}`, "application/json"},
		{"POST", list, `{"metadata":{"name":"a","namespace":` + rawJSON(odd) + `}}`, "application/json"},
		{"POST", group + "/namespaces/default/" + plural, `{"metadata":{"name":"a","namespace":` + rawJSON(odd) + `}}`, "application/json"},
		{"PUT", list + "/a", `{"metadata":{"name":"a"}}`, "application/json"},
		{"PATCH", list + "/a", `{}`, mergePatchType},
		{"DELETE", list + "/a", "", ""},
		{"DELETE", list, "", ""},
		{"GET", group + "/" + plural + "?fieldSelector=" + url.QueryEscape("metadata.namespace="+odd), "", ""},
		{"GET", group + "/" + plural + "?fieldSelector=" + url.QueryEscape("metadata.name=a,metadata.namespace="+odd), "", ""},
	} {
		code, text := answered(t, srv, what, step.method, step.path, step.body, "Content-Type", step.contentType)
		if code == http.StatusCreated {
			t.Errorf("%s: %s: created: %.200s", what, step.method, text)
		}
	}
}

// oddProtobuf sends a name in protobuf, in which a string may have any bytes.
func oddProtobuf(t *testing.T, srv *servertest.Server, odd string) {
	t.Helper()
	const list = "/api/v1/namespaces/default/configmaps"
	body := func(m metav1.ObjectMeta) string {
		raw, err := (&corev1.ConfigMap{ObjectMeta: m}).Marshal()
		noError(t, err)
		envelope, err := (&apiruntime.Unknown{TypeMeta: apiruntime.TypeMeta{APIVersion: "v1", Kind: "ConfigMap"}, Raw: raw}).Marshal()
		noError(t, err)
		return "k8s\x00" + string(envelope)
	}
	at := list + "/" + url.PathEscape(odd)
	for _, step := range []struct {
		method, path string
		meta         metav1.ObjectMeta
	}{
		{"POST", list, metav1.ObjectMeta{Name: odd}},
		{"PUT", at, metav1.ObjectMeta{Name: odd}},
		{"PUT", at, metav1.ObjectMeta{}},
		{"POST", list, metav1.ObjectMeta{Name: "a", Namespace: odd}},
		{"POST", list, metav1.ObjectMeta{GenerateName: odd}},
	} {
		code, text := answered(t, srv, "ConfigMap "+shortened(odd), step.method, step.path, body(step.meta), "Content-Type", inProtobuf, "Accept", "application/json")
		if code >= 300 {
			continue
		}
		if strings.ContainsRune(odd, 0) {
			t.Errorf("%s of %s in protobuf: %d %.200s", step.method, shortened(odd), code, text)
		}
		var made struct{ Metadata struct{ Name string } }
		noError(t, json.Unmarshal([]byte(text), &made)) // invalid UTF-8 becomes another name, as in JSON
		if code, text := answered(t, srv, "ConfigMap "+shortened(odd), "DELETE", list+"/"+url.PathEscape(made.Metadata.Name), ""); code != http.StatusOK {
			t.Errorf("DELETE of %s, made in protobuf: %d %.200s", shortened(odd), code, text)
		}
	}
	answered(t, srv, "ConfigMap "+shortened(odd), "GET", list, "", "Accept", inProtobuf)
}
