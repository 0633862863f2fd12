// Package registry says what the verbs mean for a kind.
//
// # Stored resources
//
// A [Registry] serves one stored resource over a storage.Interface: it applies the metadata rules every kind has
// (names, generateName, uid, generation, finalizers, owner references, deletion), the kind's own [Strategy], and
// admission. It is given no HTTP request and writes no response: handlers drive it in records ([Records] and its kin), so
// that bytes are passed on without being decoded, and a program drives it in process with objects of its own Go type, as
// a user:
//
//	reg, err := registry.New(registry.Options{Scheme: scheme, Kind: kind, Resource: resource, Storage: store,
//		Strategy: registry.Erase(registry.Strategy[*Widget]{Validate: validateWidget})})
//	widgets, err := registry.For[*Widget](reg, authn.System())
//	w, err := widgets.Change(ctx, "default", "a", func(w *Widget) error { w.Spec.Size++; return nil })
//
// The objects have subresources: [Registry.Status], where only the status can be written, [Registry.ScaleView], which
// shows them as autoscaling/v1 Scale, and [Registry.View], whose rules are the program's own.
//
// # Calls
//
// A [Call] tells the registry everything about a request: the user, the namespace, the version that the client speaks, the
// policy that decides, and what warnings and audit annotations go to. It is also the context of the request, so that a verb
// and a strategy have one argument for both. A registry reads nothing else from a context; NewCall finds the call that a
// context is derived from. A call without a user is refused.
//
// # Writes
//
// A write walks, in this order: what only the server sets is wiped; mutating admission; what the endpoint may not change is put
// back; defaults; of a new object its name, uid and times; the strategy's Prepare; validation of metadata, of struct tags (package constraint) and of the strategy; warnings;
// Canonicalize; validating admission on copies, made for plug-ins that look; storage. An update does all of this again when
// another write came between, so the functions it calls must bear being called again. A request that names a
// resourceVersion is never applied to another one: it ends with 409 Conflict.
//
// # Field management
//
// Who manages which fields, in metadata.managedFields, is found out by the handlers, in the update functions they pass
// in. A registry keeps the entries of an object that comes without any, puts back those that mutating admission spoils,
// and takes back their new times when nothing else is new.
//
// # Resources that nothing stores
//
// They need no Registry: any value that implements some of [Getter], [Lister], [Watcher], [Creater], [Updater],
// [Deleter], [CollectionDeleter] and [Connecter] is served with exactly those verbs.
//
// Only Connecter, and a [Gate] in front of one, see an HTTP request, because what answers a connection is an HTTP handler.
// The rest of the package takes from net/http no more than status codes.
//
// # Errors
//
// Errors are apimachinery's StatusErrors, worded as kube-apiserver words them. What a storage error becomes is
// said in one place, status.go.
//
// # Sources
//
// https://kubernetes.io/docs/reference/using-api/api-concepts/,
// https://kubernetes.io/docs/concepts/overview/working-with-objects/finalizers/ and
// https://github.com/kubernetes/community/blob/master/contributors/devel/sig-architecture/api-conventions.md.
package registry
