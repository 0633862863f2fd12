package crd_test

import (
	"bytes"
	"compress/gzip"
	"crypto/sha256"
	"crypto/tls"
	"crypto/x509"
	"encoding/base64"
	"encoding/json"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/keelson-dev/keelson/server/crd"
	"github.com/keelson-dev/keelson/server/servertest"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"sigs.k8s.io/yaml"
)

// corpusLife has the answers of kube-apiserver in the life of a definition's sample object.
type corpusLife struct {
	Definition string       `json:"definition"`
	Path       string       `json:"path"` // of the case in the answers that has the sample
	Answers    []lifeAnswer `json:"answers"`
	// Schemas are hashes of the schemas in OpenAPI, by version.
	Schemas map[string]string `json:"schemas"`
}

// TestCorpusLife executes the life of an object of each definition of well-known projects, and compares all answers with those of
// kube-apiserver. Definitions with a conversion webhook have the same webhook here and there: see corpusWebhook.
//
// With CORPUS_SERVER, CORPUS_CA and CORPUS_TOKEN in the environment, it records the answers of that server instead. With
// CORPUS_WHOLE as well, no answer is recorded as a hash.
func TestCorpusLife(t *testing.T) {
	t.Parallel()
	files, err := filepath.Glob("testdata/corpus/*.yaml.gz")
	if err != nil || len(files) < 10 {
		t.Fatalf("%d files, %v", len(files), err)
	}
	live := os.Getenv("CORPUS_SERVER")
	for _, file := range files {
		project := strings.TrimSuffix(file, ".yaml.gz")
		t.Run(filepath.Base(project), func(t *testing.T) {
			hook := newCorpusWebhook(t)
			definitions := corpusDefinitions(t, unzipped(t, file), hook)
			if live != "" {
				recordLives(t, live, project, definitions)
				return
			}
			if testing.Short() && len(hook.storage) == 0 {
				t.Skip("the projects with a webhook do")
			}
			t.Parallel()
			srv := servertest.New(t, crd.New(crd.Options{}))
			if _, err := srv.Define(t.Context(), servertest.CRDs{Objects: definitions}); err != nil {
				t.Fatal(err)
			}
			got := lives(t, srv.URL, srv.Client(), project, definitions)
			var want []corpusLife
			if err := json.Unmarshal(unzipped(t, project+".lives.json.gz"), &want); err != nil {
				t.Fatal(err)
			}
			compareLives(t, got, want)
			if (len(hook.storage) > 0) != (hook.objects.Load() > 0) {
				t.Errorf("the webhook converted %d objects of %d definitions", hook.objects.Load(), len(hook.storage))
			}
		})
	}
}

// compareLives says where lives differ.
func compareLives(t *testing.T, got, want []corpusLife) {
	t.Helper()
	if len(got) != len(want) {
		t.Fatalf("%d lives, want %d", len(got), len(want))
	}
	for i, w := range want {
		g := got[i]
		if g.Definition != w.Definition || g.Path != w.Path || len(g.Answers) != len(w.Answers) {
			t.Errorf("life %d is of %s, %s with %d steps, want %s, %s with %d", i, g.Definition, g.Path, len(g.Answers), w.Definition, w.Path, len(w.Answers))
			continue
		}
		for j, a := range w.Answers {
			switch now := g.Answers[j].Code; {
			case a.Step == "let go" && g.Definition == "gitrepositories.source.toolkit.fluxcd.io":
				continue // in kube-apiserver the last answer to a PATCH has the defaults of its own version, here those of the stored one
			case a.Code == http.StatusInternalServerError && now >= 400 && now < 500 && strings.HasPrefix(a.Step, "apply labels"):
				continue // kube-apiserver fails to update the managed fields of another version
			}
			if d := difference("", decoded(t, g.Answers[j]), decoded(t, a)); d != "" {
				t.Errorf("%s, %s: %.1500s", g.Definition, a.Step, d)
				if g.Answers[j].full != nil {
					t.Logf("the body is %.3000s", short(g.Answers[j].full))
				}
			}
		}
		for version, hash := range w.Schemas {
			if g.Schemas[version] != hash {
				t.Errorf("%s: the schema of %s in OpenAPI is another one than kube-apiserver's", g.Definition, version)
			}
		}
	}
}

