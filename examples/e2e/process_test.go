package e2e_test

import (
	"context"
	"errors"
	"io"
	"net"
	"net/http"
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/keelson-dev/keelson/examples/e2e/harness"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"
	clientcmdapi "k8s.io/client-go/tools/clientcmd/api"
)

func TestHelloReadyLine(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	// With relative paths and a wildcard address, the printed path is absolute, and the printed URL can be dialled.
	hello := harness.Start(t, harness.Options{Dir: dir, Listen: "0.0.0.0:0", Data: "data.db", Kubeconfig: "kc"})
	if hello.Kubeconfig != filepath.Join(dir, "kc") && hello.Kubeconfig != realPath(t, dir, "kc") {
		t.Errorf("the kubeconfig is said to be at %s, want it in %s", hello.Kubeconfig, dir)
	}
	u, err := url.Parse(hello.URL)
	if err != nil || u.Scheme != "https" || u.Hostname() != "127.0.0.1" || u.Port() == "" || u.Port() == "0" {
		t.Errorf("the URL is %s", hello.URL)
	}
	hello.Kubectl("get", "--raw", "/readyz").Want("ok", "")
	for _, path := range []string{"data.db", "data.db.pki"} {
		if _, err := os.Stat(filepath.Join(dir, path)); err != nil {
			t.Error(err)
		}
	}
	hello.Stop() // this also checks that stdout has nothing else
}

// realPath returns a path below dir without symbolic links.
func realPath(t *testing.T, dir, name string) string {
	t.Helper()
	dir, err := filepath.EvalSymlinks(dir)
	if err != nil {
		t.Fatal(err)
	}
	return filepath.Join(dir, name)
}

func TestHelloRestart(t *testing.T) {
	hello := start(t)
	hello.KubectlWith(widget("alpha", "size: 3"), "create", "-f", "-").OK()
	before := hello.Kubectl("get", "widget", "alpha", "-o", "json").OK().Stdout
	rv := revision(t, field(hello, "alpha", ".metadata.resourceVersion"))
	kubeconfig := load(t, hello.Kubeconfig)
	pki := readAll(t, filepath.Join(hello.Dir, "hello.db.pki"))

	again := restart(t, hello)
	if after := again.Kubectl("get", "widget", "alpha", "-o", "json").OK().Stdout; after != before {
		t.Errorf("after the restart alpha is\n%s\nbefore it was\n%s", after, before)
	}
	create(t, again, "beta")
	if after := revision(t, field(again, "beta", ".metadata.resourceVersion")); after <= rv {
		t.Errorf("resourceVersion %d after %d", after, rv)
	}
	wantSame(t, "the CA, keys and token", readAll(t, filepath.Join(again.Dir, "hello.db.pki")), pki)
	now := load(t, again.Kubeconfig)
	if a, b := server(now).CertificateAuthorityData, server(kubeconfig).CertificateAuthorityData; string(a) != string(b) {
		t.Error("the CA changed with the restart")
	}
	if a, b := admin(now), admin(kubeconfig); a.Token != b.Token || string(a.ClientCertificateData) != string(b.ClientCertificateData) {
		t.Error("the credentials changed with the restart")
	}
}

// readAll reads the files of a directory that only its owner may read.
func readAll(t *testing.T, dir string) map[string]string {
	t.Helper()
	info, err := os.Stat(dir)
	if err != nil {
		t.Fatal(err)
	}
	if info.Mode().Perm() != 0o700 {
		t.Errorf("%s has mode %v, want 0700", dir, info.Mode().Perm())
	}
	entries, err := os.ReadDir(dir)
	if err != nil {
		t.Fatal(err)
	}
	files := map[string]string{}
	for _, e := range entries {
		content, err := os.ReadFile(filepath.Join(dir, e.Name()))
		if err != nil {
			t.Fatal(err)
		}
		files[e.Name()] = string(content)
	}
	return files
}

func wantSame(t *testing.T, what string, got, want map[string]string) {
	t.Helper()
	if len(got) != len(want) || len(want) == 0 {
		t.Errorf("%s: %d files, want %d", what, len(got), len(want))
	}
	for name, content := range want {
		if got[name] != content {
			t.Errorf("%s: %s changed", what, name)
		}
	}
}

