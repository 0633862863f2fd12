package server_test

import (
	"bufio"
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"io"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/keelson-dev/keelson/server"
	"github.com/keelson-dev/keelson/storage/bolt"
	"sigs.k8s.io/yaml"
)

// running is a server on a port of the loopback interface.
type running struct {
	*server.Server
	url, kubeconfig string
	stop            context.CancelFunc
	ended           chan error
}

func run(t *testing.T, opts server.Options) *running {
	t.Helper()
	r := &running{ended: make(chan error, 1)}
	ready := make(chan struct{})
	opts.Serving.Ready = func(url, kubeconfig string) { r.url, r.kubeconfig = url, kubeconfig; close(ready) }
	var err error
	if r.Server, err = server.New(opts); err != nil {
		t.Fatal(err)
	}
	var ctx context.Context
	ctx, r.stop = context.WithCancel(context.Background())
	go func() { r.ended <- r.Run(ctx) }()
	t.Cleanup(func() { r.stop(); <-r.ended })
	select {
	case <-ready:
	case err := <-r.ended:
		r.ended <- err
		t.Fatalf("ended before it was ready: %v", err)
	}
	return r
}

func (r *running) client(t *testing.T) *http.Client {
	return clientThatTrusts(t, r.Credentials().CAPEM)
}

// clientThatTrusts returns a client that trusts authorities, which are in PEM.
func clientThatTrusts(t *testing.T, authorities []byte) *http.Client {
	t.Helper()
	pool := x509.NewCertPool()
	if !pool.AppendCertsFromPEM(authorities) {
		t.Fatal("no CA")
	}
	tr := &http.Transport{TLSClientConfig: &tls.Config{RootCAs: pool}, ForceAttemptHTTP2: true}
	t.Cleanup(tr.CloseIdleConnections)
	return &http.Client{Transport: tr}
}

func TestShutdownEndsWatchesCleanlyAndFinishesRequests(t *testing.T) {
	t.Parallel()
	srv := run(t, server.Options{Groups: []server.Group{widgets()}})
	c, auth := srv.client(t), "Bearer "+srv.Credentials().Token

	req, _ := http.NewRequestWithContext(t.Context(), "GET", srv.url+widgetsPath+"?watch=1", nil)
	req.Header.Set("Authorization", auth)
	watch, err := c.Do(req)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = watch.Body.Close() }()

	// A request whose body is still being sent when the server begins to end.
	finish := post(t, c, srv.url, auth)
	// The slow request is in the handler when a later one, on the same connection, has been answered.
	code, text := call(t, c, "GET", srv.url+widgetsPath, "", "Authorization", auth)
	wantCode(t, 200, code, text)

	srv.stop()
	if rest, err := io.ReadAll(watch.Body); err != nil || len(rest) != 0 {
		t.Errorf("the watch ended with %q, %v; want a clean end", rest, err)
	}
	if got := finish(); got != "201 Created" {
		t.Errorf("the request under way was answered %q", got)
	}
	err = <-srv.ended
	srv.ended <- nil
	if err != nil {
		t.Errorf("Run returned %v", err)
	}
}

func TestRestartOnTheSameFile(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	opts := server.Options{
		Groups: []server.Group{widgets()}, Storage: bolt.At(filepath.Join(dir, "x.db")),
		Serving: server.Serving{Credentials: filepath.Join(dir, "x.pki"), Kubeconfig: filepath.Join(dir, "x.kubeconfig")},
	}
	first := run(t, opts)
	auth := "Bearer " + first.Credentials().Token
	code, created := call(t, first.client(t), "POST", first.url+widgetsPath, `{"metadata":{"name":"a"}}`, "Authorization", auth)
	wantCode(t, 201, code, created)
	first.stop()
	if err := <-first.ended; err != nil {
		t.Fatal(err)
	}
	first.ended <- nil
	second := run(t, opts)
	if second.Credentials().Token != first.Credentials().Token {
		t.Error("the token is another after a restart")
	}
	code, got := call(t, second.client(t), "GET", second.url+widgetsPath+"/a", "", "Authorization", auth)
	wantCode(t, 200, code, got)
	if got != created {
		t.Errorf("after the restart: %s, want %s", got, created)
	}
	info, err := os.Stat(second.kubeconfig)
	if err != nil || info.Mode().Perm() != 0o600 {
		t.Errorf("kubeconfig: %v, %v", info, err)
	}
	if !filepath.IsAbs(second.kubeconfig) {
		t.Errorf("kubeconfig path %q is not absolute", second.kubeconfig)
	}
}

