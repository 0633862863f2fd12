package crd_test

import (
	"bufio"
	"bytes"
	"encoding/json"
	"io"
	"net/http"
	"net/url"
	"os"
	"slices"
	"strings"
	"testing"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
)

// lifeAnswer is the answer to one step of an object's life, without parts that differ between servers.
type lifeAnswer struct {
	Step     string   `json:"step"`
	Code     int      `json:"code"`
	Warnings []string `json:"warnings,omitempty"`
	// Body is a hash if the definition has no conversion webhook, because there are too many of these.
	Body any `json:"body,omitempty"`

	full any // the body of which Body is the hash
}

// lifetime is a sample object of a definition, with the state of its life.
type lifetime struct {
	t      *testing.T
	url    string
	client *http.Client

	definition *apiextensionsv1.CustomResourceDefinition
	version    apiextensionsv1.CustomResourceDefinitionVersion // of the sample
	sample     map[string]any
	answers    []lifeAnswer
	mixed      bool // there were writes in another version than the sample's
}

// lead executes the whole life of an object: it is created, applied, replaced, patched, read in all versions and as tables,
// watched, scaled and deleted.
func (l *lifetime) lead() {
	created := l.named("made")
	l.do("create", http.MethodPost, l.collection(l.version.Name)+"?fieldManager=creator&fieldValidation=Strict", asJSON, created)
	l.apply()
	l.replace()
	l.read()
	l.watch()
	l.subresources()
	l.end()
}

const asJSON, asMergePatch, asApply = "application/json", "application/merge-patch+json", "application/apply-patch+yaml"

// apply applies a new object, an existing one, and one of another manager.
func (l *lifetime) apply() {
	path := l.item(l.version.Name, "applied") + "?fieldValidation=Strict&fieldManager="
	first := l.named("applied")
	l.do("apply new", http.MethodPatch, path+"applier", asApply, first)
	labels := first["metadata"].(map[string]any)
	labels["labels"] = map[string]any{"corpus": "first"}
	l.do("apply more", http.MethodPatch, path+"applier", asApply, first)
	l.do("apply the same", http.MethodPatch, path+"applier", asApply, first)
	rival := l.named("applied")
	rival["metadata"].(map[string]any)["labels"] = map[string]any{"corpus": "second"}
	changeLeaf(rival["spec"])
	l.do("apply in conflict", http.MethodPatch, path+"rival", asApply, rival)
	l.do("apply by force", http.MethodPatch, path+"rival&force=true", asApply, rival)
	l.do("apply less", http.MethodPatch, path+"applier&force=true", asApply, l.named("applied"))
	for _, v := range l.served() {
		if v == l.version.Name {
			continue
		}
		l.do("apply labels in "+v, http.MethodPatch, l.item(v, "applied")+"?fieldManager=other-"+v, asApply, map[string]any{
			"apiVersion": l.definition.Spec.Group + "/" + v, "kind": l.definition.Spec.Names.Kind,
			"metadata": map[string]any{"name": "applied", "labels": map[string]any{"other": v}},
		})
	}
	l.do("get what is applied", http.MethodGet, l.item(l.version.Name, "applied"), asJSON, nil)
}

// replace writes the object back with changes, in all versions, and patches it.
func (l *lifetime) replace() {
	for _, v := range l.served() {
		object := l.get(v, "made")
		if object == nil {
			continue
		}
		setAnnotation(object, "corpus/replaced", v)
		l.do("replace in "+v, http.MethodPut, l.item(v, "made")+"?fieldManager=replacer", asJSON, object)
		l.do("replace again in "+v, http.MethodPut, l.item(v, "made")+"?fieldManager=replacer", asJSON, object) // a conflict
		l.do("patch in "+v, http.MethodPatch, l.item(v, "made")+"?fieldManager=patcher", asMergePatch,
			map[string]any{"metadata": map[string]any{"labels": map[string]any{"patched": v}}})
	}
	if object := l.get(l.version.Name, "made"); object != nil && changeLeaf(object["spec"]) {
		l.do("replace with a change", http.MethodPut, l.item(l.version.Name, "made")+"?fieldManager=replacer", asJSON, object)
	}
	l.do("patch an unknown field", http.MethodPatch, l.item(l.version.Name, "made")+"?fieldManager=patcher&fieldValidation=Strict", asMergePatch,
		map[string]any{"noSuchField": true})
}

