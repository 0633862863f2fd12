// Command crds serves no kinds of its own. It serves the kinds of clusters that controllers need, such as namespaces, ConfigMaps
// and Leases, and the kinds that CustomResourceDefinitions define: a control plane without nodes. Start it at
// the root of the repository:
//
//	go run ./examples/crds
//
// When it has printed a line that begins with ready, define caches in another terminal, at the root too:
//
//	export KUBECONFIG=$PWD/crds.kubeconfig
//	kubectl apply -f examples/crds/definition.yaml
//	kubectl wait --for=condition=Established -f examples/crds/definition.yaml
//	kubectl apply -f examples/crds/caches.yaml
//	kubectl scale cache pages --replicas=3
//	kubectl get caches
//	kubectl explain caches.spec
//
// A definition with a conversion webhook works if it names the webhook by its URL. If it names a Service, set -services, because
// no Services run here.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"os"
	"os/signal"
	"strings"
	"syscall"

	"github.com/keelson-dev/keelson/runtime/webhook"
	"github.com/keelson-dev/keelson/server"
	"github.com/keelson-dev/keelson/server/builtin"
	"github.com/keelson-dev/keelson/server/crd"
	"github.com/keelson-dev/keelson/storage/bolt"
	"github.com/keelson-dev/keelson/storage/etcd"
	"github.com/keelson-dev/keelson/storage/memory"
	"go.uber.org/zap"
	"go.uber.org/zap/zapcore"
)

func main() {
	listen := flag.String("listen", "127.0.0.1:6443", "`address` to serve on; port 0 picks a free one")
	data := flag.String("data", "crds.db", "`file` that keeps the objects, or memory; keys and certificates are in file.pki")
	endpoints := flag.String("etcd", "", "`endpoints` of an etcd cluster, comma separated: it keeps the objects, and not the file")
	kubeconfig := flag.String("kubeconfig", "crds.kubeconfig", "`file` to write for kubectl")
	lenient := flag.Bool("lenient-namespaces", false, "objects may be created in namespaces that do not exist")
	services := flag.String("services", "", "where the conversion webhooks of `services` are, namespace/name=address, comma separated; DNS has the addresses of the others")
	flag.Parse()
	if flag.NArg() > 0 {
		fmt.Fprintf(os.Stderr, "crds: unexpected argument %q\n", flag.Arg(0))
		os.Exit(2)
	}
	opts := server.Options{
		Storage: bolt.At(*data),
		Serving: server.Serving{
			Listen: *listen, Credentials: *data + ".pki", Kubeconfig: *kubeconfig,
			Ready: func(url, path string) { fmt.Printf("ready %s kubeconfig=%s\n", url, path) },
		},
	}
	if *data == "memory" {
		opts.Storage, opts.Serving.Credentials = memory.Open(), *kubeconfig+".pki"
	}
	if *endpoints != "" {
		opts.Storage = etcd.At(strings.Split(*endpoints, ",")...)
	}
	webhooks, err := webhooksAt(*services)
	if err != nil {
		fmt.Fprintln(os.Stderr, "crds:", err)
		os.Exit(2)
	}
	ctx, cancel := context.WithCancel(context.Background())
	signals := make(chan os.Signal, 2)
	signal.Notify(signals, os.Interrupt, syscall.SIGTERM)
	go func() { <-signals; cancel(); <-signals; os.Exit(1) }() // a second signal ends the program at once
	if err := serve(ctx, opts, *lenient, webhooks); err != nil {
		fmt.Fprintln(os.Stderr, "crds:", err)
		os.Exit(1)
	}
}

// serve runs the control plane.
func serve(ctx context.Context, opts server.Options, lenient bool, webhooks webhook.Options) error {
	config := zap.NewProductionConfig() // logs each start, stop and failed request to stderr
	config.Encoding, config.Sampling, config.DisableCaller, config.DisableStacktrace = "console", nil, true, true
	config.EncoderConfig.EncodeTime = zapcore.RFC3339TimeEncoder
	log, err := config.Build()
	if err != nil {
		return err
	}
	opts.Observe.Logger = log
	srv, err := server.New(opts)
	if err != nil {
		return err
	}
	cluster := builtin.New(builtin.Options{AllowMissingNamespaces: lenient, Logger: log})
	for _, extension := range []server.Extension{cluster, crd.New(crd.Options{Webhooks: webhooks, Logger: log})} {
		if err := srv.Install(extension); err != nil {
			return errors.Join(err, srv.Close())
		}
	}
	return srv.Run(ctx)
}

// webhooksAt returns options for webhooks that are Services. Webhooks with a URL need no options.
func webhooksAt(services string) (o webhook.Options, err error) {
	if services == "" {
		return o, nil
	}
	known := map[string]string{}
	for _, s := range strings.Split(services, ",") {
		name, address, ok := strings.Cut(s, "=")
		if !ok || strings.Count(name, "/") != 1 || address == "" {
			return o, fmt.Errorf("-services: %q is not namespace/name=address", s)
		}
		known[name] = address
	}
	o.Resolve = func(_ context.Context, namespace, name string, port int32) (string, error) {
		if address, ok := known[namespace+"/"+name]; ok {
			return address, nil
		}
		return fmt.Sprintf("%s.%s.svc:%d", name, namespace, port), nil
	}
	return o, nil
}
