package conversion_test

import (
	"bytes"
	"crypto/tls"
	"crypto/x509"
	"encoding/json"
	"fmt"
	"io"
	"log"
	"net/http"
	"os"
	"regexp"
	"strings"
	"testing"
	"time"
)

func silentLog() *log.Logger { return log.New(io.Discard, "", 0) }

// golden has the answers to clients that write and read an object in a version that is not stored.
type golden struct {
	Write clientAnswer `json:"write"`
	Read  clientAnswer `json:"read"`
}

// clientAnswer is the answer to a client: the code, and the message and reason of an error, or the relevant parts of the
// object.
type clientAnswer struct {
	Code    int    `json:"code"`
	Reason  string `json:"reason,omitempty"`
	Message string `json:"message,omitempty"`
	Object  any    `json:"object,omitempty"`
}

const (
	goldenFile  = "testdata/kube-apiserver.json"
	requestFile = "testdata/request.json"
)

// TestRecord records the answers of a kube-apiserver in the golden file. It runs only if KUBE_APISERVER, KUBE_APISERVER_CA (a
// file) and KUBE_APISERVER_TOKEN (of an administrator) are set; the server must be on this machine. KUBE_APISERVER_ONLY selects
// the lies whose names contain it.
func TestRecord(t *testing.T) {
	server := os.Getenv("KUBE_APISERVER")
	if server == "" {
		t.Skip("KUBE_APISERVER is not set")
	}
	ca, err := os.ReadFile(os.Getenv("KUBE_APISERVER_CA"))
	if err != nil {
		t.Fatal(err)
	}
	roots := x509.NewCertPool()
	roots.AppendCertsFromPEM(ca)
	c := &http.Client{Transport: &http.Transport{TLSClientConfig: &tls.Config{RootCAs: roots, MinVersion: tls.VersionTLS12}}, Timeout: time.Minute}
	ask := func(method, path string, body any) (int, map[string]any) {
		t.Helper()
		data, err := json.Marshal(body)
		if err != nil {
			t.Fatal(err)
		}
		req, err := http.NewRequestWithContext(t.Context(), method, server+path, bytes.NewReader(data))
		if err != nil {
			t.Fatal(err)
		}
		req.Header.Set("Content-Type", "application/json")
		req.Header.Set("Authorization", "Bearer "+os.Getenv("KUBE_APISERVER_TOKEN"))
		resp, err := c.Do(req)
		if err != nil {
			t.Error(err)
			return 0, nil
		}
		defer func() { _ = resp.Body.Close() }()
		out := map[string]any{}
		_ = json.NewDecoder(resp.Body).Decode(&out)
		return resp.StatusCode, out
	}
	only, all := os.Getenv("KUBE_APISERVER_ONLY"), lies()
	h := startHooks(t, all)
	out := readGolden(t)
	for _, l := range all {
		if !strings.Contains(l.name, only) {
			continue
		}
		group := fmt.Sprintf("%s.%d.w.example.com", l.name, time.Now().UnixNano())
		const crds = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions"
		if code, answer := ask("POST", crds, definitionFor(l, h, group)); code != 201 {
			t.Fatalf("%s: %d %v", l.name, code, answer)
		}
		thing := func(version string) map[string]any {
			return map[string]any{
				"apiVersion": group + "/" + version, "kind": "Thing", "spec": map[string]any{"size": 3},
				"metadata": map[string]any{"name": "a", "labels": map[string]any{"old": "label"}, "annotations": map[string]any{"old": "one"}},
			}
		}
		hear := func(code int, answer map[string]any) clientAnswer {
			if code < 300 {
				return clientAnswer{Code: code, Object: gist(answer)}
			}
			reason, _ := answer["reason"].(string)
			message, _ := answer["message"].(string)
			return clientAnswer{Code: code, Reason: reason, Message: anonymous(message, group)}
		}
		var g golden
		for range 100 {
			g.Write = hear(ask("POST", "/apis/"+group+"/v2/namespaces/default/things", thing("v2")))
			if g.Write.Code != 404 {
				break
			}
			time.Sleep(50 * time.Millisecond)
		}
		if code, answer := ask("POST", "/apis/"+group+"/v1/namespaces/default/things", thing("v1")); code != 201 && code != 409 {
			t.Fatalf("%s: the object could not be created: %d %v", l.name, code, answer)
		}
		g.Read = hear(ask("GET", "/apis/"+group+"/v2/namespaces/default/things/a", nil))
		out[l.name] = g
		t.Logf("%s: %+v", l.name, g)
		ask("DELETE", "/apis/"+group+"/v1/namespaces/default/things/a", nil)
		ask("DELETE", crds+"/things."+group, nil)
	}
	if only == "right" {
		writeJSON(t, requestFile, requestSeen(t, h))
	}
	writeJSON(t, goldenFile, out)
}