func load(t *testing.T, path string) *clientcmdapi.Config {
	t.Helper()
	c, err := clientcmd.LoadFromFile(path)
	if err != nil {
		t.Fatal(err)
	}
	return c
}

// server and admin return the entries of a kubeconfig's current context.
func server(c *clientcmdapi.Config) *clientcmdapi.Cluster {
	return c.Clusters[c.Contexts[c.CurrentContext].Cluster]
}

func admin(c *clientcmdapi.Config) *clientcmdapi.AuthInfo {
	return c.AuthInfos[c.Contexts[c.CurrentContext].AuthInfo]
}

func TestHelloKubeconfig(t *testing.T) {
	hello := start(t)
	info, err := os.Stat(hello.Kubeconfig)
	if err != nil {
		t.Fatal(err)
	}
	if info.Mode().Perm() != 0o600 {
		t.Errorf("the kubeconfig has mode %v, want 0600", info.Mode().Perm())
	}
	c := load(t, hello.Kubeconfig)
	if len(c.Clusters) != 1 || len(c.AuthInfos) != 1 || len(c.Contexts) != 1 || c.CurrentContext == "" {
		t.Fatalf("the kubeconfig is %+v", c)
	}
	cluster, user := server(c), admin(c)
	if cluster.Server != hello.URL || len(cluster.CertificateAuthorityData) == 0 || cluster.CertificateAuthority != "" || cluster.InsecureSkipTLSVerify {
		t.Errorf("the cluster is %+v", cluster)
	}
	if user.Token == "" || len(user.ClientCertificateData) == 0 || len(user.ClientKeyData) == 0 || user.ClientCertificate != "" || user.ClientKey != "" || user.TokenFile != "" {
		t.Error("the user lacks a credential, or one is not in the file itself")
	}

	// Each credential is sufficient alone.
	for name, without := range map[string]func(*clientcmdapi.AuthInfo){
		"token":       func(u *clientcmdapi.AuthInfo) { u.ClientCertificateData, u.ClientKeyData = nil, nil },
		"certificate": func(u *clientcmdapi.AuthInfo) { u.Token = "" },
	} {
		kubectlAs(t, hello, without).Run("", "get", "widgets").Want("", "No resources found in default namespace.\n")
		t.Log("works with the " + name + " alone")
	}

	// A file that replaces an older, longer file with wider permissions is complete and has narrow permissions.
	hello.Stop()
	write(t, hello.Dir, "hello.kubeconfig", read(t, hello.Kubeconfig)+strings.Repeat("# old\n", 10000))
	if err := os.Chmod(hello.Kubeconfig, 0o644); err != nil {
		t.Fatal(err)
	}
	again := harness.Start(t, harness.Options{Dir: hello.Dir})
	if info, err = os.Stat(again.Kubeconfig); err != nil || info.Mode().Perm() != 0o600 {
		t.Errorf("the kubeconfig written again has mode %v, %v; want 0600", info.Mode().Perm(), err)
	}
	again.Kubectl("get", "widgets").OK()
	if strings.Contains(read(t, again.Kubeconfig), "# old") {
		t.Error("the kubeconfig has parts of the older one")
	}
	again.Stop()

	// A kubeconfig of the user is not overwritten.
	const theirs = "apiVersion: v1\nkind: Config\nclusters:\n- name: production\n  cluster: {server: https://example.com}\n"
	write(t, hello.Dir, "hello.kubeconfig", theirs)
	if output := fails(t, harness.Options{Dir: hello.Dir}); !strings.Contains(output, hello.Kubeconfig) {
		t.Errorf("the error does not name the file: %s", output)
	}
	if read(t, hello.Kubeconfig) != theirs {
		t.Error("a kubeconfig of somebody else was changed")
	}
}

// kubectlAs returns a kubectl whose user is the administrator after change.
func kubectlAs(t *testing.T, hello *harness.Server, change func(*clientcmdapi.AuthInfo)) *harness.Kubectl {
	t.Helper()
	c := load(t, hello.Kubeconfig)
	change(admin(c))
	path := filepath.Join(t.TempDir(), "kubeconfig")
	if err := clientcmd.WriteToFile(*c, path); err != nil {
		t.Fatal(err)
	}
	return harness.NewKubectl(t, path)
}

