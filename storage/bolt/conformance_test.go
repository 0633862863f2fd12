package bolt_test

import (
	"path/filepath"
	"testing"
	"time"

	"github.com/keelson-dev/keelson/storage"
	"github.com/keelson-dev/keelson/storage/bolt"
	"github.com/keelson-dev/keelson/storage/storagetest"
)

// everyMode runs a test with each Sync, and with a journal from the first commit on.
func everyMode(t *testing.T, test func(t *testing.T, o bolt.Options)) {
	t.Helper()
	t.Run("journal", func(t *testing.T) { test(t, journaled()) })
	for name, mode := range map[string]bolt.Sync{
		"always": bolt.SyncAlways, "interval": bolt.SyncInterval, "never": bolt.NoSync,
	} {
		t.Run(name, func(t *testing.T) { test(t, bolt.Options{Sync: mode}) })
	}
}

// journaled are options with which nearly every commit goes to a journal, which is soon full.
func journaled() bolt.Options { return bolt.Options{}.WithJournal(64<<10, 0) }

// journalMode is the mode number of journaled, for processes that are killed.
const journalMode = 3

// modeNumber encodes options for a process that is killed, and inMode decodes them.
func modeNumber(o bolt.Options) int {
	if o.Journaled() {
		return journalMode
	}
	return int(o.Sync)
}

func inMode(n int) bolt.Options {
	if n == journalMode {
		return journaled()
	}
	return bolt.Options{Sync: bolt.Sync(n)}
}

func TestConformance(t *testing.T) {
	t.Parallel()
	everyMode(t, func(t *testing.T, o bolt.Options) {
		t.Parallel()
		storagetest.Backend(t, func(t *testing.T) storage.Backend {
			return open(t, filepath.Join(t.TempDir(), "test.db"), o)
		})
	})
}

func TestDurable(t *testing.T) {
	t.Parallel()
	everyMode(t, func(t *testing.T, o bolt.Options) {
		t.Parallel()
		storagetest.Durable(t, func(t *testing.T, dir string) storage.Backend {
			return open(t, filepath.Join(dir, "test.db"), o)
		})
	})
}

func TestInterface(t *testing.T) {
	t.Parallel()
	everyMode(t, func(t *testing.T, o bolt.Options) {
		t.Parallel()
		storagetest.Interface(t, func(t *testing.T, s storage.StoreOptions) (storage.Interface, storage.Backend) {
			b := open(t, filepath.Join(t.TempDir(), "test.db"), o)
			store, err := storage.NewStore(b, s)
			if err != nil {
				t.Fatal(err)
			}
			return store, b
		})
	})
}

// killed has the stores that storagetest kills, by the name of their mode.
func killed() map[string]storagetest.Killed {
	in := func(mode int) func(dir string) (storage.Backend, error) {
		return func(dir string) (storage.Backend, error) {
			o := inMode(mode)
			o.WindowChanges = 2000
			if o.Sync == bolt.SyncInterval {
				o.Interval = 10 * time.Millisecond
			}
			return bolt.Open(filepath.Join(dir, "test.db"), o)
		}
	}
	return map[string]storagetest.Killed{
		"always":   {Open: in(int(bolt.SyncAlways))},
		"journal":  {Open: in(journalMode)},
		"interval": {Open: in(int(bolt.SyncInterval)), Weaker: true},
		"never":    {Open: in(int(bolt.NoSync))},
	}
}

func TestKilled(t *testing.T) {
	t.Parallel()
	for name := range killed() {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			storagetest.Kill(t, killed(), name)
		})
	}
}

func TestFaults(t *testing.T) {
	t.Parallel()
	everyMode(t, func(t *testing.T, o bolt.Options) {
		t.Parallel()
		disk := newBroken()
		if o.Sync == bolt.SyncInterval {
			o.Interval = 10 * time.Millisecond
		}
		path := filepath.Join(t.TempDir(), "test.db")
		b := open(t, path, o.WithSyncing(disk.sync))
		storagetest.Faults(t, storagetest.Faulty{
			Backends: []storage.Backend{b},
			Faults: []storagetest.Fault{{
				Name:   "disk full",
				Strike: func(*testing.T) { disk.ok.Store(false) },
				Heal:   func(*testing.T) { disk.ok.Store(true) },
			}},
		})
		if err := b.Close(); err != nil {
			t.Fatal(err)
		}
		if err := bolt.Verify(path); err != nil {
			t.Error(err)
		}
	})
}
