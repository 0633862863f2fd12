package openapi

import (
	"crypto/sha512"
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"sync"
	"time"

	openapi_v2 "github.com/google/gnostic-models/openapiv2"
	openapi_v3 "github.com/google/gnostic-models/openapiv3"
	"google.golang.org/protobuf/proto"
	"k8s.io/kube-openapi/pkg/openapiconv"
	"k8s.io/kube-openapi/pkg/spec3"
	openapiproto "k8s.io/kube-openapi/pkg/util/proto"
	"k8s.io/kube-openapi/pkg/validation/spec"

	"github.com/keelson-dev/keelson/runtime/schema"
)

// encoded is a document ready to be sent. Its forms are kept compressed: most of a document is said again and again in it,
// and it is held for as long as what it describes is served.
type encoded struct {
	json, protobuf packed // protobuf is empty for the list of documents, which has no such form
	hash           string // upper-case hex SHA-512 of the JSON
	modified       time.Time
	err            error // the document could not be made
}

// encode makes all forms of a document. check reads its JSON as clients do and returns what its protobuf form is made from;
// what it cannot read is an error of the document. nil: the document has JSON only.
func encode(document any, check func(json []byte) (proto.Message, error)) *encoded {
	body, err := json.Marshal(document)
	if err != nil {
		return &encoded{err: err}
	}
	e := &encoded{hash: fmt.Sprintf("%X", sha512.Sum512(body)), modified: time.Now()}
	if e.json, err = pack(body); err != nil {
		return &encoded{err: err}
	}
	if check == nil {
		return e
	}
	message, err := check(body)
	if err != nil {
		return &encoded{err: err}
	}
	if body, err = (proto.MarshalOptions{Deterministic: true}).Marshal(message); err != nil {
		return &encoded{err: err}
	}
	if e.protobuf, err = pack(body); err != nil {
		return &encoded{err: err}
	}
	return e
}

// checkV3 reads a document as kubectl does: with the parsers of kube-openapi, which know what its types and references
// have to be.
func checkV3(body []byte) (proto.Message, error) {
	if err := new(spec3.OpenAPI).UnmarshalJSON(body); err != nil {
		return nil, fmt.Errorf("it cannot be read: %w", err)
	}
	d, err := openapi_v3.ParseDocument(body)
	if err != nil {
		return nil, fmt.Errorf("it cannot be read: %w", err)
	}
	if _, err := openapiproto.NewOpenAPIV3Data(d); err != nil {
		return nil, fmt.Errorf("its definitions cannot be read: %w", err)
	}
	return d, nil
}

// checkV2 is checkV3 for the one document of OpenAPI v2.
func checkV2(body []byte) (proto.Message, error) {
	d, err := openapi_v2.ParseDocument(body)
	if err != nil {
		return nil, fmt.Errorf("it cannot be read: %w", err)
	}
	if _, err := openapiproto.NewOpenAPIData(d); err != nil {
		return nil, fmt.Errorf("its definitions cannot be read: %w", err)
	}
	return d, nil
}

// parts are what a document consists of: paths in the form of OpenAPI v2, definitions in that of v3.
type parts struct {
	paths       map[string]spec.PathItem
	definitions map[string]spec.Schema
}

// document is one entry of /openapi/v3.
type document struct {
	source GroupVersion // what it was made from; only of a group version
	parts  func() parts
	get    func() *encoded // made once
}

func newDocument(o Options, key string, source GroupVersion, make func() parts) *document {
	return &document{source: source, parts: make, get: sync.OnceValue(func() *encoded {
		e := encode(v3(o, make()), checkV3)
		if e.err != nil {
			e.err = fmt.Errorf("the OpenAPI document %s is wrong: %w", key, e.err)
		}
		return e
	})}
}

// v3 puts a document of OpenAPI 3.0 together.
func v3(o Options, p parts) *spec3.OpenAPI {
	schemas := make(map[string]*spec.Schema, len(p.definitions))
	for name, s := range p.definitions {
		schemas[name] = &s
	}
	paths := openapiconv.ConvertPaths(&spec.Paths{Paths: p.paths})
	for _, item := range paths.Paths {
		for _, op := range []*spec3.Operation{item.Post, item.Put, item.Patch} {
			if op != nil && op.RequestBody != nil {
				op.RequestBody.Required = true
			}
		}
	}
	components := openapiconv.ConvertComponents(security(), nil, nil, nil)
	components.Schemas = schemas
	return &spec3.OpenAPI{Version: "3.0.0", Info: info(o), Paths: paths, Components: components}
}

// v2 makes the one document of OpenAPI 2.0, without what the documents that are wrong describe, as documents or in the form
// of OpenAPI 2.0: that would make one document wrong for all.
func v2(o Options, documents map[string]*document) *encoded {
	var sources []parts
	for _, key := range slices.Sorted(maps.Keys(documents)) {
		if d := documents[key]; d.get().err == nil {
			sources = append(sources, d.parts())
		}
	}
	e := encode(swagger(o, sources), checkV2)
	if e.err != nil {
		e = encode(swagger(o, slices.DeleteFunc(sources, func(p parts) bool {
			return encode(swagger(o, []parts{p}), checkV2).err != nil
		})), checkV2)
	}
	if e.err != nil {
		e.err = fmt.Errorf("the OpenAPI v2 document is wrong: %w", e.err)
	}
	return e
}

