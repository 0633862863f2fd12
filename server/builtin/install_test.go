package builtin_test

import (
	"context"
	"testing"
	"testing/synctest"
	"time"

	"github.com/keelson-dev/keelson/admission"
	"github.com/keelson-dev/keelson/server"
	"github.com/keelson-dev/keelson/server/builtin"
	"github.com/keelson-dev/keelson/storage/memory"
)

// The installation of the extension does not block if the server ends meanwhile.
func TestInstallEndsWithItsServer(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		var srv *server.Server
		closeIt := admission.ValidatorFunc(func(context.Context, *admission.Request) error {
			go func() { _ = srv.Close() }()
			synctest.Wait()
			return nil
		})
		srv, err := server.New(server.Options{Storage: memory.Open(), Policy: server.Policy{Admission: admission.Chain{{Validator: closeIt}}}})
		if err != nil {
			t.Fatal(err)
		}
		began := time.Now()
		_ = srv.Install(builtin.New(builtin.Options{})) // it may or may not return an error
		if took := time.Since(began); took > time.Second {
			t.Errorf("Install went on for %v", took)
		}
		_ = srv.Close()
		synctest.Wait()
	})
}
