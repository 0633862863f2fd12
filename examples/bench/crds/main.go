// Command crds measures the costs of a thousand CustomResourceDefinitions for a server of this library: their memory while they
// are not used, the time from the creation of a definition until its objects can be listed, and requests, discovery and OpenAPI
// with one definition and with a thousand.
//
//	go run ./examples/bench/crds            # from the root of the repository: ten minutes
//	go run ./examples/bench/crds -definitions 100 -rest 0s
//
// RESULTS-CRDS.md has the results. With -server it measures a running server, for example a kube-apiserver, as far as that is
// possible from outside. It does not delete the definitions there; they are in groups named gN.crds.example.com.
package main

import (
	"context"
	"crypto/x509"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"os/signal"
	"path/filepath"
	"strings"
	"syscall"
	"time"

	"github.com/keelson-dev/keelson/examples/bench/internal/child"
	"github.com/keelson-dev/keelson/examples/bench/internal/load"
	"github.com/keelson-dev/keelson/examples/bench/internal/proc"
	"github.com/keelson-dev/keelson/examples/bench/internal/program"
)

func main() {
	c, err := parse(os.Args[1:])
	if errors.Is(err, flag.ErrHelp) {
		return
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, "crds:", err)
		os.Exit(2)
	}
	ctx, cancel := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	context.AfterFunc(ctx, cancel) // a second signal ends the program at once
	err = c.run(ctx)
	cancel()
	if err != nil {
		fmt.Fprintln(os.Stderr, "crds:", err)
		os.Exit(1)
	}
}

// config is the command line.
type config struct {
	definitions  int
	operations   int           // number of each kind of request
	settle, rest time.Duration // times before memory is measured, and until unused schemas are dropped
	server, ca   string
	token        string
	pid          int
	out, command string
}

func parse(args []string) (config, error) {
	flags := flag.NewFlagSet("crds", flag.ContinueOnError)
	c := config{command: strings.Join(append([]string{"go run ./examples/bench/crds"}, args...), " ")}
	flags.IntVar(&c.definitions, "definitions", 1000, "how `many` definitions there are before one more is measured")
	flags.IntVar(&c.operations, "operations", 2000, "how `often` each request is made")
	flags.DurationVar(&c.settle, "settle", 5*time.Second, "how `long` the server is left alone before its memory is measured")
	flags.DurationVar(&c.rest, "rest", 5*time.Minute, "how `long` the server is left alone after all definitions were used, before its memory is measured again")
	flags.StringVar(&c.server, "server", "", "`URL` of a server that runs already; without it one of this library is built and started, with its data in memory")
	flags.StringVar(&c.ca, "ca", "", "`file` with the CA of that server, in PEM")
	flags.StringVar(&c.token, "token", "", "bearer `token` for that server")
	flags.IntVar(&c.pid, "pid", 0, "process `id` of that server, for its CPU time and resident memory")
	flags.StringVar(&c.out, "out", "", "`file` to write the report to (default stdout)")
	switch err := flags.Parse(args); {
	case err != nil:
		return config{}, err
	case flags.NArg() > 0:
		return config{}, fmt.Errorf("unexpected argument %q", flags.Arg(0))
	case c.definitions < 2 || c.operations < 1:
		return config{}, errors.New("-definitions has to be 2 at least, and -operations 1")
	case (c.server == "") != (c.ca == "") || (c.server == "") != (c.pid == 0):
		return config{}, errors.New("-server, -ca and -pid belong together")
	}
	return c, nil
}

// run measures and reports.
func (c config) run(ctx context.Context) (err error) {
	dir, err := os.MkdirTemp("", "bench-crds-")
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, os.RemoveAll(dir)) }()
	machine, err := proc.Describe(dir)
	if err != nil {
		return err
	}
	family := child.NewFamily()
	defer family.Close()
	m := &measuring{config: c, log: os.Stderr}
	if c.server == "" {
		err = m.start(ctx, family, dir)
	} else {
		err = m.attach()
	}
	if err != nil {
		return err
	}
	began := time.Now()
	if err := m.all(ctx); err != nil {
		return err
	}
	return c.write(func(w io.Writer) error { return m.report(w, machine, began) })
}

// start builds and starts a server.
func (m *measuring) start(ctx context.Context, family *child.Family, dir string) error {
	cert, key, err := (&program.Options{Addr: "127.0.0.1:0"}).KeyPair()
	if err != nil {
		return err
	}
	certFile, keyFile := filepath.Join(dir, "cert.pem"), filepath.Join(dir, "key.pem")
	if err := errors.Join(os.WriteFile(certFile, cert, 0o600), os.WriteFile(keyFile, key, 0o600)); err != nil {
		return err
	}
	path, err := child.Build(ctx, dir, "keelson", true)
	if err != nil {
		return err
	}
	const token = "bench"
	m.child, err = family.Start(ctx, child.Command{
		Name: "keelson", Program: path, Args: []string{"-addr", "127.0.0.1:0", "-cert", certFile, "-key", keyFile, "-token", token, "-crds"},
	})
	if err != nil {
		return err
	}
	m.pid = m.child.PID
	m.target = load.Target{URL: m.child.URL, Token: token, CAs: x509.NewCertPool()}
	m.target.CAs.AppendCertsFromPEM(cert)
	return nil
}

// attach uses the server of the command line.
func (m *measuring) attach() error {
	cert, err := os.ReadFile(m.ca)
	if err != nil {
		return err
	}
	m.target = load.Target{URL: m.server, Token: m.token, CAs: x509.NewCertPool()}
	m.target.CAs.AppendCertsFromPEM(cert)
	return nil
}

// write calls report with the output of the command line.
func (c config) write(report func(io.Writer) error) error {
	if c.out == "" {
		return report(os.Stdout)
	}
	f, err := os.Create(c.out)
	if err != nil {
		return err
	}
	return errors.Join(report(f), f.Close())
}
