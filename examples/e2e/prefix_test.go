package e2e_test

import (
	"context"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"encoding/pem"
	"errors"
	"fmt"
	"io"
	"math/big"
	"net"
	"net/http"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/keelson-dev/keelson/examples/e2e/harness"
	keelsonserver "github.com/keelson-dev/keelson/server"
	"github.com/keelson-dev/keelson/server/registry"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/discovery"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/dynamic/dynamicinformer"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"
)

// mounted is a program with routes of its own, which serves Keelson below /keelson/ on a port of the loopback interface.
type mounted struct {
	*keelsonserver.Server
	url, kubeconfig string // url ends in /keelson
	http            *http.Server
	served          chan error

	mu    sync.Mutex
	stray []string // guarded by mu: requests for paths that are not below /keelson/
}

func mount(t *testing.T) *mounted {
	t.Helper()
	srv, err := keelsonserver.New(keelsonserver.Options{Groups: []keelsonserver.Group{{Name: "example.com", Versions: []keelsonserver.Version{{
		Name: "v1", Resources: []keelsonserver.Resource{keelsonserver.Kind("Widget", keelsonserver.KindOptions[*Widget]{
			Scale: &registry.Scale{SpecReplicas: ".spec.replicas", StatusReplicas: ".status.replicas", LabelSelector: ".status.selector"},
		})},
	}}}}})
	if err != nil {
		t.Fatal(err)
	}
	p := &mounted{Server: srv, served: make(chan error, 1)}
	mux := http.NewServeMux()
	mux.HandleFunc("/", func(w http.ResponseWriter, r *http.Request) {
		p.mu.Lock()
		p.stray = append(p.stray, r.RequestURI)
		p.mu.Unlock()
		http.NotFound(w, r)
	})
	mux.HandleFunc("GET /mine", func(w http.ResponseWriter, _ *http.Request) { fmt.Fprint(w, "mine") })
	mux.Handle("/keelson/", http.StripPrefix("/keelson", srv.Handler()))
	ln, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	p.url = "https://" + ln.Addr().String() + "/keelson"
	p.http = &http.Server{Handler: mux, TLSConfig: srv.Credentials().TLSConfig(), ReadHeaderTimeout: 32 * time.Second}
	go func() { p.served <- p.http.ServeTLS(ln, "", "") }()
	t.Cleanup(func() {
		ctx, cancel := context.WithTimeout(context.Background(), harness.Timeout)
		defer cancel()
		if err := errors.Join(srv.Shutdown(ctx), p.http.Shutdown(ctx)); err != nil {
			t.Error(err)
		}
		<-p.served
		p.mu.Lock()
		defer p.mu.Unlock()
		if len(p.stray) > 0 {
			t.Errorf("clients left the prefix: %q", p.stray)
		}
	})
	if p.kubeconfig, err = srv.Credentials().WriteKubeconfig(filepath.Join(t.TempDir(), "kubeconfig"), p.url); err != nil {
		t.Fatal(err)
	}
	return p
}

func (p *mounted) config(t *testing.T) *rest.Config {
	t.Helper()
	c, err := clientcmd.BuildConfigFromFlags("", p.kubeconfig)
	if err != nil {
		t.Fatal(err)
	}
	c.QPS = -1
	return c
}

