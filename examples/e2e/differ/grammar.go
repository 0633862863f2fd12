package main

import (
	"encoding/json"
	"math/rand/v2"
	"net/url"
	"strings"

	"sigs.k8s.io/yaml"
)

// request is a request template: its strings may have the variables of state.expand.
type request struct {
	verb   string // class of the method, such as "PATCH merge"
	class  string // class of the path, such as "typed object/status"
	method string
	path   string
	query  []string // name=value, escaped
	header [][2]string
	body   string

	kind     *kind // nil if the path is of no kind
	name     string
	version  string
	protobuf bool // the body is JSON that is sent as protobuf
	watch    bool
}

func (r *request) read() bool {
	return r.method == "GET" || r.method == "HEAD" || r.method == "OPTIONS"
}

func (r *request) dryRun() bool {
	for _, q := range r.query {
		if q == "dryRun=All" {
			return true
		}
	}
	return strings.Contains(r.body, `"dryRun"`) && r.method == "DELETE"
}

// target is the path with the query.
func (r *request) target() string {
	if len(r.query) == 0 {
		return r.path
	}
	return r.path + "?" + strings.Join(r.query, "&")
}

func (r *request) set(name, value string) { r.query = append(r.query, name+"="+url.QueryEscape(value)) }

// raw adds a parameter with variables in its value.
func (r *request) raw(name, value string) { r.query = append(r.query, name+"="+value) }

// grammar makes the requests of a case.
type grammar struct {
	*rand.Rand
	kinds []*kind
	focus []*kind // the kinds of most requests of the case
	made  int
	valid bool // objects have no changes
}

func newGrammar(seed uint64, number int, kinds []*kind) *grammar {
	g := &grammar{Rand: rand.New(rand.NewPCG(seed, uint64(number))), kinds: kinds}
	if g.chance(0.05) {
		g.kinds = definitionKinds()
		g.focus = g.kinds
		return g
	}
	for range 1 + g.IntN(2) {
		g.focus = append(g.focus, g.anyKind())
	}
	return g
}

func (g *grammar) chance(p float64) bool { return g.Float64() < p }

func pick[T any](g *grammar, from ...T) T { return from[g.IntN(len(from))] }

func (g *grammar) anyKind() *kind {
	total := 0
	for _, k := range g.kinds {
		total += k.weight
	}
	n := g.IntN(total)
	for _, k := range g.kinds {
		if n -= k.weight; n < 0 {
			return k
		}
	}
	panic("unreachable")
}

// weighted calls one of several functions, chosen by its weight.
type choice struct {
	weight int
	make   func() *request
}

func (g *grammar) weighted(choices ...choice) *request {
	total := 0
	for _, c := range choices {
		total += c.weight
	}
	n := g.IntN(total)
	for _, c := range choices {
		if n -= c.weight; n < 0 {
			return c.make()
		}
	}
	panic("unreachable")
}

// next returns the next request.
func (g *grammar) next() *request {
	g.made++
	k := pick(g, g.focus...)
	if g.chance(0.12) {
		k = g.anyKind()
	}
	name := g.name(k)
	if g.made <= 3 {
		g.valid = g.chance(0.6)
		defer func() { g.valid = false }()
		return g.create(k, name)
	}
	return g.weighted(
		choice{16, func() *request { return g.create(k, name) }}, choice{9, func() *request { return g.get(k, name) }},
		choice{15, func() *request { return g.list(k) }}, choice{2, func() *request { return g.watchList(k) }},
		choice{16, func() *request { return g.update(k, name) }}, choice{27, func() *request { return g.patch(k, name) }},
		choice{9, func() *request { return g.remove(k, name) }}, choice{2, func() *request { return g.removeAll(k) }},
		choice{6, func() *request { return g.odd(k, name) }}, choice{1, func() *request { return g.discovery(k) }},
	)
}

// name returns a name of a small pool, so that requests meet objects of earlier requests.
func (g *grammar) name(k *kind) string {
	if k.resource == "customresourcedefinitions" {
		return ownName
	}
	name := pick(g, "a", "a", "a", "b", "b", "c")
	if !k.namespaced {
		return "${ns}-" + name
	}
	return name
}

func (g *grammar) version(k *kind) string { return k.versions[g.IntN(len(k.versions))] }

