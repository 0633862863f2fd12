package embedded_test

import (
	_ "github.com/anishathalye/porcupine"
	_ "github.com/keelson-dev/keelson/storage/etcd"
	_ "github.com/keelson-dev/keelson/storage/storagetest"
	_ "go.etcd.io/etcd/client/v3"
	_ "go.uber.org/goleak"
	_ "google.golang.org/grpc"
)