// decoded returns an answer as JSON.
func decoded(t *testing.T, a lifeAnswer) (out any) {
	t.Helper()
	text, err := json.Marshal(a)
	if err == nil {
		err = json.Unmarshal(text, &out)
	}
	if err != nil {
		t.Fatal(err)
	}
	return out
}

// lives executes the life of a sample object of each definition. The sample is the largest object that the project's answers
// created, if it is not too large and has no null: kube-apiserver drops nulls in a create, and refuses them in an apply.
func lives(t *testing.T, url string, client *http.Client, project string, definitions []*apiextensionsv1.CustomResourceDefinition) (out []corpusLife) {
	t.Helper()
	var cases []corpusCase
	if err := json.Unmarshal(unzipped(t, project+".answers.json.gz"), &cases); err != nil {
		t.Fatal(err)
	}
	for _, d := range definitions {
		l := &lifetime{t: t, url: url, client: client, definition: d}
		life := corpusLife{Definition: d.Name, Schemas: map[string]string{}}
		most := 0
		for _, v := range d.Spec.Versions {
			l.version = v
			at := l.collection(v.Name)
			for _, c := range cases {
				const enough = 6000
				text := short(c.Object)
				if size := len(text); c.Path == at && c.Code == http.StatusCreated && size > most && size < enough && !strings.Contains(text, "null") {
					most, l.sample, life.Path = size, c.Object, at
				}
			}
		}
		if l.sample == nil {
			continue // no object was created
		}
		for _, v := range d.Spec.Versions {
			if l.version = v; l.collection(v.Name) == life.Path {
				break
			}
		}
		l.lead()
		life.Answers = l.answers
		for _, v := range l.served() {
			life.Schemas[v] = l.schema(v)
		}
		out = append(out, life)
	}
	if len(out) == 0 {
		t.Error("no definition has a sample")
	}
	return out
}

// schema returns the hash of a version's schema in OpenAPI, and checks that the schema has all fields of the sample.
func (l *lifetime) schema(version string) string {
	gv := l.definition.Spec.Group + "/" + version
	var components map[string]any
	var found map[string]any
	for deadline := time.Now().Add(time.Minute); ; time.Sleep(100 * time.Millisecond) { // kube-apiserver publishes them later
		doc := l.ask(http.MethodGet, "/openapi/v3/apis/"+gv, asJSON, asJSON, nil)
		components, _ = member(doc.body, "components", "schemas").(map[string]any)
		for _, s := range components {
			kinds, _ := member(s, "x-kubernetes-group-version-kind").([]any)
			if len(kinds) == 1 && member(kinds[0], "kind") == l.definition.Spec.Names.Kind && member(kinds[0], "version") == version {
				found, _ = s.(map[string]any)
			}
		}
		if found != nil || time.Now().After(deadline) {
			break
		}
	}
	if version == l.version.Name {
		if field := undescribed("", l.sample, found, components); field != "" {
			l.t.Errorf("%s: OpenAPI does not describe %s of %s", l.definition.Name, field, gv)
		}
	}
	return hashOf(found)
}

// hashOf returns a short hash of a value.
func hashOf(value any) string {
	sum := sha256.Sum256([]byte(short(value)))
	return base64.RawStdEncoding.EncodeToString(sum[:6])
}

// undescribed returns a field of a value that a schema lacks, or "".
func undescribed(path string, value any, schema, components map[string]any) string {
	if ref, ok := schema["$ref"].(string); ok {
		schema, _ = components[strings.TrimPrefix(ref, "#/components/schemas/")].(map[string]any)
	}
	if all, ok := schema["allOf"].([]any); ok && len(all) == 1 && schema["properties"] == nil {
		first, _ := all[0].(map[string]any)
		return undescribed(path, value, first, components)
	}
	if schema["x-kubernetes-preserve-unknown-fields"] == true || schema["x-kubernetes-embedded-resource"] == true {
		return ""
	}
	switch v := value.(type) {
	case map[string]any:
		for name, inner := range v {
			of, ok := member(schema, "properties", name).(map[string]any)
			if !ok {
				of, ok = schema["additionalProperties"].(map[string]any)
			}
			if !ok {
				return path + "." + name
			}
			if field := undescribed(path+"."+name, inner, of, components); field != "" {
				return field
			}
		}
	case []any:
		items, _ := schema["items"].(map[string]any)
		for _, item := range v {
			if field := undescribed(path+"[]", item, items, components); field != "" {
				return field
			}
		}
	}
	return ""
}

