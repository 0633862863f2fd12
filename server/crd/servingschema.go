package crd

import (
	"bytes"
	"crypto/sha256"
	"encoding/json"
	"fmt"
	"io"
	"sync"

	"github.com/keelson-dev/keelson/runtime"
	celrules "github.com/keelson-dev/keelson/runtime/cel/rules"
	"github.com/keelson-dev/keelson/runtime/structural"
	"github.com/klauspost/compress/flate"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
)

// objectSchema is the schema of one version of a custom resource. It is immutable, and may be used concurrently.
//
// Many more kinds are defined than used, and a compiled schema takes twice the memory of its JSON, so it is compiled when it is
// first needed, which takes some milliseconds; and so are its rules, with the first write, which takes half of one each. Of the
// definition that it was made of nothing is kept but the schema's text,
// compressed.
type objectSchema struct {
	// keepsUnknown says that nothing is pruned: the definition has preserveUnknownFields, which only one that was stored by
	// somebody else can have.
	keepsUnknown bool
	text         []byte // JSON of a JSONSchemaProps, or null; deflated
	compile      func() (*structural.Schema, error)
	compileRules func() (*celrules.Rules, error)
}

var _ runtime.ObjectSchema = (*objectSchema)(nil)

// newObjectSchema makes a schema of its JSON, whose rules compiler compiles.
func newObjectSchema(text []byte, keepsUnknown bool, compiler *celrules.Compiler) (*objectSchema, error) {
	s := &objectSchema{keepsUnknown: keepsUnknown}
	s.compile = sync.OnceValues(s.compileOnce)
	s.compileRules = sync.OnceValues(func() (*celrules.Rules, error) { return compiler.Compile(s.structure()) })
	var err error
	s.text, err = deflate(text)
	return s, err
}

// compileOnce compiles the schema: one that is not structural, which only somebody else's definition has, to an error, and if
// such a definition keeps what is unknown, to nil, for what it says of values is not known.
func (s *objectSchema) compileOnce() (*structural.Schema, error) {
	props, err := s.props()
	if err != nil {
		return nil, fmt.Errorf("the schema in the definition: %w", err)
	}
	compiled, err := structural.Compile(props)
	if err != nil && !s.keepsUnknown {
		return nil, fmt.Errorf("the schema in the definition: %w", err)
	}
	return compiled, nil
}

// structure is the compiled schema; nil specifies nothing.
func (s *objectSchema) structure() *structural.Schema {
	compiled, _ := s.compile() // Conform, which comes first, has told of the error
	return compiled
}

// anything is the schema of objects about which nothing is said.
func anything() *structural.Schema { return &structural.Schema{Type: "object", PreserveUnknown: true} }

// Conform implements runtime.ObjectSchema.
func (s *objectSchema) Conform(object map[string]any, stored bool, report int) ([]string, error) {
	compiled, err := s.compile()
	if err != nil {
		return nil, err
	}
	shape := compiled
	if s.keepsUnknown {
		shape = anything()
	}
	options := structural.ConformOptions{DropInvalidMetadata: stored, Report: report}
	unknown, err := shape.Conform(object, options)
	if err != nil {
		return nil, err
	}
	if s.keepsUnknown {
		options.Report = report - len(unknown)
		more, fault := compiled.CoerceEmbedded(nil, object, options)
		if fault != nil {
			return nil, fault
		}
		unknown = append(unknown, more...)
	}
	if stored {
		repairGeneration(object)
	}
	return unknown, nil
}

// repairGeneration gives one to objects that are older than generations.
func repairGeneration(object map[string]any) {
	metadata, ok := object["metadata"].(map[string]any)
	if n, _ := metadata["generation"].(int64); ok && n == 0 {
		metadata["generation"] = int64(1)
	}
}

// SetDefaults implements runtime.ObjectSchema.
func (s *objectSchema) SetDefaults(object map[string]any) { s.structure().SetDefaults(object) }

// props returns the schema as its author wrote it, nil for none.
func (s *objectSchema) props() (props *apiextensionsv1.JSONSchemaProps, err error) {
	err = json.NewDecoder(flate.NewReader(bytes.NewReader(s.text))).Decode(&props)
	return props, err
}

func deflate(text []byte) ([]byte, error) {
	var out bytes.Buffer
	w, err := flate.NewWriter(&out, flate.BestSpeed)
	if err != nil {
		return nil, err
	}
	if _, err := io.Copy(w, bytes.NewReader(text)); err != nil {
		return nil, err
	}
	if err := w.Close(); err != nil {
		return nil, err
	}
	return bytes.Clone(out.Bytes()), nil
}

// fingerprint tells the schemas of versions apart, their descriptions included.
type fingerprint struct {
	text         [sha256.Size]byte
	keepsUnknown bool
}

// schemaSet holds the schemas of one definition, so that a schema which two versions have, or which stays the same when the
// definition changes, is compiled once, and what was made of it before is still good. The nil schemaSet is an empty one.
type schemaSet map[fingerprint]*objectSchema

// schemasOf returns the schemas of a definition's versions, by name, and the set of them. Those of before are used again.
func schemasOf(crd *apiextensionsv1.CustomResourceDefinition, compiler *celrules.Compiler, before schemaSet) (map[string]*objectSchema, schemaSet, error) {
	versions, set := map[string]*objectSchema{}, schemaSet{}
	for _, v := range crd.Spec.Versions {
		var props *apiextensionsv1.JSONSchemaProps
		if v.Schema != nil {
			props = v.Schema.OpenAPIV3Schema
		}
		text, err := json.Marshal(props)
		if err != nil {
			return nil, nil, fmt.Errorf("version %s: schema: %w", v.Name, err)
		}
		key := fingerprint{sha256.Sum256(text), crd.Spec.PreserveUnknownFields}
		s := before[key]
		if s == nil {
			s = set[key]
		}
		if s == nil {
			if s, err = newObjectSchema(text, key.keepsUnknown, compiler); err != nil {
				return nil, nil, fmt.Errorf("version %s: schema: %w", v.Name, err)
			}
		}
		versions[v.Name], set[key] = s, s
	}
	return versions, set, nil
}
