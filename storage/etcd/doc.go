// Package etcd keeps a storage.Backend in an etcd cluster.
package etcd

import (
	_ "go.etcd.io/etcd/api/v3/etcdserverpb"
	_ "go.etcd.io/etcd/api/v3/v3rpc/rpctypes"
	_ "go.etcd.io/etcd/client/v3"
	_ "google.golang.org/grpc"
	_ "google.golang.org/grpc/status"
)
