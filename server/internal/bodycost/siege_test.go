//go:build linux

package bodycost_test

import (
	"bufio"
	"bytes"
	"context"
	"crypto/tls"
	"crypto/x509"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"math/rand/v2"
	"net"
	"net/http"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"github.com/keelson-dev/keelson/authn"
	"github.com/keelson-dev/keelson/authz"
	"github.com/keelson-dev/keelson/server"
	"github.com/keelson-dev/keelson/server/servertest"
	"github.com/keelson-dev/keelson/storage"
	"github.com/keelson-dev/keelson/storage/bolt"
)

// The resources of the server, and the load that it gets.
const (
	siegeMemory  = 512 << 20 // RLIMIT_DATA
	siegeHeap    = 288 << 20 // GOMEMLIMIT: see "Memory" in the documentation of server.Limits
	siegeStack   = 256 << 10 // of a thread that C makes; otherwise 8 MiB
	siegeBuffer  = 16 << 10  // SO_SNDBUF of its connections
	siegeObjects = 8000
	siegeSize    = 6 << 10 // bytes of an object
	siegeLists   = 40      // concurrent lists while the cache is not filled
	siegeStalled = 24      // clients that request lists and do not read them
	siegeWatches = 2000    // concurrent watches with initial events
	siegeWhole   = 20      // one of so many watches is of all objects, and the others are of the object that changes
	siegeReads   = 9       // one of so many watches is not read
	siegeBodies  = 6       // clients that send bodies
)

// besieged has what the process of the server sends to the test.
type besieged struct {
	Address string
	CA      []byte
}

const (
	siegeRole = "KEELSON_SIEGE" // "load", or "begin" and then "serve": what the process is for
	siegeFile = "KEELSON_SIEGE_FILE"
)

func TestMain(m *testing.M) {
	role := os.Getenv(siegeRole)
	if role == "" {
		os.Exit(m.Run())
	}
	if err := besiege(role, os.Getenv(siegeFile)); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
	os.Exit(0)
}

// siegeUsers are the users. The token of each is its name. The last user is not in the group system:masters, whose requests are
// not bounded by the number of requests in flight.
var siegeUsers = []string{"a", "b", "c"}

// permitted lets the last user do everything.
var permitted = server.ExtensionFunc(func(h *server.Host) error {
	return h.Authorize("siege", authz.Func(func(_ context.Context, a authz.Attributes) (authz.Verdict, string, error) {
		if a.User.Name == siegeUsers[2] {
			return authz.Allow, "", nil
		}
		return authz.NoOpinion, "", nil
	}))
})

// besiege runs the process of the server.
func besiege(role, path string) error {
	switch role {
	case "load":
		return load(path)
	case "begin":
		return again()
	}
	const rlimitData = 2
	if err := syscall.Setrlimit(rlimitData, &syscall.Rlimit{Cur: siegeMemory, Max: siegeMemory}); err != nil {
		return err
	}
	users := map[string]authn.User{}
	for _, name := range siegeUsers {
		users[name] = authn.User{Name: name, Groups: []string{authn.MastersGroup}}
	}
	users[siegeUsers[2]] = authn.User{Name: siegeUsers[2]}
	srv, err := server.New(server.Options{
		CBOR: true, Storage: bolt.At(path),
		Policy: server.Policy{WrapAuthenticator: func(whole authn.Authenticator) authn.Authenticator {
			return authn.Union(authn.AuthenticatedGroup(authn.BearerToken(authn.StaticTokens(users))), whole)
		}},
		Serving: server.Serving{CloseDelay: time.Millisecond},
	})
	if err != nil {
		return err
	}
	for _, p := range append(parts(), permitted) {
		if err := srv.Install(p); err != nil {
			return errors.Join(err, srv.Close())
		}
	}
	listen := net.ListenConfig{Control: func(_, _ string, raw syscall.RawConn) (err error) {
		failed := raw.Control(func(fd uintptr) {
			err = syscall.SetsockoptInt(int(fd), syscall.SOL_SOCKET, syscall.SO_SNDBUF, siegeBuffer)
		})
		return errors.Join(failed, err)
	}}
	ln, err := listen.Listen(context.Background(), "tcp", "127.0.0.1:0")
	if err != nil {
		return errors.Join(err, srv.Close())
	}
	line, err := json.Marshal(besieged{Address: ln.Addr().String(), CA: srv.Credentials().CAPEM})
	if err != nil {
		return errors.Join(err, srv.Close())
	}
	fmt.Println(string(line))
	ctx, stop := signal.NotifyContext(context.Background(), syscall.SIGTERM)
	defer stop()
	return errors.Join(srv.Serve(ctx, ln), srv.Close())
}

