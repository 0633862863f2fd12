package main

import (
	"net/url"
	"strings"
)

// reading adds options of the answer.
func (g *grammar) reading(r *request) {
	if g.chance(0.03) {
		r.set("pretty", pick(g, "true", "false", "1", "x"))
	}
	if g.chance(0.15) {
		accept := g.accept(r.kind)
		r.header = append(r.header, [2]string{"Accept", accept})
		if strings.Contains(accept, "as=Table") {
			r.verb += " as a Table" // for the list of accepted differences
		}
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

func (g *grammar) get(k *kind, name string) *request {
	r := g.object("GET", "GET", k, name)
	defer r.markVersion()
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

// markVersion tells reads at a resourceVersion of an earlier answer from others.
func (r *request) markVersion() {
	if strings.Contains(r.target(), "resourceVersion=${") {
		r.verb += " at a resourceVersion"
	}
}

func (g *grammar) list(k *kind) *request {
	r := g.collection("LIST", "GET", k)
	defer r.markVersion()
	all := k.namespaced && g.chance(0.08)
	if all {
		r.path, r.class = k.root(r.version)+"/"+k.resource, k.class()+" all namespaces"
	} else if k.namespaced && g.chance(0.02) {
		r.path, r.class = k.root(r.version)+"/namespaces/"+pick(g, "missing", "Bad_Name", "-")+"/"+k.resource, k.class()+" collection elsewhere"
	}
	g.selectors(r, all)
	if k.namespaced && g.chance(0.3) { // the pages of other collections depend on the objects of other cases
		r.set("limit", pick(g, "1", "1", "2", "2", "500", "0", "-1", "x"))
	}
	if g.chance(0.15) {
		r.raw("continue", pick(g, "${page "+k.resource+"}", "${page "+k.resource+"}", "${page "+k.resource+"}", "bad", "e30"))
		r.verb += " continued"
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
