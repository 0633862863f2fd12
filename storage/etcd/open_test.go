package etcd_test

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"io"
	"log"
	"net"
	"net/http"
	"net/http/httptest"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/keelson-dev/keelson/storage/etcd"
	"go.uber.org/goleak"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// waitTime is how long an Open that must fail at once may take before the test fails.
const waitTime = 20 * time.Second

// refused opens an etcd. Open must fail with all of these words, and not because of a timeout.
func refused(t *testing.T, o etcd.Options, words ...string) error {
	t.Helper()
	if o.DialTimeout == 0 {
		o.DialTimeout = waitTime
	}
	b, err := etcd.Open(t.Context(), o)
	if err == nil {
		b.Close()
		t.Fatal("it opened")
	}
	for _, w := range words {
		if !strings.Contains(err.Error(), w) {
			t.Errorf("the error is %q, want %q in it", err, w)
		}
	}
	if o.Password != "" && strings.Contains(err.Error(), o.Password) {
		t.Errorf("the error %q has the password", err)
	}
	return err
}

func at(endpoints ...string) etcd.Options {
	return etcd.Options{Endpoints: endpoints, CompactionInterval: -1}
}

// unused returns an address where nothing listens.
func unused(t *testing.T) string {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	return l.Addr().String()
}

func TestOldMembersAreRefused(t *testing.T) {
	for _, version := range []string{"3.4.30", "3.4.99", "2.3.8", "3.5.0", "3.5.12", "3.5.12+git", "", "unknown", "3.5"} {
		m := &member{version: version}
		addr := m.serve(t, nil)
		refused(t, at(addr), addr, `etcd`, version, "3.5.13")
		if m.writes.Load() != 0 || m.requests.Load() != 1 {
			t.Errorf("version %q: %d requests, %d of them writes, want the question for the version alone", version, m.requests.Load(), m.writes.Load())
		}
	}
	for _, version := range []string{"3.5.13", "3.5.21", "3.6.0", "3.6.0-rc.1", "3.7.3", "4.0.0"} {
		m := &member{version: version}
		b, err := etcd.Open(t.Context(), at(m.serve(t, nil)))
		if err != nil {
			t.Errorf("version %s: %v", version, err)
			continue
		}
		if err := b.Close(); err != nil {
			t.Error(err)
		}
		if m.writes.Load() != 0 {
			t.Errorf("version %s: opening wrote", version)
		}
	}
}

func TestOneOldMemberIsEnough(t *testing.T) {
	old, recent := &member{version: "3.4.30"}, &member{version: "3.7.3"}
	addr := old.serve(t, nil)
	refused(t, at(recent.serve(t, nil), unused(t), addr), addr, "3.4.30")
}

func TestMembersOfOtherClusters(t *testing.T) {
	a, b := &member{version: "3.7.3", cluster: 0xa}, &member{version: "3.7.3", cluster: 0xb}
	first, second := a.serve(t, nil), b.serve(t, nil)
	refused(t, at(first, second), first, second, "cluster")
}

func TestSomeMembersMayBeDown(t *testing.T) {
	hung := silent(t)
	m := &member{version: "3.7.3"}
	b, err := etcd.Open(t.Context(), at(unused(t), m.serve(t, nil), hung))
	if err != nil {
		t.Fatal(err)
	}
	if err := b.Close(); err != nil {
		t.Error(err)
	}
}

// silent returns the address of a listener which accepts and never answers.
func silent(t *testing.T) string {
	t.Helper()
	return listen(t, func(c net.Conn) { t.Cleanup(func() { c.Close() }) })
}

// listen passes each connection to a free port to accepted, one after the other, and returns the address.
func listen(t *testing.T, accepted func(net.Conn)) string {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	done := make(chan struct{})
	go func() {
		defer close(done)
		for {
			c, err := l.Accept()
			if err != nil {
				return
			}
			accepted(c)
		}
	}()
	t.Cleanup(func() {
		l.Close()
		<-done
	})
	return l.Addr().String()
}

