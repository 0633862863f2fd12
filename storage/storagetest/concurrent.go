package storagetest

import (
	"fmt"
	"os"
	"testing"
	"time"

	"github.com/keelson-dev/keelson/storage"
)

var concurrentTests = []backendTest{
	{"clients and watches", func(t *testing.T, b *backend) { concurrently(t, b, 4) }},
	{"clients and watches of few keys", func(t *testing.T, b *backend) { concurrently(t, b, 2) }},
}

func concurrently(t *testing.T, b *backend, keys int) {
	repeat(t, func(round int) *workload {
		return &workload{t: t, backends: []storage.Backend{b.Backend}, prefix: fmt.Sprintf("/c%d/", round), keys: keys, calls: callsPerClient()}
	})
}

func callsPerClient() int {
	if testing.Short() {
		return 80
	}
	return 200
}

// repeat runs a workload once, or until the soak time is over.
func repeat(t *testing.T, make func(round int) *workload) {
	for end, round := soakEnd(t), 0; round == 0 || time.Now().Before(end); round++ {
		w := make(round)
		w.begin()
		w.finish()
		if t.Failed() {
			return
		}
	}
}

// soakEnd returns the time at which a long test ends: KEELSON_SOAK from now, or now.
func soakEnd(t testing.TB) time.Time {
	t.Helper()
	s := os.Getenv("KEELSON_SOAK")
	if s == "" {
		return time.Now()
	}
	d, err := time.ParseDuration(s)
	if err != nil {
		t.Fatalf("KEELSON_SOAK: %v", err)
	}
	return time.Now().Add(d)
}