// read gets and lists in all versions, as objects and as tables.
func (l *lifetime) read() {
	const table, metadata = "application/json;as=Table;v=v1;g=meta.k8s.io", "application/json;as=PartialObjectMetadata;v=v1;g=meta.k8s.io"
	for _, v := range l.served() {
		l.do("get in "+v, http.MethodGet, l.item(v, "made"), asJSON, nil)
		l.do("list in "+v, http.MethodGet, l.collection(v), asJSON, nil)
		l.accept("get as a table in "+v, l.item(v, "made"), table)
		l.accept("list as a table in "+v, l.collection(v), table)
		l.accept("get metadata in "+v, l.item(v, "made"), metadata)
	}
}

// watch watches in all versions, as objects and as tables, while the object is patched once.
func (l *lifetime) watch() {
	list := l.ask(http.MethodGet, l.collection(l.version.Name), asJSON, asJSON, nil)
	meta, _ := list.body["metadata"].(map[string]any)
	from, _ := meta["resourceVersion"].(string)
	type stream struct {
		name string
		body io.ReadCloser
	}
	var streams []stream
	for _, v := range l.served() {
		for _, accept := range []string{"application/json", "application/json;as=Table;v=v1;g=meta.k8s.io"} {
			req := l.request(http.MethodGet, l.collection(v)+"?watch=true&timeoutSeconds=60&fieldSelector=metadata.name%3Dmade&resourceVersion="+url.QueryEscape(from), nil)
			req.Header.Set("Accept", accept)
			resp, err := l.client.Do(req)
			if err != nil {
				l.t.Fatal(err)
			}
			defer func() { _ = resp.Body.Close() }()
			streams = append(streams, stream{"watch " + accept + " in " + v, resp.Body})
		}
	}
	l.do("patch what is watched", http.MethodPatch, l.item(l.version.Name, "made")+"?fieldManager=patcher", asMergePatch,
		map[string]any{"metadata": map[string]any{"labels": map[string]any{"watched": "yes"}}})
	for _, s := range streams {
		line, err := bufio.NewReader(s.body).ReadBytes('\n')
		if err != nil {
			l.t.Errorf("%s: %v", s.name, err)
			continue
		}
		var event map[string]any
		if err := json.Unmarshal(line, &event); err != nil {
			l.t.Fatal(err)
		}
		l.note(lifeAnswer{Step: s.name, Code: http.StatusOK, Body: event})
	}
}

// subresources writes the status and the scale in all versions.
func (l *lifetime) subresources() {
	for _, v := range l.definition.Spec.Versions {
		if !v.Served || v.Subresources == nil {
			continue
		}
		item := l.item(v.Name, "made")
		if v.Subresources.Status != nil {
			l.do("patch the status in "+v.Name, http.MethodPatch, item+"/status?fieldManager=controller", asMergePatch, map[string]any{"status": l.sample["status"]})
			l.do("get the status in "+v.Name, http.MethodGet, item+"/status", asJSON, nil)
		}
		if v.Subresources.Scale != nil {
			l.do("get the scale in "+v.Name, http.MethodGet, item+"/scale", asJSON, nil)
			l.do("scale in "+v.Name, http.MethodPatch, item+"/scale?fieldManager=scaler", asMergePatch, map[string]any{"spec": map[string]any{"replicas": 3}})
			l.do("get what was scaled in "+v.Name, http.MethodGet, item, asJSON, nil)
		}
	}
}

// end deletes an object with a finalizer, removes the finalizer, and deletes the other objects.
func (l *lifetime) end() {
	item := l.item(l.version.Name, "made")
	l.do("hold", http.MethodPatch, item+"?fieldManager=holder", asMergePatch, map[string]any{"metadata": map[string]any{"finalizers": []any{"example.com/hold"}}})
	l.do("delete what is held", http.MethodDelete, item, asJSON, nil)
	for _, v := range l.served() {
		l.do("get what is deleted in "+v, http.MethodGet, l.item(v, "made"), asJSON, nil)
	}
	l.do("let go", http.MethodPatch, item+"?fieldManager=holder", asMergePatch, map[string]any{"metadata": map[string]any{"finalizers": nil}})
	l.do("get what is gone", http.MethodGet, item, asJSON, nil)
	served := l.served()
	l.do("delete", http.MethodDelete, l.item(served[0], "applied"), asJSON, nil)
	l.do("list nothing", http.MethodGet, l.collection(served[len(served)-1]), asJSON, nil)
}

// named is a copy of the sample with a name.
func (l *lifetime) named(name string) map[string]any {
	out := map[string]any{}
	text, err := json.Marshal(l.sample)
	if err == nil {
		err = json.Unmarshal(text, &out)
	}
	if err != nil {
		l.t.Fatal(err)
	}
	out["metadata"] = map[string]any{"name": name}
	return out
}

