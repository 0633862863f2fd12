// Package embedded runs an etcd server inside the process, from a directory: alone, or as one member of a cluster.
// It is for programs that want etcd's cluster without a second program to install, and for tests that want the
// real thing.
//
//	srv, err := embedded.Start(ctx, embedded.Options{Dir: "data"})
//	if err != nil {
//		return err
//	}
//	defer srv.Close()
//	backend, err := etcd.Open(ctx, etcd.Options{Endpoints: srv.Endpoints()})
//
// Close the clients first and the server last; a server that is closed first ends their calls and watches with an
// error that says to try another endpoint.
//
// # One member or three
//
// Without Peers a server is a cluster of its own, and listens to clients only. With Peers it is one of the members
// named there; every member is started with the same Peers, on a directory of its own, and Start returns when a
// majority has found itself. A directory remembers the cluster it belongs to: Start refuses one that belongs to
// another. To change the members of a running cluster use etcd's own means (etcdctl member).
//
// # What is not as in an etcd of its own
//
// History is never compacted by the server: the backends above it do that. Where etcd would end the process (its
// log cannot be written, its data contradicts itself), the server stops instead: see Done and Err. The listener
// speaks gRPC, and serves /health, /version and /metrics; there is no JSON gateway. The metrics, and the features
// that a cluster of mixed versions may use, are variables of etcd's packages: all servers of one process share
// them. Neither zap's nor grpc's global logger is touched.
package embedded
