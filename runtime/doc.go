// Package runtime says what an object is and how its kind is known.
//
// # The nouns
//
//   - An [Object] is any Go value with a kind: the interface is apimachinery's, so one Go type serves here and
//     is consumed by client-go and controller-runtime without a copy.
//   - A [Resource] is the shortest way to write a kind: two plain structs, one for spec and one for status.
//   - A [Scheme] is a value that knows kinds: which Go type stands for which group, version and kind, how a
//     new one is made, defaulted, deep-copied and converted between versions.
//
// A kind is registered with its Go type and nothing else:
//
//	type WidgetSpec struct{ Size int32 `json:"size"` }
//	type WidgetStatus struct{ Ready bool `json:"ready,omitempty"` }
//	type Widget = runtime.Resource[WidgetSpec, WidgetStatus]
//
//	scheme := runtime.NewScheme()
//	err := runtime.Register[*Widget](scheme, gv.WithKind("Widget"), runtime.KindOptions[*Widget]{})
//
// No code generation, no internal types, no list type and no package initialisation are needed. Generated
// DeepCopy methods are used when a type has them. A kind may also be an own struct with TypeMeta, ObjectMeta
// and one line:
//
//	func (w *Widget) DeepCopyObject() runtime.Object { return runtime.DeepCopy(w) }
//
// # Kinds without a Go type
//
// Where no Go type is at hand, or it would be in the way, kinds are registered with *unstructured.Unstructured:
//
//	err := runtime.Register[*unstructured.Unstructured](scheme, gv.WithKind("Gadget"), runtime.KindOptions[*unstructured.Unstructured]{})
//
// Any number of them share that Go type, so an object is known by the kind and apiVersion it has: those that [Kind.New]
// and [Kind.NewList] make have both. All fields are kept, and metadata is what it is in every object, as of a custom
// resource whose schema is `type: object` with x-kubernetes-preserve-unknown-fields. Versions of such a kind have the same
// fields: a conversion changes apiVersion and nothing else, and is not registered.
//
// An [ObjectSchema] says more of the objects of one version: what is unknown and goes, and what is defaulted. Versions may
// then have different fields. On the way to the hub nothing is dropped, so that who judges an object there sees all of it;
// what a version does not have is dropped when an object is shown in it, or stored. [KindOptions].Convert is for versions
// that differ in more than that.
//
// # Protobuf
//
// A kind is read and written in protobuf, beside JSON and YAML, when its Go type has generated methods for it, or protobuf
// tags on all fields: those of a [Resource] are metadata 1, spec 2 and status 3, so that its Spec and Status need them:
//
//	type WidgetSpec struct {
//		Size int32 `json:"size" protobuf:"varint,1,opt,name=size"`
//	}
//
// No code is generated; package protobuf says what tags there are. A kind without them has none, and is not acceptable (406)
// to who asks for nothing else.
//
// # Rules
//
// What holds for every object of a kind is said in struct tags, such as `minimum:"1"` or `default:"red"`: package
// constraint has the list. Defaults are set by [Kind.SetDefaults], the registry enforces the rest, and OpenAPI
// documents and kubectl explain show all. A wrong tag is an error of [Register]. Of a kind with several versions an
// object is judged by the rules of the hub and by those of the version in which a request came, each in its own names.
//
// # Versions
//
// One version of a kind is its hub: the first one registered, unless the program names another. Every other version
// is a spoke with two functions, to the hub and from it (see [AddConversion]); no internal type is needed. Any of them
// may be what is stored, which is not the Scheme's to say. Package roundtrip tests that nothing is lost between them.
//
// A spoke that lacks fields of the hub keeps them in an annotation on the way from the hub, and takes it away again on
// the way back, or else they are lost when somebody writes in that version. A PUT without the annotation empties them.
//
// A kind may be in several groups under one name, with its hub in one of them, as Event is in Kubernetes: [AddConversion]
// joins the groups, and every object then is of both.
//
// # Living with apimachinery
//
// [Scheme.Import] takes the kinds of an existing AddToScheme function, such as that of k8s.io/api/apps/v1, with
// their list types, defaults and conversions. [Scheme.AddTo] fills a client's apimachinery Scheme with the kinds
// registered here. A Scheme itself is an ObjectTyper, ObjectCreater, ObjectDefaulter and ObjectConvertor.
//
// # What will bite
//
//   - Two kinds or versions must not share one Go type: a client could not tell them apart, so [Register]
//     refuses it. Declare a second struct, or for a Resource a second spec type: `type WidgetSpecV2 WidgetSpec`.
//   - A struct that embeds Resource inherits its DeepCopyObject, which returns the inner type; [Register]
//     refuses it and names the cure.
//   - A Scheme may be read by many goroutines, also while kinds are added.
package runtime
