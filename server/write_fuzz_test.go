package server_test

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"net/url"
	"strings"
	"testing"
	"time"

	"github.com/keelson-dev/keelson/runtime"
	"github.com/keelson-dev/keelson/server"
	"github.com/keelson-dev/keelson/server/registry"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	apiruntime "k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/intstr"
	"k8s.io/apimachinery/pkg/util/managedfields"
)

// rigSpec has a field of each sort that JSON, Go and field management treat differently.
type rigSpec struct {
	Name     string                   `json:"name,omitempty" maxLength:"40"`
	Count    int32                    `json:"count"`
	Huge     uint64                   `json:"huge,omitempty"`
	Text     int64                    `json:"text,string,omitempty"`
	Share    float32                  `json:"share,omitempty"`
	Ratio    float64                  `json:"ratio,omitempty"`
	Key      []byte                   `json:"key,omitempty"`
	Since    *metav1.Time             `json:"since,omitempty"`
	Exact    metav1.MicroTime         `json:"exact,omitempty"`
	Port     intstr.IntOrString       `json:"port,omitempty"`
	Memory   resource.Quantity        `json:"memory,omitempty"`
	Limits   map[string]rigLimit      `json:"limits,omitempty"`
	Free     *apiruntime.RawExtension `json:"free,omitempty"`
	Anything map[string]any           `json:"anything,omitempty"`
	Parts    []rigPart                `json:"parts,omitempty" listType:"map" listMapKey:"id,kind" patchStrategy:"merge" patchMergeKey:"id"`
	Tags     []string                 `json:"tags,omitempty" listType:"set" patchStrategy:"merge"`
	Numbers  []int64                  `json:"numbers,omitempty" listType:"set"`
	Order    []rigPart                `json:"order,omitempty"`
	Select   map[string]string        `json:"select,omitempty" mapType:"atomic"`
	Next     *rigSpec                 `json:"next,omitempty"`
}

type rigPart struct {
	ID     int64             `json:"id"`
	Kind   string            `json:"kind,omitempty" default:"plain"`
	Labels map[string]string `json:"labels,omitempty"`
	Parts  []rigPart         `json:"parts,omitempty" patchStrategy:"merge,retainKeys" patchMergeKey:"id"`
}

type rigLimit struct {
	Max *resource.Quantity `json:"max"`
}

type rigStatus struct {
	Replicas   int32              `json:"replicas,omitempty"`
	Conditions []metav1.Condition `json:"conditions,omitempty" listType:"map" listMapKey:"type" patchStrategy:"merge" patchMergeKey:"type"`
}

// oldSpec is the spec of the older version, which has only the parts, by name.
type oldSpec struct {
	Named map[string]int64 `json:"named,omitempty"`
	Count int32            `json:"count,omitempty"`
}

type (
	rig    = runtime.Resource[rigSpec, rigStatus]
	oldRig = runtime.Resource[oldSpec, struct{}]
)

const (
	rigList        = "/apis/rig.example.com/v1/namespaces/default/rigs"
	oldRigList     = "/apis/rig.example.com/v1beta1/namespaces/default/rigs"
	podList        = "/api/v1/namespaces/default/pods"
	deploymentList = "/apis/apps/v1/namespaces/default/deployments"

	strategicPatch = "application/strategic-merge-patch+json"
	applyPatch     = "application/apply-patch+yaml"
)

