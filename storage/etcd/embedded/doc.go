// Package embedded runs an etcd server in this process, with a data directory: alone, or as one member of a cluster. It is
// for programs that need an etcd cluster without installing a second program, and for tests that need a real etcd.
//
//	srv, err := embedded.Start(ctx, embedded.Options{Dir: "data"})
//	if err != nil {
//		return err
//	}
//	defer srv.Close()
//	backend, err := etcd.Open(ctx, etcd.Options{Endpoints: srv.Endpoints()})
//
// Close the clients first and the server last. A server that is closed first ends the calls and watches of its clients with
// an error that says to try another endpoint.
//
// # One member or several
//
// Without Peers a server is a cluster of its own, and listens to clients only. With Peers it is one of the members in Peers.
// Every member is started with the same Peers and its own directory, and Start returns when a majority of the members is
// running. A directory belongs to one cluster: Start refuses a directory of another cluster. To change the members of a
// running cluster use the tools of etcd (etcdctl member).
//
// # Differences from a separate etcd
//
// The server never compacts history: the backends that use it do that. Where etcd would end the process (its log cannot be
// written, its data contradicts itself), the server stops instead: see Done and Err. The listener speaks gRPC, and serves
// /health, /version and /metrics. There is no JSON gateway. The metrics, and the features that a cluster of mixed versions
// may use, are variables of etcd's packages: all servers of one process share them. The global loggers of zap and grpc are
// not changed.
package embedded
