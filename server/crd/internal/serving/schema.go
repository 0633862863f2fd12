package serving

import (
	"bytes"
	"crypto/sha256"
	"encoding/json"
	"fmt"
	"sync"
	"sync/atomic"

	"github.com/keelson-dev/keelson/runtime"
	celrules "github.com/keelson-dev/keelson/runtime/cel/rules"
	"github.com/keelson-dev/keelson/runtime/structural"
	"github.com/klauspost/compress/flate"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
)

// objectSchema is the schema of one or more versions of custom resources. It is immutable for its callers and may be used
// concurrently. Make one with library.schema.
//
// Many more kinds are defined than used, and a compiled schema takes several times the memory of its JSON. So it is compiled when
// it is first needed, which takes some milliseconds. Its rules are compiled at the first write, which takes about half a
// millisecond for each. Only the compressed text of the schema is kept.
type objectSchema struct {
	library *library
	digest  [sha256.Size]byte // of the uncompressed text
	// keepsUnknown says that nothing is pruned, because the definition has preserveUnknownFields. Only a definition that another
	// program stored can have that.
	keepsUnknown   bool
	text           []byte // compressed JSON of a JSONSchemaProps, or of null
	size, ruleSize int64  // about how many bytes the compiled schema takes, and its compiled rules

	making sync.Mutex // held while the schema is compiled
	now    atomic.Pointer[compiledSchema]
	last   atomic.Int64 // the tick of the library at the last use
}

var _ runtime.ObjectSchema = (*objectSchema)(nil)

// compiledSchema is the compiled form of a schema. It is immutable, and stays valid as long as it is referenced.
type compiledSchema struct {
	structure *structural.Schema // nil specifies nothing
	err       error              // why structure is nil
	rules     func() (*celrules.Rules, error)
}

// compiled returns the compiled form of the schema, and compiles it if necessary.
func (s *objectSchema) compiled() *compiledSchema {
	if c := s.now.Load(); c != nil {
		s.library.used(s)
		return c
	}
	s.making.Lock()
	defer s.making.Unlock()
	if c := s.now.Load(); c != nil {
		return c
	}
	return s.make(nil)
}

// adopt takes the rules that were compiled when the schema, which props describes, was validated. They are dropped like other rules
// if they are not used.
func (s *objectSchema) adopt(props *apiextensionsv1.JSONSchemaProps) {
	if s.ruleSize == 0 {
		return
	}
	key, err := structural.FingerprintOf(props)
	if err != nil {
		return // compiling fails too
	}
	compiled := s.library.compiler.Take(key)
	if compiled == nil {
		return
	}
	s.making.Lock()
	defer s.making.Unlock()
	if s.now.Load() == nil {
		s.make(compiled)
	}
}

// make compiles the schema. Its rules are compiled at their first use, unless they are given. The caller holds making.
func (s *objectSchema) make(rules *celrules.Rules) *compiledSchema {
	c := &compiledSchema{}
	c.structure, c.err = s.compileOnce()
	size := s.size + int64(c.structure.PatternBytes())
	if rules != nil {
		size += s.ruleSize
		c.rules = func() (*celrules.Rules, error) { return rules, nil }
	} else {
		c.rules = sync.OnceValues(func() (*celrules.Rules, error) {
			rules, err := s.library.compiler.Compile(c.structure)
			if s.now.Load() == c { // otherwise it was dropped meanwhile
				s.took(s.ruleSize)
			}
			return rules, err
		})
	}
	s.now.Store(c)
	s.took(size)
	return c
}

// took reports to the library that compiled forms of the schema take more bytes.
func (s *objectSchema) took(more int64) { s.library.took(s, more) }

// compile returns the compiled schema. If the schema is not structural, the error applies to every object.
func (s *objectSchema) compile() (*structural.Schema, error) {
	c := s.compiled()
	return c.structure, c.err
}

// compileRules returns the rules of the schema, or nil if it has none.
func (s *objectSchema) compileRules() (*celrules.Rules, error) { return s.compiled().rules() }

// compileOnce compiles the schema. A schema that is not structural, which only a definition of another program can have, is an
// error. If such a definition keeps unknown fields, the result is nil instead, because its schema cannot be interpreted.
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

// structure returns the compiled schema; nil specifies nothing.
func (s *objectSchema) structure() *structural.Schema {
	compiled, _ := s.compile() // Conform is called first and returns the error
	return compiled
}

// anything returns a schema that accepts all objects and prunes nothing.
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

// repairGeneration sets the generation of objects that were stored without one.
func repairGeneration(object map[string]any) {
	metadata, ok := object["metadata"].(map[string]any)
	if n, _ := metadata["generation"].(int64); ok && n == 0 {
		metadata["generation"] = int64(1)
	}
}

// SetDefaults implements runtime.ObjectSchema.
func (s *objectSchema) SetDefaults(object map[string]any, grows func(bytes int) error) error {
	return s.structure().SetDefaultsWithin(object, grows)
}

// props returns the schema as its author wrote it, or nil.
func (s *objectSchema) props() (props *apiextensionsv1.JSONSchemaProps, err error) {
	err = json.NewDecoder(flate.NewReader(bytes.NewReader(s.text))).Decode(&props)
	return props, err
}