func writeOptions() server.Options {
	return server.Options{Groups: []server.Group{
		{Versions: []server.Version{{Name: "v1", Resources: []server.Resource{
			server.Kind("Pod", server.KindOptions[*corev1.Pod]{}),
			server.Kind("ConfigMap", server.KindOptions[*corev1.ConfigMap]{Strategy: registry.Strategy[*corev1.ConfigMap]{NoGeneration: true}}),
		}}}},
		{Name: "apps", Versions: []server.Version{{Name: "v1", Resources: []server.Resource{
			server.Kind("Deployment", server.KindOptions[*appsv1.Deployment]{
				Scale: &registry.Scale{SpecReplicas: ".spec.replicas", StatusReplicas: ".status.replicas"},
			}),
		}}}},
		{
			Name: "rig.example.com",
			Versions: []server.Version{
				{Name: "v1", Resources: []server.Resource{server.Kind("Rig", server.KindOptions[*rig]{
					Scale: &registry.Scale{SpecReplicas: ".spec.count", StatusReplicas: ".status.replicas"}, SelectableFields: []string{"spec.name"},
				})}},
				{Name: "v1beta1", Resources: []server.Resource{server.Kind("Rig", server.KindOptions[*oldRig]{Stored: true})}},
			},
			Conversions: []server.Conversion{server.Convert(toRig, fromRig)},
		},
	}}
}

const kept = "rig.example.com/spec"

func toRig(in *oldRig, out *rig) error {
	if text, ok := in.Annotations[kept]; ok {
		if err := json.Unmarshal([]byte(text), &out.Spec); err != nil {
			return err
		}
		delete(out.Annotations, kept)
	}
	out.Spec.Count = in.Spec.Count
	for name, id := range in.Spec.Named {
		if out.Spec.Select == nil {
			out.Spec.Select = map[string]string{}
		}
		out.Spec.Numbers = append(out.Spec.Numbers, id)
		out.Spec.Select[name] = "named"
	}
	return nil
}

func fromRig(in *rig, out *oldRig) error {
	text, err := json.Marshal(in.Spec)
	if err != nil {
		return err
	}
	if out.Annotations == nil {
		out.Annotations = map[string]string{}
	}
	out.Annotations[kept], out.Spec.Count = string(text), in.Spec.Count
	return nil
}

// The objects that each request finds.
var writeObjects = []struct{ list, name, body string }{
	{podList, "p", `{"metadata":{"name":"p","labels":{"l":"1"}},"spec":{"containers":[{"name":"a","image":"i","ports":[{"containerPort":80}],"env":[{"name":"E","value":"1"}],"resources":{"limits":{"cpu":"1"}}},{"name":"b","image":"j"}],"volumes":[{"name":"v","emptyDir":{}}],"tolerations":[{"key":"k"}]}}`},
	{configMapList, "c", `{"metadata":{"name":"c","finalizers":["x/y"]},"data":{"k":"v"},"binaryData":{"b":"AQ=="}}`},
	{deploymentList, "d", `{"metadata":{"name":"d"},"spec":{"replicas":1,"selector":{"matchLabels":{"a":"b"}},"template":{"metadata":{"labels":{"a":"b"}},"spec":{"containers":[{"name":"a","image":"i"}]}}}}`},
	{rigList, "r", `{"metadata":{"name":"r","labels":{"l":"1"}},"spec":{"count":1,"parts":[{"id":1},{"id":9007199254740993,"kind":"x","labels":{"a":"b"}}],"tags":["a","b"],"numbers":[1,9007199254740993],"port":"http","memory":"1Gi","share":0.1,"huge":7,"free":{"a":[1,null]},"select":{"a":"b"},"order":[{"id":1},{"id":1}],"since":"2020-01-01T00:00:00Z","next":{"count":2,"parts":[{"id":3}]}}}`},
}

// Paths of requests: an object, its subresources and its other versions, an object that does not exist, and lists.
var writeTargets = []string{
	podList + "/p", podList + "/p/status", configMapList + "/c", deploymentList + "/d", deploymentList + "/d/status", deploymentList + "/d/scale",
	rigList + "/r", rigList + "/r/status", rigList + "/r/scale", oldRigList + "/r", oldRigList + "/r/scale",
	podList + "/new", rigList + "/new", oldRigList + "/new",
	podList, configMapList, deploymentList, rigList, oldRigList,
}

