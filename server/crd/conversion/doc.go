// Package conversion has the objects of custom resources converted between versions by the webhooks that their definitions name:
// see https://kubernetes.io/docs/tasks/extend-kubernetes/custom-resources/custom-resource-definition-versioning/#webhook-conversion.
//
//	caller := webhook.New(webhook.Options{})
//	defer caller.Close()
//	factory := conversion.New(caller, conversion.Options{})
//	defer factory.Close()
//	w, err := factory.Webhook(definition)
//	converted, err := w.Convert(ctx, objects, gv)
//
// A [Factory] owns all that is under way and remembered. A [Webhook] is that of one definition, and its Convert a
// runtime.ConvertAllUntyped.
//
// # What is sent, and what comes back
//
// A ConversionReview is a POST with the objects that are not of the wanted version already, in the first version of
// apiextensions.k8s.io that the definition names and this package knows: v1 or v1beta1. The answer has as many objects, in
// the same order, of the wanted version; their kind, name, namespace and uid are as they were. Of their metadata labels and
// annotations are taken, if they are valid or as they were, and the rest is restored. An answer of v1 has to be of that version
// itself, and to have the uid of the request. What is else in the objects is the business of who asked: it is as valid as
// the webhook made it.
//
// # Sharing
//
// Of all who want an equal object in the same version at a time, one is the reason for a call, and the others wait for it, each for
// its objects. A call belongs to the factory: who leaves, because ctx ends, leaves alone, and what the others, or it when it comes
// again, want is there. A call that waits for its turn is not made when nobody waits for it any more.
//
// What comes back is remembered for a minute, as long as there is room, for the same objects are converted several times:
// when they are read for an update, written, read again for the answer, and shown to watches. kube-apiserver does so too, for
// as long as objects are in its caches, and like there a webhook is asked to make the same of the same. Failures are not
// remembered. Two objects that differ in their resourceVersion alone are equal. It is not sent, as it is not by kube-apiserver
// for what is stored, so that an update makes three calls at most: for what was there, what is to be, and what is there then.
//
// # Bounds
//
// For each definition there are bounds on calls at once and on who waits for them, and for each call bounds on time, objects and
// bytes, both ways; more than that wait for their turn, or are refused with 429. Answers of more than a MiB are read one at a time.
// Two states of one object, and objects that have no uid yet, never go into one call, since nobody would notice if the answer
// exchanged them.
// So a webhook that hangs holds a bounded number of requests, and nothing of other definitions, nor of the versions that need no webhook.
//
// # Errors
//
// What a webhook does wrong is an error of code 500 without a reason, as in kube-apiserver, and with its text where the webhook
// has answered: with a ConversionReview that has the uid of the request, or, in v1beta1, a result.
//
//	conversion webhook for example.com/v1, Kind=Widget failed: the size must not be negative
//	conversion webhook for example.com/v1, Kind=Widget returned 0 objects, expected 1
//
// Everything else is one text, unless webhook.Options.ShowErrors is set:
//
//	conversion webhook for example.com/v1, Kind=Widget failed: Post "https://hooks.example.com/convert?timeout=30s": no usable answer; the log of the server says why
//
// kube-apiserver goes on with what happened instead (connection refused, the code, the beginning of the body, why that is no
// JSON), so that who may create a definition can ask it which hosts and ports there are in its network, and what they
// answer. Here that is for the log: Hooks.Called is told, and package crd writes it. Package webhook says more.
//
// The kind is that of the object, also in a list, and there is one error for all objects that were wanted: of the first that
// could not be converted. A call that fails is made again for who wanted only some of the objects in it, unless nobody answered.
//
// # Differences from kube-apiserver
//
//   - A list is converted by several calls if it is long, and by none if nothing in it changed lately. There it is converted as
//     it is read, object by object.
//   - There, calls are neither shared nor bounded, and texts that a webhook wrote are shown however long they are; here
//     16 KiB of them.
//   - An answer in YAML of more than a MiB is refused.
//   - What wraps the text there when an object is read from the storage (`StorageError: corrupt object ...`) is not this
//     package's.
package conversion
