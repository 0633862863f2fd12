package openapi

import (
	"maps"
	"net/http"
	"reflect"
	"slices"
	"sort"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	apischema "k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/version"
	"k8s.io/kube-openapi/pkg/validation/spec"

	"github.com/keelson-dev/keelson/runtime"
	"github.com/keelson-dev/keelson/runtime/schema"
)

// describer makes the parts of the document of one group version.
type describer struct {
	opts    Options
	gv      GroupVersion
	builder *schema.Builder
	paths   map[string]spec.PathItem
}

func newDescriber(o Options, gv GroupVersion) *describer {
	return &describer{
		opts: o, gv: gv, paths: map[string]spec.PathItem{},
		builder: schema.NewBuilder(schema.Options{GroupVersion: apischema.GroupVersion{Group: gv.Group, Version: gv.Version}}),
	}
}

func (d *describer) parts() parts { return parts{d.paths, d.builder} }

func (d *describer) add(path string, pathParameters []spec.Parameter, operations ...operation) {
	if item, ok := attach(d.gv, pathParameters, operations); ok {
		d.paths[path] = item
	}
}

func (d *describer) meta(t reflect.Type) string { return d.builder.AddType(t) }

// groupVersionParts describes a group version: its resources, and the list of resources.
func groupVersionParts(o Options, gv GroupVersion) parts {
	d := newDescriber(o, gv)
	d.add(gv.root()+"/", nil, operation{
		method: http.MethodGet, id: "get", rest: "APIResources", description: "get available resources",
		produces: o.MediaTypes, responses: map[int]string{http.StatusOK: d.meta(reflect.TypeFor[metav1.APIResourceList]())},
	})
	resources := slices.Clone(gv.Resources) // sorted with package sort, as in sortParameters
	sort.SliceStable(resources, func(i, j int) bool { return resources[i].Plural < resources[j].Plural })
	for _, r := range resources { // all kinds come before the subresources, so that a kind gets its own name
		d.builder.AddKind(r.kind())
	}
	for _, r := range resources {
		d.addResource(r)
	}
	return d.parts()
}

func (r Resource) kind() schema.Kind {
	return schema.Kind{
		GVK: r.Kind, Type: r.Type, ListType: r.ListType, Docs: r.Docs, Description: r.Description,
		Object: r.Object, ListKind: r.ListKind, Plural: r.Plural, SelectableFields: r.SelectableFields,
		WithoutList: !slices.Contains(r.Verbs, "list") && !slices.Contains(r.Verbs, "watch"),
	}
}

// groupParts describes a group without its versions.
func groupParts(o Options, group string) parts {
	d := newDescriber(o, GroupVersion{Group: group})
	d.add("/apis/"+group+"/", nil, operation{
		method: http.MethodGet, id: "get", rest: "APIGroup", description: "get information of a group",
		produces: o.MediaTypes, responses: map[int]string{http.StatusOK: d.meta(reflect.TypeFor[metav1.APIGroup]())},
	})
	return d.parts()
}

// groupListParts describes /apis.
func groupListParts(o Options) parts {
	return rootParts(o, "/apis/", "apis", "getAPIVersions", "get available API versions", reflect.TypeFor[metav1.APIGroupList]())
}

// coreVersionsParts describes /api.
func coreVersionsParts(o Options) parts {
	return rootParts(o, "/api/", "core", "getCoreAPIVersions", "get available API versions", reflect.TypeFor[metav1.APIVersions]())
}

// versionParts describes /version.
func versionParts() parts {
	o := Options{MediaTypes: []string{mediaTypeJSON}}
	return rootParts(o, "/version/", "version", "getCodeVersion", "get the version information for this server", reflect.TypeFor[version.Info]())
}

func rootParts(o Options, path, tag, id, description string, answer reflect.Type) parts {
	d := newDescriber(o, GroupVersion{})
	item, _ := attach(d.gv, nil, []operation{{
		method: http.MethodGet, description: description, produces: o.MediaTypes,
		responses: map[int]string{http.StatusOK: d.meta(answer)},
	}})
	item.Get.ID, item.Get.Tags = id, []string{tag}
	d.paths[path] = item
	return d.parts()
}

// resourcePaths describes the paths of one resource.
type resourcePaths struct {
	*describer
	r         Resource
	kind      string // of the resource: "Widget"
	scoped    string // in the names of operations: "NamespacedWidget"
	name      string // of the definition of an object
	root      string // of the collection
	container []spec.Parameter
}

