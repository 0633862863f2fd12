// Command informers runs informers of client-go against the server of the kubeconfig that KUBECONFIG names, and prints what they
// tell, and which requests they send, as lines of JSON. It runs until it is ended. Tests start it because they cannot link several
// releases of client-go.
//
// It has typed informers of ConfigMaps and Namespaces, a dynamic informer of custom resources, and an informer of their metadata.
package main

import (
	"context"
	"encoding/json"
	"flag"
	"fmt"
	"net/http"
	"os"
	"sync"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/dynamic/dynamicinformer"
	"k8s.io/client-go/informers"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/metadata"
	"k8s.io/client-go/metadata/metadatainformer"
	"k8s.io/client-go/tools/cache"
	"k8s.io/client-go/tools/clientcmd"
)

func main() {
	custom := flag.String("custom", "", "the custom `resource` of the dynamic informer and the one of metadata, such as boats.v1.sea.example.com")
	flag.Parse()
	resource, _ := schema.ParseResourceArg(*custom)
	if resource == nil || flag.NArg() > 0 {
		flag.Usage()
		os.Exit(2)
	}
	if err := run(context.Background(), *resource); err != nil {
		fmt.Fprintln(os.Stderr, "informers:", err)
		os.Exit(1)
	}
}

// run runs the informers until the context ends.
func run(ctx context.Context, custom schema.GroupVersionResource) error {
	config, err := clientcmd.NewNonInteractiveDeferredLoadingClientConfig(clientcmd.NewDefaultClientConfigLoadingRules(), nil).ClientConfig()
	if err != nil {
		return err
	}
	p := &printer{out: json.NewEncoder(os.Stdout)}
	config.Wrap(func(next http.RoundTripper) http.RoundTripper { return requests{p, next} })
	client, err := kubernetes.NewForConfig(config)
	if err != nil {
		return err
	}
	objects, err := dynamic.NewForConfig(config)
	if err != nil {
		return err
	}
	heads, err := metadata.NewForConfig(config)
	if err != nil {
		return err
	}
	core := informers.NewSharedInformerFactory(client, 0).Core().V1()
	var running sync.WaitGroup
	for name, informer := range map[string]cache.SharedIndexInformer{
		"configmaps": core.ConfigMaps().Informer(),
		"namespaces": core.Namespaces().Informer(),
		"dynamic":    dynamicinformer.NewDynamicSharedInformerFactory(objects, 0).ForResource(custom).Informer(),
		"metadata":   metadatainformer.NewSharedInformerFactory(heads, 0).ForResource(custom).Informer(),
	} {
		handled, err := informer.AddEventHandler(p.handler(name))
		if err != nil {
			return err
		}
		running.Go(func() { informer.RunWithContext(ctx) })
		running.Go(func() {
			if cache.WaitForCacheSync(ctx.Done(), handled.HasSynced) {
				p.print(line{Informer: name, Event: "synced"})
			}
		})
	}
	running.Wait()
	return nil
}

// line is one line of the output: a call of an informer's handler, a first synchronization, or a request with its answer.
type line struct {
	Informer string `json:"informer,omitempty"` // configmaps, namespaces, dynamic, or metadata
	Event    string `json:"event,omitempty"`    // synced, add, update, delete, or gone, which is a deletion that only a list has shown
	Object   string `json:"object,omitempty"`   // [NAMESPACE/]NAME
	Value    string `json:"value,omitempty"`    // a part of the object, or its last known one; see value

	Request string `json:"request,omitempty"` // list, watch, or watchlist, which is a watch that begins with the existing objects
	Path    string `json:"path,omitempty"`
	Status  int    `json:"status,omitempty"` // of the answer; 0 means that there was none
}

// printer prints lines. Its methods may be called concurrently.
type printer struct {
	mu  sync.Mutex
	out *json.Encoder // guarded by mu
}

func (p *printer) print(l line) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if err := p.out.Encode(l); err != nil {
		fmt.Fprintln(os.Stderr, "informers:", err)
		os.Exit(1)
	}
}

// handler prints the calls of an informer.
func (p *printer) handler(name string) cache.ResourceEventHandler {
	tell := func(event string, obj any) {
		if unknown, ok := obj.(cache.DeletedFinalStateUnknown); ok {
			event, obj = "gone", unknown.Obj
		}
		p.print(line{Informer: name, Event: event, Object: cache.MetaObjectToName(obj.(metav1.Object)).String(), Value: value(obj)})
	}
	return cache.ResourceEventHandlerFuncs{
		AddFunc:    func(obj any) { tell("add", obj) },
		UpdateFunc: func(_, obj any) { tell("update", obj) },
		DeleteFunc: func(obj any) { tell("delete", obj) },
	}
}

// value is what is shown of an object: a ConfigMap's data.value, a namespace's phase, the color of a custom resource's spec, and of
// metadata the label value.
func value(obj any) string {
	switch obj := obj.(type) {
	case *corev1.ConfigMap:
		return obj.Data["value"]
	case *corev1.Namespace:
		return string(obj.Status.Phase)
	case *unstructured.Unstructured:
		color, _, err := unstructured.NestedString(obj.Object, "spec", "color")
		if err != nil {
			return err.Error()
		}
		return color
	case *metav1.PartialObjectMetadata:
		return obj.Labels["value"]
	}
	return fmt.Sprintf("%T", obj)
}

// requests prints the requests that pass through it.
type requests struct {
	printer *printer
	next    http.RoundTripper
}

// RoundTrip implements http.RoundTripper.
func (r requests) RoundTrip(req *http.Request) (*http.Response, error) {
	l := line{Request: "list", Path: req.URL.Path}
	switch query := req.URL.Query(); {
	case query.Get("sendInitialEvents") == "true":
		l.Request = "watchlist"
	case query.Get("watch") != "":
		l.Request = "watch"
	}
	resp, err := r.next.RoundTrip(req)
	if err == nil {
		l.Status = resp.StatusCode
	}
	r.printer.print(l)
	return resp, err
}