// kubectl works with a server URL that has a path, and sends no request to another path.
func TestKubectlUnderAPrefix(t *testing.T) {
	t.Parallel()
	p := mount(t)
	kube := harness.NewKubectl(t, p.kubeconfig)
	kubectl := func(args ...string) harness.Result { t.Helper(); return kube.Run("", args...) }
	with := func(stdin string, args ...string) harness.Result { t.Helper(); return kube.Run(stdin, args...) }

	kubectl("api-resources", "-o", "name").Want("widgets.example.com\n", "")
	kubectl("api-versions").Want("example.com/v1\n", "")
	kubectl("version").Contains("Server Version: v1.37.0+keelson\n")
	kubectl("get", "--raw", "/").Contains(`"/apis/example.com/v1"`, `"/openapi/v3"`)
	kubectl("get", "--raw", "/readyz").Want("ok", "")

	watch := kube.Begin("get", "widgets", "--watch", "-o", "name")
	with(widget("alpha", "size: 1"), "apply", "-f", "-").Want("widget.example.com/alpha created\n", "")
	harness.Eventually(t, "the watch shows alpha", func() bool { return watch.Stdout.String() == "widget.example.com/alpha\n" })
	waiting := kube.Begin("wait", "widget/alpha", "--for=jsonpath={.status.ready}=true", "--timeout=50s")
	with(widget("alpha", "size: 2"), "apply", "-f", "-").Want("widget.example.com/alpha configured\n", "") // reads a schema
	with(widget("alpha", "sise: 3"), "apply", "-f", "-").Fails(`unknown field "spec.sise"`)
	with(widget("alpha", "sise: 3"), "apply", "--validate=warn", "-f", "-").OK()
	with(widget("beta", "size: 3"), "apply", "--server-side", "-f", "-").Want("widget.example.com/beta serverside-applied\n", "")
	if r := with(widget("beta", "size: 4"), "diff", "-f", "-"); r.Code != 1 || !strings.Contains(r.Stdout, "-  size: 3\n+  size: 4\n") {
		t.Errorf("exit code %d, want 1 and the difference: %s", r.Code, r)
	}
	if r := with(widget("gamma", "sise: 3"), "create", "--validate=warn", "-f", "-").OK(); !strings.Contains(r.Stderr, `Warning: unknown field "spec.sise"`) {
		t.Errorf("no warning: %s", r)
	}
	kubectl("scale", "widget", "alpha", "--replicas=3").Want("widget.example.com/alpha scaled\n", "")
	kubectl("patch", "widget", "alpha", "--subresource=status", "--type=merge", "-p", `{"status":{"ready":true}}`).OK()
	if code := waiting.Wait(); code != 0 {
		t.Errorf("wait exited with %d: %s%s", code, waiting.Stdout, waiting.Stderr)
	}
	harness.Eventually(t, "the watch shows gamma", func() bool { return strings.Contains(watch.Stdout.String(), "widget.example.com/gamma\n") })
	watch.Kill()

	kubectl("get", "widgets", "--chunk-size=1", "-o", "name").
		Want("widget.example.com/alpha\nwidget.example.com/beta\nwidget.example.com/gamma\n", "")
	if r := kubectl("get", "widgets").OK(); !regexp.MustCompile(`^NAME    AGE\nalpha   \S+\nbeta    \S+\ngamma   \S+\n$`).MatchString(r.Stdout) {
		t.Errorf("not the table: %s", r)
	}
	kubectl("explain", "widgets.spec").Contains("FIELD: spec <", "  size\t<integer>")
	kubectl("explain", "widgets.spec", "--output=plaintext-openapiv2").Contains("size\t<integer>")
	kubectl("delete", "widget", "beta").Contains(`"beta" deleted`)

	if resp, body := p.get(t, strings.TrimSuffix(p.url, "/keelson")+"/mine"); resp.StatusCode != 200 || body != "mine" {
		t.Errorf("the program's own route answers %d %s", resp.StatusCode, body)
	}
}

// The path of kubectl proxy comes before that of the program.
func TestKubectlProxyUnderAPrefix(t *testing.T) {
	t.Parallel()
	p := mount(t)
	proxy := harness.NewKubectl(t, p.kubeconfig).Begin("proxy", "--port=0", "--api-prefix=/proxied", "--append-server-path")
	var address string
	harness.Eventually(t, "the proxy listens", func() bool {
		line, whole := strings.CutSuffix(proxy.Stdout.String(), "\n")
		address = strings.TrimPrefix(line, "Starting to serve on ")
		return whole || proxy.Exited()
	})
	url := "http://" + address + "/proxied"
	if resp, body := p.get(t, url+"/openapi/v3/apis/example.com/v1?hash=00"); resp.StatusCode != 200 || !strings.HasPrefix(resp.Request.URL.Path, "/proxied/openapi/v3/") {
		t.Errorf("an old address of OpenAPI leads to %s: %d %.200s", resp.Request.URL, resp.StatusCode, body)
	}
	checkDiscovery(t, &rest.Config{Host: url, QPS: -1})
}

