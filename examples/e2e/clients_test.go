package e2e_test

import (
	"context"
	"testing"

	"github.com/keelson-dev/keelson/examples/e2e/harness"
	keelson "github.com/keelson-dev/keelson/runtime"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/runtime/serializer"
	"k8s.io/client-go/rest"
	"k8s.io/klog/v2"
)

// Widget is hello's kind as clients define it: the same fields in the same generic type.
type (
	WidgetSpec struct {
		Size     int32  `json:"size,omitempty"`
		Color    string `json:"color,omitempty"`
		Data     string `json:"data,omitempty"`
		Replicas int32  `json:"replicas,omitempty"`
	}
	WidgetStatus struct {
		Ready    bool   `json:"ready,omitempty"`
		Replicas int32  `json:"replicas,omitempty"`
		Selector string `json:"selector,omitempty"`
	}
	Widget     = keelson.Resource[WidgetSpec, WidgetStatus]
	WidgetList = keelson.List[Widget]
)

const namespace = "default"

var (
	groupVersion = schema.GroupVersion{Group: "example.com", Version: "v1"}
	widgets      = groupVersion.WithResource("widgets")
)

// clientScheme returns an apimachinery Scheme with Widget, filled by the library.
func clientScheme(t *testing.T) *runtime.Scheme {
	t.Helper()
	known := keelson.NewScheme()
	if err := keelson.Register(known, groupVersion.WithKind("Widget"), keelson.KindOptions[*Widget]{}); err != nil {
		t.Fatal(err)
	}
	s := runtime.NewScheme()
	if err := known.AddTo(s); err != nil {
		t.Fatal(err)
	}
	return s
}

// typed is a REST client for example.com/v1, as generated clients make it.
func typed(t *testing.T, c *rest.Config) rest.Interface {
	t.Helper()
	c = rest.CopyConfig(c)
	c.GroupVersion, c.APIPath = &groupVersion, "/apis"
	c.NegotiatedSerializer = serializer.NewCodecFactory(clientScheme(t)).WithoutConversion()
	client, err := rest.RESTClientFor(c)
	if err != nil {
		t.Fatal(err)
	}
	return client
}

// parameters encodes options for the typed client.
func parameters(t *testing.T) runtime.ParameterCodec {
	return runtime.NewParameterCodec(clientScheme(t))
}

// newWidget is a widget to be created.
func newWidget(name string, size int32) *Widget {
	return &Widget{ObjectMeta: metav1.ObjectMeta{Name: name}, Spec: WidgetSpec{Size: size}}
}

// post creates a widget.
func post(t *testing.T, client rest.Interface, w *Widget) *Widget {
	t.Helper()
	out := new(Widget)
	if err := client.Post().Namespace(namespace).Resource("widgets").Body(w).Do(t.Context()).Into(out); err != nil {
		t.Fatal(err)
	}
	return out
}

// put updates a widget.
func put(t *testing.T, client rest.Interface, w *Widget) (*Widget, error) {
	t.Helper()
	out := new(Widget)
	return out, client.Put().Namespace(namespace).Resource("widgets").Name(w.Name).Body(w).Do(t.Context()).Into(out)
}

// withCheckedLog returns a context with a logger. The test fails at its end if there was an error.
func withCheckedLog(t *testing.T) context.Context {
	t.Helper()
	log := harness.NewLog()
	t.Cleanup(func() {
		for _, line := range log.Errors() {
			t.Errorf("an error was logged: %s", line)
		}
	})
	return withLog(t, log)
}

// withLog returns a context that client libraries log to.
func withLog(t *testing.T, log *harness.Log) context.Context {
	return klog.NewContext(t.Context(), log.Logger())
}