// collection returns the start of a request to a collection.
func (g *grammar) collection(verb, method string, k *kind) *request {
	r := &request{verb: verb, method: method, kind: k, version: g.version(k), class: k.class() + " collection"}
	r.path = k.root(r.version) + "/"
	if k.namespaced {
		r.path += "namespaces/${ns}/"
	}
	r.path += k.resource
	return r
}

// object returns the start of a request to an object or one of its subresources.
func (g *grammar) object(verb, method string, k *kind, name string) *request {
	r := g.collection(verb, method, k)
	r.name, r.class = name, k.class()+" object"
	r.path += "/" + name
	return r
}

// subresource adds a subresource to the path of an object, sometimes one that the kind does not have.
func (g *grammar) subresource(r *request, likely float64) string {
	if r.kind.subresources == nil {
		likely = 0.03
	}
	if !g.chance(likely) {
		return ""
	}
	sub := pick(g, "status", "scale", "finalize", "log")
	if r.kind.subresources != nil && g.chance(0.9) {
		sub = pick(g, r.kind.subresources...)
	}
	r.path += "/" + sub
	r.class = r.kind.class() + " " + sub
	return sub
}

// writeOptions adds the options of requests with a body.
func (g *grammar) writeOptions(r *request) {
	if g.chance(0.12) {
		r.set("dryRun", pick(g, "All", "All", "All", "All", "all", "None", ""))
	}
	if g.chance(0.2) {
		r.set("fieldValidation", pick(g, "Strict", "Warn", "Ignore", "Strict", "Warn", "strict", ""))
	}
	if g.chance(0.12) && !strings.HasPrefix(r.verb, "PATCH apply") {
		r.set("fieldManager", pick(g, "one", "two", "one", strings.Repeat("m", 129), "a\tb", ""))
	}
	g.reading(r)
}

// reading adds options of the answer.
func (g *grammar) reading(r *request) {
	if g.chance(0.03) {
		r.set("pretty", pick(g, "true", "false", "1", "x"))
	}
	if g.chance(0.15) {
		r.header = append(r.header, [2]string{"Accept", g.accept(r.kind)})
	}
	if g.chance(0.01) {
		r.set(pick(g, "unknown", "timeout", "timeout", "resourceVersion"), pick(g, "5s", "x", "0", "-1s", "10"))
	}
}

func (g *grammar) accept(k *kind) string {
	const tables = "application/json;as=Table;v=v1;g=meta.k8s.io"
	const metadata = "application/json;as=PartialObjectMetadata;v=v1;g=meta.k8s.io"
	forms := []string{
		"application/json", "application/yaml", "*/*", "application/*", "", tables, tables + ",application/json", tables, metadata, metadata, "text/html", "text/plain;q=0.5,application/json;q=0.1",
		"application/json;as=PartialObjectMetadataList;v=v1;g=meta.k8s.io", "application/json;as=Table;v=v1beta1;g=meta.k8s.io", "application/json;as=Nothing;v=v1;g=meta.k8s.io", "application/cbor",
		"application/json;as=Table", "application/yaml;as=Table;v=v1;g=meta.k8s.io", "application/json;stream=watch", "application/json;charset=utf-8", ";", "application/vnd.kubernetes.protobuf,application/json",
	}
	if k != nil && k.typed && g.chance(0.2) {
		return "application/vnd.kubernetes.protobuf"
	}
	return pick(g, forms...)
}

// sample returns an object with some changes. With none it is valid.
func (g *grammar) sample(k *kind, name, version string, changes int) obj {
	o := k.sample()
	o["apiVersion"], o["kind"] = k.apiVersion(version), k.kind
	meta := obj{"name": name}
	if !k.namespaced {
		meta["labels"] = obj{"case": "${ns}"}
	} else if g.chance(0.3) {
		meta["namespace"] = "${ns}"
	}
	o["metadata"] = meta
	for range changes {
		f := g.field(k)
		value := pick(g, f.values...)
		if f.path == "metadata.name" && !k.namespaced && (value == "other" || value == "a.b") {
			continue
		}
		set(o, f.path, clone(value))
	}
	return o
}

func (g *grammar) field(k *kind) field {
	if g.chance(0.3) {
		return pick(g, metadataFields...)
	}
	return pick(g, k.fields...)
}

