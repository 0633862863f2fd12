// Package builtin is the extension with the kinds and controllers that clients and controllers of any Kubernetes API count on:
//
//	err := srv.Install(builtin.New(builtin.Options{}))
//
// # What it adds
//
//   - Namespaces, ConfigMaps, Secrets and Events of core v1, Events of events.k8s.io/v1 (the same objects), and Leases of
//     coordination.k8s.io/v1, with the rules, field selectors and columns that kube-apiserver has for them. So leader
//     election, event recorders and Helm work.
//   - The life of namespaces: default, kube-system, kube-public and kube-node-lease exist before the server is ready, an
//     object can only be created in a namespace that exists and is not being deleted, and a namespace that is deleted
//     takes all its objects with it.
//   - The garbage collector: an object whose owners are gone is deleted, and a DELETE with the policy Foreground or Orphan
//     does what it says. See https://kubernetes.io/docs/concepts/architecture/garbage-collection/.
//
// # Several servers
//
// Servers that share a storage elect one, by the Lease keelson-controllers in kube-system, whose collector and namespace
// controller work; the others wait. All of them should have installed the extension: one without it lets objects into
// namespaces that are being deleted. A storage that is one process's alone (memory, a bolt file) needs no election, and
// has no such Lease.
//
// # What will bite
//
//   - The garbage collector follows the metadata of every kind that is served, so that the caches of all kinds are in use
//     on the server that leads.
//   - An owner of a kind that no server here serves is never taken for absent: what it owns stays.
//   - Delete the objects of a kind before the kind is withdrawn: what is stored is not found when its namespace goes.
//   - Events are gone an hour after their last change ([Options].EventTTL).
package builtin
