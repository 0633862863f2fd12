//go:build unix

package child_test

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/signal"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/keelson-dev/keelson/examples/bench/internal/child"
	"github.com/keelson-dev/keelson/examples/bench/internal/program"
)

// TestMain makes this binary the child processes of its tests: its first argument selects one.
func TestMain(m *testing.M) {
	if len(os.Args) == 2 && roles()[os.Args[1]] != nil {
		os.Exit(roles()[os.Args[1]]())
	}
	os.Exit(m.Run())
}

func roles() map[string]func() int {
	return map[string]func() int{
		"server": func() int { // like the programs of this module
			flags := new(program.Options).Flags("server")
			return program.Run(flags, nil, func(ctx context.Context, p *program.Process) error {
				p.Ready("https://192.0.2.1:443")
				<-ctx.Done()
				return nil
			})
		},
		"failing": func() int {
			fmt.Fprintln(os.Stderr, "the disk is full")
			return 3
		},
		"chatting": func() int {
			fmt.Println("good morning")
			select {}
		},
		"failing-at-the-end": func() int {
			signals := make(chan os.Signal, 1)
			signal.Notify(signals, syscall.SIGTERM)
			fmt.Println("ready https://192.0.2.1:443")
			<-signals
			fmt.Fprintln(os.Stderr, "cannot write the last page")
			return 4
		},
		"deaf": func() int {
			signal.Ignore(syscall.SIGTERM)
			fmt.Println("ready https://192.0.2.1:443")
			select {}
		},
	}
}

func start(t *testing.T, f *child.Family, role, profile string) (*child.Child, error) {
	t.Helper()
	return f.Start(t.Context(), child.Command{Name: "the " + role + " program", Program: os.Args[0], Args: []string{role}, Profile: profile})
}

func family(t *testing.T) *child.Family {
	f := child.NewFamily()
	t.Cleanup(f.Close)
	return f
}

// alive reports whether a process exists; one that has ended and was waited for does not.
func alive(pid int) bool { return syscall.Kill(pid, 0) == nil }

func TestAChildLives(t *testing.T) {
	dir := t.TempDir()
	c, err := start(t, family(t), "server", dir+"/profile")
	if err != nil {
		t.Fatal(err)
	}
	if c.URL != "https://192.0.2.1:443" || c.Ready <= 0 || !alive(c.PID) {
		t.Errorf("URL %s, ready after %v, alive %v", c.URL, c.Ready, alive(c.PID))
	}
	for range 2 { // the answers are in order
		heap, err := c.Heap(t.Context())
		if err != nil || heap.HeapLive == 0 || heap.Mallocs == 0 {
			t.Errorf("heap %+v, %v", heap, err)
		}
	}
	end, err := c.Profile()
	if err != nil {
		t.Fatal(err)
	}
	if err := end(t.Context(), dir+"/moved"); err != nil {
		t.Error(err)
	}
	if info, err := os.Stat(dir + "/moved"); err != nil || info.Size() == 0 {
		t.Errorf("the profile: %v, %v", info, err)
	}
	if err := c.Stop(t.Context()); err != nil || alive(c.PID) {
		t.Errorf("Stop = %v, alive %v", err, alive(c.PID))
	}
	if _, err := c.Heap(t.Context()); err == nil {
		t.Error("a child that has ended tells of its heap")
	}
}

func TestAChildWithoutAFileMakesNoProfile(t *testing.T) {
	c, err := start(t, family(t), "server", "")
	if err != nil {
		t.Fatal(err)
	}
	if _, err := c.Profile(); err == nil {
		t.Error("a profile was begun")
	}
}

func TestAChildThatDoesNotStart(t *testing.T) {
	for role, wants := range map[string][]string{
		"failing":  {"waiting for the failing program to be ready", "exit status 3", "the disk is full"},
		"chatting": {`wrote "good morning" instead`},
	} {
		t.Run(role, func(t *testing.T) {
			_, err := start(t, family(t), role, "")
			for _, want := range wants {
				if err == nil || !strings.Contains(err.Error(), want) {
					t.Errorf("the error is %v, without %q", err, want)
				}
			}
		})
	}
	if _, err := family(t).Start(t.Context(), child.Command{Name: "nothing", Program: t.TempDir() + "/nothing"}); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("a program that is not there: %v", err)
	}
}

func TestAChildThatFailsAtItsEnd(t *testing.T) {
	c, err := start(t, family(t), "failing-at-the-end", "")
	if err != nil {
		t.Fatal(err)
	}
	if err := c.Stop(t.Context()); err == nil || !strings.Contains(err.Error(), "exit status 4") || !strings.Contains(err.Error(), "the last page") {
		t.Errorf("Stop = %v", err)
	}
}

func TestAChildThatDoesNotWantToEnd(t *testing.T) {
	c, err := start(t, family(t), "deaf", "")
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithTimeout(t.Context(), time.Millisecond)
	defer cancel()
	if err := c.Stop(ctx); err == nil || !strings.Contains(err.Error(), "was killed") || alive(c.PID) {
		t.Errorf("Stop = %v, alive %v", err, alive(c.PID))
	}
}

func TestAFamilyEndsItsChildren(t *testing.T) {
	f := child.NewFamily()
	var pids []int
	for range 3 {
		c, err := start(t, f, "server", "")
		if err != nil {
			t.Fatal(err)
		}
		pids = append(pids, c.PID)
	}
	f.Close()
	f.Close() // a second Close does nothing
	for _, pid := range pids {
		if alive(pid) {
			t.Errorf("process %d is alive", pid)
		}
	}
	if _, err := start(t, f, "server", ""); err == nil {
		t.Error("a closed family started a child")
	}
}

func TestBuildSaysWhatIsWrong(t *testing.T) {
	if _, err := child.Build(t.Context(), t.TempDir(), "nothing", false); err == nil || !strings.Contains(err.Error(), "building nothing: exit status 1\n") {
		t.Errorf("Build = %v", err)
	}
}