// Methods and types of changes; an empty type is a body without Content-Type.
var writeMethods = []struct{ method, contentType string }{
	{"POST", ""}, {"PUT", ""}, {"PUT", "application/yaml"}, {"PATCH", jsonPatch}, {"PATCH", mergePatch}, {"PATCH", strategicPatch}, {"PATCH", applyPatch},
	{"DELETE", ""},
}

// settleWrites sets the store to a known state.
func (p inProcess) settleWrites(t testing.TB) {
	t.Helper()
	for _, o := range writeObjects {
		for range 2 { // once more without the finalizer
			p.send(t, "PATCH", o.list, "/"+o.name, mergePatch, `{"metadata":{"finalizers":null}}`)
			p.ask(t.Context(), t, httptest.NewRequest("DELETE", o.list, nil))
		}
		for _, name := range p.names(t, o.list) {
			p.send(t, "PATCH", o.list, "/"+name, mergePatch, `{"metadata":{"finalizers":null}}`)
			p.send(t, "DELETE", o.list, "/"+name, "", "")
		}
		if w := p.send(t, "POST", o.list, "?fieldManager=before", "", o.body); w.Code != http.StatusCreated {
			t.Fatalf("%s: %d %s", o.list, w.Code, w.Body)
		}
	}
}

func (p inProcess) send(t testing.TB, method, list, rest, contentType, body string) *httptest.ResponseRecorder {
	t.Helper()
	r := httptest.NewRequest(method, list+rest, strings.NewReader(body))
	if contentType != "" {
		r.Header.Set("Content-Type", contentType)
	}
	return p.ask(t.Context(), t, r)
}

// names reads a list whole, which must always be possible.
func (p inProcess) names(t testing.TB, list string) (names []string) {
	t.Helper()
	for _, o := range p.items(t, list) {
		names = append(names, o.Name)
		if err := managedfields.ValidateManagedFields(o.ManagedFields); err != nil {
			t.Fatalf("%s of %s: %v", o.Name, list, err)
		}
	}
	return names
}

func (p inProcess) items(t testing.TB, list string) []metav1.PartialObjectMetadata {
	t.Helper()
	w := p.ask(t.Context(), t, httptest.NewRequest("GET", list, nil))
	var all metav1.PartialObjectMetadataList
	if err := json.Unmarshal(w.Body.Bytes(), &all); err != nil || w.Code != http.StatusOK {
		t.Fatalf("GET %s: %d %v: %.2000s", list, w.Code, err, w.Body)
	}
	return all.Items
}

// storeVersion returns the revision of the store.
func (p inProcess) storeVersion(t testing.TB) string {
	t.Helper()
	w := p.ask(t.Context(), t, httptest.NewRequest("GET", configMapList+"?limit=1", nil))
	var list metav1.PartialObjectMetadataList
	if err := json.Unmarshal(w.Body.Bytes(), &list); err != nil || list.ResourceVersion == "" {
		t.Fatalf("%d %v: %s", w.Code, err, w.Body)
	}
	return list.ResourceVersion
}

func newWriteServer(t testing.TB) inProcess {
	t.Helper()
	srv, err := server.New(writeOptions())
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = srv.Close() })
	return inProcess{srv.Handler(), srv.Credentials().Token}
}

