package main

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"net"
	"slices"

	"github.com/keelson-dev/keelson/examples/controlplane/internal/kinds"
	"github.com/keelson-dev/keelson/server"
	"github.com/keelson-dev/keelson/server/builtin"
	"github.com/keelson-dev/keelson/server/crd"
	"github.com/keelson-dev/keelson/server/options"
	"github.com/keelson-dev/keelson/storage"
	"github.com/keelson-dev/keelson/storage/bolt"
	"github.com/keelson-dev/keelson/storage/etcd"
	"go.uber.org/zap"
	"go.uber.org/zap/zapcore"
)

// namespaceLifecycle is the admission plug-in of package builtin.
const namespaceLifecycle = "NamespaceLifecycle"

// serve runs the control plane.
func serve(ctx context.Context, o *options.Options) error {
	log, err := logger()
	if err != nil {
		return err
	}
	if err := modesOfFile(o); err != nil {
		return err
	}
	opts, own, err := serverOptions(o, log)
	if err != nil {
		return err
	}
	srv, err := server.New(opts)
	if err != nil {
		return err
	}
	for _, e := range extensions(o, own, log) {
		if err := srv.Install(e); err != nil {
			return errors.Join(err, srv.Close())
		}
	}
	return listening(srv.Run(ctx))
}

// listening adds the names of the flags to an error of listening on their address.
func listening(err error) error {
	if op := new(net.OpError); !errors.As(err, &op) || op.Op != "listen" {
		return err
	}
	return fmt.Errorf("--bind-address and --secure-port: %w: stop the program that listens there, or use another address or port; port 0 is any free one", err)
}

// extensions returns the extensions in the order of their installation: authorizers in the order of the modes, and the kinds
// last, because they serve what no other extension serves.
func extensions(o *options.Options, own *files, log *zap.Logger) []server.Extension {
	list := []server.Extension{
		auditing(o.Audit, log),
		builtin.New(builtin.Options{NoNamespaceAdmission: !slices.Contains(o.AdmissionPlugins, namespaceLifecycle), Logger: log}),
		authentication(o, log), // after builtin, which serves the Secrets of bootstrap tokens
		serviceAccounts(o, own.authority, log),
		issuers(o),
		crd.New(crd.Options{Logger: log}),
		whoAsks(o),
	}
	return append(list, authorization(o, log), kinds.Extension())
}

// serverOptions returns the server's options according to the flags, and the files that they are made of.
func serverOptions(o *options.Options, log *zap.Logger) (server.Options, *files, error) {
	opener, err := storageOf(o)
	if err != nil {
		return server.Options{}, nil, err
	}
	anonymous, err := anonymousOfFile(o.Authentication)
	if err != nil {
		return server.Options{}, nil, err
	}
	own, err := openFiles(o, log)
	if err != nil {
		return server.Options{}, nil, err
	}
	return server.Options{
		Storage: opener,
		Serving: server.Serving{
			Listen: o.Listen(), Credentials: own.credentials, Kubeconfig: own.kubeconfig, Certificate: own.serving,
			AllowOrigin: o.AllowOrigin(), HSTS: o.HSTS, GoAwayChance: o.GoAwayChance,
			LivezGrace: o.LivezGrace, ShutdownDelay: o.ShutdownDelay, ShutdownRetryAfter: o.ShutdownRetryAfter, ShutdownWatchGrace: o.ShutdownWatchGrace,
			Ready: func(url, path string) { fmt.Printf("ready %s kubeconfig=%s\n", url, path) },
		},
		Policy: server.Policy{
			Authenticator: anonymousOf(o, anonymous), NoAdministrator: givesUsers(o.Authentication), Audiences: o.Authentication.Audiences, Authorizer: firstAuthorizer(o),
		},
		Observe: server.Observe{Logger: log},
	}, own, nil
}

// storageOf returns the storage according to the flags.
func storageOf(o *options.Options) (storage.Opener, error) {
	if o.StorageFile != "" {
		return openerOf("--storage-file", bolt.At(o.StorageFile)), nil
	}
	config, err := etcdTLS(o)
	if err != nil {
		return nil, err
	}
	prefix := o.EtcdPrefix     // keys of the storage begin with it anyway
	if prefix == "/registry" { // the storage adds /registry itself
		prefix = ""
	}
	return openerOf("--etcd-servers", etcd.With(etcd.Options{Endpoints: o.EtcdServers, Prefix: prefix, TLS: config})), nil
}

// openerOf adds the name of a flag to the error of a storage that cannot be opened.
func openerOf(flag string, open storage.Opener) storage.Opener {
	return func(ctx context.Context) (storage.Backend, error) {
		b, err := open(ctx)
		if err != nil {
			return nil, fmt.Errorf("%s: %w", flag, err)
		}
		return b, nil
	}
}

// etcdTLS returns the TLS configuration for the connection to etcd; nil if no flag is about it.
func etcdTLS(o *options.Options) (*tls.Config, error) {
	if o.EtcdCAFile == "" && o.EtcdCertFile == "" {
		return nil, nil
	}
	config := &tls.Config{MinVersion: tls.VersionTLS12}
	if o.EtcdCAFile != "" {
		var err error
		if config.RootCAs, err = readAuthorities("--etcd-cafile", o.EtcdCAFile); err != nil {
			return nil, err
		}
	}
	if o.EtcdCertFile != "" {
		pair, err := readPair("--etcd-certfile", o.EtcdCertFile, "--etcd-keyfile", o.EtcdKeyFile)
		if err != nil {
			return nil, err
		}
		config.Certificates = []tls.Certificate{*pair}
	}
	return config, nil
}

// logger writes a line to stderr for each start, stop and failed request.
func logger() (*zap.Logger, error) {
	config := zap.NewProductionConfig()
	config.Encoding, config.Sampling, config.DisableCaller, config.DisableStacktrace = "console", nil, true, true
	config.EncoderConfig.EncodeTime = zapcore.RFC3339TimeEncoder
	return config.Build()
}
