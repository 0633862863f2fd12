package embedded_test

import (
	"context"
	"fmt"
	"os"

	"github.com/keelson-dev/keelson/storage"
	"github.com/keelson-dev/keelson/storage/etcd"
	"github.com/keelson-dev/keelson/storage/etcd/embedded"
)

// A program with its own etcd. Three of them, each with the same Peers, are a cluster.
func Example() {
	if err := example(context.Background()); err != nil {
		fmt.Println(err)
	}
	// Output:
	// hello at revision 2
}

func example(ctx context.Context) error {
	dir, err := os.MkdirTemp("", "etcd")
	if err != nil {
		return err
	}
	defer os.RemoveAll(dir)
	srv, err := embedded.Start(ctx, embedded.Options{Dir: dir})
	if err != nil {
		return err
	}
	defer srv.Close()
	backend, err := etcd.Open(ctx, etcd.Options{Endpoints: srv.Endpoints()})
	if err != nil {
		return err
	}
	defer backend.Close()

	_, err = backend.Commit(ctx, storage.Commit{Key: "/greeting", Value: []byte("hello")})
	if err != nil {
		return err
	}
	got, err := backend.Get(ctx, "/greeting", 0)
	if err != nil {
		return err
	}
	fmt.Printf("%s at revision %d\n", got.KV.Value, got.KV.Revision)
	return nil
}
