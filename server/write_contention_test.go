package server_test

import (
	"bytes"
	"errors"
	"fmt"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/keelson-dev/keelson/runtime"
	"github.com/keelson-dev/keelson/server"
	"github.com/keelson-dev/keelson/server/registry"
	"github.com/keelson-dev/keelson/server/servertest"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/structured-merge-diff/v6/fieldpath"
	"sigs.k8s.io/structured-merge-diff/v6/value"
)

// unowned returns the mistakes in the managedFields of an object in one version: entries of that version with fields that the
// object does not have.
func unowned(obj *unstructured.Unstructured) error {
	var all []error
	for _, e := range obj.GetManagedFields() {
		if e.APIVersion != obj.GetAPIVersion() {
			continue
		}
		set := &fieldpath.Set{}
		if err := set.FromJSON(bytes.NewReader(e.FieldsV1.GetRawBytes())); err != nil {
			all = append(all, err)
			continue
		}
		set.Iterate(func(p fieldpath.Path) {
			if !leadsSomewhere(obj.Object, p) {
				all = append(all, fmt.Errorf("%s (%s) owns %s, which is not there", e.Manager, e.Operation, p))
			}
		})
	}
	return errors.Join(all...)
}

func leadsSomewhere(v any, path fieldpath.Path) bool {
	for _, step := range path {
		switch {
		case step.FieldName != nil:
			members, _ := v.(map[string]any)
			member, ok := members[*step.FieldName]
			if !ok {
				return false
			}
			v = member
		case step.Key != nil || step.Value != nil:
			items, _ := v.([]any)
			i := slices.IndexFunc(items, func(item any) bool { return isItem(item, step) })
			if i < 0 {
				return false
			}
			v = items[i]
		default:
			return false
		}
	}
	return true
}

func isItem(item any, step fieldpath.PathElement) bool {
	if step.Value != nil {
		return value.Equals(value.NewValueInterface(item), *step.Value)
	}
	members, _ := item.(map[string]any)
	return !slices.ContainsFunc(*step.Key, func(f value.Field) bool {
		return !value.Equals(value.NewValueInterface(members[f.Name]), f.Value)
	})
}

// betaSpec and betaRig are a version with the same contents. A version that loses a field, as oldRig does, would let a
// server-side apply lose it, since an apply converts an object to the versions of all its managers.
type (
	betaSpec rigSpec
	betaRig  = runtime.Resource[betaSpec, rigStatus]
)

func betaToRig(in *betaRig, out *rig) error {
	out.Spec, out.Status = rigSpec(in.Spec), in.Status
	return nil
}

func betaFromRig(in *rig, out *betaRig) error {
	out.Spec, out.Status = betaSpec(in.Spec), in.Status
	return nil
}

// contendedRigs serves rigs in two versions.
func contendedRigs(o server.KindOptions[*rig]) server.Options {
	o.Stored = true
	o.Scale = &registry.Scale{SpecReplicas: ".spec.count", StatusReplicas: ".status.replicas"}
	return server.Options{Groups: []server.Group{{
		Name: "rig.example.com",
		Versions: []server.Version{
			{Name: "v1", Resources: []server.Resource{server.Kind("Rig", o)}},
			{Name: "v1beta1", Resources: []server.Resource{server.Kind("Rig", server.KindOptions[*betaRig]{})}},
		},
		Conversions: []server.Conversion{server.Convert(betaToRig, betaFromRig)},
	}}}
}

// rigWriter is a client that writes to one rig, and counts the writes that were acknowledged.
type rigWriter struct {
	t       *testing.T
	client  *http.Client
	url     string // URL of the rig, up to its version
	manager string
}

// send sends a change and returns the code and the object. The managedFields of each answer must be right.
func (w rigWriter) send(method, version, rest, contentType, body string) (int, *unstructured.Unstructured) {
	w.t.Helper()
	code, obj := w.sendTo(method, strings.Replace(w.url, "/v1/", "/"+version+"/", 1)+rest+"?fieldManager="+w.manager, contentType, body)
	if err := unowned(obj); err != nil {
		w.t.Errorf("%s %s %s: %v", w.manager, method, rest, err)
	}
	return code, obj
}

// sendQuery is like send to v1, with another query.
func (w rigWriter) sendQuery(method, query, contentType, body string) (int, *unstructured.Unstructured) {
	w.t.Helper()
	return w.sendTo(method, w.url+"?fieldManager="+w.manager+"&"+query, contentType, body)
}

