package crd

import (
	"context"
	"fmt"

	"github.com/keelson-dev/keelson/authn"
	"github.com/keelson-dev/keelson/runtime"
	"github.com/keelson-dev/keelson/server/registry"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
)

// as returns a call of the controller's, which admission sees by the name that kube-apiserver has to itself.
func as(ctx context.Context, namespace string) *registry.Call {
	return registry.NewCall(ctx, authn.System(), namespace)
}

// definitionOf returns what was decoded as a definition.
func definitionOf(obj runtime.Object, err error) (*apiextensionsv1.CustomResourceDefinition, error) {
	if err != nil {
		return nil, err
	}
	crd, ok := obj.(*apiextensionsv1.CustomResourceDefinition)
	if !ok {
		return nil, fmt.Errorf("%T is no definition", obj)
	}
	return crd, nil
}
