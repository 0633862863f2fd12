package crd

import (
	"github.com/keelson-dev/keelson/runtime"
	"github.com/keelson-dev/keelson/server"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
)

// GroupOf is groupOf for a definition without an earlier state.
func GroupOf(crd *apiextensionsv1.CustomResourceDefinition, convert runtime.ConvertUntyped) (server.Group, error) {
	group, _, err := groupOf(crd, convert, nil)
	return group, err
}