func (w rigWriter) sendTo(method, url, contentType, body string) (int, *unstructured.Unstructured) {
	w.t.Helper()
	code, text := call(w.t, w.client, method, url, body, "Content-Type", contentType)
	obj := &unstructured.Unstructured{}
	if err := obj.UnmarshalJSON([]byte(text)); err != nil {
		w.t.Errorf("%s %s: %d %.300s: %v", method, url, code, text, err)
	}
	return code, obj
}

// want sends a change that must not fail, whatever others write.
func (w rigWriter) want(code int, method, version, rest, contentType, body string) *unstructured.Unstructured {
	w.t.Helper()
	got, obj := w.send(method, version, rest, contentType, body)
	if got != code {
		w.t.Errorf("%s %s %s: %d %v", w.manager, method, rest, got, obj.Object)
	}
	return obj
}

// increment adds 1 to the count by a GET and a PUT, and repeats this until no other write came between.
func (w rigWriter) increment(version, rest string, path ...string) {
	w.t.Helper()
	for range 500 {
		obj := w.want(http.StatusOK, "GET", version, rest, "", "")
		n, _, err := unstructured.NestedInt64(obj.Object, path...)
		if err == nil {
			err = unstructured.SetNestedField(obj.Object, n+1, path...)
		}
		text, bad := obj.MarshalJSON()
		if err = errors.Join(err, bad); err != nil {
			w.t.Error(err)
			return
		}
		switch code, answer := w.send("PUT", version, rest, "application/json", string(text)); code {
		case http.StatusOK:
			return
		case http.StatusConflict:
		default:
			w.t.Errorf("%s: %d %v", w.manager, code, answer.Object)
			return
		}
	}
	w.t.Errorf("%s never wins", w.manager)
}

// Concurrent writers of every sort, each of its own fields except for a count. No write is lost, only an optimistic lock is
// refused, and after each write the managedFields fit the object.
func TestWritersAtOnce(t *testing.T) {
	t.Parallel()
	const rounds = 12
	srv := servertest.Start(t, contendedRigs(server.KindOptions[*rig]{}))
	rigURL := srv.URL + rigList + "/r"
	first := rigWriter{t, srv.Client(), rigURL, "first"}
	first.want(http.StatusCreated, "PATCH", "v1", "", applyPatch, `{"apiVersion":"rig.example.com/v1","kind":"Rig","metadata":{"name":"r","labels":{"first":"1"}},"spec":{"name":"n"}}`)

	applied := func(w rigWriter, n int) string {
		return fmt.Sprintf(`{"apiVersion":"rig.example.com/v1","kind":"Rig","metadata":{"labels":{%[1]q:"%[2]d"}},`+
			`"spec":{"tags":["%[1]s-%[2]d"],"parts":[{"id":%[3]d,"kind":%[1]q,"labels":{"n":"%[2]d"}}]}}`, w.manager, n, n%2)
	}
	writers := map[string]func(w rigWriter, n int){
		"apply1": func(w rigWriter, n int) { w.want(http.StatusOK, "PATCH", "v1", "", applyPatch, applied(w, n)) },
		"apply2": func(w rigWriter, n int) { w.want(http.StatusOK, "PATCH", "v1", "", applyPatch, applied(w, n)) },
		"merge": func(w rigWriter, n int) {
			w.want(http.StatusOK, "PATCH", "v1", "", mergePatch, fmt.Sprintf(`{"metadata":{"labels":{"merge":"%d"}},"spec":{"limits":{"m%d":{"max":"1"},"m%d":null}}}`, n, n, n-1))
		},
		"strategic": func(w rigWriter, n int) {
			w.want(http.StatusOK, "PATCH", "v1", "", strategicPatch, fmt.Sprintf(
				`{"metadata":{"labels":{"strategic":"%[1]d"}},"spec":{"parts":[{"id":%[2]d,"kind":"strategic","labels":{"n":"%[1]d"}},{"id":%[3]d,"$patch":"delete"}]}}`, n, 100+n, 99+n))
		},
		"json": func(w rigWriter, n int) {
			w.want(http.StatusOK, "PATCH", "v1", "", jsonPatch, fmt.Sprintf(`[{"op":"add","path":"/metadata/labels/json","value":"%d"}]`, n))
		},
		"put":   func(w rigWriter, n int) { w.increment([]string{"v1", "v1beta1"}[n%2], "", "spec", "count") },
		"scale": func(w rigWriter, _ int) { w.increment("v1", "/scale", "spec", "replicas") },
		"status": func(w rigWriter, n int) {
			w.want(http.StatusOK, "PATCH", "v1", "/status", applyPatch, fmt.Sprintf(`{"apiVersion":"rig.example.com/v1","kind":"Rig","status":{"replicas":%d}}`, n))
		},
	}
	var all sync.WaitGroup
	for name, write := range writers {
		all.Go(func() {
			w := rigWriter{t, srv.Client(), rigURL, name}
			for n := 1; n <= rounds; n++ {
				write(w, n)
			}
		})
	}
	all.Wait()

	obj := first.want(http.StatusOK, "GET", "v1", "", "", "")
	last := strconv.Itoa(rounds)
	for _, name := range []string{"apply1", "apply2", "merge", "strategic", "json"} {
		if got := obj.GetLabels()[name]; got != last {
			t.Errorf("label %s: %q", name, got)
		}
	}
	for path, want := range map[string]int64{"spec.count": 2 * rounds, "status.replicas": rounds} {
		if got, _, err := unstructured.NestedInt64(obj.Object, strings.Split(path, ".")...); got != want || err != nil {
			t.Errorf("%s: %d, want %d (%v)", path, got, want, err)
		}
	}
	parts, _, err := unstructured.NestedSlice(obj.Object, "spec", "parts")
	if err != nil || len(parts) != 3 { // fields that an applier or a patch removed stay removed
		t.Errorf("parts: %v (%v)", parts, err)
	}
	tags, _, err := unstructured.NestedStringSlice(obj.Object, "spec", "tags")
	slices.Sort(tags)
	if want := []string{"apply1-" + last, "apply2-" + last}; !slices.Equal(tags, want) || err != nil {
		t.Errorf("tags: %v, want %v (%v)", tags, want, err)
	}
	managers := map[string]int{}
	for _, e := range obj.GetManagedFields() {
		managers[e.Manager+string(e.Operation)+e.Subresource]++
	}
	for _, want := range []string{"firstApply", "apply1Apply", "apply2Apply", "mergeUpdate", "strategicUpdate", "jsonUpdate", "statusApplystatus"} {
		if managers[want] != 1 {
			t.Errorf("%d entries of %s: %v", managers[want], want, managers)
		}
	}
	first.want(http.StatusOK, "GET", "v1beta1", "", "", "")
}

