package main

import (
	"encoding/json"
	"fmt"
	"net/http"
	"os"
	"reflect"
	"strings"
	"testing"
	"time"

	"github.com/keelson-dev/keelson/examples/bench/internal/etcdtest"
	"github.com/keelson-dev/keelson/examples/bench/internal/programtest"
	"github.com/keelson-dev/keelson/examples/bench/internal/widget"
)

const (
	base       = "/apis/bench.example.com/v1"
	collection = base + "/namespaces/nowhere/widgets"
	asJSON     = "application/json"
	merge      = "application/merge-patch+json"
	apply      = "application/apply-patch+yaml"
)

func TestMain(m *testing.M) { os.Exit(programtest.Main(m, main)) }

// start is programtest.Start on an etcd of its own.
func start(t *testing.T) *programtest.Process {
	t.Helper()
	return programtest.Start(t, "-addr", "127.0.0.1:0", "-token", "secret", "-etcd", etcdtest.Start(t))
}

// TestAlike checks that this server and keelson's give the same answers to the same requests, except for parts that are always
// new.
func TestAlike(t *testing.T) {
	servers := []*programtest.Process{
		start(t),
		programtest.StartFile(t, programtest.Build(t, "../keelson"), "-addr", "127.0.0.1:0", "-token", "secret", "-etcd", etcdtest.Start(t)),
	}
	spec := func(name, rest string) string {
		return fmt.Sprintf(`{"apiVersion":"bench.example.com/v1","kind":"Widget","metadata":{"name":%q}%s}`, name, rest)
	}
	stored := string(widget.JSON("nowhere", 1))
	first := collection + "/" + widget.Name(1)
	ownWords := map[string]string{ // texts that differ, with the reason
		"create of another kind": "it names the scheme, which has the name of a line of code here",
		"patch of another sort":  "the router refuses it here, and the handler there",
		"unknown path":           "a Status here, and the text of Go's own server there, as kube-apiserver has both",
	}
	var watches []*programtest.Watch
	for _, p := range servers {
		watches = append(watches, p.Watch(base+"/widgets?watch=1&resourceVersion=0"))
	}
	for _, r := range []struct {
		name, method, path, mediaType, body string
		code                                int
	}{
		{"create", "POST", collection + "?fieldManager=bench", asJSON, stored, 201},
		{"create again", "POST", collection, asJSON, stored, 409},
		{"create with a status", "POST", collection + "?fieldManager=bench", asJSON, spec("second", `,"spec":{"replicas":2},"status":{"ready":true}`), 201},
		{"create in another namespace", "POST", collection, asJSON, `{"metadata":{"name":"x","namespace":"elsewhere"}}`, 400},
		{"create without a name", "POST", collection, asJSON, `{"apiVersion":"bench.example.com/v1","kind":"Widget"}`, 422},
		{"create outside the rules", "POST", collection, asJSON, spec("third", `,"spec":{"size":1000001,"color":"`+strings.Repeat("x", 33)+`"}`), 422},
		{"create below the rules", "POST", collection, asJSON, spec("third", `,"spec":{"size":-1}`), 422},
		{"create of a wrong type", "POST", collection, asJSON, spec("third", `,"spec":{"size":"big"}`), 400},
		{"create with an unknown field", "POST", collection + "?fieldValidation=Strict", asJSON, spec("third", `,"spec":{"weight":1}`), 400},
		{"create of another kind", "POST", collection, asJSON, `{"apiVersion":"bench.example.com/v1","kind":"Gadget","metadata":{"name":"g"}}`, 400},
		{"create dry", "POST", collection + "?dryRun=All&fieldManager=bench", asJSON, spec("dry", ""), 201},
		{"get", "GET", first, "", "", 200},
		{"get at any revision", "GET", first + "?resourceVersion=0", "", "", 200},
		{"get none", "GET", collection + "/none", "", "", 404},
		{"list", "GET", collection, "", "", 200},
		{"list at any revision", "GET", base + "/widgets?resourceVersion=0", "", "", 200},
		{"list by label", "GET", base + "/widgets?labelSelector=group%3D" + widget.GroupOf(1), "", "", 200},
		{"list by name", "GET", collection + "?fieldSelector=metadata.name%3Dsecond", "", "", 200},
		{"list with a wrong selector", "GET", base + "/widgets?labelSelector=group%3D%3D%3D", "", "", 400},
		{"update", "PUT", collection + "/second?fieldManager=two", asJSON, spec("second", `,"spec":{"size":1,"replicas":3}`), 200},
		{"update nothing", "PUT", collection + "/second?fieldManager=two", asJSON, spec("second", `,"spec":{"size":1,"replicas":3}`), 200},
		{"update at another revision", "PUT", collection + "/second", asJSON, `{"apiVersion":"bench.example.com/v1","kind":"Widget","metadata":{"name":"second","resourceVersion":"1"}}`, 409},
		{"update none", "PUT", collection + "/none", asJSON, spec("none", ""), 404},
		{"update under another name", "PUT", collection + "/second", asJSON, spec("first", ""), 400},
		{"patch", "PATCH", first + "?fieldManager=two", merge, `{"spec":{"size":5},"metadata":{"labels":{"new":"yes"}}}`, 200},
		{"patch outside the rules", "PATCH", first, merge, `{"spec":{"size":-5}}`, 422},
		{"patch by operations", "PATCH", first + "?fieldManager=two", "application/json-patch+json", `[{"op":"replace","path":"/spec/color","value":"blue"}]`, 200},
		{"patch of another sort", "PATCH", first, "text/plain", `{}`, 415},
		{"apply with a conflict", "PATCH", first + "?fieldManager=three", apply, spec(widget.Name(1), `,"spec":{"size":6}`), 409},
		{"apply", "PATCH", first + "?fieldManager=three&force=true", apply, spec(widget.Name(1), `,"spec":{"size":6}`), 200},
		{"apply again", "PATCH", first + "?fieldManager=three", apply, spec(widget.Name(1), `,"spec":{"size":6}`), 200},
		{"apply less", "PATCH", first + "?fieldManager=three", apply, spec(widget.Name(1), ""), 200},
		{"apply a new one", "PATCH", collection + "/applied?fieldManager=three", apply, spec("applied", `,"spec":{"color":"red"}`), 201},
		{"status", "PATCH", first + "/status?fieldManager=ctl", merge, `{"status":{"ready":true,"replicas":3,"selector":"a=b"},"spec":{"size":8}}`, 200},
		{"get status", "GET", first + "/status", "", "", 200},
		{"get scale", "GET", first + "/scale", "", "", 200},
		{"scale", "PATCH", first + "/scale?fieldManager=hpa", merge, `{"spec":{"replicas":9}}`, 200},
		{"get after all", "GET", first, "", "", 200},
		{"delete", "DELETE", collection + "/second", "", "", 200},
		{"delete none", "DELETE", collection + "/second", "", "", 404},
		{"delete all", "DELETE", collection, "", "", 200},
		{"list nothing", "GET", collection, "", "", 200},
		{"unknown path", "GET", base + "/gadgets", "", "", 404},
	} {
		t.Run(r.name, func(t *testing.T) {
			var answers [2]programtest.Answer
			for i, p := range servers {
				answers[i] = p.Do(r.method, r.path, r.mediaType, r.body)
			}
			peer, ours := answers[0], answers[1]
			if peer.Code != ours.Code || peer.Code != r.code {
				t.Fatalf("codes are %d and %d, want %d:\n%s\n%s", peer.Code, ours.Code, r.code, peer.Body, ours.Body)
			}
			a, b := comparable(peer.Body), comparable(ours.Body)
			if why := ownWords[r.name]; why == "" && !reflect.DeepEqual(a, b) {
				t.Errorf("bodies differ: k8s.io/apiserver has\n%s\nkeelson has\n%s", indented(a), indented(b))
			}
		})
	}
	for n := range 9 {
		var events [2]string
		for i, w := range watches {
			kind, object := w.Next()
			events[i] = kind + " " + indented(comparable(string(object)))
		}
		if events[0] != events[1] {
			t.Errorf("event %d of the watch: k8s.io/apiserver has\n%s\nkeelson has\n%s", n, events[0], events[1])
		}
	}
}

