//go:build unix

package embedded_test

import (
	"context"
	"fmt"
	"os/signal"
	"strings"
	"syscall"
	"testing"

	"github.com/keelson-dev/keelson/storage/etcd/embedded"
	clientv3 "go.etcd.io/etcd/client/v3"
)

func roles() map[string]func(embedded.Options) error {
	return map[string]func(embedded.Options) error{"serve": serve, "fill": fill}
}

// A full disk ends the server, not the program, which receives the error; everything acknowledged is kept.
func TestAFullDisk(t *testing.T) {
	t.Parallel()
	o := embedded.Options{Dir: t.TempDir()}
	p, out := spawn(t, "fill", o)
	line, err := out.ReadString('\n')
	if err != nil {
		t.Fatal(err)
	}
	if err := p.cmd.Wait(); err != nil {
		t.Fatalf("the child: %v", err)
	}
	var written int64
	if _, err := fmt.Sscanf(line, "%d", &written); err != nil || written < 10 || !strings.Contains(line, "file too large") {
		t.Fatalf("the child says %q", line)
	}
	r, err := rawOf(t, start(t, o)).Get(t.Context(), "k", clientv3.WithPrefix(), clientv3.WithCountOnly())
	if err != nil || r.Count < written {
		t.Errorf("%v, %v; want %d keys", r, err, written)
	}
}

// fill writes until a size limit of files is reached, which looks like a full disk. It returns how many keys were
// acknowledged, and why the server has stopped.
func fill(o embedded.Options) error {
	signal.Ignore(syscall.SIGXFSZ)
	s, err := embedded.Start(context.Background(), o)
	if err != nil {
		return err
	}
	c, err := clientv3.New(clientv3.Config{Endpoints: s.Endpoints()})
	if err != nil {
		return err
	}
	defer c.Close()
	var limit syscall.Rlimit
	if err := syscall.Getrlimit(syscall.RLIMIT_FSIZE, &limit); err != nil {
		return err
	}
	limit.Cur = 1 << 20
	if err := syscall.Setrlimit(syscall.RLIMIT_FSIZE, &limit); err != nil {
		return err
	}
	ctx, cancel := context.WithTimeout(context.Background(), waitTime)
	defer cancel()
	n := 0
	for ; err == nil; n++ {
		_, err = c.Put(ctx, fmt.Sprint("k", n), strings.Repeat("v", 10_000))
	}
	<-s.Done()
	fmt.Printf("%d %v\n", n-1, s.Err())
	limit.Cur = limit.Max
	if err := syscall.Setrlimit(syscall.RLIMIT_FSIZE, &limit); err != nil {
		return err
	}
	if err := s.Close(); err != nil && !strings.Contains(err.Error(), "does not stop after") {
		return err
	}
	return nil
}
