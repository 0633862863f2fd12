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

// share is what one document of OpenAPI v3 brings to the one document of OpenAPI v2: its paths and definitions, ready to be put
// there. It is held so that the others need not be made again when one changes.
type share struct {
	paths       *section
	definitions []definitions
}

// definitions are a section of definitions with the kinds that each of them stands for. If they are bare, their texts do not
// say which: the section is that of other shares as well.
type definitions struct {
	*section
	kinds [][]metav1.GroupVersionKind
	bare  bool
}

// section is a number of paths or definitions, one after another: in JSON members of an object, each with a comma before it, in
// protobuf fields of a message.
type section struct {
	json, protobuf block
	pieces         []piece
}

// piece is a path or a definition.
type piece struct {
	name string
	// Where the piece ends in the texts of its section; it begins where the one before ends.
	json, protobuf int
}

// commons are the bare sections that shares have in common, so that each is held once. What no share has any more is not held.
type commons struct {
	mu       sync.Mutex // guards sections
	sections map[[sha256.Size]byte]weak.Pointer[section]
}

// section returns the section that w makes, the same one while another share has it.
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

// The numbers of fields in gnostic's messages of OpenAPI v2:
// https://github.com/google/gnostic-models/blob/main/openapiv2/OpenAPIv2.proto.
const (
	fieldPaths       protowire.Number = 8 // of a Document
	fieldDefinitions protowire.Number = 9
	fieldPath        protowire.Number = 2 // of Paths
	fieldDefinition  protowire.Number = 1 // of Definitions
)

// newShare makes the share of a document, nil where what it describes cannot be said in the form of OpenAPI v2: that would make
// the one document wrong for all.
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

// swagger puts a document of OpenAPI 2.0 together.
func swagger(o Options, paths map[string]spec.PathItem, definitions map[string]spec.Schema) *spec.Swagger {
	return &spec.Swagger{SwaggerProps: spec.SwaggerProps{
		Swagger: "2.0", Info: info(o), Paths: &spec.Paths{Paths: paths}, Definitions: definitions,
		SecurityDefinitions: security(), Security: []map[string][]string{{bearerToken: {}}},
	}}
}

// checkV2 is checkV3 for documents of OpenAPI v2.
func checkV2(body []byte) (*openapi_v2.Document, error) {
	d, err := openapi_v2.ParseDocument(body)
	if err != nil {
		return nil, fmt.Errorf("it cannot be read: %w", err)
	}
	if _, err := openapiproto.NewOpenAPIData(d); err != nil {
		return nil, fmt.Errorf("its definitions cannot be read: %w", err)
	}
	return d, nil
}

// split takes a document apart. c may be nil: then nothing is common.
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

// isCommon tells the definitions that nearly every share has, and many shares the same.
func isCommon(name string) bool {
	return strings.HasPrefix(name, "io.k8s.apimachinery.") || strings.HasPrefix(name, "io.k8s.api.autoscaling.v1.Scale")
}

// bare takes the kinds out of both forms of a definition.
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
