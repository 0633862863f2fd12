package rbac

import (
	"errors"
	"fmt"
	"strings"
	"time"

	authzrbac "github.com/keelson-dev/keelson/authz/rbac"
	"github.com/keelson-dev/keelson/server"
	"go.uber.org/zap"
)

// FileName is the name of the authorizer of File.
const FileName = "rbac-file"

// FileOptions are the options of File. The zero FileOptions has the defaults.
type FileOptions struct {
	// Every is the time between two reads of the file; 0 is 10 s.
	Every time.Duration
	// MaxBytes bounds the file; 0 is 3 MiB.
	MaxBytes int64
	// Logger receives a warning for each binding to a role that is not in the file, at most 20, each time the file is used. With nil they
	// are not logged.
	Logger *zap.Logger
}

// File returns an extension that authorizes requests by the roles and bindings in a file, for a program that stores none. The form of
// the file is that of ParseWarned of package authz/rbac: the documents that kubectl apply takes. What the default rules of the server
// allow stays allowed. Install it once in a server.
//
// The file is used again when it changes. A file that cannot be used is an error of Install; later it changes nothing. Then the log of
// the server and the path /readyz/rbac-config have the reason: a line for each fault, which begins with the file and the line. The
// check rbac-config in /readyz?verbose, which does not make the server unready, and the metric
// apiserver_rbac_config_controller_automatic_reloads_total{status="failure"} show that the file is not used, without the reason. See server.Host.Follow. Each request is
// decided by the roles before or after a change.
//
// A binding to a role that is not in the file grants nothing, and is a warning in the log of the options:
//
//	roles.yaml: line 12: ClusterRoleBinding "readers": there is no ClusterRole "raeder"
func File(path string, o FileOptions) server.Extension {
	if o.Logger == nil {
		o.Logger = zap.NewNop()
	}
	return server.ExtensionFunc(func(h *server.Host) error {
		err := h.Follow(server.ConfigFile{Name: "rbac", Path: path, Every: o.Every, MaxBytes: o.MaxBytes, Use: func(content []byte) error {
			return use(h, path, content, o.Logger)
		}})
		if err != nil {
			return fmt.Errorf("rbac: %w", err)
		}
		return nil
	})
}

// use authorizes by the content of a file.
func use(h *server.Host, path string, content []byte, log *zap.Logger) error {
	objects, warnings, err := authzrbac.ParseWarned(content)
	if faults := (authzrbac.ParseError)(nil); errors.As(err, &faults) {
		return errors.New(strings.TrimPrefix(faults.In(path), path+": ")) // Follow names the file before the first fault
	}
	if err != nil {
		return err
	}
	policy, err := authzrbac.Static(objects...)
	if err != nil {
		return err
	}
	if err := h.Authorize(FileName, policy); err != nil {
		return err
	}
	for _, w := range warnings {
		log.Warn(path + ": " + w.String())
	}
	return nil
}
