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

// newGrammar returns the grammar of a case. About one case in twenty is about the definitions of kinds.
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

// choice is a way to make a request, with its weight among others.
type choice struct {
	weight int
	make   func() *request
}

// weighted makes a request in one of several ways.
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

// changes returns the number of changes for an object.
func (g *grammar) changes() int {
	if g.valid {
		return 0
	}
	return pick(g, 0, 0, 0, 1, 1, 1, 1, 2, 2, 3)
}

// text returns a value as JSON.
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
