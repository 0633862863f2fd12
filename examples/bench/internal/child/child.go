package child

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"slices"
	"strings"
	"sync"
	"syscall"
	"time"

	"github.com/keelson-dev/keelson/examples/bench/internal/program"
)

// These timeouts end a child that hangs.
const (
	startTimeout  = 60 * time.Second
	answerTimeout = 60 * time.Second
	endTimeout    = 20 * time.Second
)

// apart is the time between two different signals that must arrive in order: of pending signals the lower number is delivered
// first.
const apart = 50 * time.Millisecond

// Command describes the program to start.
type Command struct {
	Name    string   // for errors
	Program string   // path
	Args    []string // after the program's name
	// Profile is the path of the file for SIGUSR2's profile; "" means none.
	Profile string
}

// Child is a running program.
type Child struct {
	URL   string        // from the ready line
	Ready time.Duration // from the start of the process to the ready line
	// PID is the process id.
	PID int

	name    string
	profile string
	family  *Family
	cmd     *exec.Cmd
	began   time.Time
	lines   chan string   // lines of stdout; closed at its end
	exited  chan struct{} // closed when the process has ended
	err     error         // error of the process; valid after exited is closed
	stderr  tail
}

// Start starts a program and waits until it is ready.
func (f *Family) Start(ctx context.Context, cmd Command) (*Child, error) {
	c := &Child{
		name: cmd.Name, profile: cmd.Profile, family: f, lines: make(chan string, 16), exited: make(chan struct{}),
		cmd: exec.Command(cmd.Program, cmd.Args...),
	}
	c.cmd.Env = append(environment(), program.ProfileVariable+"="+cmd.Profile)
	c.cmd.SysProcAttr, c.cmd.Stderr = attributes(), &c.stderr
	stdout, err := c.cmd.StdoutPipe()
	if err != nil {
		return nil, err
	}
	c.began = time.Now()
	if err := f.start(c, c.cmd); err != nil {
		return nil, fmt.Errorf("starting %s: %w", c.name, err)
	}
	c.PID = c.cmd.Process.Pid
	go c.follow(stdout) // ends with the process, for which Stop waits
	line, err := c.line(ctx, startTimeout)
	c.Ready = time.Since(c.began)
	if err != nil {
		_ = c.Stop(ctx)
		return nil, fmt.Errorf("waiting for %s to be ready: %w%s", c.name, err, c.stderr.quote())
	}
	url, ok := strings.CutPrefix(line, "ready ")
	if !ok {
		_ = c.Stop(ctx)
		return nil, fmt.Errorf("%s wrote %q instead of \"ready URL\"%s", c.name, line, c.stderr.quote())
	}
	c.URL = url
	return c, nil
}

// environment returns the environment of this process without the variables that tune the collector, which only some servers
// would use.
func environment() []string {
	return slices.DeleteFunc(os.Environ(), func(variable string) bool {
		name, _, _ := strings.Cut(variable, "=")
		return slices.Contains([]string{"GOGC", "GOMEMLIMIT", "GOMAXPROCS", "GODEBUG"}, name)
	})
}

// Began returns the time at which the process was started.
func (c *Child) Began() time.Time { return c.began }

// follow passes on the lines and waits for the process.
func (c *Child) follow(stdout io.Reader) {
	scanner := bufio.NewScanner(stdout)
	for scanner.Scan() {
		select {
		case c.lines <- scanner.Text():
		default: // drop lines that nobody has requested
		}
	}
	_, _ = io.Copy(io.Discard, stdout) // after a line that is too long for the scanner
	c.err = c.cmd.Wait()
	close(c.lines)
	close(c.exited)
}

var errEnded = errors.New("it has ended")

// line returns the next line of stdout.
func (c *Child) line(ctx context.Context, timeout time.Duration) (string, error) {
	timer := time.NewTimer(timeout)
	defer timer.Stop()
	select {
	case line, ok := <-c.lines:
		if !ok {
			return "", fmt.Errorf("%w: %v", errEnded, c.err)
		}
		return line, nil
	case <-timer.C:
		return "", fmt.Errorf("no line on stdout after %v", timeout)
	case <-ctx.Done():
		return "", context.Cause(ctx)
	}
}

