package openapi

import (
	"bytes"
	"crypto/sha256"
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"
	"sync"
	"weak"

	openapi_v2 "github.com/google/gnostic-models/openapiv2"
	"google.golang.org/protobuf/encoding/protowire"
	"google.golang.org/protobuf/proto"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	openapiproto "k8s.io/kube-openapi/pkg/util/proto"
	"k8s.io/kube-openapi/pkg/validation/spec"

	"github.com/keelson-dev/keelson/server/internal/gzipparts"
)

// share is the part of the OpenAPI v2 document that comes from one document of OpenAPI v3: its paths and definitions, in their
// final form. Shares are kept, so that only those of changed documents are made again.
type share struct {
	paths       *section
	definitions []definitions
}

// definitions are a section of definitions and the kinds of each definition. If bare is true, the texts do not contain the kinds,
// because the section is common to several shares.
type definitions struct {
	*section
	kinds [][]metav1.GroupVersionKind
	bare  bool
}

// section is a sequence of paths or definitions. In JSON, they are members of an object, each with a comma before it. In
// protobuf, they are fields of a message.
type section struct {
	json, protobuf block
	pieces         []piece
}

// piece is one path or definition.
type piece struct {
	name string
	// The ends of the piece in the texts of its section. It begins where the piece before it ends.
	json, protobuf int
}

// commons has the bare sections that several shares have in common, so that each is made and stored once. It does not keep sections
// in memory that no share has any more.
type commons struct {
	mu       sync.Mutex // guards sections
	sections map[[sha256.Size]byte]weak.Pointer[section]
}

// find returns a section that a share has, by the hash of its definitions, or nil.
func (c *commons) find(key [sha256.Size]byte) *section {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.sections[key].Value()
}

// add adds a section that a share has.
func (c *commons) add(key [sha256.Size]byte, s *section) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.sections == nil {
		c.sections = map[[sha256.Size]byte]weak.Pointer[section]{}
	}
	maps.DeleteFunc(c.sections, func(_ [sha256.Size]byte, p weak.Pointer[section]) bool { return p.Value() == nil })
	c.sections[key] = weak.Make(s)
}

// The numbers of the fields in gnostic's messages of OpenAPI v2:
// https://github.com/google/gnostic-models/blob/main/openapiv2/OpenAPIv2.proto.
const (
	fieldPaths       protowire.Number = 8 // of a Document
	fieldDefinitions protowire.Number = 9
	fieldPath        protowire.Number = 2 // of Paths
	fieldDefinition  protowire.Number = 1 // of Definitions
)

// newShare returns the share of a document. It returns nil if the document cannot be written in the form of OpenAPI v2, because
// it would make the whole OpenAPI v2 document invalid. z compresses its texts.
func newShare(o Options, c *commons, z *gzipparts.Compressor, p parts) *share {
	all := p.builder.DefinitionsV2()
	common, kinds, err := commonOf(all)
	if err != nil {
		return nil
	}
	text, err := json.Marshal(common)
	if err != nil {
		return nil
	}
	key := sha256.Sum256(text)
	known := c.find(key)
	if known != nil { // they have been checked: what refers to them needs only their names
		for name := range common {
			all[name] = spec.Schema{SchemaProps: spec.SchemaProps{Type: spec.StringOrArray{"object"}}}
		}
	}
	body, err := json.Marshal(swagger(o, p.paths, all))
	if err != nil {
		return nil
	}
	message, err := checkV2(body)
	if err != nil {
		return nil
	}
	s, rest, err := split(z, body, message, isCommon)
	if err != nil {
		return nil
	}
	if known == nil {
		known = rest.section(z)
		c.add(key, known)
	}
	d := definitions{section: known, bare: true}
	for _, p := range known.pieces {
		d.kinds = append(d.kinds, kinds[p.name])
	}
	s.definitions = append(s.definitions, d)
	return s
}

// commonOf returns the definitions for a common section, without their kinds, and the kinds by the name of the definition.
func commonOf(all map[string]spec.Schema) (common map[string]spec.Schema, kinds map[string][]metav1.GroupVersionKind, err error) {
	common, kinds = map[string]spec.Schema{}, map[string][]metav1.GroupVersionKind{}
	for name, s := range all {
		if !isCommon(name) {
			continue
		}
		if marked, ok := s.Extensions[extensionKinds]; ok {
			text, err := json.Marshal(marked)
			if err != nil {
				return nil, nil, err
			}
			var list []metav1.GroupVersionKind
			if err := json.Unmarshal(text, &list); err != nil {
				return nil, nil, err
			}
			kinds[name] = list
			s.Extensions = maps.Clone(s.Extensions)
			delete(s.Extensions, extensionKinds)
		}
		common[name] = s
	}
	return common, kinds, nil
}

