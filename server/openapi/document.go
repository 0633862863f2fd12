package openapi

import (
	"crypto/sha512"
	"encoding/json"
	"errors"
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
	"k8s.io/kube-openapi/pkg/validation/spec"

	"github.com/keelson-dev/keelson/runtime/schema"
)

// encoded is a document ready to be sent.
type encoded struct {
	json     []byte
	hash     string // upper-case hex SHA-512 of json
	modified time.Time
	protobuf func() ([]byte, error) // made once
	err      error                  // the document could not be made
}

// encode makes a document's JSON now and its protobuf form when asked for.
func encode(document any, toProtobuf func(json []byte) ([]byte, error)) *encoded {
	body, err := json.Marshal(document)
	if err != nil {
		return &encoded{err: err}
	}
	return &encoded{
		json: body, hash: fmt.Sprintf("%X", sha512.Sum512(body)), modified: time.Now(),
		protobuf: sync.OnceValues(func() ([]byte, error) { return toProtobuf(body) }),
	}
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

func newDocument(o Options, source GroupVersion, make func() parts) *document {
	return &document{source: source, parts: make, get: sync.OnceValue(func() *encoded {
		return encode(v3(o, make()), func(body []byte) ([]byte, error) {
			d, err := openapi_v3.ParseDocument(body)
			if err != nil {
				return nil, err
			}
			return proto.MarshalOptions{Deterministic: true}.Marshal(d)
		})
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

// v2 puts the one document of OpenAPI 2.0 together. A definition that several documents have is the same in all,
// but for the kinds it stands for, which are joined.
func v2(o Options, documents map[string]*document) *encoded {
	paths, definitions := map[string]spec.PathItem{}, map[string]spec.Schema{}
	for _, key := range slices.Sorted(maps.Keys(documents)) {
		p := documents[key].parts()
		maps.Copy(paths, p.paths)
		for name, s := range p.definitions {
			if other, ok := definitions[name]; ok {
				s = joinKinds(other, s)
			}
			definitions[name] = s
		}
	}
	swagger := &spec.Swagger{SwaggerProps: spec.SwaggerProps{
		Swagger: "2.0", Info: info(o), Paths: &spec.Paths{Paths: paths}, Definitions: schema.V2(definitions),
		SecurityDefinitions: security(), Security: []map[string][]string{{bearerToken: {}}},
	}}
	return encode(swagger, func(body []byte) ([]byte, error) {
		d, err := openapi_v2.ParseDocument(body)
		if err != nil {
			return nil, err
		}
		return proto.MarshalOptions{Deterministic: true}.Marshal(d)
	})
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
		s.documents[key] = newDocument(o, source, make)
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

// index is the list at /openapi/v3.
func index(documents map[string]*document) *encoded {
	type entry struct {
		ServerRelativeURL string `json:"serverRelativeURL"`
	}
	list := struct {
		Paths map[string]entry `json:"paths"`
	}{map[string]entry{}}
	var failed []error
	for key, d := range documents {
		e := d.get()
		if e.err != nil {
			failed = append(failed, fmt.Errorf("%s: %w", key, e.err))
			continue
		}
		list.Paths[key] = entry{address(key, e.hash)}
	}
	if err := errors.Join(failed...); err != nil {
		return &encoded{err: err}
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
		r.Docs == other.Docs && r.Description == other.Description && slices.Equal(r.PatchTypes, other.PatchTypes) &&
		slices.EqualFunc(r.Subresources, other.Subresources, Subresource.equal)
}

func (s Subresource) equal(other Subresource) bool {
	return s.Name == other.Name && s.Kind == other.Kind && s.Type == other.Type && slices.Equal(s.Verbs, other.Verbs) &&
		slices.Equal(s.PatchTypes, other.PatchTypes) && slices.Equal(s.ConnectMethods, other.ConnectMethods)
}
