// Package lifecycle is the life of namespaces: which exist from the start, what may be created in them, and how one that
// is deleted takes everything in it along. The rules are those of
// https://kubernetes.io/docs/concepts/overview/working-with-objects/namespaces/ and of the plug-in NamespaceLifecycle in
// https://kubernetes.io/docs/reference/access-authn-authz/admission-controllers/.
//
//	finalizer := &lifecycle.Finalizer{}
//	err := host.Serve(...)        // the kind Namespace, with finalizer as its subresource finalize
//	l, err := lifecycle.Install(host, finalizer, lifecycle.Options{})
//	...
//	err = l.Run(ctx)              // on one server: deletes the content of namespaces
//
// # The nouns
//
//   - A namespace is terminating from the DELETE on, which sets its phase. It goes when nothing is left in
//     spec.finalizers, nor in metadata.finalizers.
//   - The finalizer kubernetes in its spec.finalizers stands for its content: [Lifecycle.Run] removes it when a list of
//     every namespaced kind that is served finds nothing.
//   - The system namespaces ([SystemNamespaces]) exist before the server is ready, and are made again.
//
// # What never happens
//
// No object is left behind in a namespace that is gone. A create that was let in while the namespace was active may reach
// the storage after it was marked. So on the server that runs the deletion, creates under way are waited for before the
// last list; and every other server of the storage looks, when it sees that the namespace is gone and when its own
// creates in it have ended, for what they left. Two deletions at once, by two servers, do some work twice and no harm.
//
// # What will bite
//
//   - A kind that cannot be listed or deleted is passed over; what a computed resource shows is no content.
//   - An object with finalizers of its own keeps the namespace for as long as it is there, and status.conditions of the
//     namespace say so.
//   - A create that its client gave up has ended for this package, even if the storage may still carry it out.
package lifecycle
