package rbac

import (
	"fmt"
	"time"

	authzrbac "github.com/keelson-dev/keelson/authz/rbac"
	"github.com/keelson-dev/keelson/server"
)

// FileName is the name of the authorizer of File. Its check in /readyz?verbose is "rbac-config", and its metrics begin with
// apiserver_rbac_config_controller.
const FileName = "rbac-file"

// FileOptions are the options of File. The zero FileOptions has the defaults.
type FileOptions struct {
	// Every is the time between two reads of the file; 0 is 10 s.
	Every time.Duration
	// MaxBytes bounds the file; 0 is 3 MiB.
	MaxBytes int64
}

// File returns an extension that authorizes requests by the roles and bindings in a file, for a program that stores none. The form of
// the file is that of Parse of package authz/rbac: the documents that kubectl apply takes. What the default rules of the server allow
// stays allowed. Install it once in a server.
//
// The file is used again when it changes. A file that cannot be used is an error of Install; later it changes nothing, and the log,
// /readyz?verbose and metrics say what is wrong: see server.Host.Follow. Each request is decided by the roles before or after a
// change.
func File(path string, o FileOptions) server.Extension {
	return server.ExtensionFunc(func(h *server.Host) error {
		err := h.Follow(server.ConfigFile{Name: "rbac", Path: path, Every: o.Every, MaxBytes: o.MaxBytes, Use: func(content []byte) error {
			objects, err := authzrbac.Parse(content)
			if err != nil {
				return err
			}
			policy, err := authzrbac.Static(objects...)
			if err != nil {
				return err
			}
			return h.Authorize(FileName, policy)
		}})
		if err != nil {
			return fmt.Errorf("rbac: %w", err)
		}
		return nil
	})
}
