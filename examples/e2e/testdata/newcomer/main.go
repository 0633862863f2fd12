// Command newcomer is the first program that somebody new to the library writes.
package main

import (
	"context"
	"log"
	"os/signal"
	"syscall"

	"github.com/keelson-dev/keelson/runtime"
	"github.com/keelson-dev/keelson/server"
	"github.com/keelson-dev/keelson/server/registry"
	"github.com/keelson-dev/keelson/storage/bolt"
	"k8s.io/apimachinery/pkg/util/validation/field"
)

type WidgetSpec struct {
	Size  int32  `json:"size"`
	Color string `json:"color,omitempty"`
}

type WidgetStatus struct {
	Ready bool `json:"ready,omitempty"`
}

type Widget = runtime.Resource[WidgetSpec, WidgetStatus]

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), syscall.SIGTERM, syscall.SIGINT)
	defer stop()
	srv, err := server.New(server.Options{
		Storage: bolt.At("hello.db"),
		Groups: []server.Group{{
			Name: "example.com",
			Versions: []server.Version{{Name: "v1", Resources: []server.Resource{
				server.Kind[*Widget]("Widget", server.KindOptions[*Widget]{Strategy: widgets}),
			}}},
		}},
	})
	if err != nil {
		log.Fatal(err)
	}
	if err := srv.Run(ctx); err != nil {
		log.Fatal(err)
	}
}

var widgets = registry.Strategy[*Widget]{
	Validate: func(_ *registry.Call, w *Widget) field.ErrorList {
		if w.Spec.Size < 1 {
			return field.ErrorList{field.Invalid(field.NewPath("spec", "size"), w.Spec.Size, "must be greater than 0")}
		}
		return nil
	},
}
