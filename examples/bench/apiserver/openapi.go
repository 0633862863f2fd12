package main

import (
	"reflect"
	"strings"

	"github.com/keelson-dev/keelson/examples/bench/internal/widget"
	autoscalingv1 "k8s.io/api/autoscaling/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/version"
	"k8s.io/kube-openapi/pkg/common"
	"k8s.io/kube-openapi/pkg/util"
	"k8s.io/kube-openapi/pkg/validation/spec"
)

// definitions returns OpenAPI definitions of the types in requests and answers. Server-side apply uses them too. Other programs
// generate them with k8s.io/kube-openapi/cmd/openapi-gen. This function derives the same definitions from the Go types, once, at
// the start.
func definitions(ref common.ReferenceCallback) map[string]common.OpenAPIDefinition {
	d := definer{ref: ref, out: map[string]common.OpenAPIDefinition{}}
	for _, root := range []any{
		widget.Widget{}, widget.WidgetList{}, autoscalingv1.Scale{}, version.Info{},
		metav1.Status{}, metav1.DeleteOptions{}, metav1.Patch{}, metav1.WatchEvent{},
		metav1.APIGroupList{}, metav1.APIGroup{}, metav1.APIResourceList{},
	} {
		d.define(reflect.TypeOf(root))
	}
	return d.out
}

// definer makes definitions of Go types.
type definer struct {
	ref common.ReferenceCallback
	out map[string]common.OpenAPIDefinition // by name
}

// define adds the definition of a struct type, and returns its name.
func (d *definer) define(t reflect.Type) string {
	name := util.GetCanonicalTypeName(reflect.New(t).Elem().Interface())
	if _, ok := d.out[name]; ok {
		return name
	}
	d.out[name] = common.OpenAPIDefinition{} // a type may contain itself
	one := common.OpenAPIDefinition{Schema: spec.Schema{SchemaProps: spec.SchemaProps{Type: []string{"object"}}}}
	described, ok := reflect.New(t).Interface().(interface{ SwaggerDoc() map[string]string })
	docs := map[string]string{}
	if ok {
		docs = described.SwaggerDoc()
	}
	one.Schema.Description = docs[""]
	if own, ok := reflect.New(t).Interface().(interface {
		OpenAPISchemaType() []string
		OpenAPISchemaFormat() string
	}); ok {
		one.Schema.Type, one.Schema.Format = own.OpenAPISchemaType(), own.OpenAPISchemaFormat()
	} else {
		d.fields(t, docs, &one)
	}
	d.out[name] = one
	return name
}

// fields adds the fields of a struct to its definition.
func (d *definer) fields(t reflect.Type, docs map[string]string, to *common.OpenAPIDefinition) {
	for i := range t.NumField() {
		f := t.Field(i)
		name, options, _ := strings.Cut(f.Tag.Get("json"), ",")
		if f.Anonymous && name == "" {
			d.fields(f.Type, docs, to)
			continue
		}
		if name == "" || name == "-" {
			continue
		}
		schema := d.schema(f.Type, to)
		schema.Description = docs[name]
		merging(f.Tag, &schema)
		to.Schema.SetProperty(name, schema)
		if !strings.Contains(options, "omitempty") && !strings.Contains(options, "omitzero") {
			to.Schema.AddRequired(name)
		}
	}
}

// merging sets how apply merges a list, according to the tags for strategic merge patch.
func merging(tag reflect.StructTag, schema *spec.Schema) {
	if tag.Get("patchStrategy") != "merge" {
		return
	}
	schema.AddExtension("x-kubernetes-patch-strategy", "merge")
	if key := tag.Get("patchMergeKey"); key != "" {
		schema.AddExtension("x-kubernetes-patch-merge-key", key)
		schema.AddExtension("x-kubernetes-list-type", "map")
		schema.AddExtension("x-kubernetes-list-map-keys", []any{key})
	} else {
		schema.AddExtension("x-kubernetes-list-type", "set")
	}
}

// schema returns the schema of a value in a struct.
func (d *definer) schema(t reflect.Type, within *common.OpenAPIDefinition) spec.Schema {
	switch t.Kind() {
	case reflect.Pointer:
		return d.schema(t.Elem(), within)
	case reflect.Struct:
		name := d.define(t)
		within.Dependencies = append(within.Dependencies, name)
		return spec.Schema{SchemaProps: spec.SchemaProps{Ref: d.ref(name)}}
	case reflect.Map:
		values := d.schema(t.Elem(), within)
		return *spec.MapProperty(&values)
	case reflect.Slice:
		if t.Elem().Kind() == reflect.Uint8 {
			return *spec.StrFmtProperty("byte")
		}
		items := d.schema(t.Elem(), within)
		return *spec.ArrayProperty(&items)
	case reflect.Bool:
		return *spec.BoolProperty()
	case reflect.Int32:
		return *spec.Int32Property()
	case reflect.Int64, reflect.Int:
		return *spec.Int64Property()
	default:
		return *spec.StringProperty()
	}
}
