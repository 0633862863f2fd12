// Package runtime defines API objects, their kinds, and the [Scheme] in which kinds are registered.
//
//   - An [Object] is any Go value with a kind. The interface is that of apimachinery, so the Go types of a server can be used
//     with client-go and controller-runtime as they are.
//   - A [Resource] is the shortest way to write a kind: it combines two plain structs, one for spec and one for status.
//   - A [Scheme] maps each group, version and kind to a Go type. It makes, defaults, deep-copies and converts objects.
//
// A kind is registered with its Go type, without generated code, internal types or a list type:
//
//	type WidgetSpec struct{ Size int32 `json:"size"` }
//	type WidgetStatus struct{ Ready bool `json:"ready,omitempty"` }
//	type Widget = runtime.Resource[WidgetSpec, WidgetStatus]
//
//	scheme := runtime.NewScheme()
//	err := runtime.Register[*Widget](scheme, gv.WithKind("Widget"), runtime.KindOptions[*Widget]{})
//
// A kind may also be a struct with TypeMeta, ObjectMeta and one method. Generated DeepCopy methods are used if a type has them:
//
//	func (w *Widget) DeepCopyObject() runtime.Object { return runtime.DeepCopy(w) }
//
// A kind without a Go type is registered with *unstructured.Unstructured: see [Register] and [ObjectSchema].
//
// # Struct tags
//
// Tags such as `minimum:"1"` or `default:"red"` declare rules for every object of a kind: package constraint lists them.
// [Kind.SetDefaults] sets the defaults, the registry enforces the other rules, and OpenAPI documents and kubectl explain show all
// of them. [Register] returns an error for a wrong tag. If a kind has several versions, an object must obey the rules of the hub
// and the rules of the version of the request; each set of rules uses the field names of its version. Protobuf tags let clients
// use protobuf: see [Resource].
//
// # Versions
//
// One version of a kind is its hub: the first one registered, unless [KindOptions].Hub names another. Every other version is a
// spoke, with one function that converts to the hub and one that converts from it: see [AddConversion]. Any version may be the
// one that is stored; the Scheme does not choose it. Package roundtrip tests that conversions lose nothing.
//
// # Interoperability with apimachinery
//
// [Scheme.Import] adds the kinds of an existing AddToScheme function, such as that of k8s.io/api/apps/v1. [Scheme.AddTo] adds the
// kinds of a Scheme to the apimachinery Scheme of a client.
package runtime
