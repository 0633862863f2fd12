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

// objectSchema is the schema of versions of custom resources. It may be used concurrently, and what it says never changes. Make
// one with library.schema.
//
// Many more kinds are defined than used, and a compiled schema takes several times the memory of its JSON, so it is compiled when
// it is first needed, which takes some milliseconds; and so are its rules, with the first write, which takes half of one each. Of
// the definition that it was made of nothing is kept but the schema's text, compressed.
type objectSchema struct {
	library *library
	digest  [sha256.Size]byte // of the text
	// keepsUnknown says that nothing is pruned: the definition has preserveUnknownFields, which only one that was stored by
	// somebody else can have.
	keepsUnknown   bool
	text           []byte // JSON of a JSONSchemaProps, or null; deflated
	size, ruleSize int64  // about how many bytes it takes when it is compiled, and its rules

	making sync.Mutex // held by who compiles it
	now    atomic.Pointer[compiledSchema]
	last   atomic.Int64 // the tick of the library when it was last used
}

var _ runtime.ObjectSchema = (*objectSchema)(nil)

// compiledSchema is what is made of a schema to judge objects. It is immutable, and good for as long as somebody has it.
type compiledSchema struct {
	structure *structural.Schema // nil specifies nothing
	err       error              // why there is none
	rules     func() (*celrules.Rules, error)
}

// compiled returns what is made of the schema, and makes it unless it is there.
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
	c := &compiledSchema{}
	c.structure, c.err = s.compileOnce()
	c.rules = sync.OnceValues(func() (*celrules.Rules, error) {
		rules, err := s.library.compiler.Compile(c.structure)
		if s.now.Load() == c { // or it was dropped meanwhile
			s.library.took(s, s.ruleSize)
		}
		return rules, err
	})
	s.now.Store(c)
	s.library.took(s, s.size+int64(c.structure.PatternBytes()))
	return c
}

// compile returns the compiled schema. The error of one that is not structural is that of every object.
func (s *objectSchema) compile() (*structural.Schema, error) {
	c := s.compiled()
	return c.structure, c.err
}

// compileRules returns the rules of the schema, nil for none.
func (s *objectSchema) compileRules() (*celrules.Rules, error) { return s.compiled().rules() }

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
func (s *objectSchema) SetDefaults(object map[string]any, grows func(bytes int) error) error {
	return s.structure().SetDefaultsWithin(object, grows)
}

// props returns the schema as its author wrote it, nil for none.
func (s *objectSchema) props() (props *apiextensionsv1.JSONSchemaProps, err error) {
	err = json.NewDecoder(flate.NewReader(bytes.NewReader(s.text))).Decode(&props)
	return props, err
}
