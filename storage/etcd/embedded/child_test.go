package embedded_test

import (
	"bufio"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net"
	"os"
	"os/exec"
	"strings"
	"testing"
	"time"

	"github.com/keelson-dev/keelson/storage/etcd/embedded"
	"github.com/keelson-dev/keelson/storage/storagetest"
)

// waitTime bounds the wait for something that should happen at once.
const waitTime = 60 * time.Second

// A test that needs another process starts the test binary with these variables: the action, and the options of the server.
const (
	childRole    = "KEELSON_EMBEDDED_CHILD"
	childOptions = "KEELSON_EMBEDDED_OPTIONS"
)

func TestMain(m *testing.M) {
	if storagetest.Child(stores()) {
		return
	}
	if role := os.Getenv(childRole); role != "" {
		var o embedded.Options
		err := json.Unmarshal([]byte(os.Getenv(childOptions)), &o)
		if err == nil {
			err = roles()[role](o)
		}
		if err != nil {
			fmt.Fprintln(os.Stderr, err)
			os.Exit(1)
		}
		os.Exit(0)
	}
	os.Exit(m.Run())
}

// serve runs a server until its standard input ends, and prints its address.
func serve(o embedded.Options) error {
	s, err := embedded.Start(context.Background(), o)
	if err != nil {
		return err
	}
	fmt.Println(s.Endpoints()[0])
	_, _ = io.Copy(io.Discard, os.Stdin)
	return s.Close()
}

// process is a server in a process of its own.
type process struct {
	endpoint string
	cmd      *exec.Cmd
	input    io.Closer
}

// spawn starts a child and returns at once; its input ends with the test, if not before.
func spawn(t testing.TB, role string, o embedded.Options) (*process, *bufio.Reader) {
	t.Helper()
	options, err := json.Marshal(o)
	if err != nil {
		t.Fatal(err)
	}
	cmd := exec.Command(os.Args[0])
	cmd.Env = append(os.Environ(), childRole+"="+role, childOptions+"="+string(options))
	cmd.Stderr = os.Stderr
	in, err := cmd.StdinPipe()
	if err != nil {
		t.Fatal(err)
	}
	out, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	p := &process{cmd: cmd, input: in}
	t.Cleanup(p.kill)
	return p, bufio.NewReader(out)
}

// serveElsewhere starts a server in another process and waits until it serves.
func serveElsewhere(t testing.TB, o embedded.Options) *process {
	t.Helper()
	p, out := spawn(t, "serve", o)
	p.await(t, out)
	return p
}

func (p *process) await(t testing.TB, out *bufio.Reader) {
	t.Helper()
	line, err := out.ReadString('\n')
	if err != nil {
		t.Fatalf("the server in %v did not start: %v", p.cmd.Env[len(p.cmd.Env)-1], err)
	}
	p.endpoint = strings.TrimSpace(line)
}

// kill ends the process at once, as a crash does. A second kill does nothing.
func (p *process) kill() {
	_ = p.cmd.Process.Kill()
	_ = p.cmd.Wait()
	_ = p.input.Close()
}

// freeAddresses returns addresses that are free at the moment.
func freeAddresses(t testing.TB, n int) []string {
	t.Helper()
	var out []string
	for range n {
		l, err := net.Listen("tcp", "127.0.0.1:0")
		if err != nil {
			t.Fatal(err)
		}
		defer l.Close()
		out = append(out, l.Addr().String())
	}
	return out
}
