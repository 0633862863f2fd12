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

// commons has the bare sections that several shares have in common, so that each is stored once. It does not keep sections in
// memory that no share has any more.
type commons struct {
	mu       sync.Mutex // guards sections
	sections map[[sha256.Size]byte]weak.Pointer[section]
}

// section returns the section of w. While another share has an equal section, it returns that one.
func (c *commons) section(w *sectionWriter) *section {
	key := sha256.Sum256(w.json.Bytes())
	c.mu.Lock()
	defer c.mu.Unlock()
	if s := c.sections[key].Value(); s != nil {
		return s
	}
	s := w.section()
	if c.sections == nil {
		c.sections = map[[sha256.Size]byte]weak.Pointer[section]{}
	}
	maps.DeleteFunc(c.sections, func(_ [sha256.Size]byte, p weak.Pointer[section]) bool { return p.Value() == nil })
	c.sections[key] = weak.Make(s)
	return s
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
// it would make the whole OpenAPI v2 document invalid.
func newShare(o Options, c *commons, p parts) *share {
	body, err := json.Marshal(swagger(o, p.paths, p.builder.DefinitionsV2()))
	if err != nil {
		return nil
	}
	message, err := checkV2(body)
	if err != nil {
		return nil
	}
	s, err := split(c, body, message)
	if err != nil {
		return nil
	}
	return s
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

// split divides a document into sections. If c is nil, no definition goes to a common section.
func split(c *commons, body []byte, message *openapi_v2.Document) (*share, error) {
	var members struct{ Paths, Definitions map[string]json.RawMessage }
	if err := json.Unmarshal(body, &members); err != nil {
		return nil, err
	}
	var paths, own, common sectionWriter
	for _, p := range message.GetPaths().GetPath() {
		if err := paths.add(p.GetName(), members.Paths[p.GetName()], fieldPath, p); err != nil {
			return nil, err
		}
	}
	var kinds, commonKinds [][]metav1.GroupVersionKind
	for _, d := range message.GetDefinitions().GetAdditionalProperties() {
		text := members.Definitions[d.GetName()]
		var marked struct {
			Kinds []metav1.GroupVersionKind `json:"x-kubernetes-group-version-kind"`
		}
		err := json.Unmarshal(text, &marked)
		if err == nil && c != nil && isCommon(d.GetName()) {
			commonKinds = append(commonKinds, marked.Kinds)
			if text, err = bare(text, d.GetValue()); err == nil {
				err = common.add(d.GetName(), text, fieldDefinition, d)
			}
		} else if err == nil {
			kinds = append(kinds, marked.Kinds)
			err = own.add(d.GetName(), text, fieldDefinition, d)
		}
		if err != nil {
			return nil, err
		}
	}
	s := &share{paths: paths.section(), definitions: []definitions{{own.section(), kinds, false}}}
	if c != nil {
		s.definitions = append(s.definitions, definitions{c.section(&common), commonKinds, true})
	}
	return s, nil
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

func (w *sectionWriter) section() *section {
	z := new(gzipparts.Compressor)
	return &section{newBlock(z, w.json.Bytes()), newBlock(z, w.protobuf), slices.Clip(w.pieces)}
}
