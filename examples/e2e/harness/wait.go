package harness

import (
	"os"
	"testing"
	"time"
)

// Timeout is the maximum time that Eventually waits.
const Timeout = 60 * time.Second

// Eventually calls cond often until it returns true. It fails the test with what if that does not happen within Timeout.
func Eventually(t testing.TB, what string, cond func() bool) {
	t.Helper()
	deadline := time.Now().Add(Timeout)
	for !cond() {
		if time.Now().After(deadline) {
			t.Fatalf("waited %v in vain until %s", Timeout, what)
		}
		time.Sleep(5 * time.Millisecond)
	}
}

// Soak returns how long a test should run that finds more the longer it runs: 30 s, 2 s with -short, or the value of the
// environment variable KEELSON_SOAK, such as 10m.
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

// Long skips a test unless the environment variable CI_FULL is 1, as in the long mode of .ci/run. why says what makes it long.
func Long(t testing.TB, why string) {
	t.Helper()
	if os.Getenv("CI_FULL") != "1" {
		t.Skipf("%s: set CI_FULL=1", why)
	}
}