func (g *grammar) changes() int {
	if g.valid {
		return 0
	}
	return pick(g, 0, 0, 0, 1, 1, 1, 1, 2, 2, 3)
}

func text(v any) string {
	out, err := json.Marshal(v)
	if err != nil {
		panic(err) // values of this package have JSON
	}
	return string(out)
}

// send sets the body of a request, sometimes in another form or with a mistake.
func (g *grammar) send(r *request, o any, form string) {
	r.body = self(text(o), r.kind, r.name)
	switch {
	case g.chance(0.03):
		r.body = pick(g, "", "null", "[]", "{", `"text"`, "1", "{}", r.body+r.body, r.body+"x", strings.Replace(r.body, "{", `{"kind":"Twice",`, 1), strings.Replace(r.body, `"metadata":{`, `"metadata":{"name":"twice",`, 1),
			strings.Replace(r.body, `{`, `{"spec":{"x":1},"spec":{"x":2},`, 1), r.body[:len(r.body)/2], "\xef\xbb\xbf"+r.body, " \n"+r.body+"\n", strings.ReplaceAll(r.body, `"`, "'"), "\xff\xfe", strings.Repeat("[", 100))
	case g.chance(0.08) && form == "application/json":
		if converted, err := yaml.JSONToYAML([]byte(r.body)); err == nil {
			form, r.body = "application/yaml", string(converted)
		}
	case g.chance(0.06) && r.kind.typed && form == "application/json":
		form, r.protobuf = "application/vnd.kubernetes.protobuf", true
	}
	if g.chance(0.015) {
		form = pick(g, "text/plain", "application/xml", "application/json;charset=utf-8", "application/cbor", "x", "application/x-yaml", "*/*", "application/vnd.kubernetes.protobuf")
	}
	if !g.chance(0.01) {
		r.header = append(r.header, [2]string{"Content-Type", form})
	}
}

func (g *grammar) create(k *kind, name string) *request {
	r := g.collection("POST", "POST", k)
	r.name = name
	o := g.sample(k, name, r.version, g.changes())
	g.writeOptions(r)
	if g.chance(0.02) {
		delete(o["metadata"].(obj), "name")
		o["metadata"].(obj)["generateName"] = "g-"
	}
	if meta, ok := o["metadata"].(obj); ok && meta["generateName"] != nil && (meta["name"] == nil || meta["name"] == "") {
		r.raw("dryRun", "All")
	}
	g.send(r, o, "application/json")
	return r
}

func (g *grammar) get(k *kind, name string) *request {
	r := g.object("GET", "GET", k, name)
	g.subresource(r, 0.2)
	if g.chance(0.15) {
		r.raw("resourceVersion", pick(g, "0", "${rv "+k.resource+"/"+name+"}", "${firstrv "+k.resource+"/"+name+"}", "abc", "99999999999", "-1", "", "${listrv "+k.resource+"}"))
	}
	if g.chance(0.04) {
		r.set("resourceVersionMatch", pick(g, "Exact", "NotOlderThan", "x"))
	}
	if g.chance(0.02) {
		r.verb, r.method = "HEAD", "HEAD"
	}
	if g.chance(0.05) {
		r.set("includeObject", pick(g, "None", "Metadata", "Object", "x"))
		r.header = append(r.header, [2]string{"Accept", "application/json;as=Table;v=v1;g=meta.k8s.io"})
		return r
	}
	g.reading(r)
	if g.chance(0.12) {
		r.header = [][2]string{{"Accept", g.accept(k)}}
	}
	return r
}

// selectors adds selectors. Collections that other cases use are limited to the objects of the case.
func (g *grammar) selectors(r *request, all bool) {
	labels := ""
	if g.chance(0.22) {
		labels = pick(g, "x=1", "x", "!x", "x!=1", "x in (1,2)", "x notin (1)", "x=1,y=z", "x==2", "x=", "=x", "x in", "x>1", "x>a", "bad key!=1", "x=bad value!", ",", "case=${ns}", "x in ()", "!", "x,", "x<5")
	}
	if !r.kind.namespaced {
		labels = strings.TrimSuffix("case=${ns},"+labels, ",")
	}
	if labels != "" {
		r.query = append(r.query, "labelSelector="+escape(labels))
	}
	fields := ""
	if g.chance(0.16) {
		fields = pick(g, append([]string{"metadata.name=a", "metadata.name!=a", "metadata.namespace=${ns}", "metadata.namespace=default", "spec.x=1", "metadata.name", "=", "metadata.name==b", "metadata.labels.x=1", "metadata.name=a,metadata.namespace=${ns}", "metadata.uid=x", "status.phase=x", "metadata.name=Bad Name"}, append(r.kind.selectors, r.kind.selectors...)...)...)
	}
	if all {
		fields = "metadata.namespace=${ns}"
	}
	if fields != "" {
		r.query = append(r.query, "fieldSelector="+escape(fields))
	}
}

