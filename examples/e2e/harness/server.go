package harness

import (
	"bytes"
	"cmp"
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"
)

// StartTimeout is how long a server may take to become ready. ExitTimeout is how long it may take to exit. Both are generous:
// they only end a test that hangs.
const (
	StartTimeout = 60 * time.Second
	ExitTimeout  = 60 * time.Second
)

// Options are the options of Start. The zero Options is hello, on a free port on 127.0.0.1 and with a new data file.
type Options struct {
	// Example is the program: hello, wardrobe, crds or controlplane; "" means hello. controlplane has the flags of kube-apiserver
	// and uses only Data, Etcd and Flags. It listens on a free port on 127.0.0.1, and its certificates are in certs in Dir.
	Example string
	// Dir is the working directory, with the data file and the kubeconfig; "" means a new one.
	Dir string
	// Listen, Data and Kubeconfig are flags of the program. "" means 127.0.0.1:0, and files in Dir with the example's name and
	// .db or .kubeconfig.
	Listen, Data, Kubeconfig string
	// Etcd is the flag of hello and crds, or the endpoint for controlplane; "" means none.
	Etcd string
	// Flags are further flags of the example, such as -lenient-namespaces.
	Flags []string
	// Release is the release of the kubectl that the server's methods run: one of OlderReleases; "" means the present one.
	Release string
}

// Server is a running example.
type Server struct {
	URL        string // https://HOST:PORT, from the ready line
	Kubeconfig string // from the ready line; "" for a controlplane with given users
	// Dir is the working directory.
	Dir  string
	Etcd string // the endpoint of the storage; "" means the data file

	t      testing.TB
	name   string          // name of the example
	client func() *Kubectl // one per server, so that it reuses its discovery cache, as a user's does
	cmd    *exec.Cmd
	stdout *Output
	stderr *Output
	exited chan struct{} // closed when the process has ended

	mu     sync.Mutex
	code   int  // valid after exited is closed; -1 after a signal
	waited bool // guarded by mu: whether the test has waited for the end
}

// Output collects the output of a process. Its methods may be called concurrently.
type Output struct {
	mu  sync.Mutex
	buf bytes.Buffer // guarded by mu
}

// Write appends p.
func (o *Output) Write(p []byte) (int, error) {
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.buf.Write(p)
}

// String returns the output so far.
func (o *Output) String() string {
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.buf.String()
}

var readyLine = regexp.MustCompile(`^ready (https://\S+) kubeconfig=(.*)\n$`)

// Start starts the example and waits until it is ready. The server is stopped at the end of the test at the latest.
func Start(t testing.TB, o Options) *Server {
	t.Helper()
	s := Launch(t, o)
	Eventually(t, s.name+" is ready", func() bool { return s.exitedNow() || strings.Contains(s.stdout.String(), "\n") })
	m := readyLine.FindStringSubmatch(s.stdout.String())
	if m == nil {
		t.Fatalf("%s wrote no ready line; stdout %q, stderr:\n%s", s.name, s.stdout, s.stderr)
	}
	s.URL, s.Kubeconfig = m[1], m[2]
	return s
}

// Launch starts the example and does not wait. URL and Kubeconfig are not set.
func Launch(t testing.TB, o Options) *Server {
	t.Helper()
	program, err := exampleBinary(o.example())
	if err != nil {
		t.Fatal(err)
	}
	o = o.storage(t)
	if o.Dir == "" {
		o.Dir = t.TempDir()
	}
	s := &Server{Dir: o.Dir, Etcd: o.Etcd, t: t, name: o.example(), stdout: new(Output), stderr: new(Output), exited: make(chan struct{})}
	s.client = sync.OnceValue(func() *Kubectl { return newKubectl(t, o.Release, s.Kubeconfig) })
	s.cmd = exec.Command(program, o.args()...)
	s.cmd.Dir, s.cmd.Stdout, s.cmd.Stderr = o.Dir, s.stdout, s.stderr
	if err := s.cmd.Start(); err != nil {
		t.Fatal(err)
	}
	go func() { // ends with the process, which cleanup ends
		err := s.cmd.Wait()
		s.mu.Lock()
		s.code = exitCode(err)
		s.mu.Unlock()
		close(s.exited)
	}()
	t.Cleanup(s.cleanup)
	return s
}