// swagger returns a document of OpenAPI 2.0.
func swagger(o Options, paths map[string]spec.PathItem, definitions map[string]spec.Schema) *spec.Swagger {
	return &spec.Swagger{SwaggerProps: spec.SwaggerProps{
		Swagger: "2.0", Info: info(o), Paths: &spec.Paths{Paths: paths}, Definitions: definitions,
		SecurityDefinitions: security(), Security: []map[string][]string{{bearerToken: {}}},
	}}
}

// checkV2 is checkV3 for documents of OpenAPI v2.
func checkV2(body []byte) (*openapi_v2.Document, error) {
	d, err := parseV2(body)
	if err != nil {
		return nil, fmt.Errorf("it cannot be read: %w", err)
	}
	if _, err := openapiproto.NewOpenAPIData(d); err != nil {
		return nil, fmt.Errorf("its definitions cannot be read: %w", err)
	}
	return d, nil
}

// split divides a document into sections. The definitions for which apart returns true are not in the share, but in rest, without
// their kinds.
func split(z *gzipparts.Compressor, body []byte, message *openapi_v2.Document, apart func(name string) bool) (s *share, rest *sectionWriter, err error) {
	var members struct{ Paths, Definitions map[string]json.RawMessage }
	if err := json.Unmarshal(body, &members); err != nil {
		return nil, nil, err
	}
	var paths, own sectionWriter
	rest = &sectionWriter{}
	for _, p := range message.GetPaths().GetPath() {
		if err := paths.add(p.GetName(), members.Paths[p.GetName()], fieldPath, p); err != nil {
			return nil, nil, err
		}
	}
	var kinds [][]metav1.GroupVersionKind
	for _, d := range message.GetDefinitions().GetAdditionalProperties() {
		text := members.Definitions[d.GetName()]
		if apart(d.GetName()) {
			if text, err = bare(text, d.GetValue()); err == nil {
				err = rest.add(d.GetName(), text, fieldDefinition, d)
			}
		} else {
			var marked struct {
				Kinds []metav1.GroupVersionKind `json:"x-kubernetes-group-version-kind"`
			}
			if err = json.Unmarshal(text, &marked); err == nil {
				kinds = append(kinds, marked.Kinds)
				err = own.add(d.GetName(), text, fieldDefinition, d)
			}
		}
		if err != nil {
			return nil, nil, err
		}
	}
	return &share{paths: paths.section(z), definitions: []definitions{{own.section(z), kinds, false}}}, rest, nil
}

// isCommon reports whether nearly all shares have a definition, and many of them the same one.
func isCommon(name string) bool {
	return strings.HasPrefix(name, "io.k8s.apimachinery.") || strings.HasPrefix(name, "io.k8s.api.autoscaling.v1.Scale")
}

// bare removes the kinds from both forms of a definition.
func bare(text []byte, message *openapi_v2.Schema) ([]byte, error) {
	var members map[string]json.RawMessage
	if err := json.Unmarshal(text, &members); err != nil {
		return nil, err
	}
	delete(members, extensionKinds)
	message.VendorExtension = slices.DeleteFunc(message.VendorExtension, func(x *openapi_v2.NamedAny) bool { return x.GetName() == extensionKinds })
	return json.Marshal(members)
}

// sectionWriter makes a section.
type sectionWriter struct {
	json     bytes.Buffer
	protobuf []byte
	pieces   []piece
}

func (w *sectionWriter) add(name string, text []byte, number protowire.Number, message proto.Message) error {
	encoded, err := deterministic().Marshal(message)
	if err != nil {
		return err
	}
	key, err := json.Marshal(name)
	if err != nil {
		return err
	}
	fmt.Fprintf(&w.json, ",%s:%s", key, text)
	w.protobuf = protowire.AppendBytes(protowire.AppendTag(w.protobuf, number, protowire.BytesType), encoded)
	w.pieces = append(w.pieces, piece{name: name, json: w.json.Len(), protobuf: len(w.protobuf)})
	return nil
}

func (w *sectionWriter) section(z *gzipparts.Compressor) *section {
	return &section{newBlock(z, w.json.Bytes()), newBlock(z, w.protobuf), slices.Clip(w.pieces)}
}
