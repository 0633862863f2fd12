package writemodel

import (
	"fmt"
	"reflect"
	"strings"

	"k8s.io/apimachinery/pkg/api/meta"
	apiruntime "k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/keelson-dev/keelson/runtime"
	"github.com/keelson-dev/keelson/server"
	"github.com/keelson-dev/keelson/server/registry"
)

// Kind is a kind with its model. Make it with [Of].
type Kind struct {
	gvk        schema.GroupVersionKind
	plural     string
	goType     reflect.Type
	resource   server.Resource
	setDefault func(any) // nil means none
	status     bool      // whether it has /status
	generation bool
	scale      *registry.Scale // nil means no /scale
	fields     []string        // top-level JSON fields of the object
}

// Of returns the kind that [server.Kind] makes of the same options. The model supports Default, Strategy.NoGeneration, NoStatus,
// and Scale without a selector. The other functions of the strategy must be nil.
func Of[P runtime.Pointer[T], T any](gvk schema.GroupVersionKind, o server.KindOptions[P]) Kind {
	gvr, _ := meta.UnsafeGuessKindToResource(gvk)
	k := Kind{
		gvk: gvk, plural: gvr.Resource, goType: reflect.TypeFor[T](), resource: server.Kind(gvk.Kind, o),
		generation: !o.Strategy.NoGeneration, scale: o.Scale,
	}
	if o.Default != nil {
		k.setDefault = func(obj any) { o.Default(obj.(P)) }
	}
	for i := range k.goType.NumField() {
		name, _, _ := strings.Cut(k.goType.Field(i).Tag.Get("json"), ",")
		if name != "" && name != "-" {
			k.fields = append(k.fields, name)
			k.status = k.status || name == "status" && !o.NoStatus
		}
	}
	return k
}

// new returns an empty object with its kind set.
func (k Kind) new() apiruntime.Object {
	obj := reflect.New(k.goType).Interface().(apiruntime.Object)
	obj.GetObjectKind().SetGroupVersionKind(k.gvk)
	return obj
}

const namespace = "default"

func (k Kind) path() string {
	root := "/apis/" + k.gvk.Group
	if k.gvk.Group == "" {
		root = "/api"
	}
	return fmt.Sprintf("%s/%s/namespaces/%s/%s", root, k.gvk.Version, namespace, k.plural)
}

// groups returns the groups that a server of the kinds serves.
func groups(kinds []Kind) []server.Group {
	var out []server.Group
	index := map[schema.GroupVersion]int{}
	for _, k := range kinds {
		gv := k.gvk.GroupVersion()
		at, ok := index[gv]
		if !ok {
			at = len(out)
			index[gv] = at
			out = append(out, server.Group{Name: gv.Group, Versions: []server.Version{{Name: gv.Version}}})
		}
		v := &out[at].Versions[0]
		v.Resources = append(v.Resources, k.resource)
	}
	return out
}
