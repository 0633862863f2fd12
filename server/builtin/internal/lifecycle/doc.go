// Package lifecycle manages namespaces: which namespaces always exist, what may be created in them, and how the deletion of a
// namespace deletes everything in it. The rules are those of
// https://kubernetes.io/docs/concepts/overview/working-with-objects/namespaces/ and of the plug-in NamespaceLifecycle in
// https://kubernetes.io/docs/reference/access-authn-authz/admission-controllers/.
//
//	finalizer := &lifecycle.Finalizer{}
//	err := host.Serve(...)        // the kind Namespace, with finalizer as its subresource finalize
//	l, err := lifecycle.Install(host, finalizer, lifecycle.Options{})
//	...
//	err = l.Run(ctx)              // on one server: deletes the content of namespaces
//
// # Terms
//
//   - A namespace is terminating from the DELETE on, which sets its phase. It is removed when neither spec.finalizers nor
//     metadata.finalizers has an entry.
//   - The finalizer kubernetes in spec.finalizers stands for the content of a namespace. [Lifecycle.Run] removes it when lists of
//     all namespaced kinds that are served are empty.
//   - The system namespaces ([SystemNamespaces]) exist before the server is ready, and are created again if they are missing.
//
// # Guarantees
//
// No object is left in a namespace that is gone. A create that was admitted while the namespace was active may reach the storage
// after the namespace was marked. So the server that runs the deletion waits for its creates in flight before the last list.
// Every other server of the storage, when it sees that the namespace is gone and its own creates in it have ended, looks for
// objects that they left, and deletes them. If two servers run a deletion at once, some work is done twice, without harm.
//
// # Limits
//
//   - A kind that cannot be listed or deleted is skipped; the objects of a computed resource are no content.
//   - An object with finalizers of its own holds the namespace as long as the object exists. status.conditions of the namespace
//     report that.
//   - A create counts as ended when its client gives up, even if the storage may still execute it.
package lifecycle
