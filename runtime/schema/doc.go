// Package schema makes OpenAPI schemas from Go types and from the schemas of custom resources.
//
// A [Builder] collects the kinds of one group and version and the other Go types that its API shows, and returns
// their definitions by name. What a type looks like is read from it by reflection, by the rules of encoding/json;
// what it means is read from its doc comments, when the program gives its source:
//
//	//go:embed *.go
//	var source embed.FS
//
//	docs, err := schema.ParseDocs(source)
//	b := schema.NewBuilder(schema.Options{GroupVersion: gv, Docs: docs})
//	b.AddKind(schema.Kind{GVK: gv.WithKind("Widget"), Type: reflect.TypeFor[Widget]()})
//	definitions := b.Definitions()
//
// The objects of a kind without a Go type are described by its [Describer], as those of custom resources are: what it says is
// published with what all objects have, and in the form of OpenAPI v2 as far as its clients can be trusted with it.
//
// # Names
//
// A kind is named by its reversed group, its version and its name: com.example.v1.Widget, com.example.v1.WidgetList.
// A Go struct that a kind uses is named the same way: com.example.v1.WidgetSpec. Types of Kubernetes keep the name
// they have everywhere (io.k8s.apimachinery.pkg.apis.meta.v1.ObjectMeta). Anonymous structs are described in place.
// Names are the same in every run: they depend on the kinds and types added, and on the order they were added in
// only where two Go types have one name; then the second is given that of its package as well.
//
// # From Go to schema
//
//   - Fields follow encoding/json: embedding, tags, `-`, ",string". A field is required unless it is a pointer or has
//     omitempty or omitzero; the markers +required and +optional win. References carry `default: {}`, plain required
//     fields their zero value, as in the documents of kube-apiserver.
//   - int32 and int64 are integers of that format, int and uint64 too are int64; []byte is a string of format byte;
//     time.Time a date-time. A type with OpenAPISchemaType and OpenAPISchemaFormat methods says itself what it is; one
//     with only a MarshalText method is a string; one with only a MarshalJSON method, json.RawMessage and interfaces
//     may hold any value.
//   - Struct tags patchStrategy and patchMergeKey become the extensions of those names. Struct tags listType, listMapKey
//     (several are separated by commas), mapType and structType mean what the markers of these names do, and win. [Check]
//     tells which of them cannot be.
//   - The constraints that package constraint reads from struct tags (minimum, pattern, default, ...) become those of the
//     schema, and a last paragraph of the description: kubectl explain shows no others than required and enum.
//
// # Doc comments
//
// Comments are matched by package name and type name, for an embedded file system knows no import paths. Text is
// folded into paragraphs. Lines that begin with a plus sign are markers and do not show: +optional, +required,
// +nullable, +default, +listType, +listMapKey, +mapType, +structType, +patchStrategy and +patchMergeKey are
// understood, all others are passed over. Types that have a SwaggerDoc method, as those of Kubernetes, need no
// source; what the markers of k8s.io/api and k8s.io/apimachinery say is known here, and the values of their enumerations.
//
// See https://kubernetes.io/docs/reference/using-api/server-side-apply/#merge-strategy for the list and map
// extensions and https://spec.openapis.org/oas/v3.0.3 for the format.
package schema
