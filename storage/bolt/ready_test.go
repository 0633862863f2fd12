package bolt_test

import (
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"sync"
	"testing"

	"github.com/keelson-dev/keelson/storage"
	"github.com/keelson-dev/keelson/storage/bolt"
)

// Ready may be called while the file grows and is closed. Afterwards it returns ErrClosed.
func TestReadyMeanwhile(t *testing.T) {
	ctx := context.Background()
	for i := range 20 {
		b, err := bolt.Open(filepath.Join(t.TempDir(), fmt.Sprint(i)), bolt.Options{Sync: bolt.NoSync})
		if err != nil {
			t.Fatal(err)
		}
		began := make(chan struct{}, 2)
		var asking sync.WaitGroup
		for range cap(began) {
			asking.Go(func() {
				err := b.Ready(ctx)
				began <- struct{}{}
				for err == nil {
					err = b.Ready(ctx)
				}
				if !errors.Is(err, storage.ErrClosed) {
					t.Errorf("Ready: %v", err)
				}
			})
		}
		for range cap(began) {
			<-began
		}
		_, err = b.Commit(ctx, storage.Commit{Key: "a", Value: make([]byte, 1<<20)})
		if err = errors.Join(err, b.Close()); err != nil {
			t.Error(err)
		}
		asking.Wait()
	}
}
