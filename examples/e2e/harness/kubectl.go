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

// commandTimeout is the timeout of a command.
const commandTimeout = 60 * time.Second

// Program runs a command-line client against one server, with a home directory of its own. Make it with NewKubectl or NewHelm;
// the zero Program cannot be used.
type Program struct {
	t      testing.TB
	name   string
	binary func() (string, error) // builds the program if necessary
	home   string
	env    []string
}

// newProgram returns a program that uses a kubeconfig file; env has further NAME=value pairs.
func newProgram(t testing.TB, name string, binary func() (string, error), kubeconfig string, env []string) Program {
	home := t.TempDir()
	return Program{t: t, name: name, binary: binary, home: home, env: append([]string{
		"HOME=" + home, "KUBECONFIG=" + kubeconfig, "PATH=" + os.Getenv("PATH"), "TMPDIR=" + home, "TERM=dumb", "LANG=C",
	}, env...)}
}

// Kubectl is the real kubectl.
type Kubectl struct{ Program }

// NewKubectl returns a kubectl that uses a kubeconfig file; env has further NAME=value pairs.
func NewKubectl(t testing.TB, kubeconfig string, env ...string) *Kubectl {
	return newKubectl(t, "", kubeconfig, env...)
}

// newKubectl is NewKubectl for the kubectl of a release; "" means the present one.
func newKubectl(t testing.TB, release, kubeconfig string, env ...string) *Kubectl {
	t.Helper()
	if release == "" {
		return &Kubectl{newProgram(t, "kubectl", kubectlBinary, kubeconfig, env)}
	}
	return &Kubectl{newProgram(t, "kubectl of "+release, older(t, release).kubectl, kubeconfig, env)}
}

// Kubectl runs one command against the server; see (*Program).Run.
func (s *Server) Kubectl(args ...string) Result {
	s.t.Helper()
	return s.client().Run("", args...)
}

// KubectlWith is Kubectl with standard input, for -f -.
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

// Result is the result of a command.
type Result struct {
	t    testing.TB
	args []string // including the program's name

	// Stdout and Stderr are the output of the command.
	Stdout, Stderr string
	// Code is the exit code.
	Code int
}

// Run runs the program with stdin as its input, and waits for it.
func (p *Program) Run(stdin string, args ...string) Result {
	p.t.Helper()
	path := p.path() // may take minutes to build
	ctx, cancel := context.WithTimeout(context.Background(), commandTimeout)
	defer cancel()
	cmd := p.command(ctx, path, args)
	cmd.Stdin = strings.NewReader(stdin)
	return p.run(ctx, cmd, append([]string{p.name}, args...)...)
}

// run runs a command, which args describes in messages.
func (p *Program) run(ctx context.Context, cmd *exec.Cmd, args ...string) Result {
	p.t.Helper()
	var stdout, stderr bytes.Buffer
	cmd.Stdout, cmd.Stderr = &stdout, &stderr
	err := cmd.Run()
	r := Result{t: p.t, args: args, Stdout: stdout.String(), Stderr: stderr.String(), Code: exitCode(err)}
	if ctx.Err() != nil {
		p.t.Fatalf("%s did not end: %s", p.name, r)
	}
	return r
}

// path returns the path of the program after it is built.
func (p *Program) path() string {
	p.t.Helper()
	path, err := p.binary()
	if err != nil {
		p.t.Fatal(err)
	}
	return path
}

// Shell runs a line of a POSIX shell in dir, with the program as a command of its name, and waits for it.
func (p *Program) Shell(dir, line string) Result {
	p.t.Helper()
	bin := filepath.Dir(p.path())
	ctx, cancel := context.WithTimeout(context.Background(), commandTimeout)
	defer cancel()
	cmd := exec.CommandContext(ctx, "sh", "-c", line)
	cmd.Dir, cmd.Env = dir, append(p.env[:len(p.env):len(p.env)], "PATH="+bin+string(os.PathListSeparator)+os.Getenv("PATH"))
	return p.run(ctx, cmd, line)
}

func (p *Program) command(ctx context.Context, path string, args []string) *exec.Cmd {
	cmd := exec.CommandContext(ctx, path, args...)
	cmd.Env, cmd.Dir = p.env, p.home
	return cmd
}

// Process is a program that runs in the background.
type Process struct {
	// Stdout and Stderr are the output so far.
	Stdout, Stderr *Output

	t      testing.TB
	name   string
	stop   context.CancelFunc
	exited chan struct{} // closed when the process has ended
	err    error         // valid after exited is closed
}

// Begin starts kubectl and does not wait for it; see (*Program).Begin.
func (s *Server) Begin(args ...string) *Process {
	s.t.Helper()
	return s.client().Begin(args...)
}

// Begin starts the program and does not wait for it. The program is ended at the end of the test at the latest.
func (p *Program) Begin(args ...string) *Process {
	p.t.Helper()
	path := p.path()
	ctx, cancel := context.WithCancel(context.Background())
	running := &Process{Stdout: new(Output), Stderr: new(Output), t: p.t, name: p.name, stop: cancel, exited: make(chan struct{})}
	cmd := p.command(ctx, path, args)
	cmd.Stdout, cmd.Stderr = running.Stdout, running.Stderr
	cmd.WaitDelay = ExitTimeout
	if err := cmd.Start(); err != nil {
		cancel()
		p.t.Fatal(err)
	}
	go func() { // ends with the process, which cancel ends
		running.err = cmd.Wait()
		close(running.exited)
	}()
	p.t.Cleanup(func() { cancel(); <-running.exited })
	return running
}

// Wait waits for the process to end by itself and returns its exit code.
func (p *Process) Wait() int {
	p.t.Helper()
	Eventually(p.t, p.name+" ends", func() bool { return p.Exited() })
	return exitCode(p.err)
}

// Exited reports whether the process has ended.
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

// String returns the command and its output.
func (r Result) String() string {
	return strings.Join(r.args, " ") + "\nstdout:\n" + r.Stdout + "\nstderr:\n" + r.Stderr
}

// OK fails the test at once unless the command exited with 0.
func (r Result) OK() Result {
	r.t.Helper()
	if r.Code != 0 {
		r.t.Fatalf("exit code %d: %s", r.Code, r)
	}
	return r
}

// Want is OK, and also requires exactly this stdout and stderr.
func (r Result) Want(stdout, stderr string) Result {
	r.t.Helper()
	r.OK()
	if r.Stdout != stdout || r.Stderr != stderr {
		r.t.Errorf("want stdout %q and stderr %q: %s", stdout, stderr, r)
	}
	return r
}

// Contains is OK, and also requires that stdout contains all parts.
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

// Fails fails the test unless the command failed and stderr contains all parts.
func (r Result) Fails(parts ...string) Result {
	r.t.Helper()
	for _, p := range parts {
		if r.Code == 0 || !strings.Contains(r.Stderr, p) {
			r.t.Errorf("want a failure that says %q, got exit code %d: %s", p, r.Code, r)
		}
	}
	return r
}

// File writes a file below kubectl's home directory and returns its path.
func (s *Server) File(name, content string, mode os.FileMode) string {
	s.t.Helper()
	return s.client().File(name, content, mode)
}

// File writes a file below the program's home directory and returns its path.
func (p *Program) File(name, content string, mode os.FileMode) string {
	p.t.Helper()
	path := filepath.Join(p.home, name)
	if err := os.WriteFile(path, []byte(content), mode); err != nil {
		p.t.Fatal(err)
	}
	return path
}
