// Package etcd implements a [storage.Backend] in an etcd cluster (https://etcd.io), 3.5.13 or later.
//
//	b, err := etcd.Open(ctx, etcd.Options{Endpoints: []string{"https://10.0.0.1:2379"}, TLS: config})
//	...
//	defer b.Close()
//
// # Guarantees
//
// A commit is one transaction of etcd. When it succeeds, it is durable on most members. Reads are linearizable. Calls fail
// with storage.ErrUnavailable after two seconds if etcd cannot be reached, and after Options.RequestTimeout if it does not
// answer. Reads are tried again until then. A write is never sent twice: after such an error it may or may not have happened.
// Watches continue by themselves when a member, its leader or a connection is lost: they deliver every change once, or end
// with storage.ErrCompacted.
//
// History is kept for one to two times Options.CompactionInterval. Servers that share an etcd, including kube-apiservers, use
// the key compact_rev_key to agree which of them compacts, so that it is done once in an interval.
//
// # Layout
//
// An etcd key is Options.Prefix followed by the key of the store, and the value is stored unchanged. Stores use keys like
// /registry/widgets/default/a. With Prefix "" these are the keys that kube-apiserver uses with the default of its
// --etcd-prefix, so that such an etcd can be opened. With different Prefixes many stores can share an etcd without seeing
// each other. Keys of the etcd that begin with compact_rev_key are not part of the store: they are in no Range or Watch, and
// Get and Commit refuse them. [Backend] describes TTLs.
//
// # Limits
//
// Revisions count the commits of the whole etcd, no matter which client makes them. Compaction and alarms concern the whole
// etcd too. When etcd's quota (--quota-backend-bytes) is reached, all commits return storage.ErrNoSpace, and Ready fails,
// until an operator has compacted, defragmented and disarmed the alarm
// (https://etcd.io/docs/v3.6/op-guide/maintenance/#space-quota). A request may have 1.5 MiB, or what etcd's
// --max-request-bytes allows; a larger one is storage.ErrTooLarge.
//
// A member that hangs with open connections makes its share of the calls fail, and its watches wait, until
// Options.KeepaliveTime and KeepaliveTimeout have passed. Then the other members serve. The connections to a member that dies
// are replaced at once.
package etcd
