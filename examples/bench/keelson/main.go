// Command keelson serves widgets of bench.example.com/v1 with keelson, for the bench and for any other load generator:
//
//	go run ./examples/bench/keelson -addr 127.0.0.1:6443 -token secret -data widgets.db
//	curl -k -H 'Authorization: Bearer secret' https://127.0.0.1:6443/apis/bench.example.com/v1/widgets
//
// Widgets are stored in the file of -data, in the etcd of -etcd, or in memory without either. The token is that of the user
// bench, who may do everything and is subject to flow control like every other user. Clients without a token may read /healthz,
// /livez, /readyz and /version. When /readyz answers 200, the program prints "ready https://HOST:PORT".
package main

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"os"
	"strings"

	"github.com/keelson-dev/keelson/authn"
	"github.com/keelson-dev/keelson/authz"
	"github.com/keelson-dev/keelson/examples/bench/internal/program"
	"github.com/keelson-dev/keelson/examples/bench/internal/widget"
	"github.com/keelson-dev/keelson/runtime"
	"github.com/keelson-dev/keelson/runtime/schema"
	"github.com/keelson-dev/keelson/server"
	"github.com/keelson-dev/keelson/server/crd"
	"github.com/keelson-dev/keelson/server/registry"
	"github.com/keelson-dev/keelson/storage/bolt"
	"github.com/keelson-dev/keelson/storage/etcd"
	"github.com/keelson-dev/keelson/storage/memory"
	"go.uber.org/zap"
	"k8s.io/apimachinery/pkg/util/validation"
)

// Widget is the kind as users of the library define one.
type Widget = runtime.Resource[widget.WidgetSpec, widget.WidgetStatus]

// user is the name of the user with the token, and of the group that may do everything.
const user = "bench"

func main() {
	var c config
	flags := c.Flags("keelson")
	c.Add(flags)
	flags.StringVar(&c.data, "data", "", "`file` that keeps the objects; every write is on the disk before it is answered")
	flags.StringVar(&c.etcd, "etcd", "", "`endpoints` of an etcd that keeps the objects, comma separated")
	flags.StringVar(&c.index, "index", "", "label `key` to index, so that lists that select one value cost what they find")
	flags.BoolVar(&c.crds, "crds", false, "serve CustomResourceDefinitions too, and what they define")
	os.Exit(program.Run(flags, os.Args[1:], c.serve))
}

// config is the command line.
type config struct {
	program.Options
	program.Identities
	data, etcd, index string
	crds              bool
}

func (c *config) check() error {
	if c.data != "" && c.etcd != "" {
		return program.Usagef("-data and -etcd exclude each other: objects are kept in one place")
	}
	if problems := validation.IsQualifiedName(c.index); c.index != "" && len(problems) > 0 {
		return program.Usagef("-index %q is no label key: %s", c.index, strings.Join(problems, "; "))
	}
	return nil
}

// serve serves until ctx ends.
func (c *config) serve(ctx context.Context, p *program.Process) error {
	if err := c.check(); err != nil {
		return err
	}
	cert, key, err := c.KeyPair()
	if err != nil {
		return err
	}
	pair, err := tls.X509KeyPair(cert, key)
	if err != nil {
		return fmt.Errorf("-cert and -key: %w", err)
	}
	opts := c.options()
	end, err := c.identify(&opts)
	if err != nil {
		return err
	}
	defer end()
	opts.Serving.Certificate = func(*tls.ClientHelloInfo) (*tls.Certificate, error) { return &pair, nil }
	opts.Serving.Ready = func(url, _ string) { p.Ready(url) }
	if opts.Observe.Logger, err = logger(); err != nil {
		return err
	}
	srv, err := server.New(opts)
	if err != nil {
		return err
	}
	if c.crds {
		if err := srv.Install(crd.New(crd.Options{Logger: opts.Observe.Logger})); err != nil {
			return errors.Join(err, srv.Close())
		}
	}
	return srv.Run(ctx)
}

// options returns the server's options: the kind, its storage, and the authorization. All other options are defaults.
func (c *config) options() server.Options {
	opts := server.Options{
		Storage: memory.Open(), Serving: server.Serving{Listen: c.Addr},
		Groups: []server.Group{{Name: widget.Group, Versions: []server.Version{{
			Name: widget.Version, Docs: schema.SourceOf(widget.Source), Resources: []server.Resource{
				server.Kind(widget.Kind, server.KindOptions[*Widget]{
					ShortNames: []string{"wd"}, Categories: []string{"all"}, IndexLabels: c.indexes(),
					Scale: &registry.Scale{SpecReplicas: ".spec.replicas", StatusReplicas: ".status.replicas", LabelSelector: ".status.selector"},
				}),
			},
		}}}},
		Policy: server.Policy{NoAdministrator: true, Authenticator: authn.WithAnonymous(authn.Union()), Authorizer: authz.AllowPaths("/healthz", "/healthz/*", "/livez", "/livez/*", "/readyz", "/readyz/*", "/version", "/version/")},
	}
	switch {
	case c.data != "":
		opts.Storage = bolt.At(c.data) // with SyncAlways, the default
	case c.etcd != "":
		opts.Storage = etcd.At(strings.Split(c.etcd, ",")...)
	}
	if c.Token != "" {
		tokens := c.tokens()
		opts.Policy.Authenticator = authn.WithAnonymous(authn.BearerToken(tokens))
		opts.Policy.Authorizer = authz.Union(authz.PrivilegedGroups(user), opts.Policy.Authorizer)
	}
	return opts
}

// indexes returns the labels to index.
func (c *config) indexes() []string {
	if c.index == "" {
		return nil
	}
	return []string{c.index}
}

// logger writes a line to stderr for each start, stop and failed request.
func logger() (*zap.Logger, error) {
	config := zap.NewProductionConfig()
	config.Sampling, config.DisableCaller, config.DisableStacktrace = nil, true, true
	return config.Build()
}
