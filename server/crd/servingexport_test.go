package crd

import (
	"github.com/keelson-dev/keelson/runtime"
	celrules "github.com/keelson-dev/keelson/runtime/cel/rules"
	"github.com/keelson-dev/keelson/server"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
)

// GroupOf is groupOf for a definition without an earlier state.
func GroupOf(crd *apiextensionsv1.CustomResourceDefinition, convert runtime.ConvertUntyped) (server.Group, error) {
	compiler, err := celrules.NewCompiler()
	if err != nil {
		return server.Group{}, err
	}
	return groupOf(crd, converter{one: convert}, newLibrary(compiler))
}