// again starts the process anew with a limit that C reads at the start.
func again() error {
	self, err := os.Executable()
	if err != nil {
		return err
	}
	if err := syscall.Setrlimit(syscall.RLIMIT_STACK, &syscall.Rlimit{Cur: siegeStack, Max: siegeStack}); err != nil {
		return err
	}
	if err := os.Setenv(siegeRole, "serve"); err != nil {
		return err
	}
	return syscall.Exec(self, os.Args, os.Environ())
}

// load fills the file.
func load(path string) error {
	backend, err := bolt.Open(path, bolt.Options{Sync: bolt.NoSync})
	if err != nil {
		return err
	}
	srv, err := servertest.Run(server.Options{Storage: storage.Opened(backend)}, parts()...)
	if err != nil {
		return errors.Join(err, backend.Close())
	}
	r := rig{srv}
	if err := r.seed(); err != nil {
		return errors.Join(err, srv.Close())
	}
	text := make([]byte, siegeSize)
	for i := range siegeObjects {
		for j := range text {
			text[j] = 'a' + byte(rand.IntN(26))
		}
		body := fmt.Sprintf(`{"metadata":{"name":"besieged-%d"},"data":{"text":%q}}`, i, text)
		if got := r.send(request{method: "POST", path: configMaps, contentType: jsonType, body: body}); got.code != http.StatusCreated {
			return errors.Join(fmt.Errorf("%d %s", got.code, got.head), srv.Close())
		}
	}
	return srv.Close()
}

// siege is the test's side of the load.
type siege struct {
	t       *testing.T
	url     string
	tls     *tls.Config
	process *exec.Cmd
	dead    atomic.Bool

	mu    sync.Mutex     // guards what is below
	codes map[string]int // number of answers, by the kind of request and the code
}

// client is a client of one user, with its own connections.
func (s *siege) client(http2 bool) *http.Client {
	var p http.Protocols
	p.SetHTTP1(!http2)
	p.SetHTTP2(http2)
	return &http.Client{Transport: &http.Transport{TLSClientConfig: s.tls.Clone(), Protocols: &p, MaxIdleConnsPerHost: 8, DisableCompression: true}}
}

func (s *siege) request(ctx context.Context, user, method, path, contentType, body string) *http.Request {
	req, err := http.NewRequestWithContext(ctx, method, s.url+path, strings.NewReader(body))
	if err != nil {
		panic(err) // a mistake in the test
	}
	req.Header.Set("Authorization", "Bearer "+user)
	if contentType != "" {
		req.Header.Set("Content-Type", contentType)
	}
	return req
}

// count counts an answer. An answer with code 500 is an error of the test.
func (s *siege) count(what string, res *http.Response, err error) {
	code := "none"
	if err == nil {
		code = fmt.Sprint(res.StatusCode)
	}
	s.mu.Lock()
	s.codes[what+" "+code]++
	s.mu.Unlock()
	if err == nil && res.StatusCode == http.StatusInternalServerError {
		text, _ := io.ReadAll(io.LimitReader(res.Body, 300))
		s.t.Errorf("%s: %d %s", what, res.StatusCode, text)
	}
}

