// Package schema makes OpenAPI schemas from Go types and from the schemas of custom resources.
//
// A [Builder] collects the kinds of one group and version and the other Go types in its API, and returns their definitions by
// name. It gets the structure of a type by reflection, by the rules of encoding/json, and the descriptions from the doc comments
// of the source, if the program provides its source:
//
//	//go:embed *.go
//	var source embed.FS
//
//	docs, err := schema.ParseDocs(source)
//	b := schema.NewBuilder(schema.Options{GroupVersion: gv, Docs: docs})
//	b.AddKind(schema.Kind{GVK: gv.WithKind("Widget"), Type: reflect.TypeFor[Widget]()})
//	definitions := b.Definitions()
//
// A kind without a Go type, such as a custom resource, has a [Describer]. The Builder adds to its schema the fields that all
// objects have. In the form of OpenAPI v2 it removes the parts that clients could misread.
//
// [Builder] documents the names of definitions and the rules for fields and struct tags.
// https://spec.openapis.org/oas/v3.0.3 defines the format.
//
// # Doc comments
//
// Comments are matched by package name and type name, because an embedded file system has no import paths. Text is folded into
// paragraphs. Lines that begin with a plus sign are markers and are not part of the description. Supported are +optional, +required,
// +nullable, +default, +listType, +listMapKey, +mapType, +structType, +patchStrategy and +patchMergeKey; all others are ignored.
//
// Types that have a SwaggerDoc method, such as those of Kubernetes, need no source. The markers of k8s.io/api and
// k8s.io/apimachinery and the values of their enumerations are built into this package.
package schema
