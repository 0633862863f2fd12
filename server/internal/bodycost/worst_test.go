package bodycost_test

import (
	"bytes"
	"strings"
)

// worstBodies returns requests with bodies of about a size that are made to cost much, for each verb and format. Only the bodies
// that wanted selects are made, since making one takes as long as serving it.
func worstBodies(size int, wanted func(name string) bool) (all []request) {
	fill := func(head, item, tail string) func() string {
		return func() string { return fillTo(size, head, item, tail) }
	}
	fillEach := func(head, tail string, item func(int) string) func() string {
		return func() string { return fillEachTo(size, head, tail, item) }
	}
	const dry = "?dryRun=All&fieldManager=m"
	add := func(name, method, path, ct string, body func() string) {
		if wanted(name) {
			all = append(all, request{name, method, path + dry, ct, body()})
		}
	}
	post := func(name, path string, body func() string) { add(name, "POST", path, jsonType, body) }
	cm := func(meta string) string {
		return `{"apiVersion":"v1","kind":"ConfigMap","metadata":{"name":"a",` + meta
	}
	post("cm owners {}", configMaps, fill(cm(`"ownerReferences":[`), `{},`, `]}}`))
	post("cm owners one uid differ", configMaps, fillEach(cm(`"ownerReferences":[`), `]}}`, numbered(`{"apiVersion":"v1","kind":"A","name":"n%d","uid":"u"}`)))
	post("cm owners distinct", configMaps, fillEach(cm(`"ownerReferences":[`), `]}}`, numbered(`{"apiVersion":"v1","kind":"A","name":"n","uid":"%d"}`)))
	post("cm finalizers bad", configMaps, fill(cm(`"finalizers":[`), `"x",`, `]}}`))
	post("cm finalizers distinct", configMaps, fillEach(cm(`"finalizers":[`), `]}}`, numbered(`"%d"`)))
	post("cm finalizers good", configMaps, fillEach(cm(`"finalizers":[`), `]}}`, numbered(`"a.b/%d"`)))
	post("cm managedFields {}", configMaps, fill(cm(`"managedFields":[`), `{},`, `]}}`))
	post("cm labels", configMaps, fillEach(cm(`"labels":{`), `}}}`, numbered(`"%d":""`)))
	post("cm labels bad", configMaps, fillEach(cm(`"labels":{`), `}}}`, numbered(`"-%d":"-"`)))
	post("cm annotations", configMaps, fillEach(cm(`"annotations":{`), `}}}`, numbered(`"%d":""`)))
	post("cm data", configMaps, fillEach(cm(`"x":1},"data":{`), `}}`, numbered(`"%d":""`)))
	post("cm dup data", configMaps, fill(cm(`"x":1},"data":{`), `"a":"",`, `}}`))
	post("cm unknown fields", configMaps, fillEach(cm(``)[:len(cm(``))-1]+`},`, `}`, numbered(`"%d":1`)))
	post("cm unknown nested arrays", configMaps, fill(cm(`"x":[`), `[],`, `]}}`))
	post("cm unknown objects", configMaps, fill(cm(`"x":[`), `{},`, `]}}`))
	post("cm unknown member objects", configMaps, fill(cm(`"x":[`), `{"":{}},`, `]}}`))
	post("cm one big string", configMaps, fill(cm(`"x":1},"data":{"a":"`), `x`, `"}}`))
	post("cm one big escaped string", configMaps, fill(cm(`"x":1},"data":{"a":"`), `<`, `"}}`))
	post("cm one bad utf8 string", configMaps, fill(cm(`"x":1},"data":{"a":"`), "\xff", `"}}`))
	post("pod containers {}", pods, fill(`{"metadata":{"name":"a"},"spec":{"containers":[`, `{},`, `]}}`))
	post("pod ephemeral {}", pods, fill(`{"metadata":{"name":"a"},"spec":{"ephemeralContainers":[`, `{},`, `]}}`))
	post("pod volumes {}", pods, fill(`{"metadata":{"name":"a"},"spec":{"volumes":[`, `{},`, `]}}`))
	post("pod volumes pointers", pods, fill(`{"metadata":{"name":"a"},"spec":{"volumes":[`, `{"scaleIO":{}},`, `]}}`))
	post("pod env bad type", pods, fill(`{"metadata":{"name":"a"},"spec":{"containers":[{"env":[`, `{},`, `1]}]}}`))
	post("pod quantities", pods, fillEach(`{"metadata":{"name":"a"},"spec":{"containers":[{"resources":{"limits":{`, `}}}]}}`, numbered(`"%d":1`)))
	post("pod unknown in containers", pods, fill(`{"metadata":{"name":"a"},"spec":{"containers":[`, `{"x":1},`, `]}}`))
	post("eps", endpoints, fill(`{"metadata":{"name":"a"},"subsets":[`, `{},`, `]}`))
	post("eps addresses", endpoints, fill(`{"metadata":{"name":"a"},"subsets":[{"addresses":[`, `{"targetRef":{}},`, `]}]}`))
	post("crb subjects", bindings, fill(`{"metadata":{"name":"a"},"roleRef":{"apiGroup":"rbac.authorization.k8s.io","kind":"ClusterRole","name":"x"},"subjects":[`, `{},`, `]}`))
	post("crb subjects good", bindings, fill(`{"metadata":{"name":"a"},"roleRef":{"apiGroup":"rbac.authorization.k8s.io","kind":"ClusterRole","name":"x"},"subjects":[`, `{"kind":"User","apiGroup":"rbac.authorization.k8s.io","name":"a"},`, `]}`))
	post("cr rules", roles, fill(`{"metadata":{"name":"a"},"rules":[`, `{},`, `]}`))
	crdHead := `{"apiVersion":"apiextensions.k8s.io/v1","kind":"CustomResourceDefinition","metadata":{"name":"as.b.c"},"spec":{"group":"b.c","scope":"Namespaced","names":{"plural":"as","kind":"A"},"versions":[{"name":"v1","served":true,"storage":true,"schema":{"openAPIV3Schema":{"type":"object",`
	post("crd versions", crds, fill(`{"metadata":{"name":"as.b.c"},"spec":{"group":"b.c","scope":"Namespaced","names":{"plural":"as","kind":"A"},"versions":[`, `{},`, `]}}`))
	post("crd properties", crds, fillEach(crdHead+`"properties":{`, `}}}}]}}`, numbered(`"%d":{}`)))
	post("crd properties typed", crds, fillEach(crdHead+`"properties":{`, `}}}}]}}`, numbered(`"%d":{"type":"string"}`)))
	post("crd allOf", crds, fill(crdHead+`"allOf":[`, `{},`, `]}}}]}}`))
	post("crd enum", crds, fill(crdHead+`"enum":[`, `1,`, `]}}}]}}`))
	deep := 200
	post("crd additionalProperties deep", crds, fill(crdHead+strings.Repeat(`"additionalProperties":{"type":"object",`, deep)+`"description":"`, `x`, `"`+strings.Repeat("}", deep)+`}}}]}}`))
	post("crd items deep", crds, fill(crdHead+strings.Repeat(`"items":{"type":"array",`, deep)+`"description":"`, `x`, `"`+strings.Repeat("}", deep)+`}}}]}}`))
	post("thing list", things, fill(`{"apiVersion":"e.example.com/v1","kind":"Thing","metadata":{"name":"a"},"spec":{"list":[`, `{},`, `]}}`))
	post("thing defaulted list", things, fill(`{"apiVersion":"e.example.com/v1","kind":"Thing","metadata":{"name":"a"},"spec":{"defaulted":[`, `{},`, `]}}`))
	post("thing strings", things, fill(`{"apiVersion":"e.example.com/v1","kind":"Thing","metadata":{"name":"a"},"spec":{"strings":[`, `"",`, `]}}`))
	post("thing bad strings", things, fill(`{"apiVersion":"e.example.com/v1","kind":"Thing","metadata":{"name":"a"},"spec":{"strings":[`, `1,`, `]}}`))
	post("thing unknown", things, fillEach(`{"apiVersion":"e.example.com/v1","kind":"Thing","metadata":{"name":"a"},"spec":{`, `}}`, numbered(`"%d":1`)))
	post("free ints", frees, fill(`{"apiVersion":"e.example.com/v1","kind":"Free","metadata":{"name":"a"},"spec":{"x":[`, `1,`, `]}}`))
	post("free floats", frees, fill(`{"apiVersion":"e.example.com/v1","kind":"Free","metadata":{"name":"a"},"spec":{"x":[`, `0.1,`, `]}}`))
	post("free arrays", frees, fill(`{"apiVersion":"e.example.com/v1","kind":"Free","metadata":{"name":"a"},"spec":{"x":[`, `[],`, `]}}`))
	post("free objects", frees, fill(`{"apiVersion":"e.example.com/v1","kind":"Free","metadata":{"name":"a"},"spec":{"x":[`, `{},`, `]}}`))
	post("free objects with a member", frees, fill(`{"apiVersion":"e.example.com/v1","kind":"Free","metadata":{"name":"a"},"spec":{"x":[`, `{"a":1},`, `]}}`))
	post("free nested objects", frees, fill(`{"apiVersion":"e.example.com/v1","kind":"Free","metadata":{"name":"a"},"spec":{"x":[`, strings.Repeat(`{"a":`, 90)+`1`+strings.Repeat("}", 90)+",", `]}}`))
	post("free object members", frees, fillEach(`{"apiVersion":"e.example.com/v1","kind":"Free","metadata":{"name":"a"},"spec":{`, `}}`, numbered(`"%d":1`)))
	post("free one escaped string", frees, fill(`{"apiVersion":"e.example.com/v1","kind":"Free","metadata":{"name":"a"},"spec":{"x":"`, `<`, `"}}`))
	post("free one string", frees, fill(`{"apiVersion":"e.example.com/v1","kind":"Free","metadata":{"name":"a"},"spec":{"x":"`, `x`, `"}}`))
	post("pod one escaped string", pods, fill(`{"metadata":{"name":"a"},"spec":{"nodeName":"`, `<`, `"}}`))
	post("pod unknown at the end", pods, fill(`{"metadata":{"name":"a"},"spec":{"containers":[`, `{},`, `]},"unknown":1}`))
	post("pod affinity", pods, fill(`{"metadata":{"name":"a"},"spec":{"affinity":{"podAffinity":{"requiredDuringSchedulingIgnoredDuringExecution":[`, `{"labelSelector":{"matchExpressions":[{}]}},`, `]}}},"unknown":1}`))
	post("free dups", frees, fill(`{"apiVersion":"e.example.com/v1","kind":"Free","metadata":{"name":"a"},"spec":{`, `"a":1,`, `}}`))
	post("free owners", frees, fill(`{"apiVersion":"e.example.com/v1","kind":"Free","metadata":{"name":"a","ownerReferences":[`, `{},`, `]}}`))
	post("free unknown meta", frees, fillEach(`{"apiVersion":"e.example.com/v1","kind":"Free","metadata":{"name":"a",`, `}}`, numbered(`"%d":1`)))
	// YAML
	yaml := func(name, path string, body func() string) { add("yaml "+name, "POST", path, yamlType, body) }
	yaml("cm flow ints", configMaps, fill(cm(`"x":[`), `1,`, `]}}`))
	yaml("cm flow {}", configMaps, fill(cm(`"x":[`), `{},`, `]}}`))
	yaml("cm owners flow", configMaps, fill(cm(`"ownerReferences":[`), `{},`, `]}}`))
	yaml("cm flow [] ", configMaps, fill(cm(`"x":[`), `[],`, `]}}`))
	yaml("cm flow nulls ", configMaps, fill(cm(`"x":[`), `~,`, `]}}`))
	yaml("cm flow : ", configMaps, fill(cm(`"x":[`), `:,`, `]}}`))
	yaml("cm block", configMaps, fill("metadata:\n  name: a\nx:\n", "-\n", ""))
	yaml("cm block maps", configMaps, fill("metadata:\n  name: a\nx:\n", "- a:\n", ""))
	yaml("cm dups", configMaps, fill("metadata:\n  name: a\ndata:\n", " a:\n", ""))
	yaml("cm nested seq", configMaps, fill("metadata:\n  name: a\nx:\n", "- "+strings.Repeat("- ", 300)+"\n", ""))
	yaml("cm deep flow", configMaps, func() string {
		return "metadata:\n  name: a\nx: " + strings.Repeat("[", size/3) + strings.Repeat("]", size/3)
	})
	yaml("cm long folded", configMaps, fill("metadata:\n  name: a\ndata:\n a: ", "a\n  ", "b\n"))
	yaml("cm anchors", configMaps, fillEach("metadata:\n  name: a\nx: [", "]\n", numbered("&%d 1")))
	yaml("cm aliases", configMaps, fill("metadata:\n  name: a\nx: [&a 1,", "*a ,", "]\n"))
	yaml("cm comments", configMaps, fill("metadata:\n  name: a\n", "#\n", ""))
	yaml("cm tags", configMaps, fill("metadata:\n  name: a\nx: [", "!!str ,", "]\n"))
	yaml("cm merges", configMaps, fill("metadata:\n  name: a\nx: [&a {a: 1},", "{<<: *a },", "]\n"))
	yaml("cm bigints", configMaps, fill("metadata:\n  name: a\nx: [", "1_0,", "]\n"))
	yaml("cm dates", configMaps, fill("metadata:\n  name: a\nx: [", "2001-1-1,", "]\n"))
	yaml("cm literal", configMaps, fill("metadata:\n  name: a\ndata:\n a: |\n", "  x\n", ""))
	yaml("cm big string", configMaps, fill("metadata:\n  name: a\ndata:\n a: '", "x", "'\n"))
	yaml("pod one escaped string", pods, fill(`{"metadata":{"name":"a"},"spec":{"nodeName":"`, `<`, `"}}`))
	yaml("cm one escaped string", configMaps, fill(cm(`"x":1},"data":{"a":"`), `<`, `"}}`))
	yaml("free one escaped string", frees, fill(`{"apiVersion":"e.example.com/v1","kind":"Free","metadata":{"name":"a"},"spec":{"x":"`, `<`, `"}}`))
	yaml("cm one string of controls", configMaps, fill(cm(`"x":1},"data":{"a":"`), `\0`, `"}}`))
	yaml("pod one string of controls", pods, fill(`{"metadata":{"name":"a"},"spec":{"nodeName":"`, `\0`, `"}}`))
	yaml("free flow", frees, fill(`{"apiVersion":"e.example.com/v1","kind":"Free","metadata":{"name":"a"},"spec":{"x":[`, `1,`, `]}}`))
	// CBOR and protobuf
	items := func(n int, v any) []any {
		l := make([]any, n)
		for i := range l {
			l[i] = v
		}
		return l
	}
	free := func(x any) map[string]any {
		return map[string]any{"apiVersion": "e.example.com/v1", "kind": "Free", "metadata": map[string]any{"name": "b"}, "spec": map[string]any{"x": x}}
	}
	add("cbor ints", "POST", frees, cborType, func() string {
		return selfDescribed(free(items(size-200, 1)))
	})
	add("cbor maps", "POST", frees, cborType, func() string {
		return selfDescribed(free(items(size-200, map[string]any{})))
	})
	add("cbor arrays", "POST", frees, cborType, func() string {
		return selfDescribed(free(items(size-200, []any{})))
	})
	add("cbor strings", "POST", frees, cborType, func() string {
		return selfDescribed(free(items(size-200, "")))
	})
	add("cbor member", "POST", frees, cborType, func() string {
		return selfDescribed(free(items(size/3-200, map[string]any{"": 1})))
	})
	add("cbor owners", "POST", configMaps, cborType, func() string {
		return selfDescribed(map[string]any{"apiVersion": "v1", "kind": "ConfigMap", "metadata": map[string]any{"name": "b", "ownerReferences": items(size-200, map[string]any{})}})
	})
	add("cbor bytes", "POST", configMaps, cborType, func() string {
		return selfDescribed(map[string]any{"apiVersion": "v1", "kind": "ConfigMap", "metadata": map[string]any{"name": "b"}, "data": map[string]string{"a": strings.Repeat("\x01", size-200)}})
	})
	message := func(name, path, av, kind string, msg func() []byte) {
		add("pb "+name, "POST", path, protobufType, func() string { return enveloped(av, kind, msg()) })
	}
	meta := func(fields []byte) []byte { return pb(1, append(pb(1, []byte("b")), fields...)) }
	message("owners", configMaps, "v1", "ConfigMap", func() []byte {
		return meta(bytes.Repeat(pb(13, nil), (size-100)/2))
	})
	message("finalizers", configMaps, "v1", "ConfigMap", func() []byte {
		return meta(bytes.Repeat(pb(14, nil), (size-100)/2))
	})
	message("managed", configMaps, "v1", "ConfigMap", func() []byte {
		return meta(bytes.Repeat(pb(17, nil), (size-100)/2))
	})
	message("labels", configMaps, "v1", "ConfigMap", func() []byte {
		return meta(bytes.Repeat(pb(11, nil), (size-100)/2))
	})
	message("containers", pods, "v1", "Pod", func() []byte {
		return append(meta(nil), pb(2, bytes.Repeat(pb(2, nil), (size-100)/2))...)
	})
	message("unknown", pods, "v1", "Pod", func() []byte {
		return append(meta(nil), bytes.Repeat([]byte{0x78, 1}, (size-100)/2)...)
	})
	message("big", configMaps, "v1", "ConfigMap", func() []byte {
		return append(meta(nil), pb(2, append(pb(1, []byte("a")), pb(2, bytes.Repeat([]byte("<"), size-200))...))...)
	})
	message("bad utf8", configMaps, "v1", "ConfigMap", func() []byte {
		return append(meta(nil), pb(2, append(pb(1, []byte("a")), pb(2, bytes.Repeat([]byte("\xff"), size-200))...))...)
	})
	// updates and patches
	put := func(name, path string, body func() string) { add("put "+name, "PUT", path, jsonType, body) }
	put("cm data", configMaps+"/a", fillEach(cm(`"x":1},"data":{`), `}}`, numbered(`"%d":""`)))
	put("cm owners", configMaps+"/a", fillEach(cm(`"ownerReferences":[`), `]}}`, numbered(`{"apiVersion":"v1","kind":"A","name":"n%d","uid":"u"}`)))
	put("cm finalizers", configMaps+"/a", fillEach(cm(`"finalizers":[`), `]}}`, numbered(`"%d"`)))
	put("free", frees+"/a", fill(`{"apiVersion":"e.example.com/v1","kind":"Free","metadata":{"name":"a"},"spec":{"x":[`, `{},`, `]}}`))
	put("thing", things+"/a", fill(`{"apiVersion":"e.example.com/v1","kind":"Thing","metadata":{"name":"a"},"spec":{"defaulted":[`, `{},`, `]}}`))
	pat := func(name, path, ct string, body func() string) { add("patch "+name, "PATCH", path, ct, body) }
	pat("merge data", configMaps+"/a", mergePatch, fillEach(`{"data":{`, `}}`, numbered(`"%d":""`)))
	pat("merge owners", configMaps+"/a", mergePatch, fill(`{"metadata":{"ownerReferences":[`, `{},`, `]}}`))
	pat("merge free", frees+"/a", mergePatch, fill(`{"spec":{"x":[`, `{},`, `]}}`))
	pat("strategic owners", configMaps+"/a", strategicPatch, fillEach(`{"metadata":{"ownerReferences":[`, `]}}`, numbered(`{"uid":"%d"}`)))
	pat("strategic finalizers", configMaps+"/a", strategicPatch, fillEach(`{"metadata":{"finalizers":[`, `]}}`, numbered(`"%d"`)))
	pat("json", configMaps+"/a", jsonPatch, fill(`[`, `{"op":"test","path":"/data/a","value":"b"},`, `]`))
	pat("json {}", configMaps+"/a", jsonPatch, fill(`[`, `{},`, `]`))
	pat("apply data", configMaps+"/a", applyPatch, fillEach(cm(`"namespace":"default"},"data":{`), `}}`, numbered(`"%d":""`)))
	pat("apply owners", configMaps+"/a", applyPatch, fill(cm(`"ownerReferences":[`), `{},`, `]}}`))
	pat("apply free", frees+"/a", applyPatch, fill(`{"apiVersion":"e.example.com/v1","kind":"Free","metadata":{"name":"a"},"spec":{"x":[`, `{},`, `]}}`))
	pat("apply yaml", frees+"/a", applyPatch, fill("apiVersion: e.example.com/v1\nkind: Free\nmetadata:\n  name: a\nspec:\n  x:\n", "  -\n", ""))
	add("delete options", "DELETE", configMaps+"/a", jsonType, fill(`{"dryRun":[`, `"All",`, `]}`))
	add("delete options yaml", "DELETE", configMaps+"/a", yamlType, fill(`{"x":[`, `{},`, `]}`))
	add("delete options unknown", "DELETE", configMaps, jsonType, fill(`{"dryRun":["All"],"x":[`, `{},`, `]}`))
	add("delete options pb", "DELETE", configMaps, protobufType, func() string {
		return enveloped("v1", "DeleteOptions", bytes.Repeat(pb(5, nil), (size-100)/2))
	})
	return all
}