func TestWatchSeesWhatHappens(t *testing.T) {
	t.Parallel()
	srv := run(t, server.Options{Groups: []server.Group{widgets()}})
	c, auth := srv.client(t), "Bearer "+srv.Credentials().Token
	req, _ := http.NewRequestWithContext(t.Context(), "GET", srv.url+widgetsPath+"?watch=1", nil)
	req.Header.Set("Authorization", auth)
	resp, err := c.Do(req)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = resp.Body.Close() }()
	code, created := call(t, c, "POST", srv.url+widgetsPath, `{"metadata":{"name":"a"}}`, "Authorization", auth)
	wantCode(t, 201, code, created)
	line, err := bufio.NewReader(resp.Body).ReadString('\n')
	if err != nil {
		t.Fatal(err)
	}
	if want := `{"type":"ADDED","object":` + strings.TrimSuffix(created, "\n") + "}\n"; line != want {
		t.Errorf("got  %swant %s", line, want)
	}
}

func TestListenErrorsAreNamed(t *testing.T) {
	t.Parallel()
	taken := run(t, server.Options{})
	srv, err := server.New(server.Options{Serving: server.Serving{Listen: strings.TrimPrefix(taken.url, "https://")}})
	if err != nil {
		t.Fatal(err)
	}
	if err := srv.Run(t.Context()); err == nil || !strings.Contains(err.Error(), "listen on 127.0.0.1:") {
		t.Errorf("Run on a taken port: %v", err)
	}
}

// Serving.Ready is not called if the server ends before it is ready.
func TestReadyIsNotCalledOfWhatNeverWas(t *testing.T) {
	t.Parallel()
	ctx, cancel := context.WithCancel(t.Context())
	srv, err := server.New(server.Options{
		Observe: server.Observe{
			Checks: []server.Check{{Name: "db", Check: func(context.Context) error {
				cancel()
				return errors.New("no route")
			}}},
		},
		Serving: server.Serving{Ready: func(url, _ string) { t.Errorf("ready at %s", url) }},
	})
	if err != nil {
		t.Fatal(err)
	}
	if err := srv.Run(ctx); err != nil {
		t.Error(err)
	}
}

// A program uses its own certificate for some clients, and the kubeconfig trusts it and the other one.
func TestServingCertificate(t *testing.T) {
	t.Parallel()
	other := run(t, server.Options{})
	r := run(t, server.Options{Serving: server.Serving{
		Certificate: func(hello *tls.ClientHelloInfo) (*tls.Certificate, error) {
			if hello.ServerName == "" { // the client uses an address
				return &other.Credentials().Serving, nil
			}
			return nil, nil
		},
		Authorities: other.Credentials().CAPEM,
		Kubeconfig:  filepath.Join(t.TempDir(), "kubeconfig"),
	}})
	both := clientThatTrusts(t, trustedBy(t, r.kubeconfig))
	for _, c := range []struct {
		host   string
		client *http.Client
		fails  bool
	}{
		{"127.0.0.1", other.client(t), false},
		{"127.0.0.1", r.client(t), true},
		{"127.0.0.1", both, false},
		{"localhost", r.client(t), false},
		{"localhost", other.client(t), true},
		{"localhost", both, false},
	} {
		resp, err := c.client.Get(strings.Replace(r.url, "127.0.0.1", c.host, 1) + "/readyz")
		if err != nil {
			if !c.fails {
				t.Errorf("%s: %v", c.host, err)
			}
			continue
		}
		_ = resp.Body.Close()
		if c.fails || resp.StatusCode != 200 {
			t.Errorf("%s: %s", c.host, resp.Status)
		}
	}
}

// TestServingURL checks that Ready and the kubeconfig have the URL of the options.
func TestServingURL(t *testing.T) {
	t.Parallel()
	const url = "https://fair.example.com/keelson"
	r := run(t, server.Options{Serving: server.Serving{URL: url, Kubeconfig: filepath.Join(t.TempDir(), "kubeconfig")}})
	if content, err := os.ReadFile(r.kubeconfig); err != nil || r.url != url || !strings.Contains(string(content), "server: "+url+"\n") {
		t.Errorf("ready at %s; %v", r.url, err)
	}
}

// trustedBy returns the authorities, in PEM, that a kubeconfig trusts.
func trustedBy(t *testing.T, kubeconfig string) []byte {
	t.Helper()
	content, err := os.ReadFile(kubeconfig)
	if err != nil {
		t.Fatal(err)
	}
	var config struct {
		Clusters []struct {
			Cluster struct {
				Authorities []byte `json:"certificate-authority-data"`
			} `json:"cluster"`
		} `json:"clusters"`
	}
	if err := yaml.Unmarshal(content, &config); err != nil || len(config.Clusters) != 1 {
		t.Fatalf("%d clusters: %v", len(config.Clusters), err)
	}
	return config.Clusters[0].Cluster.Authorities
}