func TestHelloRefusesUnauthenticated(t *testing.T) {
	hello, other := start(t), harness.Start(t, harness.Options{})
	const unauthorized = "You must be logged in to the server"

	badToken := kubectlAs(t, hello, func(u *clientcmdapi.AuthInfo) {
		u.ClientCertificateData, u.ClientKeyData, u.Token = nil, nil, "wrong"
	})
	badToken.Run("", "get", "widgets").Fails(unauthorized)
	badToken.Run("", "get", "--raw", "/healthz").Fails(unauthorized)
	otherCA := kubectlAs(t, hello, func(u *clientcmdapi.AuthInfo) {
		theirs := admin(load(t, other.Kubeconfig))
		u.Token, u.ClientCertificateData, u.ClientKeyData = "", theirs.ClientCertificateData, theirs.ClientKeyData
	})
	otherCA.Run("", "get", "widgets").Fails(unauthorized)
	kubectlAs(t, hello, func(u *clientcmdapi.AuthInfo) {
		u.Token = admin(load(t, other.Kubeconfig)).Token
		u.ClientCertificateData, u.ClientKeyData = nil, nil
	}).
		Run("", "get", "widgets").Fails(unauthorized)

	nobody, err := rest.HTTPClientFor(rest.AnonymousClientConfig(hello.Config()))
	if err != nil {
		t.Fatal(err)
	}
	defer nobody.CloseIdleConnections()
	for _, path := range []string{"/healthz", "/livez", "/readyz", "/livez?verbose", "/version"} {
		if code, body := get(t, nobody, hello.URL+path); code != http.StatusOK {
			t.Errorf("%s answers nobody with %d %s", path, code, body)
		}
	}
	for path, message := range map[string]string{
		"/":            `forbidden: User \"system:anonymous\" cannot get path \"/\"`,
		"/apis":        `forbidden: User \"system:anonymous\" cannot get path \"/apis\"`,
		"/readyz/ping": `forbidden: User \"system:anonymous\" cannot get path \"/readyz/ping\"`,
		"/apis/example.com/v1/namespaces/default/widgets": `widgets.example.com is forbidden: User \"system:anonymous\" cannot list resource \"widgets\" in API group \"example.com\" in the namespace \"default\"`,
		"/apis/example.com/v1/widgets":                    `widgets.example.com is forbidden: User \"system:anonymous\" cannot list resource \"widgets\" in API group \"example.com\" at the cluster scope`,
	} {
		if code, body := get(t, nobody, hello.URL+path); code != http.StatusForbidden || !strings.Contains(body, message) || !strings.Contains(body, `"kind":"Status"`) {
			t.Errorf("%s answers nobody with %d %s, want 403 and %s", path, code, body, message)
		}
	}
}

// get is a plain GET.
func get(t *testing.T, client *http.Client, url string) (int, string) {
	t.Helper()
	return ask(t, client, http.MethodGet, url)
}

// ask is a plain request without a body.
func ask(t *testing.T, client *http.Client, method, url string) (int, string) {
	t.Helper()
	req, err := http.NewRequestWithContext(t.Context(), method, url, http.NoBody)
	if err != nil {
		t.Fatal(err)
	}
	resp, err := client.Do(req)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = resp.Body.Close() }()
	body, err := io.ReadAll(resp.Body)
	if err != nil {
		t.Fatal(err)
	}
	return resp.StatusCode, string(body)
}

func TestHelloMemory(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	hello := harness.Start(t, harness.Options{Dir: dir, Data: "memory"})
	create(t, hello, "alpha")
	hello.Kubectl("get", "widgets", "-o", "name").Want("widget.example.com/alpha\n", "")
	pki := readAll(t, hello.Kubeconfig+".pki")
	hello.Stop()
	if _, err := os.Stat(filepath.Join(dir, "memory")); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("a file named memory: %v", err)
	}
	again := harness.Start(t, harness.Options{Dir: dir, Data: "memory"})
	again.Kubectl("get", "widgets").Want("", "No resources found in default namespace.\n")
	wantSame(t, "the CA, keys and token", readAll(t, again.Kubeconfig+".pki"), pki)
}

