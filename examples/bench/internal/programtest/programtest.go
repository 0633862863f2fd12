// Package programtest runs the programs of the bench in tests, as child processes.
//
// An environment variable makes a test binary run the program of its package, so that nothing has to be built:
//
//	func TestMain(m *testing.M) { os.Exit(programtest.Main(m, main)) }
//
//	func TestServes(t *testing.T) {
//		p := programtest.Start(t, "-addr", "127.0.0.1:0", "-token", "secret")
//		p.Get("/readyz").Want(http.StatusOK)
//		p.Stop().Want(0)
//	}
//
// A Process belongs to one test and is stopped when the test ends. The test fails unless the process then exits with 0.
package programtest

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"
)

// variable is the environment variable that makes a test binary the program.
const variable = "BENCH_TEST_PROGRAM"

// waitTime is the timeout of every wait. It is long because a machine may be busy.
const waitTime = 60 * time.Second

// Main runs the tests of a package. In a child process it calls main instead, and exits.
func Main(m *testing.M, main func()) int {
	if os.Getenv(variable) != "" {
		main()
		return 0
	}
	return m.Run()
}

// Process is a program that is running or has ended.
type Process struct {
	URL string // from the ready line

	t       testing.TB
	cmd     *exec.Cmd
	stdout  *lines
	stderr  *buffer
	exited  chan struct{} // closed when the process has ended
	code    int           // valid after exited is closed
	checked bool          // the test has checked the exit status
	client  client
}

// Start runs the program of the test's package, and waits until it is ready.
func Start(t testing.TB, args ...string) *Process {
	t.Helper()
	return StartFile(t, self(t), args...)
}

// StartFile is Start for a program that Build has built.
func StartFile(t testing.TB, path string, args ...string) *Process {
	t.Helper()
	p := Begin(t, path, args...)
	line := p.Line()
	url, ok := strings.CutPrefix(line, "ready ")
	if !ok {
		t.Fatalf("the first line is %q, want ready URL; stderr: %s", line, p.stderr)
	}
	p.URL = url
	p.client = newClient(t, args)
	return p
}

// Run runs the program of the test's package to its end.
func Run(t testing.TB, args ...string) *Process {
	t.Helper()
	p := Begin(t, self(t), args...)
	p.wait()
	return p
}

// Build builds the program of a package of this module, with a path relative to the test, and returns the path of the program.
func Build(t testing.TB, pkg string) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), filepath.Base(pkg))
	ctx, cancel := context.WithTimeout(t.Context(), 10*time.Minute)
	defer cancel()
	if out, err := exec.CommandContext(ctx, "go", "build", "-o", path, pkg).CombinedOutput(); err != nil {
		t.Fatalf("building %s: %v\n%s", pkg, err, out)
	}
	return path
}

func self(t testing.TB) string {
	path, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	return path
}

// Begin starts a program and does not wait for it.
func Begin(t testing.TB, path string, args ...string) *Process {
	t.Helper()
	p := &Process{t: t, stdout: newLines(), stderr: new(buffer), exited: make(chan struct{})}
	p.cmd = exec.Command(path, args...)
	p.cmd.Env = append(os.Environ(), variable+"=1", "BENCH_PROFILE="+filepath.Join(t.TempDir(), "profile"))
	p.cmd.Stderr = p.stderr
	out, err := p.cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := p.cmd.Start(); err != nil {
		t.Fatal(err)
	}
	go func() { // ends with the process
		defer close(p.exited)
		p.stdout.read(out)
		err := p.cmd.Wait()
		if exit := (*exec.ExitError)(nil); errors.As(err, &exit) {
			p.code = exit.ExitCode()
		} else if err != nil {
			p.code = -1
		}
	}()
	t.Cleanup(func() {
		if !p.checked {
			p.Stop().Want(0)
		}
		p.client.close()
	})
	return p
}