// escape escapes a value of a query and leaves its variables.
func escape(value string) string {
	value = url.QueryEscape(value)
	value = strings.ReplaceAll(value, "%24%7B", "${")
	return strings.ReplaceAll(value, "%7D", "}")
}

func (g *grammar) list(k *kind) *request {
	r := g.collection("LIST", "GET", k)
	all := k.namespaced && g.chance(0.08)
	if all {
		r.path, r.class = k.root(r.version)+"/"+k.resource, k.class()+" all namespaces"
	} else if k.namespaced && g.chance(0.02) {
		r.path, r.class = k.root(r.version)+"/namespaces/"+pick(g, "missing", "Bad_Name", "-")+"/"+k.resource, k.class()+" collection elsewhere"
	}
	g.selectors(r, all)
	if k.steady && (k.namespaced || k.resource == "sites") && g.chance(0.3) {
		r.set("limit", pick(g, "1", "1", "2", "2", "500", "0", "-1", "x"))
	}
	if g.chance(0.15) {
		r.raw("continue", pick(g, "${page "+k.resource+"}", "${page "+k.resource+"}", "${page "+k.resource+"}", "bad", "e30"))
	}
	if g.chance(0.22) {
		r.raw("resourceVersion", pick(g, "0", "${listrv "+k.resource+"}", "${listrv "+k.resource+"}", "${rv "+k.resource+"/"+g.name(k)+"}", "", "abc", "99999999999", "-1"))
	}
	if g.chance(0.1) {
		r.set("resourceVersionMatch", pick(g, "Exact", "NotOlderThan", "x", ""))
	}
	if g.chance(0.02) {
		r.set("sendInitialEvents", pick(g, "true", "false", "x"))
	}
	if g.chance(0.06) {
		r.set("includeObject", pick(g, "None", "Metadata", "Object", "x"))
	}
	if g.chance(0.15) {
		r.header = append(r.header, [2]string{"Accept", g.accept(k)})
	}
	g.reading(r)
	return r
}

func (g *grammar) watchList(k *kind) *request {
	if !k.steady {
		return g.list(k) // the events of what controllers change are not the same
	}
	r := g.collection("WATCH", "GET", k)
	r.watch = true
	if g.chance(0.1) {
		r.path = strings.Replace(r.path, k.root(r.version), k.root(r.version)+"/watch", 1)
		r.class += " by path"
	} else {
		r.set("watch", pick(g, "true", "true", "1", "true"))
	}
	r.set("timeoutSeconds", "1")
	g.selectors(r, false)
	if g.chance(0.1) {
		r.query = append(r.query, "fieldSelector="+escape("metadata.name="+g.name(k)))
	}
	if g.chance(0.65) {
		r.raw("resourceVersion", pick(g, "${listrv "+k.resource+"}", "${listrv "+k.resource+"}", "${firstrv "+k.resource+"/"+g.name(k)+"}", "${rv "+k.resource+"/"+g.name(k)+"}", "0", "", "abc"))
	}
	if g.chance(0.25) {
		r.set("allowWatchBookmarks", pick(g, "true", "true", "false", "x"))
	}
	if g.chance(0.25) {
		r.set("sendInitialEvents", pick(g, "true", "true", "false", "x"))
		if g.chance(0.8) {
			r.set("resourceVersionMatch", "NotOlderThan")
		}
		if g.chance(0.7) {
			r.set("allowWatchBookmarks", "true")
		}
	}
	if g.chance(0.15) {
		r.header = append(r.header, [2]string{"Accept", pick(g, "application/json;as=Table;v=v1;g=meta.k8s.io", "application/json;as=PartialObjectMetadata;v=v1;g=meta.k8s.io", "application/json;stream=watch", "application/yaml", "text/html")})
	}
	return r
}

