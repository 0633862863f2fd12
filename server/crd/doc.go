// Package crd provides the extension that serves CustomResourceDefinitions and the custom resources that they define, as
// kube-apiserver does.
//
//	err := srv.Install(crd.New(crd.Options{}))
//
// It serves the kind CustomResourceDefinition of apiextensions.k8s.io/v1, and each API that such an object defines. A new API is
// served within milliseconds while the server runs, with the same handlers, storage, caches and patches as kinds with Go types.
// See https://kubernetes.io/docs/tasks/extend-kubernetes/custom-resources/custom-resource-definitions/. The package
// server/crd/internal/definition documents which definitions are valid. Package runtime/structural documents the schemas, and
// package runtime/cel/rules the x-kubernetes-validations in them. [New] documents the life of a definition, servers that share a
// storage, the differences from kube-apiserver, and the limits.
//
// # Versions
//
// Objects are stored in one version. By default the conversion to another version changes only the apiVersion; the schema of that
// version then prunes and defaults the object. If the definition names a conversion webhook, the webhook converts instead: see
// package conversion and [Options].Webhooks. A function in [Options].Conversions takes precedence over both.
//
// Each version has its own columns, subresources, schema and rules. The object in a request is validated as it was sent, by the
// schema and rules of the version of the request. Then it is converted to the stored version. A write is refused if the object
// cannot be converted back to the version of the request. So the client that wrote an object can always read it.
//
// Nothing is converted for requests in the stored version if all objects are stored in it. An object that is still stored in an
// earlier version can be read in JSON in that version without a conversion. All other requests for it have to convert it, also
// those for a Table in that version, until a write or server.Server.MigrateStorage stores it anew. Lists and watches in another
// version convert only the objects that no client has read in that version before.
//
// If a webhook is slow, unreachable or gives wrong answers, only the requests that need it fail. They are answered with code 500.
// If the webhook itself reported the error, the answer has the text of kube-apiserver; other causes are only in the log, see
// package conversion. A watch ends with such an error. If too many requests wait for the webhook (by default more than 400 for one
// definition), further ones are answered with 429: see [Options].WebhookConversion. A request that fails in one of these ways
// stores and deletes nothing. Requests that convert nothing and other kinds are not affected. The definition can be changed, and
// can be deleted if all its objects are stored in the stored version. When a definition changes its webhook, the new webhook is
// called from then on, and no object that the old one converted is returned any more.
//
// # Field selectors
//
// Each version has its own selectableFields, and a field selector compares the fields of the objects as the version of the request
// shows them, as in kube-apiserver. This holds for lists, watches and deletecollection. A field of another version is refused with
// 400. A watch sends ADDED when an object begins to match in that version, and DELETED, with the object that matched, when it does
// not match any more.
//
// Where the versions differ only in the apiVersion, the fields are read from the stored objects, and an index finds the objects
// that have a value. The same holds for the stored version if status.storedVersions named no other version when the API of the
// definition was last changed. Otherwise the objects have to be converted by the webhook or the function to find their fields.
// There is no index then: it would need the conversion of each object when it is written, and while the webhook cannot be reached
// nothing could be written. A list looks at all objects in its namespace, at most 500 objects or about 1 MiB at a time, up to the
// last object of the page. A watch looks at all changes there. The values of the fields are kept in the cache of
// server.Limits.FormBytes, and with the events, so that an object is converted once for all lists and watches. What a webhook has
// converted is also remembered for a minute: see package conversion.
//
// An object that cannot be converted fails the list or the deletecollection, or ends the watch, with the error that it has without
// a selector. A list with a limit fails only if it comes to that object, and a watch first sends the events before it.
//
// The time in which a request waits for a webhook is bounded. A watch ends after its timeoutSeconds, and all watches end when the
// definition is changed or deleted, or when the server ends. Other requests end after server.Limits.RequestTimeout at the latest.
//
// # Costs
//
// A definition with a schema of 200 lines, whose API is not used, takes about 80 KiB of memory, mostly for the stored definition
// and its endpoints. Equal schemas of versions and definitions are kept once, as compressed text. A schema is compiled when the
// first object needs it, its rules at the first write. Compiled schemas that were not used for two to four minutes are dropped;
// all of them take about 256 MiB at most. No goroutine belongs to one definition. The cost of a request does not depend on the
// number of definitions. Each definition adds some microseconds to the time in which the next definition is served, and to the
// first request for a document that lists all of them. Definitions that change faster than they can be served are served
// together. examples/bench/crds measures these costs.
package crd