// Profile returns the path of the file that BENCH_PROFILE names.
func (p *Process) Profile() string {
	last, _ := strings.CutPrefix(p.cmd.Env[len(p.cmd.Env)-1], "BENCH_PROFILE=")
	return last
}

// Line waits for the next line of stdout.
func (p *Process) Line() string {
	p.t.Helper()
	line, ok := p.stdout.next(p.exited)
	if !ok {
		_ = p.cmd.Process.Kill()
		<-p.exited
		p.t.Fatalf("there is no line on stdout; stderr: %s", p.stderr)
	}
	return line
}

// Lines returns the lines of stdout that Line has not returned.
func (p *Process) Lines() []string { return p.stdout.rest() }

// Stderr returns the standard error of the program so far.
func (p *Process) Stderr() string { return p.stderr.String() }

// Signal sends a signal, if the program has not ended.
func (p *Process) Signal(s os.Signal) {
	p.t.Helper()
	if err := p.cmd.Process.Signal(s); err != nil && !errors.Is(err, os.ErrProcessDone) {
		p.t.Fatal(err)
	}
}

// Stop ends the program with SIGTERM, unless it has ended, and waits for its end.
func (p *Process) Stop() *Process {
	p.t.Helper()
	terminate(p.cmd.Process) // ignored if it has ended
	p.wait()
	return p
}

// Exited reports whether the program has ended.
func (p *Process) Exited() bool {
	select {
	case <-p.exited:
		return true
	default:
		return false
	}
}

// Kill kills the program and waits for its end.
func (p *Process) Kill() {
	p.checked = true
	_ = p.cmd.Process.Kill()
	<-p.exited
}

func (p *Process) wait() {
	p.t.Helper()
	select {
	case <-p.exited:
	case <-time.After(waitTime):
		_ = p.cmd.Process.Kill()
		<-p.exited
		p.t.Errorf("%s did not end; stderr: %s", p.cmd, p.stderr)
	}
}

// Want fails the test unless the program has exited with code, and its stderr contains all of the texts.
func (p *Process) Want(code int, stderr ...string) {
	p.t.Helper()
	p.checked = true
	if p.code != code {
		p.t.Errorf("%s ended with %d, want %d; stderr: %s", p.cmd, p.code, code, p.stderr)
	}
	for _, part := range stderr {
		if !strings.Contains(p.stderr.String(), part) {
			p.t.Errorf("stderr of %s has no %q: %s", p.cmd, part, p.stderr)
		}
	}
}

// buffer is a bytes.Buffer for concurrent use by a process and a test.
type buffer struct {
	mu sync.Mutex // guards b
	b  bytes.Buffer
}

func (b *buffer) Write(p []byte) (int, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.b.Write(p)
}

func (b *buffer) String() string {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.b.String()
}

// lines has the lines of a stream.
type lines struct {
	mu  sync.Mutex // guards all fields
	all []string
	new chan struct{} // capacity 1; receives a value when a line is added
}

func newLines() *lines { return &lines{new: make(chan struct{}, 1)} }

// read adds lines until the stream ends.
func (l *lines) read(r io.Reader) {
	for s := bufio.NewScanner(r); s.Scan(); {
		l.mu.Lock()
		l.all = append(l.all, s.Text())
		l.mu.Unlock()
		select {
		case l.new <- struct{}{}:
		default:
		}
	}
}

// next waits for the next line, removes it and returns it.
func (l *lines) next(ended <-chan struct{}) (string, bool) {
	timeout := time.After(waitTime)
	for {
		if line, ok := l.take(); ok {
			return line, true
		}
		select {
		case <-l.new:
		case <-ended:
			return l.take()
		case <-timeout:
			return "", false
		}
	}
}

func (l *lines) take() (string, bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if len(l.all) == 0 {
		return "", false
	}
	line := l.all[0]
	l.all = l.all[1:]
	return line, true
}

func (l *lines) rest() []string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return slices.Clone(l.all)
}
