package e2e_test

import (
	"context"
	"encoding/json"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"

	"github.com/keelson-dev/keelson/examples/e2e/harness"
	keelson "github.com/keelson-dev/keelson/runtime"
	keelsonserver "github.com/keelson-dev/keelson/server"
	"github.com/keelson-dev/keelson/server/builtin"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/tools/clientcmd"
)

// Lamp is the program's own kind in testdata/helm/desk; testdata/helm/lamps.yaml defines it for a kube-apiserver.
type (
	LampSpec struct {
		Watts int32      `json:"watts" minimum:"1" print:"Watts"`
		Color string     `json:"color,omitempty" print:"Color,wide"`
		Bulbs []LampBulb `json:"bulbs,omitempty" listType:"map" listMapKey:"name"`
	}
	LampBulb struct {
		Name   string `json:"name"`
		Socket string `json:"socket,omitempty" default:"E27"`
	}
	LampStatus struct {
		ObservedGeneration int64              `json:"observedGeneration,omitempty"`
		Conditions         []metav1.Condition `json:"conditions,omitempty" listType:"map" listMapKey:"type"`
	}
	Lamp = keelson.Resource[LampSpec, LampStatus]

	OldLampSpec struct {
		Power string `json:"power"` // in watts
	}
	OldLamp = keelson.Resource[OldLampSpec, LampStatus]
)

var lamps = schema.GroupVersionResource{Group: "home.example.com", Version: "v1", Resource: "lamps"}

// home is the group of lamps.
func home() keelsonserver.Group {
	return keelsonserver.Group{
		Name: lamps.Group,
		Versions: []keelsonserver.Version{
			{Name: lamps.Version, Resources: []keelsonserver.Resource{keelsonserver.Kind("Lamp", keelsonserver.KindOptions[*Lamp]{
				ShortNames: []string{"lp"}, Categories: []string{"all"},
			})}},
			{Name: "v1beta1", Resources: []keelsonserver.Resource{keelsonserver.Kind("Lamp", keelsonserver.KindOptions[*OldLamp]{
				ShortNames: []string{"lp"}, Categories: []string{"all"},
			})}},
		},
		Conversions: []keelsonserver.Conversion{keelsonserver.Convert(newLamp, oldLamp)},
	}
}

func newLamp(in *OldLamp, out *Lamp) error {
	watts, err := strconv.ParseInt(in.Spec.Power, 10, 32)
	out.ObjectMeta, out.Spec.Watts, out.Status = in.ObjectMeta, int32(watts), in.Status
	return err
}

func oldLamp(in *Lamp, out *OldLamp) error {
	out.ObjectMeta, out.Spec.Power, out.Status = in.ObjectMeta, strconv.Itoa(int(in.Spec.Watts)), in.Status
	return nil
}

// desk is a server of lamps, with the programs that read it and install the chart testdata/helm/desk.
type desk struct {
	cluster
	t       *testing.T
	kube    *harness.Kubectl
	program *harness.Helm
	which   string // the Helm in use, for its differences
	chart   string // its path
	crd     bool   // lamps are a CustomResourceDefinition of a kube-apiserver
}

// withHelms runs a test with each Helm, each with its own server.
func withHelms(t *testing.T, test func(t *testing.T, d *desk)) {
	t.Parallel()
	for _, which := range []string{harness.Helm3, harness.Helm4} {
		t.Run(which, func(t *testing.T) {
			t.Parallel()
			d := newDesk(t)
			d.use(which)
			test(t, d)
		})
	}
}

// newDesk serves lamps until the test ends, by itself or by the kube-apiserver of the environment. It has no Helm.
func newDesk(t *testing.T) *desk {
	t.Helper()
	d := &desk{t: t, chart: filepath.Join(t.TempDir(), "desk")}
	// go test detects changes of files that this process reads. Because of this copy, a change of the chart runs the tests again.
	if err := os.CopyFS(d.chart, os.DirFS("testdata/helm/desk")); err != nil {
		t.Fatal(err)
	}
	if kubeconfig := os.Getenv(kubernetesVariable); kubeconfig != "" {
		d.cluster, d.crd = realKubernetes(t, kubeconfig), true
		crd, err := os.ReadFile("testdata/helm/lamps.yaml")
		if err != nil {
			t.Fatal(err)
		}
		kubectl := harness.NewKubectl(t, kubeconfig)
		kubectl.Run(string(crd), "apply", "--server-side", "-f", "-").OK()
		kubectl.Run(string(crd), "wait", "--for=condition=Established", "-f", "-", "--timeout=50s").OK()
	} else {
		d.cluster = runServer(t, keelsonserver.Options{Groups: []keelsonserver.Group{home()}}, builtin.New(builtin.Options{}))
	}
	d.kube = harness.NewKubectl(t, d.kubeconfig)
	return d
}