// comparable returns a body without parts that are always new: uids and times.
func comparable(body string) any {
	var v any
	if err := json.Unmarshal([]byte(body), &v); err != nil {
		return body
	}
	return without(v, "uid", "creationTimestamp", "time")
}

func without(v any, names ...string) any {
	switch v := v.(type) {
	case map[string]any:
		for _, name := range names {
			delete(v, name)
		}
		for name := range v {
			v[name] = without(v[name], names...)
		}
	case []any:
		for i := range v {
			v[i] = without(v[i], names...)
		}
	}
	return v
}

func indented(v any) string {
	text, err := json.MarshalIndent(v, "", "  ")
	if err != nil {
		return fmt.Sprint(v)
	}
	return string(text)
}

// TestAccess checks the same access as keelson's, with API priority and fairness enabled.
func TestAccess(t *testing.T) {
	p := start(t)
	for _, path := range []string{"/healthz", "/livez", "/readyz", "/version"} {
		p.WithToken("").Get(path).Want(http.StatusOK)
	}
	for _, path := range []string{"/metrics", "/apis", "/openapi/v3", base + "/widgets"} {
		p.Get(path).Want(http.StatusOK)
		p.WithToken("").Get(path).Want(http.StatusForbidden, "system:anonymous")
		p.WithToken("guess").Get(path).Want(http.StatusUnauthorized)
	}
	p.Get("/metrics").Want(http.StatusOK, `apiserver_watch_cache_initializations_total{group="bench.example.com",resource="widgets"} 1`)
	// Flow schemas are read some time after the server is ready.
	const mine = `apiserver_flowcontrol_dispatched_requests_total{flow_schema="global-default",priority_level="global-default"}`
	for range 600 {
		if strings.Contains(p.Get("/metrics").Body, mine) {
			return
		}
		time.Sleep(100 * time.Millisecond)
	}
	t.Error("API priority and fairness does not take the user's requests for those of global-default")
}

// TestEnd checks that watches do not delay the end.
func TestEnd(t *testing.T) {
	p := start(t)
	p.Watch(base + "/widgets?watch=1")
	p.Stop().Want(0)
}

// TestMisuse checks that the program fails without an etcd.
func TestMisuse(t *testing.T) {
	programtest.Run(t).Want(2, "apiserver: -etcd is missing")
	programtest.Run(t, "-etcd", "http://127.0.0.1:1", "-cert", "x").Want(2, "apiserver: -cert and -key belong together")
}
