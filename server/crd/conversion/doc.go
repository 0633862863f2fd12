// Package conversion converts the objects of custom resources between versions with the webhooks that their definitions name. See
// https://kubernetes.io/docs/tasks/extend-kubernetes/custom-resources/custom-resource-definition-versioning/#webhook-conversion.
//
//	caller := webhook.New(webhook.Options{})
//	defer caller.Close()
//	factory := conversion.New(caller, conversion.Options{})
//	defer factory.Close()
//	w, err := factory.Webhook(definition)
//	converted, err := w.Convert(ctx, objects, gv)
//
// A [Factory] owns the calls in flight and the remembered answers of all webhooks. A [Webhook] belongs to one definition. Its
// method [Webhook.Convert] has the type runtime.ConvertAllUntyped; it documents sharing and errors. [Options] documents the
// bounds.
//
// # Requests and answers
//
// A ConversionReview is a POST with the objects that do not have the wanted version yet. Its version is the first version of
// apiextensions.k8s.io in the list of the definition that this package supports: v1 or v1beta1. The answer must have the same
// number of objects in the same order, in the wanted version, with unchanged kind, name, namespace and uid. From their metadata
// only the labels and annotations are used, which must be valid or unchanged; the rest of the metadata is restored. An answer in
// v1 must itself be of v1 and have the uid of the request. This package does not validate the other fields of the objects. That
// is left to the caller.
//
// # Differences from kube-apiserver
//
//   - A long list is converted by several calls, and a list in which nothing changed lately by none. kube-apiserver converts a
//     list object by object while it reads it.
//   - kube-apiserver neither shares nor bounds calls, and returns the texts of webhooks at any length. Here at most 16 KiB of a
//     text are returned.
//   - An answer in YAML of more than 256 KiB is refused, and so is one that is much larger than what was sent: see
//     [Options].MaxDecodedBytes and MaxObjectBytes.
//   - kube-apiserver wraps the error text when it reads an object from the storage (`StorageError: corrupt object ...`). This
//     package does not.
package conversion
