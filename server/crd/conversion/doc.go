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
// method [Webhook.Convert] has the type runtime.ConvertAllUntyped. The comment of Convert documents how calls are shared, and the
// errors. [Options] documents the bounds.
//
// # Requests and answers
//
// A webhook receives a POST with a ConversionReview, which has the objects that do not have the wanted version yet. The version
// of the ConversionReview is the first one in the definition's conversionReviewVersions that this package supports: v1 or
// v1beta1. The answer must have the same number of objects in the same order, in the wanted version, with unchanged kind, name,
// namespace and uid. From the metadata in the answer only the labels and annotations are used, which must be valid or unchanged;
// all other metadata is that of the objects that were sent. An answer in v1 must itself be of v1 and have the uid of the request.
// This package does not validate the other fields of the objects: the caller has to.
//
// # Differences from kube-apiserver
//
//   - A long list is converted by several calls with many objects each, and a list whose answers are all remembered needs no
//     call. kube-apiserver converts the objects of a list one by one while it reads the list.
//   - kube-apiserver neither shares nor bounds calls, and returns the texts of webhooks at any length. This package returns at
//     most 16 KiB of a text.
//   - An answer in YAML of more than 256 KiB is refused, and so is an answer that is much larger than the objects that were sent:
//     see [Options].MaxDecodedBytes and MaxObjectBytes.
//   - kube-apiserver wraps the error text when it reads an object from the storage (`StorageError: corrupt object ...`). This
//     package does not.
package conversion
