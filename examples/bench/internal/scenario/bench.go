package scenario

import (
	"context"
	"crypto/rand"
	"crypto/x509"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"sync/atomic"
	"time"

	"github.com/keelson-dev/keelson/examples/bench/internal/child"
	"github.com/keelson-dev/keelson/examples/bench/internal/figures"
	"github.com/keelson-dev/keelson/examples/bench/internal/load"
	"github.com/keelson-dev/keelson/examples/bench/internal/program"
)

// Options are the options of Run. The zero Options is valid.
type Options struct {
	Log        io.Writer // receives a line for each measurement; may be nil
	Profiles   string    // directory for CPU profiles of the servers; "" means none
	Unstripped bool      // build programs as the tests do, not as for a release
}

// Bench is one run of a plan.
type Bench struct {
	plan    Plan
	opts    Options
	dir     string // directory of programs and data
	family  *child.Family
	results *figures.Results
	token   string
	cas     *x509.CertPool
	servers []*server
}

// server is a server with its storage, which outlives its processes.
type server struct {
	name    string
	program string       // path
	etcd    string       // path of the program, "" if it needs none
	dir     string       // data directory
	filled  int          // number of widgets in its storage
	created int          // number of widgets that loads have created; makes their names unique
	changed atomic.Int64 // number of widgets that loads have changed
}

// Run measures everything in the plan, with files in dir, and adds it to results. If a scenario fails, Run records that in
// results and continues with the others. The error is an error of the bench itself, or that of ctx. All processes have ended when
// Run returns.
func Run(ctx context.Context, dir string, plan Plan, opts Options, results *figures.Results) error {
	b := &Bench{plan: plan, opts: opts, dir: dir, results: results, token: rand.Text()}
	if opts.Log == nil {
		b.opts.Log = io.Discard
	}
	if err := b.prepare(ctx); err != nil {
		return err
	}
	b.family = child.NewFamily()
	defer b.family.Close()
	for _, s := range b.servers {
		b.try(ctx, s, 0, "empty", b.empty)
	}
	for _, objects := range plan.Objects {
		for round := range plan.RoundsOf(objects) {
			for i := range b.servers {
				s := b.servers[(i+round)%len(b.servers)]
				b.try(ctx, s, objects, "session", func(ctx context.Context, s *server) error {
					return b.session(ctx, s, objects, round)
				})
				b.try(ctx, s, objects, Storm, func(ctx context.Context, s *server) error {
					return b.storm(ctx, s, objects, round)
				})
				b.try(ctx, s, objects, "identities", func(ctx context.Context, s *server) error {
					return b.sessionWithIdentities(ctx, s, objects, round)
				})
				b.try(ctx, s, objects, ListIndex, func(ctx context.Context, s *server) error {
					return b.sessionWithIndex(ctx, s, objects, round)
				})
			}
		}
	}
	return context.Cause(ctx)
}

// try calls run for one server and records a failure.
func (b *Bench) try(ctx context.Context, s *server, objects int, what string, run func(context.Context, *server) error) {
	if ctx.Err() != nil {
		return
	}
	if err := run(ctx, s); err != nil && ctx.Err() == nil {
		b.fail(s, objects, what, err)
	}
}

func (b *Bench) fail(s *server, objects int, what string, err error) {
	b.results.Fail("%s, %s with %d objects: %v", s.name, what, objects, err)
	b.logf(s, objects, "%s FAILED: %v", what, err)
}

func (b *Bench) logf(s *server, objects int, format string, args ...any) {
	fmt.Fprintf(b.opts.Log, "%s %-14s %6d %s\n", time.Now().Format("15:04:05"), s.name, objects, fmt.Sprintf(format, args...))
}

