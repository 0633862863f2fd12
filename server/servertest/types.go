package servertest

import (
	"github.com/keelson-dev/keelson/server"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

// Types is an extension that serves the kinds of a client's scheme, such as those of an operator's api package and of k8s.io/api:
//
//	srv := servertest.New(t, servertest.Types{AddToScheme: cachev1.AddToScheme}, servertest.Types{AddToScheme: appsv1.AddToScheme})
type Types = server.Types

// Untyped returns a group of kinds without Go types, in one version. Every field of their objects is kept. apiVersion has the
// form of that of an object, "example.com/v1". The kinds are namespaced and have /status; for others call server.Kind directly.
func Untyped(apiVersion string, kinds ...string) server.Group {
	gv, err := schema.ParseGroupVersion(apiVersion)
	if err != nil {
		gv.Version = apiVersion // server.New refuses it and names it
	}
	v := server.Version{Name: gv.Version}
	for _, kind := range kinds {
		v.Resources = append(v.Resources, server.Kind(kind, server.KindOptions[*unstructured.Unstructured]{}))
	}
	return server.Group{Name: gv.Group, Versions: []server.Version{v}}
}
