package embedded_test

import (
	"bufio"
	"crypto/tls"
	"fmt"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/keelson-dev/keelson/storage"
	"github.com/keelson-dev/keelson/storage/etcd"
	"github.com/keelson-dev/keelson/storage/etcd/embedded"
	"github.com/keelson-dev/keelson/storage/storagetest"
	clientv3 "go.etcd.io/etcd/client/v3"
)

// cluster is three members, each a process.
type cluster struct {
	t         *testing.T
	options   []embedded.Options
	processes []*process
}

func members(t testing.TB) []embedded.Options {
	t.Helper()
	clients, peers := freeAddresses(t, 3), freeAddresses(t, 3)
	options := make([]embedded.Options, 3)
	for i, name := range []string{"a", "b", "c"} {
		options[i] = embedded.Options{
			Dir: t.TempDir(), Name: name, ListenClient: clients[i], UnsafeNoFsync: true, Heartbeat: 50 * time.Millisecond,
			Peers: map[string]string{"a": peers[0], "b": peers[1], "c": peers[2]},
		}
	}
	return options
}

func newCluster(t *testing.T) *cluster {
	t.Helper()
	c := &cluster{t: t, options: members(t), processes: make([]*process, 3)}
	outputs := make([]*bufio.Reader, 3)
	for i, o := range c.options {
		c.processes[i], outputs[i] = spawn(t, "serve", o)
	}
	for i, p := range c.processes {
		p.await(t, outputs[i])
	}
	return c
}

func (c *cluster) endpoints() (all []string) {
	for _, p := range c.processes {
		all = append(all, p.endpoint)
	}
	return all
}

// leader reads the status until a running member reports a leader.
func (c *cluster) leader() int {
	c.t.Helper()
	client := raw(c.t, clientv3.Config{Endpoints: c.endpoints()})
	ctx := bounded(c.t)
	for ; ctx.Err() == nil; time.Sleep(20 * time.Millisecond) {
		for i, p := range c.processes {
			s, err := client.Status(ctx, p.endpoint)
			if err == nil && s.Leader == s.Header.MemberId {
				return i
			}
		}
	}
	c.t.Fatal("the cluster has no leader")
	return 0
}

// restart starts a killed member again, and returns when it has joined.
func (c *cluster) restart(t *testing.T, i int) {
	t.Helper()
	p, out := spawn(c.t, "serve", c.options[i])
	c.processes[i] = p
	p.await(t, out)
}

func TestThreeMembers(t *testing.T) {
	t.Parallel()
	c := newCluster(t)
	t.Run("Conformance", func(t *testing.T) {
		if testing.Short() {
			t.Skip("as in TestConformance")
		}
		tenant := tenants(c.endpoints())
		storagetest.Backend(t, func(t *testing.T) storage.Backend {
			smaller(t)
			return tenant(t)
		})
	})
	o := etcd.Options{Endpoints: c.endpoints(), RequestTimeout: 5 * time.Second}
	struck, n := -1, 0
	kill := func(i int) {
		struck = i
		c.processes[i].kill()
	}
	strikes := []func(){
		func() { kill(c.leader()) },
		func() { kill((c.leader() + 1) % 3) },
		c.moveLeader,
	}
	storagetest.Faults(t, storagetest.Faulty{
		Backends: []storage.Backend{open(t, o), open(t, o)},
		Faults: []storagetest.Fault{{
			Name:   "leader killed, member killed, leader moved",
			Strike: func(*testing.T) { strikes[n%len(strikes)](); n++ },
			Heal: func(t *testing.T) {
				if struck >= 0 {
					c.restart(t, struck)
				}
				struck = -1
			},
		}},
	})
}

func (c *cluster) moveLeader() {
	t := c.t
	t.Helper()
	from := c.leader()
	client := raw(t, clientv3.Config{Endpoints: []string{c.processes[from].endpoint}})
	list, err := client.MemberList(bounded(t))
	if err != nil {
		t.Fatal(err)
	}
	next := c.options[(from+1)%3].Name
	for _, m := range list.Members {
		if m.Name == next {
			if _, err := client.MoveLeader(bounded(t), m.ID); err != nil {
				t.Fatal(err)
			}
		}
	}
}

// Members trust each other by certificate, in one process or in several.
func TestMembersOverTLS(t *testing.T) {
	if testing.Short() {
		t.Skip("etcd wants a member connected for some seconds before it is removed")
	}
	t.Parallel()
	ca := newAuthority(t)
	options := members(t)
	servers := make([]*embedded.Server, 3)
	var all sync.WaitGroup
	for i := range options {
		options[i].PeerTLS = ca.files(t, "member "+options[i].Name)
		all.Go(func() {
			var err error
			if servers[i], err = embedded.Start(bounded(t), options[i]); err != nil {
				t.Error(err)
			}
		})
	}
	all.Wait()
	defer func() {
		for _, s := range servers {
			if s != nil {
				s.Close()
			}
		}
	}()
	if t.Failed() {
		return
	}
	for i, s := range servers {
		mustPut(t, rawOf(t, s), fmt.Sprint("k", i), "v")
	}
	// A client without their certificate is refused.
	if conn, err := tls.Dial("tcp", options[0].Peers["a"], &tls.Config{InsecureSkipVerify: true, MaxVersion: tls.VersionTLS12}); err == nil {
		conn.Close()
		t.Error("a stranger has connected to a member")
	}
	// A member whose data is lost must not continue as the old one.
	if err := servers[2].Close(); err != nil {
		t.Error(err)
	}
	lost := options[2]
	lost.Dir = t.TempDir()
	_, err := embedded.Start(bounded(t), lost)
	if err == nil || !strings.Contains(err.Error(), "already been bootstrapped") {
		t.Errorf("error %v, want one about the lost data", err)
	}
	servers[2] = start(t, options[2])
	removeMember(t, servers)
}

// removeMember checks that a removed member stops by itself, with an error.
func removeMember(t *testing.T, servers []*embedded.Server) {
	t.Helper()
	client := rawOf(t, servers[0])
	defer client.Close()
	list, err := client.MemberList(bounded(t))
	if err != nil {
		t.Fatal(err)
	}
	for _, m := range list.Members {
		if m.Name == "c" {
			until(t, "the member is removed", func() bool {
				_, err := client.MemberRemove(bounded(t), m.ID)
				return err == nil
			})
		}
	}
	select {
	case <-servers[2].Done():
		if err := servers[2].Err(); err == nil || !strings.Contains(err.Error(), "removed") {
			t.Errorf("Err: %v, want one about the removal", err)
		}
	case <-time.After(waitTime):
		t.Error("the removed member goes on")
	}
}
