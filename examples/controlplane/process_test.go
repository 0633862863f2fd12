package main

import (
	"bytes"
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"io"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"
)

// asProgram is the environment variable that makes the test binary run the program.
const asProgram = "KEELSON_CONTROLPLANE_RUN"

func TestMain(m *testing.M) {
	if os.Getenv(asProgram) != "" {
		main()
		return
	}
	os.Exit(m.Run())
}

// limit is the timeout of every wait.
const limit = time.Minute

// output collects what a process writes. Its methods may be called concurrently.
type output struct {
	mu  sync.Mutex
	buf bytes.Buffer // guarded by mu
}

func (o *output) Write(p []byte) (int, error) {
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.buf.Write(p)
}

func (o *output) String() string {
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.buf.String()
}

// process is a running program.
type process struct {
	t              *testing.T
	cmd            *exec.Cmd
	stdout, stderr output
	url            string
	kubeconfig     string
	exited         chan struct{} // closed when the process has ended
}

// launch starts the program in a directory. It ends with the test at the latest.
func launch(t *testing.T, dir string, args ...string) *process {
	t.Helper()
	p := &process{t: t, cmd: exec.Command(os.Args[0], args...), exited: make(chan struct{})}
	p.cmd.Dir, p.cmd.Env, p.cmd.Stdout, p.cmd.Stderr = dir, append(os.Environ(), asProgram+"=1"), &p.stdout, &p.stderr
	if err := p.cmd.Start(); err != nil {
		t.Fatal(err)
	}
	go func() { // ends with the process
		_ = p.cmd.Wait()
		close(p.exited)
	}()
	t.Cleanup(func() {
		_ = p.cmd.Process.Kill()
		<-p.exited
		if t.Failed() {
			t.Logf("stderr:\n%s", p.stderr.String())
		}
	})
	return p
}

// start starts the program on a free port, and waits until it is ready.
func start(t *testing.T, dir string, args ...string) *process {
	t.Helper()
	p := launch(t, dir, append([]string{"--bind-address=127.0.0.1", "--secure-port=0", "--cert-dir=certs"}, args...)...)
	for begin := time.Now(); !strings.Contains(p.stdout.String(), "\n"); time.Sleep(10 * time.Millisecond) {
		select {
		case <-p.exited:
			t.Fatalf("it ended with %d: %s", p.cmd.ProcessState.ExitCode(), p.stderr.String())
		default:
		}
		if time.Since(begin) > limit {
			t.Fatalf("it does not get ready: %s", p.stderr.String())
		}
	}
	line := strings.TrimSpace(p.stdout.String())
	rest, ok := strings.CutPrefix(line, "ready ")
	p.url, p.kubeconfig, _ = strings.Cut(rest, " kubeconfig=")
	if !ok || !strings.HasPrefix(p.url, "https://") {
		t.Fatalf("it wrote %q", line)
	}
	return p
}

// wait returns the exit code.
func (p *process) wait() int {
	p.t.Helper()
	select {
	case <-p.exited:
	case <-time.After(limit):
		p.t.Fatalf("it does not end: %s", p.stderr.String())
	}
	return p.cmd.ProcessState.ExitCode()
}

// stop ends the program with SIGTERM.
func (p *process) stop() {
	p.t.Helper()
	if err := p.cmd.Process.Signal(syscall.SIGTERM); err != nil {
		p.t.Fatal(err)
	}
	if code := p.wait(); code != 0 {
		p.t.Errorf("after SIGTERM it ended with %d", code)
	}
}

// client is a user.
type client struct {
	t     *testing.T
	url   string
	token string
	http  *http.Client
}

// client returns a client with a token, with a certificate, or with neither. roots, in PEM, are the trusted authorities; nil
// means that every server is trusted.
func (p *process) client(token string, certificate *tls.Certificate, roots []byte) *client {
	config := &tls.Config{InsecureSkipVerify: roots == nil}
	if roots != nil {
		config.RootCAs = x509.NewCertPool()
		config.RootCAs.AppendCertsFromPEM(roots)
	}
	if certificate != nil {
		config.Certificates = []tls.Certificate{*certificate}
	}
	transport := &http.Transport{TLSClientConfig: config}
	p.t.Cleanup(transport.CloseIdleConnections)
	return &client{p.t, p.url, token, &http.Client{Transport: transport}}
}

// ask sends a request and returns the answer's code and body.
func (c *client) ask(method, path, body string) (int, string) {
	c.t.Helper()
	code, text, err := c.try(method, path, body)
	if err != nil {
		c.t.Fatal(err)
	}
	return code, text
}

// try is ask for use in any goroutine.
func (c *client) try(method, path, body string) (int, string, error) {
	ctx, cancel := context.WithTimeout(c.t.Context(), limit)
	defer cancel()
	req, err := http.NewRequestWithContext(ctx, method, c.url, strings.NewReader(body))
	if err != nil {
		return 0, "", err
	}
	req.URL.Path, req.URL.RawQuery, _ = strings.Cut(path, "?") // the path is unchanged
	req.Header.Set("Content-Type", "application/json")
	if c.token != "" {
		req.Header.Set("Authorization", "Bearer "+c.token)
	}
	resp, err := c.http.Do(req)
	if err != nil {
		return 0, "", err
	}
	defer resp.Body.Close()
	text, err := io.ReadAll(resp.Body)
	return resp.StatusCode, string(text), err
}

// want checks the code and a part of the answer to a request.
func (c *client) want(code int, part, method, path, body string) string {
	c.t.Helper()
	got, text := c.ask(method, path, body)
	if got != code || !strings.Contains(text, part) {
		c.t.Errorf("%s %s: %d %s; want %d and %s", method, path, got, text, code, part)
	}
	return text
}

func write(t *testing.T, path, content string) {
	t.Helper()
	if err := errors.Join(os.MkdirAll(filepath.Dir(path), 0o700), os.WriteFile(path, []byte(content), 0o600)); err != nil {
		t.Fatal(err)
	}
}

func read(t *testing.T, path string) []byte {
	t.Helper()
	content, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	return content
}
