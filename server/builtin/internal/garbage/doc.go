// Package garbage deletes objects whose owners are gone, and executes DELETEs with the policies Foreground and Orphan, for all
// kinds that a server serves. The rules are those of https://kubernetes.io/docs/concepts/architecture/garbage-collection/ and
// https://kubernetes.io/docs/concepts/overview/working-with-objects/owners-dependents/.
//
//	collector, err := garbage.New(garbage.Options{Catalogue: host.Catalogue()})
//	...
//	err := host.CollectGarbage()
//	host.Go(func(ctx context.Context) { err := collector.Run(ctx) ... })
//
// # Terms
//
//   - A dependent names its owners in metadata.ownerReferences, by kind, name and uid. A namespaced owner is in the namespace of
//     the dependent.
//   - An owner is absent if a read from the storage finds no object of that kind and name, or one with another uid. A dependent
//     is deleted when each of its owners is absent or waiting.
//   - An owner is waiting while it is being deleted with the finalizer foregroundDeletion, until all dependents that have
//     blockOwnerDeletion are gone.
//   - The dependents of an owner that is being deleted with the finalizer orphan lose their references to it.
//
// # Guarantees
//
//   - An owner whose kind, in that version, is not served here is never considered absent, because another server may serve it.
//     The same is true if its kind was withdrawn or cannot be read.
//   - A cluster-scoped dependent with a namespaced owner cannot be resolved, and is never deleted because of that reference.
//   - Owners that wait for each other in a cycle do not wait forever: an owner that waits only for such owners is released.
//   - Two collectors at once only do some of the work twice. Every deletion has the uid and the resourceVersion that were read as
//     preconditions. Every other change applies only to the state that was read.
//
// # Kinds
//
// Objects of kinds with the verbs get and delete are collected if they can be listed and watched. Objects of other kinds can be
// owners if they can be read; their dependents are examined from time to time if they cannot be watched. [Collector.Run]
// documents how the collector works.
package garbage
