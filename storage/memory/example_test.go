package memory_test

import (
	"context"
	"errors"
	"fmt"

	"github.com/keelson-dev/keelson/storage"
	"github.com/keelson-dev/keelson/storage/memory"
)

// A backend in memory has the newest value of a key, its earlier values, and a watch of all its changes.
func Example() {
	ctx := context.Background()
	backend := memory.New(memory.Options{})
	defer func() { _ = backend.Close() }()

	first, err := backend.Commit(ctx, storage.Commit{Key: "/boats/dinghy", Value: []byte("one mast")})
	if err != nil {
		fmt.Println(err)
		return
	}
	_, err = backend.Commit(ctx, storage.Commit{Key: "/boats/dinghy", Expect: first.Revision, Value: []byte("two masts")})
	if err != nil {
		fmt.Println(err)
		return
	}
	// The key is not at the first revision any more.
	_, err = backend.Commit(ctx, storage.Commit{Key: "/boats/dinghy", Expect: first.Revision, Delete: true})
	fmt.Println("conflict:", errors.Is(err, storage.ErrConflict))

	for _, at := range []int64{first.Revision, 0} { // 0 is the latest revision
		got, err := backend.Get(ctx, "/boats/dinghy", at)
		if err != nil {
			fmt.Println(err)
			return
		}
		fmt.Printf("revision %d: %s\n", got.KV.Revision, got.KV.Value)
	}

	feed, err := backend.Watch(ctx, storage.WatchRange{Prefix: "/boats/", From: first.Revision})
	if err != nil {
		fmt.Println(err)
		return
	}
	defer feed.Close()
	next, err := feed.Next(ctx)
	if err != nil {
		fmt.Println(err)
		return
	}
	for _, c := range next.Changes {
		fmt.Printf("changed %s: %s\n", c.Key, c.Value)
	}
	// Output:
	// conflict: true
	// revision 2: one mast
	// revision 3: two masts
	// changed /boats/dinghy: two masts
}
