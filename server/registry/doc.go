// Package registry implements the verbs of stored resources: the rules of create, update and delete for a kind.
//
// A [Registry] serves one stored resource over a storage.Interface. It applies the metadata rules that are common to all kinds
// (names, generateName, uid, generation, finalizers, owner references, deletion), the [Strategy] of the kind, and admission. A
// Registry does not use HTTP requests and responses. Package handlers calls the Registry with records (see [Records]), so that
// stored bytes are sent without decoding. A program calls it in process with objects of the kind's Go type, as a user:
//
//	reg, err := registry.New(registry.Options{Scheme: scheme, Kind: kind, Resource: resource, Storage: store,
//		Strategy: registry.Erase(registry.Strategy[*Widget]{Validate: validateWidget})})
//	widgets, err := registry.For[*Widget](reg, authn.System())
//	w, err := widgets.Change(ctx, "default", "a", func(w *Widget) error { w.Spec.Size++; return nil })
//
// The objects can have subresources: [Registry.Status] for writing the status only, [Registry.ScaleView] for autoscaling/v1
// Scale, and [Registry.View] with rules of the program. The user, the policy and other properties of a request are in its [Call].
//
// # Selectors
//
// A list, a watch or a deletion of a collection has the selectors of its storage.Selection, which compare records as they are
// stored. If the Selection has a Chooser, the Registry also asks it about the records that match, many at once: see
// storage.ListChosen and storage.WatchChosen. Package handlers has a Chooser for fields that a conversion changes. The error of a
// Chooser ends the list, or the watch after the events before it; it is returned unchanged.
//
// # Resources that are not stored
//
// A resource that is not stored needs no Registry. Any value that implements some of [Getter], [Lister], [Watcher], [Creater],
// [Updater], [Deleter], [CollectionDeleter] and [Connecter] is served with exactly those verbs. Only a Connecter, and a [Gate] in
// front of one, get an HTTP request, because an HTTP handler answers a connection.
//
// # Errors
//
// Errors are StatusErrors of apimachinery, with the messages of kube-apiserver.
//
// # Sources
//
// The rules are those of https://kubernetes.io/docs/reference/using-api/api-concepts/,
// https://kubernetes.io/docs/concepts/overview/working-with-objects/finalizers/ and
// https://github.com/kubernetes/community/blob/master/contributors/devel/sig-architecture/api-conventions.md.
package registry
