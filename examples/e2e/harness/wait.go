package harness

import (
	"os"
	"testing"
	"time"
)

// Patience is how long Eventually waits.
const Patience = 60 * time.Second

// Eventually waits until cond holds, asking often, and fails the test with what when it does not within Patience.
func Eventually(t testing.TB, what string, cond func() bool) {
	t.Helper()
	deadline := time.Now().Add(Patience)
	for !cond() {
		if time.Now().After(deadline) {
			t.Fatalf("waited %v in vain until %s", Patience, what)
		}
		time.Sleep(5 * time.Millisecond)
	}
}

// Soak is how long a test that only gets better with time should run: 30 s, 2 s with -short, or what the
// environment variable KEELSON_SOAK says, such as 10m.
func Soak(t testing.TB) time.Duration {
	t.Helper()
	if v := os.Getenv("KEELSON_SOAK"); v != "" {
		d, err := time.ParseDuration(v)
		if err != nil {
			t.Fatalf("KEELSON_SOAK: %v", err)
		}
		return d
	}
	if testing.Short() {
		return 2 * time.Second
	}
	return 30 * time.Second
}