func TestNothingListens(t *testing.T) {
	addr, other := unused(t), unused(t)
	err := refused(t, at(addr, other), addr, other, "connection refused", "start etcd")
	if !errors.Is(err, syscall.ECONNREFUSED) {
		t.Errorf("%v is no ECONNREFUSED", err)
	}
	refused(t, at("unix://"+filepath.Join(t.TempDir(), "none")), "none", "no such file")
}

func TestAnEndpointThatNeverAnswers(t *testing.T) {
	addr := silent(t)
	for _, scheme := range []string{"http://", "https://"} {
		o := at(scheme + addr)
		o.DialTimeout = 300 * time.Millisecond
		refused(t, o, addr, "no answer within 300ms")
	}
}

func TestTheCallersContext(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := etcd.Open(ctx, at(silent(t))); !errors.Is(err, context.Canceled) {
		t.Errorf("%v, want context.Canceled", err)
	}
}

func TestNoEtcd(t *testing.T) {
	web := httptest.NewServer(http.NotFoundHandler())
	defer web.Close()
	secureWeb := httptest.NewUnstartedServer(http.NotFoundHandler())
	secureWeb.Config.ErrorLog = log.New(io.Discard, "", 0)
	secureWeb.StartTLS()
	defer secureWeb.Close()
	refused(t, at(web.URL), web.URL, "not the client URL of an etcd")
	o := at(secureWeb.URL)
	o.TLS = &tls.Config{RootCAs: x509.NewCertPool()}
	o.TLS.RootCAs.AddCert(secureWeb.Certificate())
	refused(t, o, secureWeb.URL, "not the client URL of an etcd")

	mail := listen(t, func(c net.Conn) {
		_, _ = io.WriteString(c, "220 mail.example.com ESMTP\r\n")
		c.Close()
	})
	refused(t, at(mail), mail, "not the client URL of an etcd")
}

func TestTLSThatDoesNotFit(t *testing.T) {
	trusted, other := newAuthority(t), newAuthority(t)
	later := time.Now().Add(time.Hour)
	serve := func(cert tls.Certificate, clients *x509.CertPool) string {
		config := &tls.Config{Certificates: []tls.Certificate{cert}}
		if clients != nil {
			config.ClientCAs, config.ClientAuth = clients, tls.RequireAndVerifyClientCert
		}
		return (&member{version: "3.7.3"}).serve(t, config)
	}
	with := func(endpoint string, certs ...tls.Certificate) etcd.Options {
		o := at(endpoint)
		o.TLS = &tls.Config{RootCAs: trusted.pool, Certificates: certs}
		return o
	}
	plain := (&member{version: "3.7.3"}).serve(t, nil)
	good := serve(trusted.sign(later), nil)
	strict := serve(trusted.sign(later), trusted.pool)

	refused(t, with("https://"+plain), plain, "does not speak TLS", "http://")
	refused(t, at("http://"+good), good, "wants TLS", "https://")
	refused(t, at("http://"+strict), strict, "wants TLS", "https://")
	err := refused(t, with(serve(other.sign(later), nil)), "x509", "authority", "RootCAs")
	var authority x509.UnknownAuthorityError
	if !errors.As(err, &authority) {
		t.Errorf("%v is no x509.UnknownAuthorityError", err)
	}
	refused(t, at("https://"+good), "x509", "authority", "RootCAs")
	refused(t, with(serve(trusted.sign(later, "etcd.example.com"), nil)), "x509", "127.0.0.1", "ServerName")
	refused(t, with(serve(trusted.sign(time.Now().Add(-time.Hour)), nil)), "x509", "expired", "renewed")
	refused(t, with(strict), strict, "TLS", "client certificate")
	refused(t, with(strict, other.sign(later)), strict, "TLS", "client certificate")

	named := with(serve(trusted.sign(later, "etcd.example.com"), nil))
	named.TLS.ServerName = "etcd.example.com"
	for name, o := range map[string]etcd.Options{
		"https": with("https://" + good), "no scheme": with(good), "client certificate": with(strict, trusted.sign(later)), "server name": named,
	} {
		b, err := etcd.Open(t.Context(), o)
		if err != nil {
			t.Errorf("%s: %v", name, err)
			continue
		}
		b.Close()
	}
}

