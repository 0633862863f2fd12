package clienttest_test

import (
	"context"
	"fmt"
	"log"

	"github.com/keelson-dev/keelson/authn"
	keelson "github.com/keelson-dev/keelson/runtime"
	"github.com/keelson-dev/keelson/server"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/runtime/serializer"
	"k8s.io/client-go/gentype"
	"k8s.io/client-go/listers"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

type GadgetSpec struct {
	Size int32 `json:"size"`
}

type GadgetStatus struct {
	Ready bool `json:"ready,omitempty"`
}

type (
	Gadget     = keelson.Resource[GadgetSpec, GadgetStatus]
	GadgetList = keelson.List[Gadget]
)

var gadgets = schema.GroupVersion{Group: "example.com", Version: "v1"}

// A program uses clients of client-go and controller-runtime for its own kinds, in the process of the server. In another process,
// clientcmd.BuildConfigFromFlags makes the configuration from the kubeconfig of the server; the rest is the same.
func Example_ownKinds() {
	srv, err := server.New(server.Options{Groups: []server.Group{{Name: gadgets.Group, Versions: []server.Version{{
		Name: gadgets.Version, Resources: []server.Resource{server.Kind("Gadget", server.KindOptions[*Gadget]{})},
	}}}}})
	if err != nil {
		log.Fatal(err)
	}
	defer func() { _ = srv.Close() }()
	config := &rest.Config{Host: "http://loopback", QPS: -1, Transport: srv.Loopback(authn.System())}
	scheme := runtime.NewScheme()
	if err := srv.Scheme().AddTo(scheme); err != nil {
		log.Fatal(err)
	}
	ctx, stop := context.WithCancel(context.Background())
	defer stop()

	// A client of controller-runtime; manager.New takes config and scheme, too.
	c, err := client.New(config, client.Options{Scheme: scheme})
	if err != nil {
		log.Fatal(err)
	}
	first := &Gadget{ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: "first"}, Spec: GadgetSpec{Size: 3}}
	if err := c.Create(ctx, first); err != nil {
		log.Fatal(err)
	}

	// A typed client of client-go.
	config.GroupVersion, config.APIPath, config.NegotiatedSerializer = &gadgets, "/apis", serializer.NewCodecFactory(scheme).WithoutConversion()
	rc, err := rest.RESTClientFor(config)
	if err != nil {
		log.Fatal(err)
	}
	all := gentype.NewClientWithList[*Gadget, *GadgetList]("gadgets", rc, runtime.NewParameterCodec(scheme), metav1.NamespaceAll,
		func() *Gadget { return &Gadget{} }, func() *GadgetList { return &GadgetList{} })
	list, err := all.List(ctx, metav1.ListOptions{})
	if err != nil {
		log.Fatal(err)
	}
	fmt.Println("listed:", list.Items[0].Name)

	// An informer with a lister.
	informer := cache.NewSharedIndexInformer(cache.NewListWatchFromClient(rc, "gadgets", metav1.NamespaceAll, fields.Everything()), &Gadget{}, 0,
		cache.Indexers{cache.NamespaceIndex: cache.MetaNamespaceIndexFunc})
	lister := listers.New[*Gadget](informer.GetIndexer(), gadgets.WithResource("gadgets").GroupResource())
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		informer.RunWithContext(ctx)
	}()
	cache.WaitForCacheSync(ctx.Done(), informer.HasSynced)
	cached, err := listers.NewNamespaced(lister, "default").List(labels.Everything())
	if err != nil {
		log.Fatal(err)
	}
	fmt.Println("cached:", cached[0].Name, cached[0].Spec.Size)
	stop()
	<-ended
	// Output:
	// listed: first
	// cached: first 3
}