func (d *describer) addResource(r Resource) {
	p := resourcePaths{
		describer: d, r: r, kind: r.Kind.Kind, scoped: r.Kind.Kind, name: d.builder.AddKind(r.kind()),
		root: d.gv.root() + "/" + r.Plural, container: []spec.Parameter{prettyParameter()},
	}
	if r.Namespaced {
		p.scoped, p.root = "Namespaced"+p.kind, d.gv.root()+"/namespaces/{namespace}/"+r.Plural
		p.container = append(p.container, namespaceParameter())
	}
	p.add(p.root, p.container, p.collection()...)
	if r.Namespaced && p.has("list") {
		list := p.list()
		list.rest = p.kind + "ForAllNamespaces"
		p.add(d.gv.root()+"/"+r.Plural, []spec.Parameter{prettyParameter()}, list)
	}
	item := append(slices.Clone(p.container), nameParameter(p.kind))
	p.add(p.root+"/{name}", item, p.item(p.asPart())...)
	subresources := slices.Clone(r.Subresources)
	sort.SliceStable(subresources, func(i, j int) bool { return subresources[i].Name < subresources[j].Name })
	for _, sub := range subresources {
		path, part := p.root+"/{name}/"+sub.Name, p.subresource(sub)
		if p.described() && len(sub.ConnectMethods) == 0 {
			part.kind = r.Kind
		}
		item := append(slices.Clone(p.container), nameParameter(part.kind.Kind))
		if len(sub.ConnectMethods) > 0 {
			p.add(path, item, p.connections(sub)...)
			continue
		}
		p.add(path, item, append(p.create(part), p.item(part)...)...)
	}
}

// mediaTypes returns the media types of objects in answers.
func (p resourcePaths) mediaTypes() []string {
	if p.r.MediaTypes != nil {
		return p.r.MediaTypes
	}
	return p.opts.MediaTypes
}

// streamTypes returns the media types of watches.
func (p resourcePaths) streamTypes() []string {
	if p.r.StreamTypes != nil {
		return p.r.StreamTypes
	}
	return p.opts.StreamTypes
}

// described reports whether the kind is described as a custom resource. For operations of such kinds, kube-apiserver writes the
// media types of bodies, a resourceVersion of GET, and only the kind of the resource itself. It does not write that lists may be
// watched and that PATCH may create objects.
func (p resourcePaths) described() bool { return p.r.Object != nil }

// bodyTypes returns the media types of bodies, or nil if the document does not contain them.
func (p resourcePaths) bodyTypes() []string {
	if p.described() {
		return p.mediaTypes()
	}
	return nil
}

func (p resourcePaths) has(verb string) bool { return slices.Contains(p.r.Verbs, verb) }

// collection returns the operations on the collection.
func (p resourcePaths) collection() []operation {
	var out []operation
	if p.has("list") {
		out = append(out, p.list())
	}
	out = append(out, p.create(p.asPart())...)
	if p.has("deletecollection") {
		status := p.meta(reflect.TypeFor[metav1.Status]())
		out = append(out, operation{
			method: http.MethodDelete, id: "delete", rest: "Collection" + p.scoped, action: "deletecollection", kind: p.r.Kind,
			description: "delete collection of " + p.kind, parameters: deleteCollectionParameters(),
			body: p.meta(reflect.TypeFor[metav1.DeleteOptions]()), bodyTypes: p.bodyTypes(), produces: p.mediaTypes(),
			responses: map[int]string{http.StatusOK: status},
		})
	}
	return out
}

func (p resourcePaths) list() operation {
	o := operation{
		method: http.MethodGet, id: "list", rest: p.scoped, action: "list", kind: p.r.Kind,
		description: "list objects of kind " + p.kind, parameters: listParameters(p.has("watch")),
		bodyTypes: p.bodyTypes(), produces: p.mediaTypes(), responses: map[int]string{http.StatusOK: p.builder.ListName(p.name)},
	}
	if p.has("watch") && !p.described() {
		o.description = "list or watch objects of kind " + p.kind
		o.produces = append(slices.Clone(p.mediaTypes()), p.streamTypes()...)
		p.meta(reflect.TypeFor[metav1.WatchEvent]())
	}
	return o
}

// part is the object of create, get, update, patch and delete: the object itself or a subresource.
type part struct {
	kind       apischema.GroupVersionKind
	definition string
	verbs      []string
	patchTypes []string
	suffix     string // at the end of the operations' names
	of         string // the beginning of descriptions: "", or "status of "
}