// corpusDefinitions decodes definitions. Those with a conversion webhook get hook in place of their project's webhook.
func corpusDefinitions(t *testing.T, text []byte, hook *corpusWebhook) (out []*apiextensionsv1.CustomResourceDefinition) {
	t.Helper()
	for _, part := range strings.Split("\n"+string(text), "\n---") {
		d := new(apiextensionsv1.CustomResourceDefinition)
		if err := yaml.Unmarshal([]byte(part), d); err != nil {
			t.Fatal(err)
		}
		if d.Name == "" {
			continue
		}
		if c := d.Spec.Conversion; c != nil && c.Strategy == apiextensionsv1.WebhookConverter {
			c.Webhook.ClientConfig = &apiextensionsv1.WebhookClientConfig{URL: new(hook.URL + "/convert"), CABundle: hook.ca()}
			hook.stored(d)
		}
		out = append(out, d)
	}
	slices.SortFunc(out, func(a, b *apiextensionsv1.CustomResourceDefinition) int { return strings.Compare(a.Name, b.Name) })
	return out
}

// recordLives records the answers of a kube-apiserver. It deletes definitions that exist already.
func recordLives(t *testing.T, url, project string, definitions []*apiextensionsv1.CustomResourceDefinition) {
	t.Helper()
	ca, err := os.ReadFile(os.Getenv("CORPUS_CA"))
	if err != nil {
		t.Fatal(err)
	}
	pool := x509.NewCertPool()
	pool.AppendCertsFromPEM(ca)
	transport := &http.Transport{TLSClientConfig: &tls.Config{RootCAs: pool, MinVersion: tls.VersionTLS12}, ForceAttemptHTTP2: true}
	client := &http.Client{Transport: tokenTransport{os.Getenv("CORPUS_TOKEN"), transport}}
	defer client.CloseIdleConnections()
	clear := func() {
		for _, d := range definitions {
			deleteDefinition(t, client, url, d.Name)
		}
	}
	clear()
	defer clear()
	if _, err := servertest.DefineAt(t.Context(), url, client, servertest.CRDs{Objects: definitions}); err != nil {
		t.Fatal(err)
	}
	all := lives(t, url, client, project, definitions)
	var text bytes.Buffer
	w, err := gzip.NewWriterLevel(&text, gzip.BestCompression)
	if err != nil {
		t.Fatal(err)
	}
	if err := json.NewEncoder(w).Encode(all); err != nil {
		t.Fatal(err)
	}
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(project+".lives.json.gz", text.Bytes(), 0o600); err != nil {
		t.Fatal(err)
	}
	codes := map[int]int{}
	for _, life := range all {
		for _, a := range life.Answers {
			codes[a.Code]++
		}
	}
	t.Logf("%d lives of %d definitions, %d bytes, %v", len(all), len(definitions), text.Len(), codes)
}

// deleteDefinition deletes a definition and waits until it is gone.
func deleteDefinition(t *testing.T, client *http.Client, url, name string) {
	t.Helper()
	path := url + "/apis/apiextensions.k8s.io/v1/customresourcedefinitions/" + name
	for method, deadline := http.MethodDelete, time.Now().Add(time.Minute); ; method = http.MethodGet {
		req, err := http.NewRequestWithContext(t.Context(), method, path, nil)
		if err != nil {
			t.Fatal(err)
		}
		resp, err := client.Do(req)
		if err != nil {
			t.Fatal(err)
		}
		_ = resp.Body.Close()
		if resp.StatusCode == http.StatusNotFound {
			return
		}
		if time.Now().After(deadline) {
			t.Fatalf("%s is still there", name)
		}
		time.Sleep(50 * time.Millisecond)
	}
}

// tokenTransport is a transport that adds a token.
type tokenTransport struct {
	token string
	next  http.RoundTripper
}

// RoundTrip implements http.RoundTripper.
func (r tokenTransport) RoundTrip(req *http.Request) (*http.Response, error) {
	req = req.Clone(req.Context())
	req.Header.Set("Authorization", "Bearer "+r.token)
	return r.next.RoundTrip(req)
}

// CloseIdleConnections is what http.Client.CloseIdleConnections calls.
func (r tokenTransport) CloseIdleConnections() {
	if t, ok := r.next.(*http.Transport); ok {
		t.CloseIdleConnections()
	}
}