// FuzzWrite sends changes of every sort. None may be answered with an error of the server or a panic. A refused change, or a dry
// run, changes nothing. Everything that is stored can be read in every version, with managedFields that can be read.
func FuzzWrite(f *testing.F) {
	type seed struct {
		method, target int
		query, body    string
	}
	at := func(target string) int {
		for i, known := range writeTargets {
			if known == target {
				return i
			}
		}
		f.Fatal(target)
		return 0
	}
	const post, put, yaml, ops, merge, strategic, apply, remove = 0, 1, 2, 3, 4, 5, 6, 7
	pod, dep, r, old := at(podList+"/p"), at(deploymentList+"/d"), at(rigList+"/r"), at(oldRigList+"/r")
	const rigHead, podHead = `{"apiVersion":"rig.example.com/v1","kind":"Rig","metadata":{"name":"r"}`, `{"apiVersion":"v1","kind":"Pod","metadata":{"name":"p"}`
	for _, s := range []seed{
		{apply, r, "fieldManager=m", rigHead + `,"spec":{"count":1.5}}`},
		{apply, r, "fieldManager=m&force=true", rigHead + `,"spec":{"count":2,"parts":[{"id":1,"labels":{"a":"b"}},{"id":2}],"tags":["z"],"next":null,"free":{"x":[]},"anything":{"a":{"b":[1]}}}}`},
		{apply, r, "fieldManager=m", rigHead + `,"spec":{"since":"no time","memory":"x","key":"?","port":[],"huge":-1,"text":5,"share":1e300}}`},
		{apply, r, "fieldManager=m", rigHead + `,"spec":{"tags":["a","a"],"parts":[{"id":1},{"id":1}]}}`},
		{apply, r, "fieldManager=m&dryRun=All&fieldValidation=Strict", rigHead + `,"spec":{"unknown":1,"count":1,"count":2}}`},
		{apply, r, "fieldManager=m", "apiVersion: rig.example.com/v1\nkind: Rig\nmetadata: {name: r, managedFields: null}\nspec: &a\n  anything: {x: [*a]}\n"},
		{apply, r, "fieldManager=kubectl", `{"apiVersion":"rig.example.com/v1","kind":"Rig","metadata":{"name":"r","annotations":{"kubectl.kubernetes.io/last-applied-configuration":"{"},"uid":"","resourceVersion":"0"}}`},
		{apply, old, "fieldManager=m&force=1", `{"apiVersion":"rig.example.com/v1beta1","kind":"Rig","metadata":{"name":"r","annotations":{"` + kept + `":"{\"count\":7}"}},"spec":{"named":{"a":5}}}`},
		{apply, at(oldRigList + "/new"), "fieldManager=m", `{"apiVersion":"rig.example.com/v1beta1","kind":"Rig","metadata":{"name":"new"},"spec":{"named":{"a":5},"count":null}}`},
		{apply, at(rigList + "/new"), "fieldManager=m", `{"apiVersion":"rig.example.com/v1","kind":"Rig","metadata":{"name":"new"},"spec":{}}`},
		{apply, at(rigList + "/r/status"), "fieldManager=m", rigHead + `,"status":{"conditions":[{"type":"A","status":"True","lastTransitionTime":null,"reason":"R","message":""}]}}`},
		{apply, at(rigList + "/r/scale"), "fieldManager=m&force=true", `{"apiVersion":"autoscaling/v1","kind":"Scale","metadata":{"name":"r"},"spec":{"replicas":3}}`},
		{apply, at(oldRigList + "/r/scale"), "fieldManager=m&force=true", `{"apiVersion":"autoscaling/v1","kind":"Scale","metadata":{"name":"r"},"spec":{"replicas":-1.5}}`},
		{apply, pod, "fieldManager=m&force=true", podHead + `,"spec":{"containers":[{"name":"a","ports":[{"containerPort":80,"protocol":"UDP"},{"containerPort":80}]},{"name":"c","resources":{"limits":{"cpu":"x"}}}]}}`},
		{apply, dep, "fieldManager=m", `{"apiVersion":"apps/v1","kind":"Deployment","metadata":{"name":"d"},"spec":{"strategy":{"rollingUpdate":{"maxSurge":1.5}},"template":{"spec":{"containers":{}}}}}`},
		{strategic, pod, "fieldManager=m", `{"spec":{"$setElementOrder/containers":[{"name":"b"},{"name":"a"}],"containers":[{"$patch":"delete","name":"a"},{"name":"b","$retainKeys":["image"],"image":"z"}],"$patch":"merge"}}`},
		{strategic, pod, "", `{"spec":{"containers":[{"$patch":"replace"},{"name":1}],"$deleteFromPrimitiveList/x":[1],"volumes":[{"name":"v","hostPath":{"path":"/"},"$retainKeys":"x"}]},"metadata":{"$deleteFromPrimitiveList/finalizers":["a"],"$patch":5}}`},
		{strategic, r, "", `{"spec":{"parts":[{"id":9007199254740993,"$patch":"delete"},{"id":9007199254740992}],"tags":["c"],"$deleteFromPrimitiveList/tags":["a"],"$setElementOrder/parts":[{"id":1}]}}`},
		{strategic, r, "", `{"$patch":"delete"}`},
		{merge, r, "", `{"metadata":{"managedFields":[{"manager":"x","operation":"Update","apiVersion":"a/b/c","fieldsType":"FieldsV1","fieldsV1":{"f:spec":{"k:{\"id\":1}":{},"i:0":{},"v:1":{},"f:":{".":{}}}}}]}}`},
		{merge, r, "", `{"metadata":{"managedFields":[{"manager":"x","operation":"Apply","apiVersion":"rig.example.com/v1beta1","fieldsType":"FieldsV1","fieldsV1":{"f:spec":{".":{}}}}]},"spec":{"count":9}}`},
		{merge, r, "", `{"metadata":{"managedFields":[{}]}}`},
		{merge, r, "", `{"metadata":{"managedFields":[],"deletionTimestamp":"2020-01-01T00:00:00Z","finalizers":["a/b"]}}`},
		{ops, r, "fieldManager=m", `[{"op":"replace","path":"/metadata/managedFields","value":[{"fieldsV1":{"x":1}}]},{"op":"copy","from":"/spec","path":"/spec/next"}]`},
		{ops, dep, "", `[{"op":"test","path":"/metadata/uid","value":null},{"op":"remove","path":"/spec/template"}]`},
		{put, r, "fieldManager=m", `{"metadata":{"name":"r","managedFields":[{"manager":"x","operation":"Update","apiVersion":"rig.example.com/v9","fieldsType":"FieldsV1","fieldsV1":{"f:a":{}}}]},"spec":{"parts":[{"id":1},{"id":1}],"tags":["a","a"]}}`},
		{yaml, old, "", "metadata: {name: r}\nspec:\n  named: {a: 1, b: 2}\n"},
		{post, at(rigList), "fieldManager=m&fieldValidation=Warn&pretty=1", `{"metadata":{"generateName":"x-","managedFields":[{"manager":"x"}]},"spec":{"huge":18446744073709551615,"text":"5","since":null,"port":1e3,"anything":{"x":1e400}}}`},
		{post, at(podList), "dryRun=All&dryRun=All&fieldManager=" + strings.Repeat("x", 129), `{"metadata":{"name":"q"},"spec":{"containers":null}}`},
		{put, at(rigList + "/r/status"), "timeout=1ns", `{"metadata":{"name":"r"},"status":{"replicas":1}}`},
		{remove, at(rigList), "labelSelector=l+in+(1,)&fieldSelector=spec.name%3D&propagationPolicy=Orphan", ``},
		{remove, at(oldRigList), "fieldSelector=metadata.name!%3Dr&dryRun=All&limit=1", `{"preconditions":{"uid":""}}`},
	} {
		f.Add(uint8(s.method), uint8(s.target), s.query, []byte(s.body))
	}
	p := newWriteServer(f)
	f.Fuzz(func(t *testing.T, method, target uint8, query string, body []byte) {
		how, where := writeMethods[int(method)%len(writeMethods)], writeTargets[int(target)%len(writeTargets)]
		p.settleWrites(t)
		before := p.storeVersion(t)
		r := httptest.NewRequest(how.method, where, bytes.NewReader(body))
		r.URL.RawQuery = query
		if how.contentType != "" {
			r.Header.Set("Content-Type", how.contentType)
		}
		w := p.ask(t.Context(), t, r)
		if w.Code >= 500 && w.Code != http.StatusGatewayTimeout { // the query may have a timeout
			t.Fatalf("%s %s: %d: %.3000s", how.method, where, w.Code, w.Body)
		}
		values, _ := url.ParseQuery(query)
		dry := values.Has("dryRun") || how.method == "DELETE" && bytes.Contains(bytes.ToLower(body), []byte("dryrun"))
		several := how.method == "DELETE" && w.Code == http.StatusConflict // some objects may be deleted before one fails
		if after := p.storeVersion(t); after != before && (w.Code >= 300 && w.Code != http.StatusGatewayTimeout && !several || dry && values.Get("dryRun") == "All") {
			t.Fatalf("%s %s: %d, and the store went from %s to %s: %.3000s", how.method, where, w.Code, before, after, w.Body)
		}
		if w.Code < 300 && !json.Valid(w.Body.Bytes()) && !values.Has("pretty") {
			t.Fatalf("%s %s: %d %.3000s", how.method, where, w.Code, w.Body)
		}
		for _, list := range []string{podList, configMapList, deploymentList, rigList, oldRigList} {
			p.names(t, list)
		}
	})
}

