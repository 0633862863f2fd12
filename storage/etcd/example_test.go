package etcd_test

import (
	"context"
	"fmt"
	"time"

	"github.com/keelson-dev/keelson/server"
	"github.com/keelson-dev/keelson/storage/etcd"
)

// A server keeps its objects in an etcd cluster. The example needs a cluster, so go test compiles it and does not run it.
func ExampleWith() {
	srv, err := server.New(server.Options{Storage: etcd.With(etcd.Options{
		Endpoints: []string{"http://10.0.0.1:2379", "http://10.0.0.2:2379", "http://10.0.0.3:2379"},
		Prefix:    "/hello",
	})})
	if err != nil {
		fmt.Println(err)
		return
	}
	defer func() { _ = srv.Close() }()
	if err := srv.Run(context.Background()); err != nil {
		fmt.Println(err)
	}
}

// A program checks that an etcd can be used. The example needs an etcd, so go test compiles it and does not run it.
func ExampleOpen() {
	ctx, cancel := context.WithTimeout(context.Background(), 10*time.Second)
	defer cancel()
	backend, err := etcd.Open(ctx, etcd.Options{Endpoints: []string{"http://127.0.0.1:2379"}})
	if err != nil {
		fmt.Println(err)
		return
	}
	defer func() { _ = backend.Close() }()
	if err := backend.Ready(ctx); err != nil {
		fmt.Println(err)
		return
	}
	oldest, err := backend.Oldest(ctx)
	if err != nil {
		fmt.Println(err)
		return
	}
	fmt.Println("can be read since revision", oldest)
}