// use sets the Helm of the desk.
func (d *desk) use(which string) {
	d.t.Helper()
	d.which, d.program = which, harness.NewHelm(d.t, which, d.kubeconfig)
}

// helm runs Helm; "desk" is the chart.
func (d *desk) helm(args ...string) harness.Result {
	d.t.Helper()
	return d.program.Run("", d.arguments(args)...)
}

func (d *desk) arguments(args []string) []string {
	out := make([]string, len(args))
	for i, a := range args {
		if out[i] = a; a == "desk" {
			out[i] = d.chart
		}
	}
	return out
}

// kubectl runs kubectl.
func (d *desk) kubectl(args ...string) harness.Result {
	d.t.Helper()
	return d.kube.Run("", args...)
}

// four reports whether this is Helm 4.
func (d *desk) four() bool { return d.which == harness.Helm4 }

// lamp returns a field of a lamp's spec or status.
func (d *desk) lamp(name, path string) string {
	d.t.Helper()
	return d.kubectl("get", "lamp", name, "-o", "jsonpath={"+path+"}").OK().Stdout
}

// objects returns the names of the lamps, ConfigMaps and Secrets, without releases and the objects of kube-apiserver.
func (d *desk) objects() string {
	d.t.Helper()
	var names []string
	for name := range strings.FieldsSeq(d.kubectl("get", "lamps,configmaps,secrets", "-o", "name").OK().Stdout) {
		if !strings.HasPrefix(name, "secret/sh.helm.release.") && name != "configmap/kube-root-ca.crt" {
			names = append(names, name)
		}
	}
	return strings.Join(names, " ")
}

// revisions returns the status and description of each revision in helm history.
func (d *desk) revisions(release string) []string {
	d.t.Helper()
	var history []struct{ Status, Description string }
	if err := json.Unmarshal([]byte(d.helm("history", release, "-o", "json").OK().Stdout), &history); err != nil {
		d.t.Fatal(err)
	}
	var out []string
	for _, h := range history {
		out = append(out, h.Status+": "+h.Description)
	}
	return out
}

// lightLamps runs the controller of lamps until the test ends: a lamp is ready unless its color is "broken".
func (d *desk) lightLamps() {
	d.t.Helper()
	config, err := clientcmd.BuildConfigFromFlags("", d.kubeconfig)
	if err != nil {
		d.t.Fatal(err)
	}
	config.QPS = -1
	client, err := dynamic.NewForConfig(config)
	if err != nil {
		d.t.Fatal(err)
	}
	all := client.Resource(lamps).Namespace(d.namespace)
	ctx, cancel := context.WithCancel(context.Background())
	// Without a resourceVersion a watch begins with the lamps there are.
	events, err := all.Watch(ctx, metav1.ListOptions{})
	if err != nil {
		cancel()
		d.t.Fatal(err)
	}
	ended := make(chan struct{})
	d.t.Cleanup(func() { cancel(); events.Stop(); <-ended })
	go func() {
		defer close(ended)
		for e := range events.ResultChan() {
			if obj, ok := e.Object.(*unstructured.Unstructured); ok {
				if err := light(ctx, all, obj); err != nil && ctx.Err() == nil && !apierrors.IsConflict(err) && !apierrors.IsNotFound(err) {
					d.t.Errorf("lamp %s: %v", obj.GetName(), err)
				}
			}
		}
	}()
}

// light reports the state of a lamp, unless that has been done since its spec changed.
func light(ctx context.Context, all dynamic.ResourceInterface, obj *unstructured.Unstructured) error {
	if seen, _, _ := unstructured.NestedInt64(obj.Object, "status", "observedGeneration"); seen == obj.GetGeneration() {
		return nil
	}
	ready := map[string]any{"type": "Ready", "status": "True", "reason": "Lit", "message": "", "lastTransitionTime": "2026-01-01T00:00:00Z"}
	if color, _, _ := unstructured.NestedString(obj.Object, "spec", "color"); color == "broken" {
		ready["status"], ready["reason"] = "False", "Broken"
	}
	obj = obj.DeepCopy()
	obj.Object["status"] = map[string]any{"observedGeneration": obj.GetGeneration(), "conditions": []any{ready}}
	_, err := all.UpdateStatus(ctx, obj, metav1.UpdateOptions{FieldManager: "lamps"})
	return err
}
