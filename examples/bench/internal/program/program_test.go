//go:build unix

package program_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"os"
	"syscall"
	"testing"
	"time"

	"github.com/keelson-dev/keelson/examples/bench/internal/program"
	"github.com/keelson-dev/keelson/examples/bench/internal/programtest"
)

func TestMain(m *testing.M) { os.Exit(programtest.Main(m, main)) }

// main is a program: a server that answers with its token, or one that ends at once.
func main() {
	var o program.Options
	flags := o.Flags("sample")
	fail := flags.String("fail", "", "how to end at once")
	os.Exit(program.Run(flags, os.Args[1:], func(ctx context.Context, p *program.Process) error {
		switch *fail {
		case "usage":
			return fmt.Errorf("wrapped: %w", program.Usagef("%s is wrong", "this"))
		case "error":
			return errors.New("it does not work")
		case "deaf": // until the context ends
			p.Ready("https://127.0.0.1:1")
			select {}
		}
		cert, key, err := o.KeyPair()
		if err != nil {
			return err
		}
		ln, url, err := o.Listen(ctx)
		if err != nil {
			return err
		}
		ended := make(chan struct{})
		return p.Serve(ctx, ln, url, program.Server{
			Cert: cert, Key: key,
			Handler: http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
				fmt.Fprint(w, o.Token)
				if r.URL.Path == "/stay" {
					_ = http.NewResponseController(w).Flush()
					<-ended
				}
			}),
			End: func() error { close(ended); return nil },
		})
	}))
}

func TestExit(t *testing.T) {
	programtest.Run(t, "-fail", "usage").Want(2, "sample: wrapped: this is wrong\n")
	programtest.Run(t, "-fail", "error").Want(1, "sample: it does not work\n")
	programtest.Run(t, "-help").Want(0, "-addr")
	programtest.Run(t, "more").Want(2, `sample: unexpected argument "more"`)
	programtest.Run(t, "-key", "x").Want(2, "sample: -cert and -key belong together")
}

// TestServe checks that a request in flight does not delay the end, and that every address in the URL is one of this machine.
func TestServe(t *testing.T) {
	p := programtest.Start(t, "-addr", "0.0.0.0:0", "-token", "secret")
	if answer := p.Get("/").Want(http.StatusOK, "secret"); answer.Proto != "HTTP/2.0" {
		t.Errorf("served over %s", answer.Proto)
	}
	p.Watch("/stay")
	p.Stop().Want(0)
}

// TestSecondSignal checks that a program that does not end can be ended by a second signal.
func TestSecondSignal(t *testing.T) {
	p := programtest.Begin(t, os.Args[0], "-fail", "deaf")
	p.Line()
	p.Signal(syscall.SIGTERM)
	for range 600 { // the first one may still be pending, and then both are one signal
		if p.Exited() {
			p.Want(-1)
			return
		}
		p.Signal(syscall.SIGTERM)
		time.Sleep(100 * time.Millisecond)
	}
	p.Kill()
	t.Error("it does not end")
}

// TestSignals checks that there is a report for each SIGUSR1, and a profile between two SIGUSR2, in order.
func TestSignals(t *testing.T) {
	p := programtest.Start(t, "-addr", "127.0.0.1:0")
	report := func() (r program.Report) {
		t.Helper()
		p.Signal(syscall.SIGUSR1)
		line := p.Line()
		if err := json.Unmarshal([]byte(line), &r); err != nil {
			t.Fatalf("%v: %s", err, line)
		}
		return r
	}
	first := report()
	if first.HeapLive == 0 || first.HeapSys < first.HeapLive || first.Mallocs == 0 || first.AllocBytes == 0 || first.Goroutines == 0 {
		t.Errorf("the report is %+v", first)
	}
	for range 10 {
		p.Get("/").Want(http.StatusOK)
	}
	second := report()
	if second.Mallocs <= first.Mallocs || second.AllocBytes <= first.AllocBytes || second.NumGC <= first.NumGC {
		t.Errorf("the reports are %+v and then %+v", first, second)
	}
	p.Signal(syscall.SIGUSR2)
	report()
	if info, err := os.Stat(p.Profile()); err != nil || info.Size() != 0 {
		t.Errorf("a profile that is being made: %v, %v", info, err)
	}
	p.Signal(syscall.SIGUSR2)
	report()
	if profile, err := os.ReadFile(p.Profile()); err != nil || len(profile) < 2 || profile[0] != 0x1f || profile[1] != 0x8b {
		t.Errorf("the profile is no gzip: %d bytes, %v", len(profile), err)
	}
	p.Signal(syscall.SIGUSR2) // the profile in progress is completed at the end
	report()
	p.Stop().Want(0)
	if info, err := os.Stat(p.Profile()); err != nil || info.Size() == 0 {
		t.Errorf("the last profile: %v, %v", info, err)
	}
}
