// Package builtin provides an extension with the kinds and controllers that clients expect of any Kubernetes API.
//
//	err := srv.Install(builtin.New(builtin.Options{}))
//
// # Contents
//
//   - Namespaces, ConfigMaps, Secrets and Events of core v1, Events of events.k8s.io/v1 (the same objects), and Leases of
//     coordination.k8s.io/v1, with the rules, field selectors and columns that kube-apiserver has for them. Leader election,
//     event recorders and Helm need these kinds.
//   - The lifecycle of namespaces. The namespaces default, kube-system, kube-public and kube-node-lease exist before the server
//     is ready. An object can only be created in a namespace that exists and is not being deleted. The deletion of a namespace
//     deletes all objects in it.
//   - The garbage collector. An object whose owners are gone is deleted, and a DELETE with the policy Foreground or Orphan has
//     its effect. See https://kubernetes.io/docs/concepts/architecture/garbage-collection/.
//
// # Several servers
//
// Servers that share a storage elect one server by the Lease keelson-controllers in kube-system. The garbage collector and the
// controller of namespaces run only on that server; the other servers wait until it ends. Install the extension in all of them: a
// server without it lets clients create objects in namespaces that are being deleted. A storage that belongs to one process
// (memory, a bolt file) needs no election and has no such Lease.
//
// # Differences from kube-apiserver
//
//   - An entry of metadata.managedFields of an event keeps the group in which it was made. kube-apiserver drops the entries of the
//     other group with each write, also with a patch that changes nothing else, so that an apply finds no conflicts with them.
//   - Events are cached like other objects. Therefore the answer that a resourceVersion is too large has a Retry-After for them, too.
//
// # Limits
//
//   - The garbage collector watches the metadata of every served kind, so that the caches of all kinds are in use on the elected
//     server.
//   - An owner of a kind that this server does not serve is never considered absent: its dependents are kept.
//   - Delete the objects of a kind before the program withdraws the kind (server.Host.Withdraw). Objects of a withdrawn kind are
//     not deleted with their namespace.
//   - Events are deleted an hour after their last change ([Options].EventTTL).
package builtin
