package main

import (
	"strings"
)

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
