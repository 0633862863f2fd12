// Package crd is the extension with CustomResourceDefinitions: APIs that come and go with objects, as kube-apiserver has them.
//
//	err := srv.Install(crd.New(crd.Options{}))
//
// It serves the kind CustomResourceDefinition of apiextensions.k8s.io/v1, and all that its objects define: with the handlers,
// storage, caches and patches that kinds with Go types have, within milliseconds and while the server serves. See
// https://kubernetes.io/docs/tasks/extend-kubernetes/custom-resources/custom-resource-definitions/. What a definition may
// say is package definition's; what its schemas mean is package structural's of runtime, and what the rules in them mean that of
// package runtime/cel/rules.
//
// # The life of a definition
//
// A definition is created with an empty status. When the names that it asks for are free (of other definitions, and of kinds
// that the program serves in its group) they are accepted, what it defines is served, and then it is established: who sees
// the condition Established can use the API. When not, the condition NamesAccepted says which name is taken, and the
// definition waits until that is free. One that is established goes on with the names it has.
//
// A change ends the watches of the definition's own objects, whose clients list anew, if it changes what is served: the spec or
// the accepted names. Nothing else is disturbed, and requests under way end as they began.
//
// A DELETE marks a definition: it is Terminating, no objects of it can be created, those there are get deleted, and when
// all are gone, which those may delay that are held by finalizers, it goes itself. Its names are free then, and the next
// definition of the name begins without objects. One that never was served goes at once. Who takes the finalizer
// customresourcecleanup.apiextensions.k8s.io away by hand keeps the objects: the next definition of that name has them.
//
// # Several servers
//
// Servers that share a storage all follow the definitions and do the same things, and what one has done is nothing to do for
// the others; there is no leader. All of them should have installed the extension. What one establishes the others serve
// already, unless they are slower than a quarter of a second. An object that another server let in while the last one was
// deleted is found when that one sees that the definition is gone. A server that ends at any point leaves what the next one,
// or another, goes on with.
//
// The health check customresourcedefinitions of /readyz fails until what was defined before is served.
//
// # Versions
//
// Objects are stored in one version. In another they differ by their apiVersion, and by what that version's schema drops and
// adds; or they are what the conversion webhook makes of them that the definition names, see package conversion, which calls it
// as [Options].Webhooks says; or, before all that, what a function in [Options].Conversions makes of them.
//
// A version has columns, subresources, schema and rules of its own. What a request sends is judged by those of its version, as it
// was sent; then it is converted, and refused unless it can be shown in its version again, so that nothing is stored that
// whoever wrote it cannot read.
//
// Nothing is converted for requests in the stored version, and of lists and watches in another only what nobody has wanted before.
// A webhook that is slow, lies or is away costs those who need it: each is answered with 500 and, by kube-apiserver's words,
// what the webhook said was wrong; if something else is, that is in the log, see package conversion. A watch ends with that, too
// many who wait are answered with 429, and nothing is stored or deleted. All others go on as ever: the stored version, other
// kinds, the definition itself, which can be changed and deleted. When the definition says
// something else of its webhook, that is called from then on, and nothing is shown that the one before has made.
//
// # Many definitions
//
// A definition with a schema of 200 lines that nobody uses takes some 80 KiB, most of it for the stored definition and its
// endpoints. Its schema is kept as compressed text, once for all versions and definitions that have the same one. It is compiled
// when the first object needs it, its rules with the first write, and what nobody has used for two to four minutes is dropped, to be
// compiled again when it is needed; all that is compiled takes some 256 MiB at most. No goroutine belongs to a definition. What a
// request costs does not depend on how many definitions there are; what serving one more costs does by some microseconds for each,
// and so does the first request for the documents that list them all.
//
// Changes of definitions that come faster than they can be served are served together: each ends the caches and watches of what it
// replaces once. examples/bench/crds measures all of it.
//
// # Differences from kube-apiserver
//
//   - Nobody is the manager of what the controller writes to the status: metadata.managedFields has no entry kube-apiserver.
//   - A definition's own names are never in conflict with each other, and NamesAccepted becomes True when the name that was in
//     conflict is no longer asked for. There, both depend on the order in which names were asked for.
//   - Kinds with Go types are in conflict with definitions, and have precedence: a definition that was established before the
//     program served such a kind is not served, and is deleted without touching the objects of the kind.
//   - That no objects are left is told in a write of its own before the definition goes (InstanceDeletionCompleted), which a
//     watch may see. Objects that are held for more than a minute are told of once, by InstanceDeletionCheck; there the
//     condition goes to and fro.
//   - The deletion of objects passes admission, as the user system:apiserver, so that a plug-in can refuse it; that is told
//     in the condition, and tried again. There it passes none.
//   - A DELETE of the collection of definitions is that of each of them. There it leaves the objects stored.
//   - A create in the first two seconds is not held up.
//   - Creates are refused, and discovery says so, for as long as a definition has a deletionTimestamp: also when its objects are
//     gone and a finalizer of somebody else holds it. There discovery shows all verbs again.
//   - A server-side apply with an unknown field or a value of a wrong type is a 400, which is a 500 without a reason there; and
//     managedFields are kept where the schemas of two versions differ in a field: there, they stay as they were from then on.
//     When those of an object cannot be brought up to date, because its values are older than its schema, a warning says so.
//   - Generation and managedFields are of what is stored: a default of another version, which the conversion does not keep, is not
//     managed by who wrote the object, and does not raise the generation with each write.
//   - That an object cannot be converted is all that is said of it, with code 500 and no reason. There, reads of it say besides
//     that it is corrupt, with the reasons InternalError and StorageReadError, and it can be deleted as such, which it is not.
//   - While a webhook is away, a list or watch for which no object is converted is answered; a watch that needs one says what the
//     webhook does, and not that a resourceVersion is too large; and an update of an object that does not exist, or a create with an
//     invalid name, is a 500, which is a 404 or 422 there. That what is created is invalid by its schema or rules comes first in both.
//   - A definition with a CABundle that is none is not served before it is established (404), and one that another server has
//     established is served in the version that is stored. There, all its requests are answered with 500.
//   - What a column finds by a wildcard among the members of an object comes sorted by name, and in random order there.
//
// # What will bite
//
//   - A definition whose spec uses what the extension cannot serve is refused with 422 by the field: paths of a scale that lead nowhere.
//     One that got into the storage by other means is not served, which its condition
//     Established says with the reason NotServed, unless it was True; then the log does, and a DELETE has to wait until
//     the definition is mended, or its finalizer is taken away, which keeps the objects.
//   - Two servers with different programs, of which one serves a kind that the other has a definition for, each serve
//     their own, from the same place in the storage. If the definition is not established yet they do not agree on its names,
//     and its condition goes to and fro, more and more seldom: every ten minutes in the end.
//   - What definitions and objects may cost is bounded, where kube-apiserver goes on for minutes or runs out of memory: see the
//     sections on bounds of packages runtime/structural and runtime/cel/rules. An object that its defaults make larger than the storage
//     takes is a 413. Series of metrics by the names of what was defined stay when it is gone, as there.
//   - A column whose JSONPath does not parse ends the columns of its table, and is not refused, as in kube-apiserver.
//   - The functions of [Options].Conversions get objects that are not validated yet; if one fails, and the object is invalid
//     by its schema, that is the answer.
//   - Selectors look at what is stored. With such a function, or a webhook, the selectableFields of other versions than the stored
//     one cannot be selected by (400), labels that a conversion changes are selected by as they are stored, and what is stored in
//     an earlier version is selected by the fields it has there until it is migrated (server.Server.MigrateStorage). There, each
//     version selects by what it shows.
//   - A webhook that is away keeps objects that are stored in an earlier version from being deleted, with their definition too.
package crd
