package clienttest

import (
	"context"
	"errors"
	"maps"

	keelson "github.com/keelson-dev/keelson/runtime"
	"github.com/keelson-dev/keelson/server"
	"github.com/keelson-dev/keelson/server/crd"
	"github.com/keelson-dev/keelson/server/servertest"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/rest"
)

// sources returns the definitions of an Environment, or nil. Other objects in the files are ignored, as in envtest.
func (e *Environment) sources() []servertest.CRDs {
	var out []servertest.CRDs
	if len(e.CRDDirectoryPaths) > 0 {
		out = append(out, servertest.CRDs{Paths: e.CRDDirectoryPaths, SkipMissing: !e.ErrorIfCRDPathMissing, SkipOthers: true})
	}
	if e.CRDFS != nil {
		out = append(out, servertest.CRDs{FS: e.CRDFS, SkipOthers: true})
	}
	if len(e.CRDs) > 0 {
		out = append(out, servertest.CRDs{Objects: e.CRDs})
	}
	return out
}

// define installs the extension crd, unless Parts has it, and creates the definitions.
func (e *Environment) define(s *servertest.Server, sources []servertest.CRDs) error {
	served := false
	if err := s.Install(server.ExtensionFunc(func(h *server.Host) error {
		_, err := h.Registry(schema.GroupResource{Group: apiextensionsv1.GroupName, Resource: "customresourcedefinitions"})
		served = err == nil
		return nil
	})); err != nil {
		return err
	}
	switch {
	case served && len(e.Conversions) > 0:
		return errors.New("there are Conversions, and CustomResourceDefinitions are served by one of the Parts: give that its Options.Conversions, or leave it out")
	case !served:
		conversions := map[schema.GroupKind]keelson.ConvertUntyped{}
		maps.Copy(conversions, Conversions(e.Scheme))
		maps.Copy(conversions, e.Conversions)
		if err := s.Install(crd.New(crd.Options{Conversions: conversions, Logger: e.Options.Observe.Logger})); err != nil {
			return err
		}
	}
	_, err := s.Define(context.Background(), sources...)
	return err
}

// hasLists reports whether a scheme has kinds that can be served without a definition. It may have none, because clients may use
// objects without Go types.
func hasLists(s *runtime.Scheme) bool {
	for _, gvk := range keelson.Importable(s) {
		if s.Recognizes(gvk.GroupVersion().WithKind(gvk.Kind + "List")) {
			return true
		}
	}
	return false
}

// defineIn creates the definitions in an existing cluster.
func (e *Environment) defineIn(c *rest.Config, sources []servertest.CRDs) error {
	client, err := rest.HTTPClientFor(c)
	if err != nil {
		return err
	}
	url, _, err := rest.DefaultServerUrlFor(c)
	if err != nil {
		return err
	}
	_, err = servertest.DefineAt(context.Background(), url.String(), client, sources...)
	return err
}