// Heap makes the program collect its garbage and returns its report. Only one goroutine at a time may call Heap or Profile of a
// child.
func (c *Child) Heap(ctx context.Context) (program.Report, error) {
	if err := ask(c.cmd.Process, heapSignal); err != nil {
		return program.Report{}, fmt.Errorf("asking %s for its heap: %w%s", c.name, err, c.stderr.quote())
	}
	line, err := c.line(ctx, answerTimeout)
	if err != nil {
		return program.Report{}, fmt.Errorf("asking %s for its heap: %w%s", c.name, err, c.stderr.quote())
	}
	var heap program.Report
	if err := json.Unmarshal([]byte(line), &heap); err != nil {
		return program.Report{}, fmt.Errorf("reading what %s says of its heap, %q: %w", c.name, line, err)
	}
	return heap, nil
}

// Profile begins a CPU profile and returns a function that ends it and moves it to a file.
func (c *Child) Profile() (end func(ctx context.Context, file string) error, err error) {
	if c.profile == "" {
		return nil, fmt.Errorf("%s was started without a file for profiles", c.name)
	}
	if err := ask(c.cmd.Process, profileSignal); err != nil {
		return nil, fmt.Errorf("beginning a profile of %s: %w", c.name, err)
	}
	// Two pending signals of one kind may be delivered as one: wait until the first one has been handled.
	for n := 0; ; n++ {
		if _, err := os.Stat(c.profile); err == nil {
			break
		} else if n == 1000 {
			return nil, fmt.Errorf("%s begins no profile: %w", c.name, err)
		}
		time.Sleep(apart / 10)
	}
	return func(ctx context.Context, file string) error {
		if err := ask(c.cmd.Process, profileSignal); err != nil {
			return fmt.Errorf("ending a profile of %s: %w", c.name, err)
		}
		time.Sleep(apart)
		if _, err := c.Heap(ctx); err != nil { // signals are handled in order, so the profile is written after this
			return err
		}
		return os.Rename(c.profile, file)
	}, nil
}

// Stop ends the program and waits for its end. It kills the program if it does not end by itself in time or if ctx ends. It is no
// error if the program has already ended, unless it failed.
func (c *Child) Stop(ctx context.Context) error {
	defer c.family.leave(c)
	_ = c.cmd.Process.Signal(syscall.SIGTERM) // ignore the error: it may have ended
	timer := time.NewTimer(endTimeout)
	defer timer.Stop()
	forced := ""
	select {
	case <-c.exited:
	case <-timer.C:
		forced = fmt.Sprintf("did not end within %v of SIGTERM", endTimeout)
	case <-ctx.Done():
		forced = "was killed: " + context.Cause(ctx).Error()
	}
	if forced != "" {
		_ = c.cmd.Process.Kill()
		<-c.exited
		return fmt.Errorf("%s %s%s", c.name, forced, c.stderr.quote())
	}
	if c.err != nil {
		return fmt.Errorf("%s ended: %w%s", c.name, c.err, c.stderr.quote())
	}
	return nil
}

// tail stores the end of a child's stderr. Its methods may be called concurrently.
type tail struct {
	mu  sync.Mutex
	buf []byte // guarded by mu
}

const tailBytes = 4 << 10

// Write never fails.
func (t *tail) Write(p []byte) (int, error) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.buf = append(t.buf, p...)
	if over := len(t.buf) - tailBytes; over > tailBytes {
		t.buf = append(t.buf[:0], t.buf[over:]...)
	}
	return len(p), nil
}

// quote returns the last output of the child for an error text.
func (t *tail) quote() string {
	t.mu.Lock()
	defer t.mu.Unlock()
	if len(t.buf) == 0 {
		return ""
	}
	return "\nthe end of its stderr:\n" + string(t.buf[max(0, len(t.buf)-tailBytes):])
}