func (l *lifetime) served() (names []string) {
	for _, v := range l.definition.Spec.Versions {
		if v.Served {
			names = append(names, v.Name)
		}
	}
	return names
}

func (l *lifetime) collection(version string) string {
	path := "/apis/" + l.definition.Spec.Group + "/" + version
	if l.definition.Spec.Scope == apiextensionsv1.NamespaceScoped {
		path += "/namespaces/default"
	}
	return path + "/" + l.definition.Spec.Names.Plural
}

func (l *lifetime) item(version, name string) string { return l.collection(version) + "/" + name }

// get reads an object for a write; nil: it is not there.
func (l *lifetime) get(version, name string) map[string]any {
	a := l.ask(http.MethodGet, l.item(version, name), asJSON, asJSON, nil)
	if a.code != http.StatusOK {
		return nil
	}
	return a.body
}

// do makes a request, and notes its answer.
func (l *lifetime) do(step, method, path, contentType string, body any) {
	l.mixed = l.mixed || method != http.MethodGet && !strings.HasPrefix(path, l.collection(l.version.Name))
	a := l.ask(method, path, contentType, asJSON, body)
	l.note(lifeAnswer{Step: step, Code: a.code, Warnings: a.warnings, Body: a.body})
}

func (l *lifetime) accept(step, path, accept string) {
	a := l.ask(http.MethodGet, path, asJSON, accept, nil)
	l.note(lifeAnswer{Step: step, Code: a.code, Warnings: a.warnings, Body: a.body})
}

// note records an answer. managedFields are left out after writes in several versions: if a field is in the schema of one version
// only, kube-apiserver does not update them while this server may.
func (l *lifetime) note(a lifeAnswer) {
	a.Body = normal(a.Body)
	if l.mixed {
		without("managedFields", a.Body)
	}
	if l.mixed && l.definition.Name == "nodepools.karpenter.sh" {
		without("generation", a.Body) // increases in kube-apiserver with each write in v1beta1, which sets a default where v1 has no field
	}
	if c := l.definition.Spec.Conversion; (c == nil || c.Strategy != apiextensionsv1.WebhookConverter) && os.Getenv("CORPUS_WHOLE") == "" {
		a.full, a.Body = a.Body, hashOf(a.Body)
	}
	l.answers = append(l.answers, a)
}

// lifeReply is an answer as it was received.
type lifeReply struct {
	code     int
	warnings []string
	body     map[string]any
}

func (l *lifetime) ask(method, path, contentType, accept string, body any) lifeReply {
	req := l.request(method, path, body)
	req.Header.Set("Accept", accept)
	if body != nil {
		req.Header.Set("Content-Type", contentType)
	}
	resp, err := l.client.Do(req)
	if err != nil {
		l.t.Fatal(err)
	}
	defer func() { _ = resp.Body.Close() }()
	out := lifeReply{code: resp.StatusCode, warnings: slices.Clone(resp.Header["Warning"])}
	text, err := io.ReadAll(resp.Body)
	if err == nil {
		err = json.Unmarshal(text, &out.body)
	}
	if err != nil {
		l.t.Fatalf("%s %s: %d, %v: %s", method, path, resp.StatusCode, err, text)
	}
	return out
}

func (l *lifetime) request(method, path string, body any) *http.Request {
	var text []byte
	if body != nil {
		var err error
		if text, err = json.Marshal(body); err != nil {
			l.t.Fatal(err)
		}
	}
	req, err := http.NewRequestWithContext(l.t.Context(), method, l.url+path, bytes.NewReader(text))
	if err != nil {
		l.t.Fatal(err)
	}
	return req
}

// changeLeaf changes the first string, number or boolean outside of lists, and reports whether there was one.
func changeLeaf(value any) bool {
	members, ok := value.(map[string]any)
	if !ok {
		return false
	}
	names := make([]string, 0, len(members))
	for name := range members {
		names = append(names, name)
	}
	slices.Sort(names)
	for _, name := range names {
		switch v := members[name].(type) {
		case string:
			members[name] = v + "x"
		case bool:
			members[name] = !v
		case float64:
			members[name] = v + 1
		default:
			if !changeLeaf(v) {
				continue
			}
		}
		return true
	}
	return false
}

func setAnnotation(object map[string]any, name, value string) {
	meta, _ := object["metadata"].(map[string]any)
	annotations, ok := meta["annotations"].(map[string]any)
	if !ok {
		annotations = map[string]any{}
		meta["annotations"] = annotations
	}
	annotations[name] = value
}