func (g *grammar) update(k *kind, name string) *request {
	r := g.object("PUT", "PUT", k, name)
	sub := g.subresource(r, 0.3)
	o := g.sample(k, name, r.version, g.changes())
	if g.chance(0.6) {
		o["metadata"].(obj)["resourceVersion"] = "${self rv}"
	}
	if sub == "scale" && g.chance(0.9) {
		o = g.scale(k, name)
	}
	g.writeOptions(r)
	g.send(r, o, "application/json")
	return r
}

func (g *grammar) scale(k *kind, name string) obj {
	o := obj{"apiVersion": "autoscaling/v1", "kind": "Scale", "metadata": obj{"name": name, "namespace": "${ns}"}, "spec": obj{"replicas": pick[any](g, 0, 1, 3, 7, -1, 101, "x", nil)}}
	if g.chance(0.25) {
		set(o, pick(g, "metadata.name", "metadata.namespace", "apiVersion", "kind", "spec.unknown", "metadata.resourceVersion", "metadata.uid", "status.replicas"), pick[any](g, "b", "1", "", unset{}, 5, "extensions/v1beta1"))
	}
	if g.chance(0.2) {
		set(o, "metadata.resourceVersion", "${self rv}")
	}
	return o
}

func (g *grammar) patch(k *kind, name string) *request {
	kinds := []string{"json", "merge", "apply", "apply"}
	if k.typed || g.chance(0.05) {
		kinds = append(kinds, "strategic", "strategic")
	}
	form := pick(g, kinds...)
	r := g.object("PATCH "+form, "PATCH", k, name)
	sub := g.subresource(r, 0.25)
	switch form {
	case "json":
		g.send(r, g.jsonPatch(k), "application/json-patch+json")
	case "merge":
		g.send(r, g.mergePatch(k, sub), "application/merge-patch+json")
	case "strategic":
		o := g.mergePatch(k, sub)
		if g.chance(0.2) {
			set(o, pick(g, "$patch", "data.$patch", "metadata.$patch", "metadata.labels.$patch", "spec.$patch", "spec.$retainKeys", "metadata.$deleteFromPrimitiveList/finalizers", "metadata.$setElementOrder/finalizers", "metadata.$setElementOrder/ownerReferences", "data.$retainKeys"),
				pick[any](g, "replace", "delete", "merge", "x", []any{"example.com/hold"}, []any{"k"}, 1, []any{obj{"uid": "x"}}))
		}
		g.send(r, o, "application/strategic-merge-patch+json")
	case "apply":
		g.apply(r, sub)
	}
	g.writeOptions(r)
	return r
}

func (g *grammar) mergePatch(k *kind, sub string) obj {
	o := obj{}
	for range 1 + g.IntN(3) {
		f := g.field(k)
		value := pick(g, f.values...)
		if _, remove := value.(unset); remove {
			value = nil
		}
		set(o, f.path, clone(value))
	}
	if sub == "scale" {
		return obj{"spec": obj{"replicas": pick[any](g, 1, 4, -1, "x", nil, 1000)}}
	}
	return o
}

func (g *grammar) jsonPatch(k *kind) any {
	var ops []any
	for range 1 + g.IntN(3) {
		f := g.field(k)
		value := pick(g, f.values...)
		path := "/" + strings.ReplaceAll(strings.ReplaceAll(strings.ReplaceAll(f.path, "~", "\x00"), ".", "/"), "\x00", ".")
		if g.chance(0.12) {
			path = pick(g, path+"/-", path+"/0", "", "no-slash", "/", "/metadata/labels/a~1b", path+"/x/y", "/metadata", "/spec/tags/-", "/metadata/finalizers/0")
		}
		op := obj{"op": pick(g, "add", "add", "replace", "replace", "remove", "test", "copy", "move", "x"), "path": path}
		switch op["op"] {
		case "remove":
		case "copy", "move":
			op["from"] = pick(g, "/metadata/labels", "/data/k", "/spec/color", "/metadata/name", "/missing", "/metadata/annotations/a")
		default:
			if _, remove := value.(unset); !remove {
				op["value"] = clone(value)
			}
		}
		if g.chance(0.02) {
			delete(op, pick(g, "op", "path", "value"))
		}
		ops = append(ops, op)
	}
	return ops
}