// readGolden reads the recorded answers.
func readGolden(t testing.TB) map[string]golden {
	t.Helper()
	out := map[string]golden{}
	data, err := os.ReadFile(goldenFile)
	if err != nil {
		t.Fatal(err)
	}
	if err := json.Unmarshal(data, &out); err != nil {
		t.Fatal(err)
	}
	return out
}

// requestSeen is the first request that the webhooks saw.
func requestSeen(t testing.TB, h *hooks) seen {
	t.Helper()
	got := <-h.seen
	var asked review
	if err := json.Unmarshal([]byte(got.Body), &asked); err != nil {
		t.Fatal(err)
	}
	version, _ := asked.request()["desiredAPIVersion"].(string)
	group, _, _ := strings.Cut(version, "/")
	got.Body = anonymous(got.Body, group)
	got.Header.Set("Content-Length", "N")
	return got
}

func writeJSON(t testing.TB, file string, value any) {
	t.Helper()
	data, err := json.MarshalIndent(value, "", " ")
	if err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(file, append(data, '\n'), 0o600); err != nil {
		t.Fatal(err)
	}
}

// definitionFor returns a definition of things in the versions v1, which is stored, and v2, whose webhook answers with a lie.
func definitionFor(l lie, h *hooks, group string) map[string]any {
	versions := []any{"v1"}
	if l.beta {
		versions = []any{"v1beta1"}
	}
	client := map[string]any{"url": h.url(l)}
	if bundle := h.trusted(l); bundle != nil {
		client["caBundle"] = bundle
	}
	version := func(name string) map[string]any {
		return map[string]any{
			"name": name, "served": true, "storage": name == "v1",
			"schema": map[string]any{"openAPIV3Schema": map[string]any{"type": "object", "x-kubernetes-preserve-unknown-fields": true}},
		}
	}
	return map[string]any{
		"apiVersion": "apiextensions.k8s.io/v1", "kind": "CustomResourceDefinition", "metadata": map[string]any{"name": "things." + group},
		"spec": map[string]any{
			"group": group, "scope": "Namespaced", "names": map[string]any{"plural": "things", "kind": "Thing"},
			"versions": []any{version("v1"), version("v2")},
			"conversion": map[string]any{
				"strategy": "Webhook", "webhook": map[string]any{"clientConfig": client, "conversionReviewVersions": versions},
			},
		},
	}
}

// gist returns the parts of an object that a conversion may change.
func gist(object map[string]any) map[string]any {
	metadata, _ := object["metadata"].(map[string]any)
	version, _ := object["apiVersion"].(string)
	_, version, _ = strings.Cut(version, "/")
	return map[string]any{
		"version": version, "kind": object["kind"], "spec": object["spec"], "name": metadata["name"], "labels": metadata["labels"],
		"annotations": metadata["annotations"], "generation": metadata["generation"], "finalizers": metadata["finalizers"],
	}
}

// anonymous returns a message without parts that differ between runs.
func anonymous(message, group string) string {
	message = strings.ReplaceAll(message, group, "GROUP")
	for pattern, with := range map[string]string{
		`127\.0\.0\.1:\d+`: "ADDRESS",
		`[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}`: "UID",
		`\d{4}-\d\d-\d\dT[\d:]+Z`:                                      "TIME",
		`timeout=\w+`:                                                  "timeout=TIMEOUT",
		`stream ID \d+`:                                                "stream ID N",
		`revision=\d+`:                                                 "revision=N",
	} {
		message = regexp.MustCompile(pattern).ReplaceAllString(message, with)
	}
	return message
}
