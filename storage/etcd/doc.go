// Package etcd keeps a [storage.Backend] in an etcd cluster (https://etcd.io), 3.5.13 or later.
//
//	b, err := etcd.Open(ctx, etcd.Options{Endpoints: []string{"https://10.0.0.1:2379"}, TLS: config})
//	...
//	defer b.Close()
//
// # What it promises
//
// A commit is one transaction of etcd, and durable on most members when it is answered; reads are linearizable. When
// etcd cannot be reached, calls fail with storage.ErrUnavailable after two seconds, and when it does not answer after
// Options.RequestTimeout: reads are tried again until then, a write is never sent twice, so that after the error it
// may or may not have happened. Watches go on by themselves where they were when a member, its leader or a
// connection is lost: every change once, or storage.ErrCompacted.
//
// History is kept for one to two times Options.CompactionInterval. Servers that share an etcd, kube-apiservers
// included, agree by the key compact_rev_key on which of them compacts, so that it is done once in an interval.
//
// # Layout
//
// A key of the store is Options.Prefix followed by the key, and a value is stored as it is. Stores use keys like
// /registry/widgets/default/a: with Prefix "" they are where kube-apiserver has them when its --etcd-prefix is the
// default, and such an etcd opens here. With another Prefix many stores can share an etcd and do not see each
// other. A TTL is a lease (https://etcd.io/docs/v3.6/learning/api/#lease-api); as in kube-apiserver, one lease serves
// many keys.
//
// Keys of the etcd that begin with compact_rev_key are not part of the store: they are in no Range or Watch, and
// Get and Commit refuse them.
//
// # Connections
//
// A Backend has three connections, spread over the endpoints: for single keys, counts and commits; for ranges; and
// for watches, so that a large range does not hold up the others. They are made directly, whatever proxy the
// environment names. Each watch has an HTTP/2 stream of its own: the server waits for a slow reader, and what this
// process holds for one is bounded.
//
// # What will bite
//
// Revisions count the commits of the whole etcd, whoever makes them, and compaction and the alarms concern the
// whole etcd too. When etcd's quota (--quota-backend-bytes) is reached, all commits are storage.ErrNoSpace, and Ready
// fails, until somebody has compacted, defragmented and disarmed the alarm
// (https://etcd.io/docs/v3.6/op-guide/maintenance/#space-quota). A request may have 1.5 MiB unless etcd's
// --max-request-bytes says otherwise; more is storage.ErrTooLarge.
//
// A member that hangs, its connections open, fails its share of the calls and holds up its watches until
// Options.KeepaliveTime and KeepaliveTimeout are over; then the other members serve. One that dies is left at once.
//
// A TTL is rounded up to seconds, and etcd makes no lease shorter than about two; a key lives up to a twentieth of
// its TTL, at most Options.LeaseReuse, longer than asked; etcd deletes some seconds late, and a lost leader may
// double the time.
//
// A user of etcd's authentication needs read and write permission for the keys under Prefix, for Prefix followed by
// /health, and for those that begin with compact_rev_key. Compact, Raise and the compaction loop need the role root:
// with another user set Options.CompactionInterval to -1, and let somebody else compact.
package etcd