func (g *grammar) apply(r *request, sub string) {
	k := r.kind
	o := obj{"apiVersion": k.apiVersion(r.version), "kind": k.kind, "metadata": obj{"name": r.name}}
	if !k.namespaced && g.chance(0.8) {
		set(o, "metadata.labels.case", "${ns}")
	}
	if g.chance(0.5) {
		for name, value := range k.sample() {
			o[name] = value
		}
	}
	for range g.IntN(4) {
		f := g.field(k)
		value := pick(g, f.values...)
		if f.path == "metadata.name" && !k.namespaced {
			continue
		}
		set(o, f.path, clone(value))
	}
	if sub == "scale" && g.chance(0.8) {
		o = g.scale(k, r.name)
	}
	if g.chance(0.92) {
		r.set("fieldManager", pick(g, "one", "two", "one", "two", "three", ""))
	}
	if g.chance(0.4) {
		r.set("force", pick(g, "true", "true", "true", "false", "x"))
	}
	r.body = self(text(o), k, r.name)
	if converted, err := yaml.JSONToYAML([]byte(r.body)); err == nil && g.chance(0.7) {
		r.body = string(converted)
	}
	switch {
	case g.chance(0.02):
		r.body = pick(g, "", "a: [", "- x", "null", "a: 1\na: 2\n", r.body+"---\n"+r.body, r.body+"\nkind: Twice\n", "%x", "\t", "'", r.body+"spec: {a: 1, a: 2}\n")
	}
	r.header = append(r.header, [2]string{"Content-Type", pick(g, "application/apply-patch+yaml", "application/apply-patch+yaml", "application/apply-patch+yaml", "application/apply-patch+yaml", "application/apply-patch+yaml", "application/apply-patch+yaml;charset=utf-8", "application/apply-patch+cbor")})
}

func (g *grammar) remove(k *kind, name string) *request {
	r := g.object("DELETE", "DELETE", k, name)
	g.subresource(r, 0.02)
	g.deleteOptions(r)
	return r
}

func (g *grammar) removeAll(k *kind) *request {
	r := g.collection("DELETECOLLECTION", "DELETE", k)
	g.selectors(r, false)
	g.deleteOptions(r)
	if g.chance(0.1) {
		r.set("limit", "1")
	}
	if g.chance(0.1) {
		r.raw("resourceVersion", pick(g, "", "abc")) // with others the answer depends on how far a cache is
	}
	return r
}

// deleteOptions adds options in the query or in the body.
func (g *grammar) deleteOptions(r *request) {
	if g.chance(0.2) {
		r.set("dryRun", pick(g, "All", "All", "x"))
	}
	if g.chance(0.2) {
		r.set("propagationPolicy", pick(g, "Background", "Foreground", "Orphan", "x"))
	}
	if g.chance(0.15) {
		r.set("gracePeriodSeconds", pick(g, "0", "30", "-1", "x"))
	}
	if g.chance(0.05) {
		r.set("orphanDependents", pick(g, "true", "false", "x"))
	}
	if g.chance(0.4) {
		o := obj{"apiVersion": "v1", "kind": "DeleteOptions"}
		if g.chance(0.15) {
			o["apiVersion"] = pick(g, "meta.k8s.io/v1", r.kind.apiVersion(r.version), "v2", "")
		}
		if g.chance(0.05) {
			delete(o, pick(g, "apiVersion", "kind"))
		}
		for range g.IntN(3) {
			if g.chance(0.5) {
				set(o, "preconditions.uid", pick[any](g, "${self uid}", "${self uid}", "11111111-1111-4111-8111-111111111111", "", 1))
			} else {
				set(o, "preconditions.resourceVersion", pick[any](g, "${self rv}", "${self rv}", "1", "x", 1))
			}
			if g.chance(0.5) {
				set(o, pick(g, "propagationPolicy", "gracePeriodSeconds", "orphanDependents", "dryRun", "unknown", "kind", "ignoreStoreReadErrorWithClusterBreakingPotential"), pick[any](g, "Background", "Foreground", "Orphan", 0, 5, true, false, []any{"All"}, "x"))
			}
		}
		g.send(r, o, "application/json")
	}
	g.reading(r)
}

