package harness

import (
	"bytes"
	"context"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

// kubectlTimeout ends a kubectl that hangs.
const kubectlTimeout = 60 * time.Second

// Kubectl runs kubectl against one server, with a home directory of its own. The zero Kubectl is useless; make it
// with NewKubectl.
type Kubectl struct {
	t    testing.TB
	home string
	env  []string
}

// NewKubectl returns a kubectl that uses a kubeconfig file; env are further NAME=value pairs.
func NewKubectl(t testing.TB, kubeconfig string, env ...string) *Kubectl {
	home := t.TempDir()
	return &Kubectl{t: t, home: home, env: append([]string{
		"HOME=" + home, "KUBECONFIG=" + kubeconfig, "PATH=" + os.Getenv("PATH"), "TMPDIR=" + os.TempDir(), "TERM=dumb", "LANG=C",
	}, env...)}
}

// Kubectl runs one command against the server; see (*Kubectl).Run.
func (s *Server) Kubectl(args ...string) Result {
	s.t.Helper()
	return s.client().Run("", args...)
}

// KubectlWith is Kubectl with an input, for -f -.
func (s *Server) KubectlWith(stdin string, args ...string) Result {
	s.t.Helper()
	return s.client().Run(stdin, args...)
}

// KubectlEnv is Kubectl with further environment variables, NAME=value.
func (s *Server) KubectlEnv(env []string, args ...string) Result {
	s.t.Helper()
	k := *s.client()
	k.env = append(k.env[:len(k.env):len(k.env)], env...)
	return k.Run("", args...)
}

// Result is what a command did.
type Result struct {
	t    testing.TB
	args []string

	Stdout, Stderr string
	Code           int
}

// Run runs kubectl with stdin as its input, and waits for it.
func (k *Kubectl) Run(stdin string, args ...string) Result {
	k.t.Helper()
	program, err := kubectlBinary()
	if err != nil {
		k.t.Fatal(err)
	}
	ctx, cancel := context.WithTimeout(context.Background(), kubectlTimeout)
	defer cancel()
	var stdout, stderr bytes.Buffer
	cmd := exec.CommandContext(ctx, program, args...)
	cmd.Env, cmd.Dir = k.env, k.home
	cmd.Stdin, cmd.Stdout, cmd.Stderr = strings.NewReader(stdin), &stdout, &stderr
	err = cmd.Run()
	r := Result{t: k.t, args: args, Stdout: stdout.String(), Stderr: stderr.String(), Code: exitCode(err)}
	if ctx.Err() != nil {
		k.t.Fatalf("kubectl did not end: %s", r)
	}
	return r
}

// Process is a kubectl that runs beside the test.
type Process struct {
	Stdout, Stderr *Output

	t      testing.TB
	stop   context.CancelFunc
	exited chan struct{} // closed when the process is gone
	err    error         // after exited
}

// Begin starts kubectl and does not wait for it. It ends with the test at the latest.
func (s *Server) Begin(args ...string) *Process {
	s.t.Helper()
	program, err := kubectlBinary()
	if err != nil {
		s.t.Fatal(err)
	}
	k := s.client()
	ctx, cancel := context.WithCancel(context.Background())
	p := &Process{Stdout: new(Output), Stderr: new(Output), t: s.t, stop: cancel, exited: make(chan struct{})}
	cmd := exec.CommandContext(ctx, program, args...)
	cmd.Env, cmd.Dir, cmd.Stdout, cmd.Stderr = k.env, k.home, p.Stdout, p.Stderr
	cmd.WaitDelay = ExitTimeout
	if err := cmd.Start(); err != nil {
		s.t.Fatal(err)
	}
	go func() { // ends with the process, which cancel ends
		p.err = cmd.Wait()
		close(p.exited)
	}()
	s.t.Cleanup(func() { cancel(); <-p.exited })
	return p
}

// Wait waits for the process to end by itself and returns its exit code.
func (p *Process) Wait() int {
	p.t.Helper()
	Eventually(p.t, "kubectl ends", func() bool { return p.Exited() })
	return exitCode(p.err)
}

// Exited reports whether the process is gone.
func (p *Process) Exited() bool {
	select {
	case <-p.exited:
		return true
	default:
		return false
	}
}

// Kill ends the process.
func (p *Process) Kill() { p.stop(); <-p.exited }

// String is the command and what it printed.
func (r Result) String() string {
	return "kubectl " + strings.Join(r.args, " ") + "\nstdout:\n" + r.Stdout + "\nstderr:\n" + r.Stderr
}

// OK fails the test at once unless the command exited with 0.
func (r Result) OK() Result {
	r.t.Helper()
	if r.Code != 0 {
		r.t.Fatalf("exit code %d: %s", r.Code, r)
	}
	return r
}

// Want is OK, and stdout and stderr are exactly these.
func (r Result) Want(stdout, stderr string) Result {
	r.t.Helper()
	r.OK()
	if r.Stdout != stdout || r.Stderr != stderr {
		r.t.Errorf("want stdout %q and stderr %q: %s", stdout, stderr, r)
	}
	return r
}

// Contains is OK, and stdout has all of these in it.
func (r Result) Contains(parts ...string) Result {
	r.t.Helper()
	r.OK()
	for _, p := range parts {
		if !strings.Contains(r.Stdout, p) {
			r.t.Errorf("stdout has no %q: %s", p, r)
		}
	}
	return r
}

// Fails fails the test unless the command failed and stderr has this in it.
func (r Result) Fails(stderr string) Result {
	r.t.Helper()
	if r.Code == 0 || !strings.Contains(r.Stderr, stderr) {
		r.t.Errorf("want a failure that says %q, got exit code %d: %s", stderr, r.Code, r)
	}
	return r
}

// File writes a file below the kubectl's home and returns its path.
func (s *Server) File(name, content string, mode os.FileMode) string {
	s.t.Helper()
	path := filepath.Join(s.client().home, name)
	if err := os.WriteFile(path, []byte(content), mode); err != nil {
		s.t.Fatal(err)
	}
	return path
}
