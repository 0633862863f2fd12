package serving

import (
	"crypto/sha256"

	apischema "github.com/keelson-dev/keelson/runtime/schema"
	"github.com/keelson-dev/keelson/runtime/structural"
	"github.com/keelson-dev/keelson/server/openapi"
	"k8s.io/kube-openapi/pkg/validation/spec"
)

var (
	_ apischema.Describer = (*objectSchema)(nil)
	_ openapi.Digester    = (*objectSchema)(nil)
)

// MergeSchema implements schema.Describer.
func (s *objectSchema) MergeSchema(meta spec.Schema) *spec.Schema {
	merged := s.structure().MergeSchema(meta)
	if s.keepsUnknown {
		merged.AddExtension("x-kubernetes-preserve-unknown-fields", true)
	}
	return merged
}

// OpenAPI implements schema.Describer. A schema that is not structural is not published. Only a definition that another program
// stored can have one.
func (s *objectSchema) OpenAPI() *spec.Schema {
	props, err := s.props()
	if err != nil || s.keepsUnknown && (s.structure() == nil || len(structural.NonStructural(nil, props)) > 0) {
		return nil
	}
	published, err := structural.OpenAPI(props)
	if err != nil {
		return nil
	}
	if s.keepsUnknown && published != nil {
		published.AddExtension("x-kubernetes-preserve-unknown-fields", true)
	}
	return published
}

// Digest implements openapi.Digester.
func (s *objectSchema) Digest() [sha256.Size]byte {
	if !s.keepsUnknown {
		return s.digest
	}
	return sha256.Sum256(append([]byte("unknown fields are kept "), s.digest[:]...))
}
