package server

import (
	"errors"
	"fmt"

	"github.com/keelson-dev/keelson/runtime"
	"github.com/keelson-dev/keelson/server/internal/apiset"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

// ImportedKind describes a resource of a kind that is in the server's scheme already, such as one that Scheme.Import found in an
// AddToScheme function. The program need not name its Go type. The defaults and selectable fields are those with which the kind
// was registered. New and Host.Serve report mistakes in the options.
func ImportedKind(k *runtime.Kind, opts KindOptions[runtime.Object]) Resource {
	if k == nil { // Scheme.Lookup returns nil for a misspelt name
		return Resource{apiset.Resource{Mistake: errors.New("server.ImportedKind was given a nil Kind; import the kind into Options.Scheme, and look it up by the version and name that it has there")}}
	}
	r := describe(k.GVK.Kind, k.Type, k.ListType, opts, func(s *runtime.Scheme, gvk schema.GroupVersionKind) error {
		switch {
		case s.Lookup(gvk) != k:
			return fmt.Errorf("%s is not the kind %s that was imported into the server's scheme; serve it in its own group and version", gvk, k.GVK)
		case k.ListType == nil:
			return fmt.Errorf("%s was imported without a list type, which is needed to serve it; leave it out", gvk)
		case opts.Default != nil || opts.SelectableFields != nil || opts.RenamedFields != nil || opts.SelectableFrom != nil || opts.Hub || opts.Schema != nil || opts.Convert != nil || opts.ListKind != "":
			return fmt.Errorf("%s is in the server's scheme already, so Default, SelectableFields, RenamedFields, SelectableFrom, Hub, ListKind, Schema and Convert would come too late: remove them", gvk)
		}
		return nil
	})
	r.of.Selectable = k.Fields
	return r
}
