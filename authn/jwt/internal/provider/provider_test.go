package provider

import (
	"testing"
	"time"
)

// The defaults are those that the package documentation of authn/jwt has.
func TestDefaults(t *testing.T) {
	want := Limits{
		Timeout: 30 * time.Second, Retry: 10 * time.Second, Pause: time.Second, Every: time.Hour, Document: 1 << 20, Keys: 100, Modulus: 8192, Waiting: 1000, Redirects: 10,
		Conns: 16,
	}
	if got := (Limits{}).withDefaults(); got != want {
		t.Errorf("%+v, want %+v", got, want)
	}
	if got := want.withDefaults(); got != want {
		t.Errorf("%+v, want %+v", got, want)
	}
}