func (o Options) args() []string {
	or := func(s, otherwise string) string {
		if s == "" {
			return otherwise
		}
		return s
	}
	if o.example() == controlPlane {
		return o.controlPlaneArgs()
	}
	args := []string{
		"-listen=" + or(o.Listen, "127.0.0.1:0"),
		"-data=" + or(o.Data, filepath.Join(o.Dir, o.example()+".db")),
		"-kubeconfig=" + or(o.Kubeconfig, filepath.Join(o.Dir, o.example()+".kubeconfig")),
	}
	if o.Etcd != "" {
		args = append(args, "-etcd="+o.Etcd)
	}
	return append(args, o.Flags...)
}

func (o Options) controlPlaneArgs() []string {
	where := "--storage-file=" + cmp.Or(o.Data, filepath.Join(o.Dir, controlPlane+".db"))
	if o.Etcd != "" {
		where = "--etcd-servers=" + o.Etcd
	}
	return append([]string{"--bind-address=127.0.0.1", "--secure-port=0", "--cert-dir=" + filepath.Join(o.Dir, "certs"), where}, o.Flags...)
}

func exitCode(err error) int {
	if exit := new(exec.ExitError); errors.As(err, &exit) {
		return exit.ExitCode()
	}
	if err != nil {
		return -2
	}
	return 0
}

// cleanup stops a running server and checks its exit, unless the test has done that.
func (s *Server) cleanup() {
	s.mu.Lock()
	waited := s.waited
	s.mu.Unlock()
	if !waited {
		s.Stop()
	}
	if s.t.Failed() {
		s.t.Logf("stderr of %s:\n%s", s.name, s.stderr)
	}
}

// Stop sends SIGTERM. It fails the test unless the process then exits with 0 and has written only its ready line to stdout.
func (s *Server) Stop() {
	s.t.Helper()
	s.Signal(syscall.SIGTERM)
	if code := s.Wait(); code != 0 {
		s.t.Errorf("%s exited with %d after SIGTERM; stderr:\n%s", s.name, code, s.stderr)
	}
	if !readyLine.MatchString(s.stdout.String()) {
		s.t.Errorf("stdout of %s is not the one ready line: %q", s.name, s.stdout)
	}
}

// Kill ends the process at once, as kill -9 does.
func (s *Server) Kill() {
	s.t.Helper()
	s.Signal(syscall.SIGKILL)
	s.Wait()
}

// Signal sends a signal to the process. It is no error if the process has ended.
func (s *Server) Signal(sig os.Signal) {
	s.t.Helper()
	if err := s.cmd.Process.Signal(sig); err != nil && !errors.Is(err, os.ErrProcessDone) {
		s.t.Errorf("sending %v to %s: %v", sig, s.name, err)
	}
}

// Wait waits for the end of the process and returns its exit code, or -1 after a signal. After ExitTimeout it kills the process
// and fails the test.
func (s *Server) Wait() int {
	s.t.Helper()
	timer := time.NewTimer(ExitTimeout)
	defer timer.Stop()
	select {
	case <-s.exited:
	case <-timer.C:
		_ = s.cmd.Process.Signal(syscall.SIGQUIT) // makes it print its goroutines to stderr
		select {
		case <-s.exited:
		case <-time.After(5 * time.Second):
			_ = s.cmd.Process.Kill()
			<-s.exited
		}
		s.t.Errorf("%s did not exit; stderr:\n%s", s.name, s.stderr)
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.waited = true
	return s.code
}

// Exited returns a channel that is closed when the process has ended.
func (s *Server) Exited() <-chan struct{} { return s.exited }

func (s *Server) exitedNow() bool {
	select {
	case <-s.exited:
		return true
	default:
		return false
	}
}

// Stdout returns the standard output of the process so far.
func (s *Server) Stdout() string { return s.stdout.String() }

// Stderr returns the standard error of the process so far.
func (s *Server) Stderr() string { return s.stderr.String() }

// Config returns a client configuration from the kubeconfig, without a client-side rate limit.
func (s *Server) Config() *rest.Config {
	s.t.Helper()
	c, err := clientcmd.BuildConfigFromFlags("", s.Kubeconfig)
	if err != nil {
		s.t.Fatal(err)
	}
	c.QPS = -1
	return c
}