// client-go finds every document, and its informers work, with a host that has a path.
func TestClientGoUnderAPrefix(t *testing.T) {
	t.Parallel()
	p := mount(t)
	config := p.config(t)
	checkDiscovery(t, config)

	client := typed(t, config)
	post(t, client, newWidget("alpha", 1))
	dyn, err := dynamic.NewForConfig(config)
	if err != nil {
		t.Fatal(err)
	}
	events := new(seen)
	run(t.Context(), t, dynamicinformer.NewFilteredDynamicInformer(dyn, widgets, metav1.NamespaceAll, 0, nil, nil).Informer(), events)
	post(t, client, newWidget("beta", 1))
	events.wants(t, "add alpha", "add beta")

	// An address that /openapi/v3 listed once redirects to that of now.
	resp, body := p.get(t, p.url+"/openapi/v3/apis/example.com/v1?hash=00")
	if want := "/keelson/openapi/v3/apis/example.com/v1"; resp.StatusCode != 200 || resp.Request.URL.Path != want || resp.Request.URL.RawQuery == "hash=00" {
		t.Errorf("an old address of OpenAPI leads to %s: %d %.200s", resp.Request.URL, resp.StatusCode, body)
	}
}

// checkDiscovery reads discovery and each OpenAPI document with client-go.
func checkDiscovery(t *testing.T, config *rest.Config) {
	t.Helper()
	client, err := discovery.NewDiscoveryClientForConfig(config)
	if err != nil {
		t.Fatal(err)
	}
	if _, all, err := client.ServerGroupsAndResources(); err != nil || !slices.ContainsFunc(all, func(l *metav1.APIResourceList) bool { return l.GroupVersion == "example.com/v1" }) {
		t.Errorf("discovery has %v, %v", all, err)
	}
	if _, err := client.OpenAPISchema(); err != nil {
		t.Error(err)
	}
	documents, err := client.OpenAPIV3().Paths()
	if err != nil || documents["apis/example.com/v1"] == nil {
		t.Fatalf("documents %v, %v", documents, err)
	}
	for name, d := range documents {
		if body, err := d.Schema("application/json"); err != nil || !strings.Contains(string(body), `"openapi"`) {
			t.Errorf("document %s: %.200s, %v", name, body, err)
		}
	}
}

// get makes a request as the administrator, and follows redirects.
func (p *mounted) get(t *testing.T, url string) (*http.Response, string) {
	t.Helper()
	client, err := rest.HTTPClientFor(p.config(t))
	if err != nil {
		t.Fatal(err)
	}
	defer client.CloseIdleConnections()
	req, err := http.NewRequestWithContext(t.Context(), http.MethodGet, url, nil)
	if err != nil {
		t.Fatal(err)
	}
	resp, err := client.Do(req)
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	body, err := io.ReadAll(resp.Body)
	if err != nil {
		t.Fatal(err)
	}
	return resp, string(body)
}

// kubectl trusts the certificate of a program that made its own, by the kubeconfig that the server writes.
func TestKubectlTrustsTheCertificateOfAProgram(t *testing.T) {
	t.Parallel()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	template := &x509.Certificate{
		SerialNumber: big.NewInt(1), DNSNames: []string{"localhost"}, NotAfter: time.Now().Add(time.Hour), IsCA: true, BasicConstraintsValid: true,
	}
	der, err := x509.CreateCertificate(rand.Reader, template, template, &key.PublicKey, key)
	if err != nil {
		t.Fatal(err)
	}
	ln, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	_, port, _ := net.SplitHostPort(ln.Addr().String())
	ready := make(chan string, 1)
	srv, err := keelsonserver.New(keelsonserver.Options{Serving: keelsonserver.Serving{
		Certificate: func(*tls.ClientHelloInfo) (*tls.Certificate, error) {
			return &tls.Certificate{Certificate: [][]byte{der}, PrivateKey: key}, nil
		},
		Authorities: pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: der}),
		URL:         "https://localhost:" + port,
		Kubeconfig:  filepath.Join(t.TempDir(), "kubeconfig"),
		Ready:       func(_, kubeconfig string) { ready <- kubeconfig },
	}})
	if err != nil {
		t.Fatal(err)
	}
	ctx, stop := context.WithCancel(context.Background())
	ended := make(chan error, 1)
	go func() { ended <- srv.Serve(ctx, ln) }()
	t.Cleanup(func() {
		stop()
		if err := <-ended; err != nil {
			t.Error(err)
		}
	})
	select {
	case kubeconfig := <-ready:
		harness.NewKubectl(t, kubeconfig).Run("", "get", "--raw", "/readyz").Want("ok", "")
	case <-time.After(harness.Timeout):
		t.Fatal("the server is not ready")
	}
}
