package server_test

import (
	"fmt"
	"net/http"
	"path/filepath"
	"sync"
	"testing"

	"github.com/keelson-dev/keelson/server"
	"github.com/keelson-dev/keelson/storage"
	"github.com/keelson-dev/keelson/storage/bolt"
)

// Two migrations at the same time, to a version and back, on a disk, beside clients that create, change and delete.
func TestMigrateStorageThereAndBack(t *testing.T) {
	t.Parallel()
	disk, err := bolt.Open(filepath.Join(t.TempDir(), "db"), bolt.Options{})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = disk.Close() })
	b := lasting{disk}
	const n = 30
	old := ropeServer(t, b, "v1alpha1", server.KindOptions[*Rope]{})
	for i := range n {
		old.ask(t, "POST", ropesPath("v1"), rope("v1", fmt.Sprintf("r%02d", i), "red", i)).want(t, 201)
	}
	_ = old.Close()
	for round, stored := range []string{"v1", "v1beta1", "v1alpha1"} {
		w := ropeServer(t, b, stored, server.KindOptions[*Rope]{})
		var wg sync.WaitGroup
		wg.Go(func() {
			for i := range n {
				v, name := ropeVersions[i%3], fmt.Sprintf("passing-%d", i%4)
				w.ask(t, "POST", ropesPath(v), rope(v, name, "blue", i)).want(t, http.StatusCreated)
				w.ask(t, "DELETE", ropesPath(v)+"/"+name, "").want(t, http.StatusOK)
			}
		})
		wg.Go(func() {
			for i := range n {
				label := fmt.Sprintf(`{"metadata":{"labels":{"round-%d":"%d"}}}`, round, i)
				w.ask(t, "PATCH", ropesPath(ropeVersions[i%3])+fmt.Sprintf("/r%02d", i), label, "Content-Type", mergePatchType).want(t, http.StatusOK)
			}
		})
		for range 2 {
			wg.Go(func() {
				done, err := w.MigrateStorage(t.Context(), ropeResource, storage.MigrateOptions{PageSize: 7, Writers: 3})
				if err != nil || done.Failed != 0 || done.Examined != done.Rewritten+done.Unchanged+done.Gone {
					t.Errorf("migrated %+v, %v", done, err)
				}
			})
		}
		wg.Wait()
		for name, version := range storedIn(t, b) {
			if version != stored {
				t.Errorf("%s is stored in %s, want %s", name, version, stored)
			}
		}
		for i := range n {
			m := w.ask(t, "GET", ropesPath("v1beta1")+fmt.Sprintf("/r%02d", i), "").meta(t)
			if len(m.Labels) != round+1 || m.Generation != 1 {
				t.Errorf("%s: labels %v, generation %d", m.Name, m.Labels, m.Generation)
			}
		}
		_ = w.Close()
	}
}