// TestExplosiveWrites sends small bodies that could become large, and large bodies that could take long. Each is answered soon
// enough for a test, and none with an error of the server.
func TestExplosiveWrites(t *testing.T) {
	if testing.Short() {
		t.Skip("large bodies take long with the race detector")
	}
	t.Parallel()
	const many, some, deep = 100000, 15000, 9900
	items := func(n int, item string) string { // not sorted
		var b strings.Builder
		for i := range n {
			_, _ = fmt.Fprintf(&b, ","+item, i*7919%n)
		}
		return b.String()[1:]
	}
	nested := func(n int, open string) string {
		return strings.Repeat(open, n) + "{}" + strings.Repeat("}", n)
	}
	aliases := "a: &a [x,x,x,x,x,x,x,x,x]\n"
	for c := 'b'; c < 'k'; c++ {
		aliases += fmt.Sprintf("%c: &%c [%s]\n", c, c, strings.Repeat(fmt.Sprintf("*%c,", c-1), 9))
	}
	entries := func(operation, version string) string {
		return `{"metadata":{"managedFields":[` + items(5000, `{"manager":"m%[1]d","operation":"`+operation+`","apiVersion":"`+version+`","fieldsType":"FieldsV1","fieldsV1":{"f:spec":{"f:count":{}}}}`) + `]},"spec":{"count":8}}`
	}
	const head, put = `{"apiVersion":"rig.example.com/v1","kind":"Rig","metadata":{"name":"r"},`, `{"metadata":{"name":"r"},`
	const target, scalar = rigList + "/r", "rig.example.com/v1"
	p := newWriteServer(t)
	for _, c := range []struct {
		name, method, contentType, body string
		code                            int
	}{
		{"list map applied", "PATCH", applyPatch, head + `"spec":{"parts":[` + items(many, `{"id":%d}`) + `]}}`, 413},
		{"set applied", "PATCH", applyPatch, head + `"spec":{"numbers":[` + items(many, `%d`) + `]}}`, 413},
		{"map applied", "PATCH", applyPatch, head + `"spec":{"limits":{` + items(many, `"%d":{"max":"1"}`) + `}}}`, 413},
		{"atomic list applied", "PATCH", applyPatch, head + `"spec":{"order":[` + items(some, `{"id":%d}`) + `]}}`, 200},
		{"atomic map applied", "PATCH", applyPatch, head + `"spec":{"select":{` + items(many, `"%d":""`) + `}}}`, 200},
		{"list map put", "PUT", "", put + `"spec":{"parts":[` + items(some, `{"id":%d}`) + `]}}`, 200},
		{"list map merged", "PATCH", mergePatch, `{"spec":{"parts":[` + items(some, `{"id":%d}`) + `]}}`, 200},
		{"list map merged by key", "PATCH", strategicPatch, `{"spec":{"parts":[` + items(many, `{"id":%d}`) + `]}}`, 413},
		{"set merged", "PATCH", strategicPatch, `{"spec":{"tags":[` + items(many, `"%d"`) + `]}}`, 413},
		{"order", "PATCH", strategicPatch, `{"spec":{"$setElementOrder/tags":[` + items(many, `"%d"`) + `],"tags":["a"]}}`, 413},
		{"deleted", "PATCH", strategicPatch, `{"spec":{"$deleteFromPrimitiveList/tags":[` + items(many, `"%d"`) + `]}}`, 413},
		{"deep and typed applied", "PATCH", applyPatch, head + `"spec":` + nested(deep, `{"next":`) + `}`, 413},
		{"deep and typed merged", "PATCH", mergePatch, `{"spec":` + nested(deep, `{"next":`) + `}`, 200},
		{"deep and free applied", "PATCH", applyPatch, head + `"spec":{"anything":` + nested(deep, `{"a":`) + `}}`, 413},
		{"deep and free put", "PUT", "", put + `"spec":{"anything":` + nested(deep, `{"a":`) + `}}`, 200},
		{"too deep", "PATCH", applyPatch, head + `"spec":{"anything":` + nested(3*deep, `{"a":`) + `}}`, 400},
		{"deep entries", "PATCH", mergePatch, `{"metadata":{"managedFields":[{"manager":"m","operation":"Update","apiVersion":"` + scalar + `","fieldsType":"FieldsV1","fieldsV1":` + nested(deep-10, `{"f:a":`) + `}]}}`, 422},
		{"wide entries", "PATCH", mergePatch, `{"metadata":{"managedFields":[{"manager":"m","operation":"Update","apiVersion":"` + scalar + `","fieldsType":"FieldsV1","fieldsV1":{` + items(many, `"f:%d":{}`) + `}}]}}`, 413},
		{"many updaters", "PATCH", mergePatch, entries("Update", scalar), 422},
		{"many appliers", "PATCH", mergePatch, entries("Apply", scalar), 422},
		{"many versions", "PATCH", mergePatch, entries("Update", "rig.example.com/v%[1]d"), 422},
		{"duplicates", "PUT", "", put + `"spec":{"anything":{` + items(many, `"a":%d`) + `}}}`, 200},
		{"duplicates applied", "PATCH", applyPatch, head + `"spec":{"anything":{` + items(many, `"a":%d`) + `}}}`, 413},
		{"unknown fields", "PUT", "", put + `"spec":{` + items(many, `"u%d":1`) + `}}`, 200},
		{"aliases", "PUT", "application/yaml", aliases, 400},
		{"aliases applied", "PATCH", applyPatch, aliases, 400},
		{"owners", "PATCH", mergePatch, `{"metadata":{"ownerReferences":[` + items(10000, `{"apiVersion":"v1","kind":"A","name":"a","uid":"%d"}`) + `]}}`, 200},
	} {
		p.settleWrites(t)
		before := p.storeVersion(t)
		ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
		r := httptest.NewRequest(c.method, target, strings.NewReader(c.body))
		r.URL.RawQuery = "fieldManager=m&force=true"
		if c.method == "PUT" || c.contentType != applyPatch {
			r.URL.RawQuery = "fieldManager=m"
		}
		r.Header.Set("Content-Type", cmp.Or(c.contentType, "application/json"))
		w := p.ask(ctx, t, r)
		cancel()
		if w.Code != c.code {
			t.Errorf("%s: %d, want %d: %.300s", c.name, w.Code, c.code, w.Body)
		}
		if after := p.storeVersion(t); w.Code >= 300 && after != before {
			t.Errorf("%s: the store went from %s to %s", c.name, before, after)
		}
		p.names(t, rigList)
	}
}