// send sends a request once, and reads the answer whole.
func (s *siege) send(ctx context.Context, c *http.Client, what, user string, q request) {
	res, err := c.Do(s.request(ctx, user, q.method, q.path, q.contentType, q.body))
	if s.count(what, res, err); err == nil {
		_, _ = io.Copy(io.Discard, res.Body)
		_ = res.Body.Close()
	}
}

// get reads an answer whole, or not at all. It asks again after 429.
func (s *siege) get(ctx context.Context, c *http.Client, what, user, path string, reads bool) {
	for again := true; again && ctx.Err() == nil; {
		res, err := c.Do(s.request(ctx, user, "GET", path, "", ""))
		if s.count(what, res, err); err != nil {
			return
		}
		again = res.StatusCode == http.StatusTooManyRequests
		if reads || again {
			_, _ = io.Copy(io.Discard, res.Body)
		} else {
			<-ctx.Done()
		}
		_ = res.Body.Close()
		if again {
			time.Sleep(time.Second + rand.N(time.Second))
		}
	}
}

// A server in half a gigabyte survives lists from a cache that is not filled, clients that do not read, the worst bodies and two
// thousand watches, all at once and sent by another process.
func TestSiege(t *testing.T) {
	if testing.Short() || raceDetector {
		t.Skip("takes half a minute, and more memory with the race detector")
	}
	s := besiegedServer(t)
	lasts := 20 * time.Second
	if long() {
		lasts = 2 * time.Minute
	}
	ctx, cancel := context.WithTimeout(t.Context(), lasts)
	defer cancel()
	var all sync.WaitGroup
	for i := range siegeLists {
		all.Go(func() { s.get(ctx, s.client(i%2 == 0), "cold list", siegeUsers[i%3], configMaps, true) })
	}
	for i := range siegeStalled {
		path := configMaps + []string{"", "?resourceVersion=0", "?labelSelector=a!%3Db", "?limit=5000"}[i%4]
		all.Go(func() { s.get(ctx, s.client(i%3 == 0), "stalled list", siegeUsers[i%3], path, false) })
	}
	many := make([]*http.Client, 25)
	for i := range many {
		many[i] = s.client(true)
	}
	for i := range siegeWatches {
		path := configMaps + "?watch=1" + []string{"", "&allowWatchBookmarks=true&sendInitialEvents=true&resourceVersionMatch=NotOlderThan"}[i%2]
		if i%siegeWhole > 0 {
			path += "&fieldSelector=metadata.name%3Dbesieged-0"
		}
		c := many[i%len(many)]
		if i%2 == 0 { // a connection of its own
			c = s.client(false)
		}
		all.Go(func() { s.get(ctx, c, "watch", siegeUsers[i%3], path, i%siegeReads > 0) })
	}
	for i := range siegeBodies {
		all.Go(func() { s.sendBodies(ctx, s.client(i%2 == 0), siegeUsers[i%3], i) })
	}
	all.Go(func() { // writes that every watch sees
		c := s.client(true)
		for i := 0; ctx.Err() == nil; i++ {
			body := fmt.Sprintf(`{"data":{"text":"%s%d"}}`, strings.Repeat("x", 100<<10*(i%8)), i)
			s.send(ctx, c, "write", siegeUsers[2], request{method: "PATCH", path: configMaps + "/besieged-0", contentType: mergePatch, body: body})
			time.Sleep(50 * time.Millisecond)
		}
	})
	var most int64
	all.Go(func() { most = s.mostData(ctx) })
	all.Wait()
	s.alive()
	if began, least := s.codes["watch 200"], siegeWatches/20; began < least { // the number depends on the speed of the machine
		t.Errorf("%d watches have begun, want at least %d", began, least)
	}
	t.Logf("at most %d MiB of %d were mapped", most>>20, siegeMemory>>20)
}

