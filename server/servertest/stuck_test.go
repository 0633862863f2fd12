package servertest_test

import (
	"context"
	"errors"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/keelson-dev/keelson/server"
	"github.com/keelson-dev/keelson/server/servertest"
)

// If a server never gets ready, New returns an error with the reason.
func TestNotReady(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		options server.Options
		want    string
	}{
		"a check fails": {server.Options{Observe: server.Observe{Checks: []server.Check{{Name: "db", Check: func(context.Context) error { return errors.New("no route") }}}}}, "db: no route"},
		"a check waits": {server.Options{Observe: server.Observe{Checks: []server.Check{{Name: "db", Check: func(ctx context.Context) error { <-ctx.Done(); return ctx.Err() }}}}}, "db: context deadline exceeded"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				srv, err := servertest.Run(c.options, widgets())
				if err == nil {
					t.Fatalf("it is ready; %v", srv.Close())
				}
				for _, want := range []string{"not ready after 30s", c.want} {
					if !strings.Contains(err.Error(), want) {
						t.Errorf("%v; want %s", err, want)
					}
				}
			})
		})
	}
}

// If a function does not return, Close and a failing New return nevertheless, with an error that names the function.
func TestWhatDoesNotEnd(t *testing.T) {
	t.Parallel()
	for _, tc := range []struct {
		after, took string
		install     error
	}{
		{"1m10s", "1m10s", nil},
		{"10s", "13s", errors.New("not installed")}, // Install itself waits for three seconds
	} {
		after, install := tc.after, tc.install
		t.Run(after, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				release := make(chan struct{})
				defer close(release)
				start := time.Now()
				srv, err := servertest.Run(server.Options{}, server.ExtensionFunc(func(h *server.Host) error {
					h.Go(func(context.Context) { hang(release) })
					return install
				}))
				if install != nil && !errors.Is(err, install) {
					t.Errorf("%v; want %v", err, install)
				}
				if err == nil {
					err = srv.Close()
				}
				if took := time.Since(start).String(); took != tc.took {
					t.Errorf("it took %s; want %s", took, tc.took)
				}
				for _, want := range []string{"the server does not end. After " + after + " ", "servertest_test.hang"} {
					if err == nil || !strings.Contains(err.Error(), want) {
						t.Errorf("%v; want %s", err, want)
					}
				}
			})
		})
	}
}

//go:noinline
func hang(release <-chan struct{}) { <-release }

// A running server cannot be run again.
func TestServesOnce(t *testing.T) {
	t.Parallel()
	srv := servertest.New(t, widgets())
	for range 2 {
		if err := srv.Run(t.Context()); err == nil || !strings.Contains(err.Error(), "serves once") {
			t.Errorf("Run: %v", err)
		}
	}
	ask(t, srv, "GET", "/apis/example.com/v1/widgets", "").want(200)
}
