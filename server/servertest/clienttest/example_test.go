package clienttest_test

import (
	"context"
	"fmt"
	"log"
	"testing/fstest"

	"github.com/keelson-dev/keelson/server"
	"github.com/keelson-dev/keelson/server/builtin"
	"github.com/keelson-dev/keelson/server/servertest"
	"github.com/keelson-dev/keelson/server/servertest/clienttest"
	"github.com/keelson-dev/keelson/server/servertest/clienttest/internal/website"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/kubernetes"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// A suite starts an Environment before its tests and stops it after them: in TestMain, or in BeforeSuite and AfterSuite.
func ExampleEnvironment() {
	scheme := runtime.NewScheme()
	if err := website.AddToScheme(scheme); err != nil {
		log.Fatal(err)
	}
	testEnv := &clienttest.Environment{
		Scheme: scheme,
		Types:  servertest.Types{ClusterScoped: []string{"Domain"}},
	}
	cfg, err := testEnv.Start()
	if err != nil {
		log.Fatal(err)
	}

	// manager.New takes cfg too.
	k8sClient, err := client.New(cfg, client.Options{Scheme: scheme})
	if err != nil {
		log.Fatal(err)
	}
	blog := &website.Website{ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: "blog"}, Spec: website.WebsiteSpec{Image: "web:1"}}
	if err := k8sClient.Create(context.Background(), blog); err != nil {
		log.Fatal(err)
	}
	fmt.Printf("%s has generation %d\n", blog.Name, blog.Generation)

	if err := testEnv.Stop(); err != nil {
		log.Fatal(err)
	}
	// Output: blog has generation 1
}

// The definitions are those that the project installs in clusters, with a conversion webhook. The types of the scheme have Hub,
// ConvertTo and ConvertFrom, which convert instead of the webhook.
func ExampleEnvironment_customResourceDefinitions() {
	scheme := runtime.NewScheme()
	if err := addKites(scheme); err != nil {
		log.Fatal(err)
	}
	definitions := fstest.MapFS{"config/crd/kites.yaml": {Data: []byte(kitesCRD(webhookStrategy))}} // an embed.FS, or CRDDirectoryPaths
	testEnv := &clienttest.Environment{Scheme: scheme, CRDFS: definitions}
	cfg, err := testEnv.Start()
	if err != nil {
		log.Fatal(err)
	}

	k8sClient, err := client.New(cfg, client.Options{Scheme: scheme})
	if err != nil {
		log.Fatal(err)
	}
	beta := &KiteBeta{ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: "red"}}
	beta.Spec.Width = 20
	if err := k8sClient.Create(context.Background(), beta); err != nil {
		log.Fatal(err)
	}
	kite := &Kite{}
	if err := k8sClient.Get(context.Background(), client.ObjectKeyFromObject(beta), kite); err != nil {
		log.Fatal(err)
	}
	fmt.Printf("wingspan %d, and by default a tail of %d\n", kite.Spec.Wingspan, *kite.Spec.Tail)

	if err := testEnv.Stop(); err != nil {
		log.Fatal(err)
	}
	// Output: wingspan 20, and by default a tail of 3
}

// In a test use servertest.New(t, ...), which ends the server with the test.
func ExampleConfig() {
	srv, err := servertest.Run(server.Options{}, builtin.New(builtin.Options{}))
	if err != nil {
		log.Fatal(err)
	}
	clientset, err := kubernetes.NewForConfig(clienttest.Config(srv))
	if err != nil {
		log.Fatal(err)
	}
	namespaces, err := clientset.CoreV1().Namespaces().List(context.Background(), metav1.ListOptions{})
	if err != nil {
		log.Fatal(err)
	}
	for _, ns := range namespaces.Items {
		fmt.Println(ns.Name)
	}
	if err := srv.Close(); err != nil {
		log.Fatal(err)
	}
	// Output:
	// default
	// kube-node-lease
	// kube-public
	// kube-system
}
