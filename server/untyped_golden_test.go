package server_test

import (
	"github.com/keelson-dev/keelson/server"
	"github.com/keelson-dev/keelson/server/registry"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
)

// untypedGolden are the kinds without a Go type of the golden files in testdata/wire/untyped.
func untypedGolden() server.Group {
	type options = server.KindOptions[*unstructured.Unstructured]
	return server.Group{Name: "untyped.example.com", Versions: []server.Version{
		{Name: "v1", Resources: []server.Resource{
			server.Kind("Gadget", options{
				Scale: &registry.Scale{SpecReplicas: ".spec.replicas", StatusReplicas: ".status.replicas", LabelSelector: ".status.selector"},
			}),
			server.Kind("Bolt", options{NoStatus: true, SelectableFields: []string{"spec.color"}, IndexFields: []string{"spec.color"}}),
		}},
		{Name: "v1beta1", Resources: []server.Resource{server.Kind("Gadget", options{})}},
	}}
}
