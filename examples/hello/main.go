// Command hello serves one kind, Widget, as a Kubernetes API. Start it at the root of the repository:
//
//	go run ./examples/hello
//
// When it has printed a line that begins with ready, create widgets in another terminal, at the root too:
//
//	export KUBECONFIG=$PWD/hello.kubeconfig
//	kubectl apply -f examples/hello/widgets.yaml
//	kubectl get widgets
//	kubectl explain widgets.spec
package main

import (
	"context"
	"embed"
	"flag"
	"fmt"
	"os"
	"os/signal"
	"strings"
	"syscall"

	"github.com/keelson-dev/keelson/runtime"
	"github.com/keelson-dev/keelson/runtime/schema"
	"github.com/keelson-dev/keelson/server"
	"github.com/keelson-dev/keelson/server/registry"
	"github.com/keelson-dev/keelson/storage/bolt"
	"github.com/keelson-dev/keelson/storage/etcd"
	"github.com/keelson-dev/keelson/storage/memory"
	"go.uber.org/zap"
	"go.uber.org/zap/zapcore"
)

// WidgetSpec is what the owner of a widget asks for.
type WidgetSpec struct {
	// Size of the widget, in millimetres.
	Size int32 `json:"size,omitempty" minimum:"0" maximum:"1000000" print:"Size"`
	// Color of the widget, such as "red".
	Color string `json:"color,omitempty" maxLength:"32" print:"Color"`
	// Data is anything the owner wants to keep with the widget.
	Data string `json:"data,omitempty"`
	// Replicas is how many of this widget there should be.
	Replicas int32 `json:"replicas,omitempty" print:"Replicas,wide"`
}

// WidgetStatus is what the controller of widgets reports.
type WidgetStatus struct {
	// Ready says that the widget can be used.
	Ready bool `json:"ready,omitempty" print:"Ready"`
	// Replicas is how many of this widget there are.
	Replicas int32 `json:"replicas,omitempty"`
	// Selector finds the parts of this widget, in the text form of a label selector.
	Selector string `json:"selector,omitempty"`
}

// Widget is a thing with a size and a color.
type Widget = runtime.Resource[WidgetSpec, WidgetStatus]

//go:embed main.go
var source embed.FS // kubectl explain prints the comments above

func main() {
	listen := flag.String("listen", "127.0.0.1:6443", "`address` to serve on; port 0 picks a free one")
	data := flag.String("data", "hello.db", "`file` that keeps the objects, or memory; keys and certificates are in file.pki")
	endpoints := flag.String("etcd", "", "`endpoints` of an etcd cluster, comma separated: it keeps the objects, and not the file")
	kubeconfig := flag.String("kubeconfig", "hello.kubeconfig", "`file` to write for kubectl")
	flag.Parse()
	if flag.NArg() > 0 {
		fmt.Fprintf(os.Stderr, "hello: unexpected argument %q\n", flag.Arg(0))
		os.Exit(2)
	}
	ctx, cancel := context.WithCancel(context.Background())
	signals := make(chan os.Signal, 2)
	signal.Notify(signals, os.Interrupt, syscall.SIGTERM)
	go func() { <-signals; cancel(); <-signals; os.Exit(1) }() // a second signal ends the program at once
	if err := serve(ctx, *listen, *data, *endpoints, *kubeconfig); err != nil {
		fmt.Fprintln(os.Stderr, "hello:", err)
		os.Exit(1)
	}
}

func serve(ctx context.Context, listen, data, endpoints, kubeconfig string) error {
	opts := server.Options{
		Storage: bolt.At(data), Serving: server.Serving{
			Listen:      listen,
			Credentials: data + ".pki",
			Kubeconfig:  kubeconfig,
			Ready:       func(url, path string) { fmt.Printf("ready %s kubeconfig=%s\n", url, path) },
		}, Groups: []server.Group{{Name: "example.com", Versions: []server.Version{{
			Name: "v1", Docs: schema.SourceOf(source), Resources: []server.Resource{
				server.Kind("Widget", server.KindOptions[*Widget]{
					ShortNames: []string{"wd"}, Categories: []string{"all"},
					Scale: &registry.Scale{SpecReplicas: ".spec.replicas", StatusReplicas: ".status.replicas", LabelSelector: ".status.selector"},
				}),
			},
		}}}},
	}
	if data == "memory" {
		opts.Storage, opts.Serving.Credentials = memory.Open(), kubeconfig+".pki"
	}
	if endpoints != "" {
		opts.Storage = etcd.At(strings.Split(endpoints, ",")...)
	}
	log, err := logger()
	if err != nil {
		return err
	}
	opts.Observe.Logger = log
	srv, err := server.New(opts)
	if err != nil {
		return err
	}
	return srv.Run(ctx)
}

// logger writes a line to stderr for each start, stop and failed request.
func logger() (*zap.Logger, error) {
	config := zap.NewProductionConfig()
	config.Encoding, config.Sampling, config.DisableCaller, config.DisableStacktrace = "console", nil, true, true
	config.EncoderConfig.EncodeTime = zapcore.RFC3339TimeEncoder
	return config.Build()
}
