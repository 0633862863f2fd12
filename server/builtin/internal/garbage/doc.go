// Package garbage deletes objects whose owners are gone, and carries out what a DELETE with the policy Foreground or
// Orphan asks for, over all kinds that a server serves. The rules are those of
// https://kubernetes.io/docs/concepts/architecture/garbage-collection/ and
// https://kubernetes.io/docs/concepts/overview/working-with-objects/owners-dependents/.
//
//	collector, err := garbage.New(garbage.Options{Catalogue: host.Catalogue()})
//	...
//	err := host.CollectGarbage()
//	host.Go(func(ctx context.Context) { err := collector.Run(ctx) ... })
//
// # The nouns
//
//   - A dependent names its owners in metadata.ownerReferences, by kind, name and uid. A namespaced owner is in the
//     namespace of the dependent.
//   - An owner is absent when a read past all caches finds no object of that kind and name, or one with another uid. A
//     dependent goes when each of its owners is absent or waiting.
//   - An owner is waiting while it is being deleted with the finalizer foregroundDeletion: until all dependents that
//     have blockOwnerDeletion are gone.
//   - An owner that is being deleted with the finalizer orphan loses its dependents: their references to it are removed.
//
// # How it works
//
// A graph of objects and references, without clock, lock or goroutine, is told every change of metadata, and says which
// objects have to be looked at. Looking at one reads it and its owners anew, past all caches: the graph, which may be
// behind, only says where to look. Every deletion has the uid and the resourceVersion that were read as preconditions;
// every other change is made to what was read, or not at all. So two collectors at once only do some of the work twice.
//
// Before an owner's finalizer is removed, the kinds that may have dependents of it are listed: watches of different kinds
// are not in step with each other, and a dependent that was written before its owner was deleted must not be missed.
// One walk over the kinds serves all owners that ask for it at about the same time, and tells who of those that go with
// them has dependents.
//
// # What never happens
//
//   - An owner whose kind, in that version, is not served here is never taken for absent: another server may serve it.
//     Neither is one whose kind was withdrawn, or cannot be read.
//   - A cluster-scoped dependent with a namespaced owner cannot be resolved, and is never collected for that.
//   - Owners that wait for each other in a circle do not wait for ever: who waits only for such is released.
//
// # What takes part
//
// Kinds with the verbs get and delete that can be listed and watched are collected. Others take part as owners if they can
// be read; the dependents of those that cannot be watched are looked at from time to time.
package garbage
