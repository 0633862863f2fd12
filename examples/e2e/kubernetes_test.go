package e2e_test

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/keelson-dev/keelson/examples/e2e/harness"
	keelsonserver "github.com/keelson-dev/keelson/server"
	"github.com/keelson-dev/keelson/server/registry"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/tools/clientcmd"
)

// kubernetesVariable is the environment variable with the kubeconfig of a kube-apiserver. If it is set, the tests of the kinds of
// Kubernetes use that server, each in its own namespace, to verify their expectations.
const kubernetesVariable = "KEELSON_E2E_KUBERNETES"

// cluster is a server of the kinds of Kubernetes, and the namespace of one test in it.
type cluster struct{ kubeconfig, namespace string }

// runServer serves from this process until the test ends.
func runServer(t *testing.T, o keelsonserver.Options, extensions ...keelsonserver.Extension) cluster {
	t.Helper()
	ready, ended := make(chan string, 1), make(chan error, 1)
	o.Serving.Kubeconfig, o.Serving.Ready = filepath.Join(t.TempDir(), "kubeconfig"), func(_, kubeconfig string) { ready <- kubeconfig }
	srv, err := keelsonserver.New(o)
	if err != nil {
		t.Fatal(err)
	}
	for _, e := range extensions {
		if err := srv.Install(e); err != nil {
			t.Fatal(errors.Join(err, srv.Close()))
		}
	}
	ctx, cancel := context.WithCancel(context.Background())
	go func() { ended <- srv.Run(ctx) }()
	t.Cleanup(func() {
		cancel()
		select {
		case err := <-ended:
			if err != nil {
				t.Errorf("the server ended with %v", err)
			}
		case <-time.After(harness.ExitTimeout):
			t.Error("the server does not end")
		}
	})
	select {
	case kubeconfig := <-ready:
		return cluster{kubeconfig, namespace}
	case err := <-ended:
		ended <- nil
		t.Fatalf("the server ended with %v before it was ready", err)
	case <-time.After(harness.ExitTimeout):
		t.Fatal("the server does not get ready")
	}
	return cluster{}
}

// serveKubernetes serves some types of k8s.io/api from this process until the test ends. It makes the test parallel.
func serveKubernetes(t *testing.T) cluster {
	t.Helper()
	t.Parallel()
	if kubeconfig := os.Getenv(kubernetesVariable); kubeconfig != "" {
		return realKubernetes(t, kubeconfig)
	}
	return runServer(t, keelsonserver.Options{
		Groups: []keelsonserver.Group{
			{Versions: []keelsonserver.Version{{Name: "v1", Resources: []keelsonserver.Resource{
				keelsonserver.Kind("ConfigMap", keelsonserver.KindOptions[*corev1.ConfigMap]{
					ShortNames: []string{"cm"}, Strategy: registry.Strategy[*corev1.ConfigMap]{NoGeneration: true},
				}),
				keelsonserver.Kind("Service", keelsonserver.KindOptions[*corev1.Service]{
					ShortNames: []string{"svc"}, Strategy: registry.Strategy[*corev1.Service]{NoGeneration: true}, Default: defaultService,
				}),
			}}}},
			{Name: "apps", Versions: []keelsonserver.Version{{Name: "v1", Resources: []keelsonserver.Resource{
				keelsonserver.Kind("Deployment", keelsonserver.KindOptions[*appsv1.Deployment]{
					ShortNames: []string{"deploy"}, Default: defaultDeployment,
					Scale: &registry.Scale{SpecReplicas: ".spec.replicas", StatusReplicas: ".status.replicas"},
				}),
			}}}},
		},
	})
}

// realKubernetes creates a namespace, and a kubeconfig in which it is the default.
func realKubernetes(t *testing.T, kubeconfig string) cluster {
	t.Helper()
	config, err := clientcmd.LoadFromFile(kubeconfig)
	if err != nil {
		t.Fatalf("%s: %v", kubernetesVariable, err)
	}
	namespaces := cluster{kubeconfig: kubeconfig}.clientset(t).CoreV1().Namespaces()
	made, err := namespaces.Create(t.Context(), &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{GenerateName: "e2e-"}}, metav1.CreateOptions{})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := namespaces.Delete(context.WithoutCancel(t.Context()), made.Name, metav1.DeleteOptions{}); err != nil {
			t.Error(err)
		}
	})
	for _, c := range config.Contexts {
		c.Namespace = made.Name
	}
	own := filepath.Join(t.TempDir(), "kubeconfig")
	if err := clientcmd.WriteToFile(*config, own); err != nil {
		t.Fatal(err)
	}
	return cluster{own, made.Name}
}

// defaultService and defaultDeployment set the defaults of Kubernetes for keys of lists.
func defaultService(s *corev1.Service) {
	for i := range s.Spec.Ports {
		if s.Spec.Ports[i].Protocol == "" {
			s.Spec.Ports[i].Protocol = corev1.ProtocolTCP
		}
	}
}

func defaultDeployment(d *appsv1.Deployment) {
	if d.Spec.Replicas == nil {
		d.Spec.Replicas = new(int32(1))
	}
	for i := range d.Spec.Template.Spec.Containers {
		for j := range d.Spec.Template.Spec.Containers[i].Ports {
			if port := &d.Spec.Template.Spec.Containers[i].Ports[j]; port.Protocol == "" {
				port.Protocol = corev1.ProtocolTCP
			}
		}
	}
}

// clientset returns client-go's typed client for JSON. By default it would send protobuf for types of k8s.io/api.
func (c cluster) clientset(t *testing.T) kubernetes.Interface {
	t.Helper()
	config, err := clientcmd.BuildConfigFromFlags("", c.kubeconfig)
	if err != nil {
		t.Fatal(err)
	}
	config.QPS, config.ContentType = -1, runtime.ContentTypeJSON
	client, err := kubernetes.NewForConfig(config)
	if err != nil {
		t.Fatal(err)
	}
	return client
}

// kubectlOn returns a function that runs kubectl on a server of serveKubernetes.
func kubectlOn(t *testing.T) func(stdin string, args ...string) harness.Result {
	t.Helper()
	return harness.NewKubectl(t, serveKubernetes(t).kubeconfig).Run
}