// fails runs a hello that cannot start, and returns its error output.
func fails(t *testing.T, o harness.Options) string {
	t.Helper()
	hello := harness.Launch(t, o)
	if code := hello.Wait(); code == 0 || code == -1 {
		t.Errorf("hello exited with %d, want a failure", code)
	}
	if hello.Stdout() != "" {
		t.Errorf("a hello that does not start wrote %q to stdout", hello.Stdout())
	}
	if strings.Contains(hello.Stderr(), "goroutine ") {
		t.Errorf("hello crashed:\n%s", hello.Stderr())
	}
	return hello.Stderr()
}

func TestHelloSecondProcess(t *testing.T) {
	if os.Getenv(harness.StorageVariable) != "" {
		t.Skip("this is about the file: a second process on one etcd is welcome")
	}
	hello := start(t)
	create(t, hello, "alpha")
	file := filepath.Join(hello.Dir, "hello.db")
	// A second process gives up within 2 s. The test only checks that it does not wait for the end of the first.
	if output := fails(t, harness.Options{Dir: hello.Dir, Kubeconfig: filepath.Join(t.TempDir(), "kc")}); !strings.Contains(output, file) {
		t.Errorf("the second process does not name %s: %s", file, output)
	}
	hello.Kubectl("get", "widget", "alpha").OK()
}

func TestHelloUnusablePaths(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	notADatabase := filepath.Join(dir, "notes.txt")
	if err := os.WriteFile(notADatabase, []byte(strings.Repeat("This is no database.\n", 1000)), 0o600); err != nil {
		t.Fatal(err)
	}
	for name, o := range map[string]harness.Options{
		"a file below a file":     {Data: filepath.Join(notADatabase, "hello.db")},
		"a directory":             {Data: dir},
		"not a database":          {Data: notADatabase},
		"kubeconfig in no folder": {Kubeconfig: filepath.Join(notADatabase, "kubeconfig")},
	} {
		o.Dir = t.TempDir()
		path := o.Data + o.Kubeconfig
		if output := fails(t, o); !strings.Contains(output, path) {
			t.Errorf("%s: the error does not name %s: %s", name, path, output)
		}
	}
	if content, err := os.ReadFile(notADatabase); err != nil || !strings.HasPrefix(string(content), "This is no database.\n") {
		t.Errorf("the file that is no database was changed: %v", err)
	}

	taken, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = taken.Close() }()
	if output := fails(t, harness.Options{Listen: taken.Addr().String()}); !strings.Contains(output, taken.Addr().String()) {
		t.Errorf("the error does not name the address in use: %s", output)
	}
}

// openWatch opens a watch by plain HTTP and returns its body.
func openWatch(t *testing.T, hello *harness.Server, client *http.Client) io.ReadCloser {
	t.Helper()
	req, err := http.NewRequestWithContext(context.Background(), http.MethodGet, hello.URL+"/apis/example.com/v1/widgets?watch=true", http.NoBody)
	if err != nil {
		t.Fatal(err)
	}
	resp, err := client.Do(req)
	if err != nil {
		t.Fatal(err)
	}
	if resp.StatusCode != http.StatusOK {
		t.Fatalf("the watch answers %s", resp.Status)
	}
	return resp.Body
}

func TestHelloStopsWithOpenWatches(t *testing.T) {
	for name, protocol := range map[string]bool{"HTTP/2": true, "HTTP/1.1": false} {
		t.Run(name, func(t *testing.T) {
			hello := start(t)
			create(t, hello, "alpha")
			client := httpClient(t, hello, protocol)
			const watches = 5
			ends := make(chan error, watches)
			for range watches {
				body := openWatch(t, hello, client)
				defer func() { _ = body.Close() }()
				go func() { // ends with the server
					_, err := io.ReadAll(body)
					ends <- err
				}()
			}
			kubectl := hello.Begin("get", "widgets", "-w")
			harness.Eventually(t, "kubectl shows alpha", func() bool { return strings.Contains(kubectl.Stdout.String(), "alpha") })
			create(t, hello, "beta") // alpha is in the list, and beta in the watch
			harness.Eventually(t, "kubectl shows beta", func() bool { return strings.Contains(kubectl.Stdout.String(), "beta") })

			hello.Stop()
			for range watches {
				if err := <-ends; err != nil {
					t.Errorf("a watch ended with %v, want EOF", err)
				}
			}
			if code := kubectl.Wait(); code != 0 {
				t.Errorf("kubectl get -w ended with %d: %s", code, kubectl.Stderr)
			}
		})
	}
}