// mostData returns the most memory that the server has mapped until ctx ends, as far as RLIMIT_DATA bounds it.
func (s *siege) mostData(ctx context.Context) int64 {
	path := fmt.Sprintf("/proc/%d/status", s.process.Process.Pid)
	var most int64
	for ctx.Err() == nil {
		status, _ := os.ReadFile(path)
		for line := range strings.Lines(string(status)) {
			var kib int64
			if _, err := fmt.Sscanf(line, "VmData: %d kB", &kib); err == nil {
				most = max(most, kib<<10)
			}
		}
		time.Sleep(50 * time.Millisecond)
	}
	return most
}

// besiegedServer starts the process of the server.
func besiegedServer(t *testing.T) *siege {
	t.Helper()
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	env := append(os.Environ(), siegeFile+"="+filepath.Join(t.TempDir(), "besieged.db"))
	loader := exec.Command(self)
	loader.Env = append(env, siegeRole+"=load")
	if out, err := loader.CombinedOutput(); err != nil {
		t.Fatalf("%v: %s", err, out)
	}
	cmd := exec.Command(self)
	cmd.Env = append(env, siegeRole+"=begin", fmt.Sprint("GOMEMLIMIT=", siegeHeap))
	var says bytes.Buffer
	cmd.Stderr = &says
	out, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	s := &siege{t: t, process: cmd, codes: map[string]int{}}
	lines := bufio.NewScanner(out)
	var announced besieged
	if !lines.Scan() {
		t.Fatalf("the server says nothing: %v, %s", cmd.Wait(), says.String())
	}
	if err := json.Unmarshal(lines.Bytes(), &announced); err != nil {
		t.Fatal(err)
	}
	ended := make(chan error, 1)
	go func() {
		ended <- cmd.Wait()
		s.dead.Store(true)
	}()
	t.Cleanup(func() {
		if t.Failed() || s.dead.Load() {
			_ = cmd.Process.Kill()
		} else if err := cmd.Process.Signal(syscall.SIGTERM); err != nil {
			t.Error(err)
		}
		if err := <-ended; err != nil {
			text := says.String()
			t.Errorf("the server has ended: %v\n%s", err, text[:min(len(text), 3000)])
		}
		for _, what := range slices.Sorted(maps.Keys(s.codes)) {
			t.Logf("%6d %s", s.codes[what], what)
		}
	})
	pool := x509.NewCertPool()
	pool.AppendCertsFromPEM(announced.CA)
	s.url, s.tls = "https://"+announced.Address, &tls.Config{RootCAs: pool, MinVersion: tls.VersionTLS12}
	return s
}

// sendBodies sends the worst bodies, one after the other.
func (s *siege) sendBodies(ctx context.Context, c *http.Client, user string, from int) {
	var names []string
	for _, q := range worstBodies(1<<10, each) {
		names = append(names, q.name)
	}
	for i := from; ctx.Err() == nil; i += siegeBodies {
		for _, size := range []int{bodySize, bodySize / 3, bodySize / 9} {
			for _, q := range worstBodies(size, func(name string) bool { return name == names[i%len(names)] }) {
				s.send(ctx, c, "body", user, q)
			}
		}
	}
}

// alive checks that the server answers.
func (s *siege) alive() {
	s.t.Helper()
	c := s.client(true)
	var last string
	for range 300 {
		if s.dead.Load() {
			s.t.Fatal("the server is dead")
		}
		ctx, cancel := context.WithTimeout(s.t.Context(), 30*time.Second)
		res, err := c.Do(s.request(ctx, siegeUsers[0], "GET", configMaps+"?limit=1&resourceVersion=0", "", ""))
		if last = fmt.Sprint(err); err == nil {
			text, _ := io.ReadAll(res.Body)
			_ = res.Body.Close()
			if last = fmt.Sprintf("%d %.200s", res.StatusCode, text); res.StatusCode == http.StatusOK {
				cancel()
				return
			}
		}
		cancel()
		time.Sleep(100 * time.Millisecond)
	}
	s.t.Errorf("the server does not serve any more: %s", last)
}
