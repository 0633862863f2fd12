// Command apiserver serves widgets of bench.example.com/v1 with k8s.io/apiserver, the library of kube-apiserver, as a typical
// program does: the generic registry on etcd with a watch cache, objects in JSON, the default filter chain with API priority and
// fairness, server-side apply, and default feature gates. It has no audit and no admission plugins, and a log at level 0, because
// the other servers of the bench do not have them either.
//
//	go run ./examples/bench/etcd -data DIR
//	go run ./examples/bench/apiserver -addr 127.0.0.1:6443 -token secret -etcd http://127.0.0.1:PORT
//
// The flags, the users and their authorization are those of examples/bench/keelson.
package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"os"
	"strings"
	"time"

	"github.com/keelson-dev/keelson/examples/bench/internal/program"
	genericapiserver "k8s.io/apiserver/pkg/server"
	"k8s.io/client-go/rest"
)

func main() {
	var c config
	flags := c.Flags("apiserver")
	c.Add(flags)
	flags.StringVar(&c.etcd, "etcd", "", "`endpoints` of the etcd that keeps the objects, comma separated")
	os.Exit(program.Run(flags, os.Args[1:], c.serve))
}

// config is the command line.
type config struct {
	program.Options
	program.Identities
	etcd string
}

// serve serves until ctx ends.
func (c *config) serve(ctx context.Context, p *program.Process) error {
	if c.etcd == "" {
		return program.Usagef("-etcd is missing: the endpoints of the etcd that keeps the objects")
	}
	cert, key, err := c.KeyPair()
	if err != nil {
		return err
	}
	ln, url, err := c.Listen(ctx)
	if err != nil {
		return err
	}
	server, err := newServer(ln, cert, key, strings.Split(c.etcd, ","), c.Token, c.Identities)
	if err != nil {
		return errors.Join(err, ln.Close())
	}
	running, cancel := context.WithCancel(ctx)
	defer cancel()
	reported := make(chan struct{})
	go func() { // ends with the server
		defer close(reported)
		if waitReady(running, server.LoopbackClientConfig, url) {
			p.Ready(url)
		}
	}()
	err = run(ctx, server)
	cancel()
	<-reported
	return err
}

// run runs the server until ctx ends.
func run(ctx context.Context, server *genericapiserver.GenericAPIServer) error {
	return server.PrepareRun().RunWithContext(ctx)
}

// waitReady returns true when /readyz answers 200, or false when ctx has ended.
func waitReady(ctx context.Context, config *rest.Config, url string) bool {
	client, err := rest.HTTPClientFor(config)
	if err != nil {
		fmt.Fprintln(os.Stderr, "apiserver:", err)
		return false
	}
	defer client.CloseIdleConnections()
	for wait := time.Millisecond; !ready(ctx, client, url); wait = min(2*wait, 10*time.Millisecond) {
		select {
		case <-time.After(wait):
		case <-ctx.Done():
			return false
		}
	}
	return true
}

func ready(ctx context.Context, client *http.Client, url string) bool {
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, url+"/readyz", nil)
	if err != nil {
		return false
	}
	res, err := client.Do(req)
	if err != nil {
		return false
	}
	defer res.Body.Close()
	_, err = io.Copy(io.Discard, res.Body)
	return err == nil && res.StatusCode == http.StatusOK
}