// prepare builds the programs and makes the certificate.
func (b *Bench) prepare(ctx context.Context) error {
	cert, key, err := (&program.Options{Addr: "127.0.0.1:0"}).KeyPair()
	if err != nil {
		return err
	}
	b.cas = x509.NewCertPool()
	b.cas.AppendCertsFromPEM(cert)
	err = errors.Join(os.WriteFile(b.certFile(), cert, 0o600), os.WriteFile(b.keyFile(), key, 0o600))
	if err != nil {
		return err
	}
	programs := make(map[string]string)
	built := func(name string) (string, error) {
		if programs[name] == "" {
			fmt.Fprintf(b.opts.Log, "%s building %s\n", time.Now().Format("15:04:05"), name)
			path, err := child.Build(ctx, b.dir, name, !b.opts.Unstripped)
			if err != nil {
				return "", err
			}
			programs[name] = path
		}
		return programs[name], nil
	}
	for _, name := range b.plan.Servers {
		s, err := b.server(name, built)
		if err != nil {
			if ctx.Err() != nil {
				return context.Cause(ctx)
			}
			b.results.Fail("%s: %v", name, err)
			continue
		}
		b.servers = append(b.servers, s)
	}
	if len(b.servers) == 0 {
		return errors.New("none of the servers can be built: " + fmt.Sprint(b.results.Failures()))
	}
	return nil
}

func (b *Bench) certFile() string { return filepath.Join(b.dir, "cert.pem") }
func (b *Bench) keyFile() string  { return filepath.Join(b.dir, "key.pem") }

// programOf returns the program of a server.
func programOf(name string) string {
	switch name {
	case figures.Peer:
		return "apiserver"
	case figures.Floor:
		return "floor"
	}
	return "keelson"
}

func (b *Bench) server(name string, built func(string) (string, error)) (*server, error) {
	s := &server{name: name, dir: filepath.Join(b.dir, "data-"+name)}
	var err error
	if s.program, err = built(programOf(name)); err != nil {
		return nil, err
	}
	if name == figures.KeelsonEtcd || name == figures.Peer {
		if s.etcd, err = built("etcd"); err != nil {
			return nil, err
		}
	}
	return s, os.Mkdir(s.dir, 0o700)
}

// keelson reports whether the server is one of this library.
func (s *server) keelson() bool { return programOf(s.name) == "keelson" }

// keeps reports whether the server's objects survive its process.
func (s *server) keeps() bool { return s.name != figures.KeelsonMemory && s.name != figures.Floor }

// process is a running server.
type process struct {
	*child.Child
	etcd   *child.Child // nil if it needs none
	target load.Target
}

// start starts a server, and etcd before it.
func (b *Bench) start(ctx context.Context, s *server, objects int, args ...string) (_ *process, err error) {
	p := &process{}
	args = append([]string{"-addr", "127.0.0.1:0", "-cert", b.certFile(), "-key", b.keyFile(), "-token", b.token}, args...)
	switch {
	case s.etcd != "":
		p.etcd, err = b.family.Start(ctx, child.Command{
			Name: "etcd of " + s.name, Program: s.etcd, Args: []string{"-data", filepath.Join(s.dir, "etcd")},
		})
		if err != nil {
			return nil, err
		}
		args = append(args, "-etcd", p.etcd.URL)
	case s.name == figures.KeelsonBolt:
		args = append(args, "-data", filepath.Join(s.dir, "data.db"))
	case s.name == figures.Floor:
		args = append(args, "-objects", fmt.Sprint(max(objects, 1))) // it serves only prepared objects
	}
	cmd := child.Command{Name: s.name, Program: s.program, Args: args}
	if b.opts.Profiles != "" {
		cmd.Profile = filepath.Join(s.dir, "profile")
	}
	p.Child, err = b.family.Start(ctx, cmd)
	if err != nil {
		if p.etcd != nil {
			_ = p.etcd.Stop(ctx)
		}
		return nil, err
	}
	p.target = load.Target{URL: p.URL, Token: b.token, CAs: b.cas}
	return p, nil
}

// stop ends a server, and etcd after it.
func (p *process) stop(ctx context.Context) error {
	err := p.Stop(ctx)
	if p.etcd != nil {
		err = errors.Join(err, p.etcd.Stop(ctx))
	}
	return err
}
