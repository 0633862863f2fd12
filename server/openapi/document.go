package openapi

import (
	"crypto/sha512"
	"encoding/json"
	"fmt"
	"reflect"
	"slices"
	"time"

	"google.golang.org/protobuf/proto"
	"k8s.io/kube-openapi/pkg/openapiconv"
	"k8s.io/kube-openapi/pkg/spec3"
	openapiproto "k8s.io/kube-openapi/pkg/util/proto"
	"k8s.io/kube-openapi/pkg/validation/spec"

	"github.com/keelson-dev/keelson/runtime/schema"
)

// encoded is a document that is ready to be sent. Its forms are stored compressed, because documents contain many repetitions and
// stay in memory as long as the resources are served.
type encoded struct {
	json, protobuf packed // protobuf is empty for the list of documents, which has no protobuf form
	hash           string // upper-case hex SHA-512 of the JSON, or of everything that the JSON is made from
	modified       time.Time
	err            error // why the document could not be made
}

// encode makes all forms of a document. check parses the JSON as clients do, and returns the message for the protobuf form. An
// error of check is an error of the document. If check is nil, the document has only JSON.
func encode(document any, check func(json []byte) (proto.Message, error)) *encoded {
	body, err := json.Marshal(document)
	if err != nil || check == nil {
		return keep(body, nil, err)
	}
	message, err := check(body)
	if err != nil {
		return keep(nil, nil, err)
	}
	protobuf, err := deterministic().Marshal(message)
	return keep(body, protobuf, err)
}

// keep compresses the forms of a document; protobuf may be nil. If err is not nil, the document could not be made.
func keep(body, protobuf []byte, err error) *encoded {
	if err != nil {
		return &encoded{err: err}
	}
	e := &encoded{hash: fmt.Sprintf("%X", sha512.Sum512(body)), modified: time.Now()}
	if e.json, err = pack(body); err != nil {
		return &encoded{err: err}
	}
	if protobuf == nil {
		return e
	}
	if e.protobuf, err = pack(protobuf); err != nil {
		return &encoded{err: err}
	}
	return e
}

func deterministic() proto.MarshalOptions { return proto.MarshalOptions{Deterministic: true} }

// checkV3 parses a document as kubectl does: with the parsers of kube-openapi, which check types and references.
func checkV3(body []byte) (proto.Message, error) {
	if err := new(spec3.OpenAPI).UnmarshalJSON(body); err != nil {
		return nil, fmt.Errorf("it cannot be read: %w", err)
	}
	d, err := parseV3(body)
	if err != nil {
		return nil, fmt.Errorf("it cannot be read: %w", err)
	}
	if _, err := openapiproto.NewOpenAPIV3Data(d); err != nil {
		return nil, fmt.Errorf("its definitions cannot be read: %w", err)
	}
	return d, nil
}

// parts are the parts of a document: paths in the form of OpenAPI v2, and the builder of the definitions.
type parts struct {
	paths   map[string]spec.PathItem
	builder *schema.Builder
}

// document is one entry of /openapi/v3.
type document struct {
	source GroupVersion // the description of a group version; zero for other documents
	hash   func() string
	get    func() *encoded
	share  func() *share // returns nil for a document with an error, which is left out of /openapi/v2
}

// v3 returns the document of OpenAPI 3.0 that consists of parts.
func v3(o Options, p parts) *spec3.OpenAPI {
	schemas := map[string]*spec.Schema{}
	for name, s := range p.builder.Definitions() {
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

const bearerToken = "BearerToken"

func security() spec.SecurityDefinitions {
	return spec.SecurityDefinitions{bearerToken: {SecuritySchemeProps: spec.SecuritySchemeProps{
		Description: "Bearer Token authentication", Type: "apiKey", Name: "authorization", In: "header",
	}}}
}

func info(o Options) *spec.Info {
	return &spec.Info{InfoProps: spec.InfoProps{Title: o.Title, Version: o.Version}}
}

// state is what a Service serves between two calls of Set. It is immutable.
type state struct {
	documents map[string]*document // by name: "apis/example.com/v1"
	index     func() *encoded      // made once
	v2        func() *encoded      // made once
}

// index returns the list at /openapi/v3. A document with an error is listed without a hash, unless the hash is known without the
// document. A client that requests the document gets the error.
func index(documents map[string]*document) *encoded {
	type entry struct {
		ServerRelativeURL string `json:"serverRelativeURL"`
	}
	list := struct {
		Paths map[string]entry `json:"paths"`
	}{map[string]entry{}}
	for key, d := range documents {
		list.Paths[key] = entry{address(key, d.hash())}
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
		sameObject(r.Object, other.Object) && r.ListKind == other.ListKind && slices.Equal(r.SelectableFields, other.SelectableFields) &&
		r.Docs == other.Docs && r.Description == other.Description && r.ReturnsDeleted == other.ReturnsDeleted &&
		slices.Equal(r.MediaTypes, other.MediaTypes) && slices.Equal(r.StreamTypes, other.StreamTypes) && slices.Equal(r.PatchTypes, other.PatchTypes) &&
		slices.EqualFunc(r.Subresources, other.Subresources, Subresource.equal)
}

// sameObject reports whether two describers are the same. Describers that cannot be compared are different.
func sameObject(a, b schema.Describer) bool {
	return a == nil && b == nil || a != nil && b != nil && reflect.ValueOf(a).Comparable() && reflect.ValueOf(b).Comparable() && a == b
}

func (s Subresource) equal(other Subresource) bool {
	return s.Name == other.Name && s.Kind == other.Kind && s.Type == other.Type && slices.Equal(s.Verbs, other.Verbs) &&
		slices.Equal(s.PatchTypes, other.PatchTypes) && slices.Equal(s.ConnectMethods, other.ConnectMethods)
}
