//go:build unix

package server_test

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/keelson-dev/keelson/server"
)

// TestListenAndServeWithSignals is a server in a process of its own, in which each stop takes a minute. It is ended by a second
// signal.
func TestListenAndServeWithSignals(t *testing.T) {
	const isChild = "KEELSON_TEST_LISTENS"
	if os.Getenv(isChild) != "" {
		err := server.ListenAndServe(server.Options{Serving: server.Serving{ShutdownDelay: time.Minute}}, server.ExtensionFunc(func(h *server.Host) error {
			err := h.Start(server.Hook{Name: "tell", Run: func(context.Context) error { fmt.Println("serves"); return nil }})
			h.BeforeStop("tell", func(context.Context) error { fmt.Println("stops"); return nil })
			return err
		}))
		fmt.Println("ended:", err)
		return
	}
	t.Parallel()
	cmd := exec.CommandContext(t.Context(), os.Args[0], "-test.run=^TestListenAndServeWithSignals$", "-test.v")
	cmd.Env = append(os.Environ(), isChild+"=1")
	out, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	lines := bufio.NewScanner(out)
	until := func(want string) {
		for lines.Scan() {
			if lines.Text() == want {
				return
			}
		}
		t.Errorf("the process does not say %q", want)
	}
	signal := func() {
		if err := cmd.Process.Signal(syscall.SIGTERM); err != nil {
			t.Error(err)
		}
	}
	until("serves")
	signal()
	until("stops")
	signal()
	for lines.Scan() {
		if strings.HasPrefix(lines.Text(), "ended:") {
			t.Error(lines.Text())
		}
	}
	var exit *exec.ExitError
	if err := cmd.Wait(); !errors.As(err, &exit) {
		t.Fatalf("the process ended with %v", err)
	}
	if status, ok := exit.Sys().(syscall.WaitStatus); !ok || status.Signal() != syscall.SIGTERM {
		t.Errorf("the process ended with %v, not by the second signal", exit)
	}
}
