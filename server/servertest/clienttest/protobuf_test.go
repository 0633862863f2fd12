package clienttest_test

import (
	"context"
	"testing"

	"github.com/keelson-dev/keelson/server/servertest/clienttest"
	"github.com/keelson-dev/keelson/server/servertest/clienttest/internal/website"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/informers"
	"k8s.io/client-go/metadata"
	"k8s.io/client-go/metadata/metadatainformer"
	"k8s.io/client-go/tools/cache"
)

// Informers use protobuf by default: those for Go types of k8s.io/api, and those for metadata, also if the kind itself does not
// support protobuf.
func TestInformersInProtobuf(t *testing.T) {
	srv := newServer(t)
	w, c := &wire{sent: map[string][]string{}, got: map[string][]string{}}, clienttest.Config(srv)
	c.Wrap(w.wrap)
	set := newClientset(t, c)
	metadataOnly, err := metadata.NewForConfig(c)
	if err != nil {
		t.Fatal(err)
	}
	writer, err := dynamic.NewForConfig(clienttest.Config(srv))
	if err != nil {
		t.Fatal(err)
	}
	ctx, stop := context.WithCancel(t.Context())
	typed, partial := informers.NewSharedInformerFactory(set, 0), metadatainformer.NewSharedInformerFactory(metadataOnly, 0)
	defer typed.Shutdown()
	defer partial.Shutdown()
	defer stop()
	maps, sites := corev1.SchemeGroupVersion.WithResource("configmaps"), website.GroupVersion().WithResource("websites")
	objects := map[schema.GroupVersionResource]map[string]any{
		maps:  {"apiVersion": "v1", "kind": "ConfigMap", "data": map[string]any{"k": "é"}, "binaryData": map[string]any{"b": "/w=="}},
		sites: {"apiVersion": website.GroupVersion().String(), "kind": "Website", "spec": map[string]any{"image": "i"}},
	}
	create := func(name string) {
		t.Helper()
		for of, object := range objects {
			u := (&unstructured.Unstructured{Object: object}).DeepCopy()
			u.SetName(name)
			if _, err := writer.Resource(of).Namespace("default").Create(t.Context(), u, metav1.CreateOptions{}); err != nil {
				t.Fatal(err)
			}
		}
	}
	create("a")
	seen := map[string]chan string{}
	for what, informer := range map[string]cache.SharedIndexInformer{
		"typed maps":           typed.Core().V1().ConfigMaps().Informer(),
		"metadata of maps":     partial.ForResource(maps).Informer(),
		"metadata of websites": partial.ForResource(sites).Informer(),
	} {
		events := make(chan string, 10)
		seen[what] = events
		tell := func(event string, obj any) {
			text := event + " " + obj.(metav1.Object).GetName() + " " + obj.(metav1.Object).GetLabels()["x"]
			if m, is := obj.(*corev1.ConfigMap); is && (m.Data["k"] != "é" || m.BinaryData["b"][0] != 0xff) {
				text += " as something else"
			}
			events <- text
		}
		if _, err := informer.AddEventHandler(cache.ResourceEventHandlerFuncs{
			AddFunc: func(obj any) { tell("added", obj) }, UpdateFunc: func(_, obj any) { tell("changed", obj) }, DeleteFunc: func(obj any) { tell("deleted", obj) },
		}); err != nil {
			t.Fatal(err)
		}
	}
	typed.StartWithContext(ctx)
	partial.Start(ctx.Done())
	expect := func(want string) {
		t.Helper()
		for what, events := range seen {
			if got := <-events; got != want {
				t.Errorf("%s: %q, want %q", what, got, want)
			}
		}
	}
	expect("added a ")
	create("b")
	expect("added b ")
	for of := range objects {
		objects := writer.Resource(of).Namespace("default")
		if _, err := objects.Patch(t.Context(), "a", types.MergePatchType, []byte(`{"metadata":{"labels":{"x":"y"}}}`), metav1.PatchOptions{}); err != nil {
			t.Fatal(err)
		}
		if err := objects.Delete(t.Context(), "a", metav1.DeleteOptions{}); err != nil {
			t.Fatal(err)
		}
	}
	expect("changed a y")
	expect("deleted a y")
	w.expect(t, map[string][]string{}, map[string][]string{"WATCH": {"application/vnd.kubernetes.protobuf;stream=watch"}})
}