// odd returns a request to a path or with a method that most clients do not use.
func (g *grammar) odd(k *kind, name string) *request {
	r := g.object("", pick(g, "GET", "POST", "PUT", "PATCH", "DELETE", "OPTIONS", "HEAD", "FOO"), k, name)
	root := k.root(r.version)
	switch g.IntN(12) {
	case 0:
		r.class += " wrong method"
	case 1:
		r.path, r.class = strings.TrimSuffix(r.path, "/"+name), k.class()+" collection wrong method"
	case 2:
		r.path, r.class = r.path+"/"+pick(g, "status", "scale", "nothing", "status/x", "finalize"), k.class()+" subresource wrong method"
	case 3:
		r.path, r.class = root+"/"+k.resource+pick(g, "", "/"+name), k.class()+" without a namespace"
	case 4:
		r.path, r.class = root+"/namespaces/${ns}/"+pick(g, "nothings", "nothings/a", k.kind, strings.TrimSuffix(k.resource, "s")), k.class()+" no such resource"
	case 5:
		r.path, r.class = "/apis/"+pick(g, "nothing.example.com/v1/things", "nothing.example.com", or(k.group, "x")+"/v9/"+k.resource, or(k.group, "x")+"/v9"), "no such version"
	case 6:
		r.path, r.class = r.path+pick(g, "/", "//", "/./", "/../b", "%2f", "%20", "%00", "?", "/status/"), k.class()+" odd path"
	case 7:
		r.path, r.class = strings.Replace(r.path, "/namespaces/", pick(g, "//namespaces/", "/Namespaces/", "/namespaces//", "/namespaces/missing/x/"), 1), k.class()+" odd path"
	case 8:
		r.path, r.class = "/"+pick(g, "api", "apis", "apis/", "api/", "", "healthz", "livez", "readyz", "nothing", "version", "version/", "healthz/ping", "healthz/nothing", "api/v2", "apis/events.k8s.io/v1beta1"), "root path"
	case 9:
		r.path, r.class = root+"/namespaces/missing/"+k.resource+pick(g, "", "/"+name), k.class()+" missing namespace"
	case 10:
		r.path, r.class = root+"/"+pick(g, "watch", "proxy", "redirect", "watch/namespaces/${ns}/"+k.resource+"/"+name+"?timeoutSeconds=1"), k.class()+" watch path"
		r.method, r.watch = "GET", true
	default:
		r.path, r.class = strings.TrimSuffix(r.path, name)+pick(g, "Bad_Name", strings.Repeat("n", 260), "a.b", "%41", "..", "-", "a:b", "caf%C3%A9"), k.class()+" odd name"
	}
	if (!k.namespaced || strings.HasSuffix(r.class, "without a namespace")) && !r.watch && (r.method == "GET" || r.method == "DELETE") {
		r.method = "OPTIONS" // the collection has the objects of other cases
	}
	r.verb = r.method
	if r.method == "POST" || r.method == "PUT" || r.method == "PATCH" {
		o := g.sample(k, name, r.version, 0)
		form := "application/json"
		if r.method == "PATCH" {
			form = pick(g, "application/merge-patch+json", "application/json", "application/json-patch+json", "application/x", "application/strategic-merge-patch+json", "application/apply-patch+yaml")
		}
		g.send(r, o, form)
	}
	return r
}

func (g *grammar) discovery(k *kind) *request {
	r := &request{verb: "GET", method: "GET", class: "discovery"}
	r.path = pick(g, "/api", "/apis", "/api/v1", k.root(k.versions[0]), "/apis/"+or(k.group, "events.k8s.io"), "/apis/coordination.k8s.io/v1", "/apis/events.k8s.io/v1", "/apis/apiextensions.k8s.io/v1")
	if g.chance(0.5) {
		r.header = [][2]string{{"Accept", pick(g, "application/json;g=apidiscovery.k8s.io;v=v2;as=APIGroupDiscoveryList", "application/json;g=apidiscovery.k8s.io;v=v2;as=APIGroupDiscoveryList,application/json", "application/yaml", "application/json;as=Table;v=v1;g=meta.k8s.io", "text/html", "application/json;g=apidiscovery.k8s.io;v=v2beta1;as=APIGroupDiscoveryList")}}
	}
	return r
}