func (p resourcePaths) asPart() part {
	return part{kind: p.r.Kind, definition: p.name, verbs: p.r.Verbs, patchTypes: p.r.PatchTypes}
}

func (p resourcePaths) subresource(sub Subresource) part {
	out := part{
		kind: sub.Kind, definition: p.name, verbs: sub.Verbs, patchTypes: sub.PatchTypes,
		suffix: camelCase(sub.Name), of: sub.Name + " of ",
	}
	if out.kind.Empty() {
		out.kind = p.r.Kind
	}
	if sub.Type == nil && out.kind == runtime.ScaleKind() {
		sub.Type = reflect.TypeFor[runtime.Scale]()
	}
	if out.kind != p.r.Kind {
		out.definition = p.builder.AddKind(schema.Kind{GVK: out.kind, Type: sub.Type, Docs: p.r.Docs, WithoutList: true})
	}
	return out
}

// operation returns an operation on an object or on a part of it.
func (p resourcePaths) operation(method, id, action string, of part) operation {
	return operation{
		method: method, id: id, rest: p.scoped + of.suffix, action: action, kind: of.kind,
		bodyTypes: p.bodyTypes(), produces: p.mediaTypes(), responses: map[int]string{http.StatusOK: of.definition},
	}
}

func (p resourcePaths) create(of part) []operation {
	if !slices.Contains(of.verbs, "create") {
		return nil
	}
	o := p.operation(http.MethodPost, "create", "post", of)
	o.description = "create " + of.of + article(p.kind)
	o.parameters, o.body = createParameters(), of.definition
	o.responses[http.StatusCreated], o.responses[http.StatusAccepted] = of.definition, of.definition
	return []operation{o}
}

// item returns the operations on one object, or on a part of it.
func (p resourcePaths) item(of part) []operation {
	var out []operation
	for _, verb := range of.verbs {
		switch verb {
		case "get":
			o := p.operation(http.MethodGet, "read", "get", of)
			o.description = "read " + of.of + "the specified " + p.kind
			if p.described() {
				o.parameters = getParameters()
			}
			out = append(out, o)
		case "update":
			o := p.operation(http.MethodPut, "replace", "put", of)
			o.description = "replace " + of.of + "the specified " + p.kind
			o.parameters, o.body = updateParameters(), of.definition
			o.responses[http.StatusCreated] = of.definition
			out = append(out, o)
		case "patch":
			out = append(out, p.patch(of))
		case "delete":
			o := p.operation(http.MethodDelete, "delete", "delete", of)
			o.description = "delete " + of.of + article(p.kind)
			o.parameters, o.body = deleteParameters(), p.meta(reflect.TypeFor[metav1.DeleteOptions]())
			answer := p.name
			if !p.r.ReturnsDeleted {
				answer = p.meta(reflect.TypeFor[metav1.Status]())
			}
			o.responses = map[int]string{http.StatusOK: answer, http.StatusAccepted: answer}
			out = append(out, o)
		}
	}
	return out
}

// patch returns the PATCH operation. Only server-side apply can create an object.
func (p resourcePaths) patch(of part) operation {
	o := p.operation(http.MethodPatch, "patch", "patch", of)
	o.description = "partially update " + of.of + "the specified " + p.kind
	o.parameters, o.body, o.bodyTypes = patchParameters(), p.meta(reflect.TypeFor[metav1.Patch]()), slices.Clone(of.patchTypes)
	if !p.described() && slices.ContainsFunc(of.patchTypes, func(t string) bool { return strings.HasPrefix(t, "application/apply-patch") }) {
		o.responses[http.StatusCreated] = of.definition
	}
	return o
}

// connections returns the operations of a subresource that is a connection.
func (p resourcePaths) connections(sub Subresource) []operation {
	methods := map[string]bool{}
	for _, m := range sub.ConnectMethods {
		methods[m] = true
	}
	kind := sub.Kind
	if kind.Empty() {
		kind = p.r.Kind
	}
	var out []operation
	for _, method := range slices.Sorted(maps.Keys(methods)) {
		out = append(out, operation{
			method: method, id: "connect", rest: camelCase(strings.ToLower(method)) + p.scoped + camelCase(sub.Name),
			action: "connect", kind: kind, description: "connect " + method + " requests to " + sub.Name + " of " + p.kind,
			produces: []string{"*/*"}, responses: map[int]string{http.StatusOK: plainString},
		})
	}
	return out
}
