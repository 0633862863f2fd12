// Command wardrobe serves shelves of garments as a Kubernetes API, with the features of a real API: three versions, defaults,
// rules, a status, scale, printer columns, a subresource that is not an object, a resource that is computed and not stored, and
// the namespaces, events, leases and garbage collection that controllers need. Start it at the root of
// the repository:
//
//	go run ./examples/wardrobe
//
// When it has printed a line that begins with ready, create shelves in another terminal, at the root too:
//
//	export KUBECONFIG=$PWD/wardrobe.kubeconfig
//	kubectl apply -f examples/wardrobe/shelves.yaml
//	kubectl get shelves,outfits
//	kubectl get --raw /apis/wardrobe.example.com/v1/namespaces/default/shelves/top/look
package main

import (
	"context"
	"embed"
	"errors"
	"flag"
	"fmt"
	"os"
	"os/signal"
	"syscall"

	"github.com/keelson-dev/keelson/authn"
	apischema "github.com/keelson-dev/keelson/runtime/schema"
	"github.com/keelson-dev/keelson/server"
	"github.com/keelson-dev/keelson/server/builtin"
	"github.com/keelson-dev/keelson/server/registry"
	"github.com/keelson-dev/keelson/storage/bolt"
	"github.com/keelson-dev/keelson/storage/memory"
	"go.uber.org/zap"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

const group = "wardrobe.example.com"

//go:embed *.go
var source embed.FS // kubectl explain prints the comments in these files

func main() {
	listen := flag.String("listen", "127.0.0.1:6443", "`address` to serve on; port 0 picks a free one")
	data := flag.String("data", "wardrobe.db", "`file` that keeps the objects, or memory; keys and certificates are in file.pki")
	kubeconfig := flag.String("kubeconfig", "wardrobe.kubeconfig", "`file` to write for kubectl")
	flag.Parse()
	if flag.NArg() > 0 {
		fmt.Fprintf(os.Stderr, "wardrobe: unexpected argument %q\n", flag.Arg(0))
		os.Exit(2)
	}
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	err := serve(ctx, *listen, *data, *kubeconfig)
	stop()
	if err != nil {
		fmt.Fprintln(os.Stderr, "wardrobe:", err)
		os.Exit(1)
	}
}

func serve(ctx context.Context, listen, data, kubeconfig string) error {
	config := zap.NewProductionConfig() // logs starts, stops and answers of 500 and more to stderr
	config.Sampling = nil               // log all of them
	logger, err := config.Build()
	if err != nil {
		return err
	}
	opts := server.Options{
		Storage: bolt.At(data), Serving: server.Serving{
			Listen:      listen,
			Credentials: data + ".pki",
			Kubeconfig:  kubeconfig,
			Ready:       func(url, path string) { fmt.Printf("ready %s kubeconfig=%s\n", url, path) },
		}, Observe: server.Observe{Logger: logger},
	}
	if data == "memory" {
		opts.Storage, opts.Serving.Credentials = memory.Open(), kubeconfig+".pki"
	}
	srv, err := server.New(opts)
	if err != nil {
		return err
	}
	err = errors.Join(
		srv.Install(builtin.New(builtin.Options{Logger: logger})), // namespaces, events, leases, ...: controllers need them
		srv.Install(server.ExtensionFunc(wardrobe)),
	)
	if err != nil {
		return errors.Join(err, srv.Close())
	}
	return srv.Run(ctx)
}

// wardrobe adds the group of this program to a server.
func wardrobe(h *server.Host) error {
	if err := h.Serve(shelfGroup()); err != nil {
		return err
	}
	stored, err := h.Registry(schema.GroupResource{Group: group, Resource: "shelves"})
	if err != nil {
		return err
	}
	shelves, err := registry.For[*Shelf](stored, authn.System())
	if err != nil {
		return err
	}
	return h.Serve(server.Group{Name: group, Versions: []server.Version{{Name: "v1", Docs: apischema.SourceOf(source), Resources: []server.Resource{
		server.Kind("Outfit", server.KindOptions[*Outfit]{Computed: outfits(shelves), Categories: []string{"all"}}),
	}}}})
}

// shelfGroup returns the group with the stored kind in its three versions.
func shelfGroup() server.Group {
	return server.Group{
		Name: group,
		Versions: []server.Version{
			{Name: "v1", Docs: apischema.SourceOf(source), Resources: []server.Resource{ // the first version is the hub, which is stored
				server.Kind("Shelf", server.KindOptions[*Shelf]{
					Plural: "shelves", ShortNames: []string{"sh"}, Categories: []string{"all"},
					Strategy: rules(), SelectableFields: []string{"spec.season"}, Subresources: map[string]server.Subresource{"look": {Storage: &look{}}},
					Scale: &registry.Scale{SpecReplicas: ".spec.slots", StatusReplicas: ".status.used", LabelSelector: ".status.selector"},
				}),
			}},
			{Name: "v1beta1", Docs: apischema.SourceOf(source), Resources: []server.Resource{
				server.Kind("Shelf", server.KindOptions[*ShelfV1beta1]{Plural: "shelves", ShortNames: []string{"sh"}, SelectableFields: []string{"spec.season"}}),
			}},
			{Name: "v1alpha1", Docs: apischema.SourceOf(source), Resources: []server.Resource{
				server.Kind("Shelf", server.KindOptions[*ShelfV1alpha1]{
					Plural: "shelves", Deprecated: "wardrobe.example.com/v1alpha1 Shelf is deprecated; use wardrobe.example.com/v1 Shelf",
				}),
			}},
		},
		Conversions: []server.Conversion{server.Convert(fromV1beta1, toV1beta1), server.Convert(fromV1alpha1, toV1alpha1)},
	}
}
