package bolt_test

import (
	"bytes"
	"context"
	"fmt"
	"os"
	"path/filepath"

	"github.com/keelson-dev/keelson/server"
	"github.com/keelson-dev/keelson/storage"
	"github.com/keelson-dev/keelson/storage/bolt"
)

// A server keeps its objects in a file.
func ExampleAt() {
	dir, err := os.MkdirTemp("", "bolt")
	if err != nil {
		fmt.Println(err)
		return
	}
	defer func() { _ = os.RemoveAll(dir) }()

	srv, err := server.New(server.Options{Storage: bolt.At(filepath.Join(dir, "hello.db"))})
	if err != nil {
		fmt.Println(err)
		return
	}
	if err := srv.Close(); err != nil {
		fmt.Println(err)
		return
	}
	fmt.Println(bolt.Verify(filepath.Join(dir, "hello.db")))
	// Output:
	// <nil>
}

// A value is still in the file when the file is opened again.
func ExampleOpen() {
	ctx := context.Background()
	dir, err := os.MkdirTemp("", "bolt")
	if err != nil {
		fmt.Println(err)
		return
	}
	defer func() { _ = os.RemoveAll(dir) }()
	path := filepath.Join(dir, "hello.db")

	backend, err := bolt.Open(path, bolt.Options{})
	if err != nil {
		fmt.Println(err)
		return
	}
	_, err = backend.Commit(ctx, storage.Commit{Key: "/greeting", Value: []byte("hello")})
	if err != nil {
		fmt.Println(err)
	}
	if err := backend.Close(); err != nil {
		fmt.Println(err)
		return
	}

	backend, err = bolt.Open(path, bolt.Options{})
	if err != nil {
		fmt.Println(err)
		return
	}
	defer func() { _ = backend.Close() }()
	got, err := backend.Get(ctx, "/greeting", 0)
	if err != nil {
		fmt.Println(err)
		return
	}
	fmt.Printf("%s at revision %d\n", got.KV.Value, got.KV.Revision)
	// Output:
	// hello at revision 2
}

// A program makes a backup of a file that is in use, and restores it as another file.
func ExampleBackend_Snapshot() {
	ctx := context.Background()
	dir, err := os.MkdirTemp("", "bolt")
	if err != nil {
		fmt.Println(err)
		return
	}
	defer func() { _ = os.RemoveAll(dir) }()

	backend, err := bolt.Open(filepath.Join(dir, "hello.db"), bolt.Options{})
	if err != nil {
		fmt.Println(err)
		return
	}
	defer func() { _ = backend.Close() }()
	_, err = backend.Commit(ctx, storage.Commit{Key: "/greeting", Value: []byte("hello")})
	if err != nil {
		fmt.Println(err)
		return
	}
	var backup bytes.Buffer
	revision, err := backend.Snapshot(ctx, &backup)
	if err != nil {
		fmt.Println(err)
		return
	}
	fmt.Println("snapshot of revision", revision)

	restored := filepath.Join(dir, "restored.db")
	if err := bolt.Restore(restored, &backup, bolt.RestoreOptions{}); err != nil {
		fmt.Println(err)
		return
	}
	other, err := bolt.Open(restored, bolt.Options{})
	if err != nil {
		fmt.Println(err)
		return
	}
	defer func() { _ = other.Close() }()
	got, err := other.Get(ctx, "/greeting", 0)
	if err != nil {
		fmt.Println(err)
		return
	}
	fmt.Printf("%s at revision %d of %d\n", got.KV.Value, got.KV.Revision, got.Revision)
	// Output:
	// snapshot of revision 2
	// hello at revision 2 of 1000000002
}
