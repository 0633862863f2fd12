package main

import (
	"strings"

	"sigs.k8s.io/yaml"
)

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
		if strings.Contains(r.target(), "dryRun=") {
			r.verb += " with dryRun and a body"
		}
	}
	g.reading(r)
}
