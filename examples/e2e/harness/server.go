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

// StartTimeout is how long a server may take to be ready, and ExitTimeout to be gone. Both are generous: they end
// a test that would hang, they do not measure.
const (
	StartTimeout = 60 * time.Second
	ExitTimeout  = 60 * time.Second
)

// Options says how to start an example. The zero Options is hello, on a free port on 127.0.0.1 and with a new data file.
type Options struct {
	// Example is the program, hello, wardrobe, crds or controlplane; "" is hello. The controlplane has the flags of
	// kube-apiserver, for which Data, Etcd and Flags are taken; it is on a free port on 127.0.0.1, and its certificates are in
	// certs in Dir.
	Example string
	// Dir is the working directory, with the data file and the kubeconfig; "" is a new one.
	Dir string
	// Listen, Data and Kubeconfig are its flags; "" is 127.0.0.1:0, and in Dir the example's name with .db and
	// .kubeconfig.
	Listen, Data, Kubeconfig string
	// Etcd is hello's flag, and that of crds, and the endpoint of controlplane; "" is none.
	Etcd string
	// Flags are others of the example's flags, such as -lenient-namespaces.
	Flags []string
}

// Server is a running example.
type Server struct {
	URL        string // https://HOST:PORT, from the ready line
	Kubeconfig string // from the ready line; "" is none, of a controlplane whose users are given
	Dir        string
	Etcd       string // where it keeps its objects; "" is in the data file

	t      testing.TB
	name   string          // of the example
	client func() *Kubectl // one per server, so that its cached discovery is used as a user's is
	cmd    *exec.Cmd
	stdout *Output
	stderr *Output
	exited chan struct{} // closed when the process is gone

	mu     sync.Mutex
	code   int  // after exited; -1 when a signal ended it
	waited bool // guarded by mu: somebody has looked at how the process ended
}

// Output collects what a process writes. Its methods may be called concurrently.
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

// String returns all that was written until now.
func (o *Output) String() string {
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.buf.String()
}

var readyLine = regexp.MustCompile(`^ready (https://\S+) kubeconfig=(.*)\n$`)

// Start starts the example and waits until it says that it is ready. The server ends with the test at the latest.
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
	s.client = sync.OnceValue(func() *Kubectl { return NewKubectl(t, s.Kubeconfig) })
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

// cleanup stops what still runs and judges how it ended, unless the test has done that.
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

// Stop sends SIGTERM and fails the test unless the process then exits with 0, having written nothing to stdout but
// its ready line.
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

// Signal sends a signal to the process; a process that is gone is no error.
func (s *Server) Signal(sig os.Signal) {
	s.t.Helper()
	if err := s.cmd.Process.Signal(sig); err != nil && !errors.Is(err, os.ErrProcessDone) {
		s.t.Errorf("sending %v to %s: %v", sig, s.name, err)
	}
}

// Wait waits for the process to end and returns its exit code, -1 when a signal ended it. After ExitTimeout the
// process is killed and the test fails.
func (s *Server) Wait() int {
	s.t.Helper()
	timer := time.NewTimer(ExitTimeout)
	defer timer.Stop()
	select {
	case <-s.exited:
	case <-timer.C:
		_ = s.cmd.Process.Signal(syscall.SIGQUIT) // its goroutines show in stderr
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

// Exited is closed when the process is gone.
func (s *Server) Exited() <-chan struct{} { return s.exited }

func (s *Server) exitedNow() bool {
	select {
	case <-s.exited:
		return true
	default:
		return false
	}
}

// Stdout and Stderr return what the process has written until now.
func (s *Server) Stdout() string { return s.stdout.String() }

// Stderr is Stdout for the other stream.
func (s *Server) Stderr() string { return s.stderr.String() }

// Config is a client's configuration from the kubeconfig, without a client-side rate limit.
func (s *Server) Config() *rest.Config {
	s.t.Helper()
	c, err := clientcmd.BuildConfigFromFlags("", s.Kubeconfig)
	if err != nil {
		s.t.Fatal(err)
	}
	c.QPS = -1
	return c
}