// swagger puts a document of OpenAPI 2.0 together. A definition that several sources have is the same in all, but for the
// kinds it stands for, which are joined.
func swagger(o Options, sources []parts) *spec.Swagger {
	paths, definitions := map[string]spec.PathItem{}, map[string]spec.Schema{}
	for _, p := range sources {
		maps.Copy(paths, p.paths)
		for name, s := range p.definitions {
			if other, ok := definitions[name]; ok {
				s = joinKinds(other, s)
			}
			definitions[name] = s
		}
	}
	return &spec.Swagger{SwaggerProps: spec.SwaggerProps{
		Swagger: "2.0", Info: info(o), Paths: &spec.Paths{Paths: paths}, Definitions: schema.V2(definitions),
		SecurityDefinitions: security(), Security: []map[string][]string{{bearerToken: {}}},
	}}
}

// joinKinds returns a with the kinds of b added.
func joinKinds(a, b spec.Schema) spec.Schema {
	joined, _ := a.Extensions[extensionKinds].([]any)
	more, _ := b.Extensions[extensionKinds].([]any)
	joined = slices.Clone(joined)
	for _, kind := range more {
		if !slices.ContainsFunc(joined, func(k any) bool { return fmt.Sprint(k) == fmt.Sprint(kind) }) {
			joined = append(joined, kind)
		}
	}
	if len(joined) == 0 {
		return a
	}
	a.Extensions = maps.Clone(a.Extensions)
	a.Extensions[extensionKinds] = joined
	return a
}

const bearerToken = "BearerToken"

func security() spec.SecurityDefinitions {
	return spec.SecurityDefinitions{bearerToken: {SecuritySchemeProps: spec.SecuritySchemeProps{
		Description: "Bearer Token authentication", Type: "apiKey", Name: "authorization", In: "header",
	}}}
}

func info(o Options) *spec.Info {
	return &spec.Info{InfoProps: spec.InfoProps{Title: o.Title, Version: o.Version}}
}

// state is what is served between two calls of Set. It is immutable.
type state struct {
	documents map[string]*document // by name: "apis/example.com/v1"
	index     func() *encoded      // made once
	v2        func() *encoded      // made once
}

// newState describes groups, with the documents of before for what has not changed; before may be nil.
func newState(o Options, groups []GroupVersion, before *state) *state {
	s := &state{documents: map[string]*document{}}
	add := func(key string, source GroupVersion, make func() parts) {
		if before != nil {
			if old, ok := before.documents[key]; ok && old.source.equal(source) {
				s.documents[key] = old
				return
			}
		}
		s.documents[key] = newDocument(o, key, source, make)
	}
	add("apis", GroupVersion{}, func() parts { return groupListParts(o) })
	add("version", GroupVersion{}, versionParts)
	for _, gv := range groups {
		if gv.Group == "" {
			add("api", GroupVersion{}, func() parts { return coreVersionsParts(o) })
		} else {
			add("apis/"+gv.Group, GroupVersion{}, func() parts { return groupParts(o, gv.Group) })
		}
		add(gv.root()[1:], gv, func() parts { return groupVersionParts(o, gv) })
	}
	s.index = sync.OnceValue(func() *encoded { return index(s.documents) })
	s.v2 = sync.OnceValue(func() *encoded { return v2(o, s.documents) })
	return s
}

// index is the list at /openapi/v3. A document that is wrong is listed without a hash: who asks for it is told why.
func index(documents map[string]*document) *encoded {
	type entry struct {
		ServerRelativeURL string `json:"serverRelativeURL"`
	}
	list := struct {
		Paths map[string]entry `json:"paths"`
	}{map[string]entry{}}
	for key, d := range documents {
		list.Paths[key] = entry{address(key, d.get().hash)}
	}
	return encode(list, nil)
}

func (gv GroupVersion) root() string {
	if gv.Group == "" {
		return "/api/" + gv.Version
	}
	return "/apis/" + gv.Group + "/" + gv.Version
}

func (gv GroupVersion) equal(other GroupVersion) bool {
	return gv.Group == other.Group && gv.Version == other.Version &&
		slices.EqualFunc(gv.Resources, other.Resources, Resource.equal)
}

func (r Resource) equal(other Resource) bool {
	return r.Plural == other.Plural && r.Kind == other.Kind && r.Namespaced == other.Namespaced &&
		slices.Equal(r.Verbs, other.Verbs) && r.Type == other.Type && r.ListType == other.ListType &&
		r.Docs == other.Docs && r.Description == other.Description && r.ReturnsDeleted == other.ReturnsDeleted &&
		slices.Equal(r.MediaTypes, other.MediaTypes) && slices.Equal(r.StreamTypes, other.StreamTypes) && slices.Equal(r.PatchTypes, other.PatchTypes) &&
		slices.EqualFunc(r.Subresources, other.Subresources, Subresource.equal)
}

func (s Subresource) equal(other Subresource) bool {
	return s.Name == other.Name && s.Kind == other.Kind && s.Type == other.Type && slices.Equal(s.Verbs, other.Verbs) &&
		slices.Equal(s.PatchTypes, other.PatchTypes) && slices.Equal(s.ConnectMethods, other.ConnectMethods)
}