// Some servers, such as etcd itself, close the connection when the client begins with TLS.
func TestTLSThatIsNotUnderstood(t *testing.T) {
	for name, end := range map[string]func(net.Conn){
		"closed": func(c net.Conn) {
			_, _ = c.Read(make([]byte, 16<<10))
			c.Close()
		},
		"reset": func(c net.Conn) { c.Close() },
	} {
		addr := listen(t, end)
		err := refused(t, at("https://"+addr), addr, "does not speak TLS", "http://")
		if !errors.Is(err, io.EOF) && !errors.Is(err, syscall.ECONNRESET) && !errors.Is(err, syscall.EPIPE) {
			t.Errorf("%s: %v has no cause", name, err)
		}
	}
}

// A member that answers within Options.DialTimeout is not refused for being slow.
func TestASlowMember(t *testing.T) {
	m := &member{version: "3.7.3", read: func(context.Context) error {
		time.Sleep(2500 * time.Millisecond)
		return nil
	}}
	o := at(m.serve(t, nil))
	o.DialTimeout = waitTime
	b, err := etcd.Open(t.Context(), o)
	if err != nil {
		t.Fatal(err)
	}
	b.Close()
	m.read = func(ctx context.Context) error {
		<-ctx.Done()
		return ctx.Err()
	}
	o.DialTimeout = 300 * time.Millisecond
	refused(t, o, o.Endpoints[0], "no answer within 300ms", "most members")
}

func TestSockets(t *testing.T) {
	path := filepath.Join(t.TempDir(), "s")
	l, err := net.Listen("unix", path)
	if err != nil {
		t.Fatal(err)
	}
	m := &member{version: "3.7.3"}
	m.serveAt(t, l, nil)
	b, err := etcd.Open(t.Context(), at("unix://"+path))
	if err != nil {
		t.Fatal(err)
	}
	if _, err := b.Get(t.Context(), "a", 0); err != nil {
		t.Error(err)
	}
	b.Close()
}

func TestCredentials(t *testing.T) {
	m := &member{version: "3.7.3", password: "open sesame"}
	addr := m.serve(t, nil)
	wrong := at(addr)
	wrong.Username, wrong.Password = "ali", "open barley"
	refused(t, wrong, addr, "authentication failed", "Options.Username and Options.Password")
	refused(t, at(addr), addr, "user name is empty", "Options.Username and Options.Password")
	if m.writes.Load() != 0 {
		t.Error("a refused Open wrote")
	}
	right := wrong
	right.Password = m.password
	for _, endpoint := range []string{addr, (&member{version: "3.7.3"}).serve(t, nil)} {
		right.Endpoints = []string{endpoint}
		b, err := etcd.Open(t.Context(), right)
		if err != nil {
			t.Fatal(err)
		}
		if _, err := b.Get(t.Context(), "a", 0); err != nil {
			t.Error(err)
		}
		b.Close()
	}
}

func TestBadOptions(t *testing.T) {
	for words, o := range map[string]etcd.Options{
		"no endpoints":        {},
		"NUL":                 {Endpoints: []string{"127.0.0.1:1"}, Prefix: "a\x00"},
		"reserved":            {Endpoints: []string{"127.0.0.1:1"}, Prefix: "compact_rev_key"},
		"must not be neg":     {Endpoints: []string{"127.0.0.1:1"}, RequestTimeout: -1},
		"LeaseMaxObjects":     {Endpoints: []string{"127.0.0.1:1"}, LeaseMaxObjects: -1},
		"given together":      {Endpoints: []string{"127.0.0.1:1"}, Username: "ali"},
		`endpoint 2, "ftp://`: {Endpoints: []string{"127.0.0.1:1", "ftp://127.0.0.1:1"}},
	} {
		refused(t, o, words)
	}
}

func TestOpener(t *testing.T) {
	m := &member{version: "3.7.3"}
	b, err := etcd.At(m.serve(t, nil))(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	b.Close()
	if b, err := etcd.With(at(unused(t)))(t.Context()); err == nil || b != nil {
		t.Errorf("%v, %v, want an error and a nil Backend", b, err)
	}
}
