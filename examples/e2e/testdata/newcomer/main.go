// Command widgets serves widgets.
package main

import (
	"fmt"
	"log"

	"github.com/keelson-dev/keelson/runtime"
	"github.com/keelson-dev/keelson/server"
	"github.com/keelson-dev/keelson/storage/bolt"
)

type WidgetSpec struct {
	Size  *int32 `json:"size,omitempty" required:"true" minimum:"1" maximum:"10" print:"Size"`
	Color string `json:"color,omitempty" enum:"red,green" default:"red"`
}

type WidgetStatus struct {
	Ready bool `json:"ready,omitempty"`
}

type Widget = runtime.Resource[WidgetSpec, WidgetStatus]

func main() {
	if err := server.ListenAndServe(server.Options{
		Storage: bolt.At("widgets.db"),
		Serving: server.Serving{
			Listen: "127.0.0.1:6443", Credentials: "widgets.pki", Kubeconfig: "widgets.kubeconfig",
			Ready: func(_, kubeconfig string) { fmt.Println("ready: kubectl --kubeconfig", kubeconfig, "get widgets") },
		},
		Groups: []server.Group{{Name: "example.com", Versions: []server.Version{{Name: "v1", Resources: []server.Resource{
			server.Kind("Widget", server.KindOptions[*Widget]{}),
		}}}}},
	}); err != nil {
		log.Fatal(err)
	}
}