func TestHelloFinishesRequests(t *testing.T) {
	hello := start(t)
	body, answer := slowCreate(t, hello)
	hello.Signal(syscall.SIGTERM)
	refuses(t, hello)
	if _, err := io.WriteString(body, `"metadata":{"name":"slow"}}`); err != nil {
		t.Fatal(err)
	}
	_ = body.Close()
	if a := <-answer; a.err != nil || a.code != http.StatusCreated {
		t.Errorf("the request under way is answered %d, %v; want 201", a.code, a.err)
	}
	if code := hello.Wait(); code != 0 {
		t.Errorf("hello exited with %d; stderr:\n%s", code, hello.Stderr())
	}
	harness.Start(t, harness.Options{Dir: hello.Dir, Etcd: hello.Etcd}).Kubectl("get", "widget", "slow").OK()
}

func TestHelloSecondSignal(t *testing.T) {
	for _, second := range []syscall.Signal{syscall.SIGTERM, syscall.SIGINT} {
		t.Run(second.String(), func(t *testing.T) {
			hello := start(t)
			body, answer := slowCreate(t, hello)
			defer func() { _ = body.Close() }()
			hello.Signal(syscall.SIGINT)
			refuses(t, hello) // so the first signal has arrived, and does not merge with the second
			select {
			case <-hello.Exited():
				t.Fatal("hello did not wait for the request under way")
			default:
			}
			hello.Signal(second)
			if code := hello.Wait(); code == 0 {
				t.Error("hello exited with 0 though a request was under way")
			}
			if a := <-answer; a.err == nil {
				t.Errorf("the request was answered %d", a.code)
			}
			// The cut-off requests have no effect on the data.
			create(t, harness.Start(t, harness.Options{Dir: hello.Dir}), "after")
		})
	}
}

// refuses waits until hello accepts no more connections.
func refuses(t *testing.T, hello *harness.Server) {
	t.Helper()
	harness.Eventually(t, "hello refuses connections", func() bool {
		c, err := net.Dial("tcp", strings.TrimPrefix(hello.URL, "https://"))
		if err == nil {
			_ = c.Close()
		}
		return err != nil
	})
}

// answered is the result of a request.
type answered struct {
	code int
	err  error
}

// slowCreate sends the beginning of a create. The rest of the body must be written to the returned pipe.
func slowCreate(t *testing.T, hello *harness.Server) (*io.PipeWriter, <-chan answered) {
	t.Helper()
	client := httpClient(t, hello, true)
	r, w := io.Pipe()
	req, err := http.NewRequestWithContext(context.Background(), http.MethodPost, hello.URL+"/apis/example.com/v1/namespaces/default/widgets", r)
	if err != nil {
		t.Fatal(err)
	}
	req.Header.Set("Content-Type", "application/json")
	answer := make(chan answered, 1)
	go func() { // ends with the answer, at the latest at the server's end
		resp, err := client.Do(req)
		if err != nil {
			answer <- answered{err: err}
			return
		}
		_ = resp.Body.Close()
		answer <- answered{code: resp.StatusCode}
	}()
	// A write into the pipe returns when the transport has read it, so the request is in flight. The later writes make sure that
	// the first part was sent.
	for _, part := range []string{`{"apiVersion":"example.com/v1",`, `"kind":"Widget",`, ` `} {
		if _, err := io.WriteString(w, part); err != nil {
			t.Fatal(err)
		}
	}
	time.Sleep(200 * time.Millisecond) // let the server read the header of the request
	return w, answer
}

// httpClient is the administrator's plain HTTP client.
func httpClient(t *testing.T, hello *harness.Server, http2 bool) *http.Client {
	t.Helper()
	c := hello.Config()
	if !http2 {
		c.NextProtos = []string{"http/1.1"}
	}
	client, err := rest.HTTPClientFor(c)
	if err != nil {
		t.Fatal(err)
	}
	return client
}