// Appliers of an object that others delete. Each apply either creates the object, with only the fields that it applies, or adds
// to it. None is refused.
func TestApplyAgainstDelete(t *testing.T) {
	t.Parallel()
	const rounds = 25
	srv := servertest.Start(t, contendedRigs(server.KindOptions[*rig]{}))
	rigURL := srv.URL + rigList + "/r"
	var made, deleted atomic.Int32
	var uids sync.Map
	var all sync.WaitGroup
	for i := range 6 {
		all.Go(func() {
			w := rigWriter{t, srv.Client(), rigURL, fmt.Sprint("applier", i)}
			for n := range rounds {
				code, obj := w.send("PATCH", "v1", "", applyPatch,
					fmt.Sprintf(`{"apiVersion":"rig.example.com/v1","kind":"Rig","metadata":{"name":"r","labels":{%q:"%d"}}}`, w.manager, n))
				if code != http.StatusOK && code != http.StatusCreated {
					t.Errorf("%d %v", code, obj.Object)
					continue
				}
				if obj.GetLabels()[w.manager] != strconv.Itoa(n) ||
					!slices.ContainsFunc(obj.GetManagedFields(), func(e metav1.ManagedFieldsEntry) bool { return e.Manager == w.manager }) {
					t.Errorf("%s is missing: %v", w.manager, obj.Object)
				}
				if code == http.StatusCreated {
					made.Add(1)
					if _, again := uids.LoadOrStore(obj.GetUID(), true); again || len(obj.GetLabels()) != 1 || len(obj.GetManagedFields()) != 1 {
						t.Errorf("created: %v", obj.Object)
					}
				}
			}
		})
	}
	for range 2 {
		all.Go(func() {
			for range 3 * rounds {
				switch code, body := call(t, srv.Client(), "DELETE", rigURL, ""); code {
				case http.StatusOK:
					deleted.Add(1)
				case http.StatusNotFound:
				default:
					t.Errorf("%d %s", code, body)
				}
			}
		})
	}
	all.Wait()
	code, _ := call(t, srv.Client(), "GET", rigURL, "")
	left := int32(0)
	if code == http.StatusOK {
		left = 1
	}
	if made.Load() != deleted.Load()+left || made.Load() == 0 {
		t.Errorf("made %d, deleted %d, left %d", made.Load(), deleted.Load(), left)
	}
}
