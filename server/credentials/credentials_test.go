package credentials_test

import (
	"bytes"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/tls"
	"crypto/x509"
	"encoding/pem"
	"errors"
	"io/fs"
	"net"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/keelson-dev/keelson/server/credentials"
)

var files = []string{"ca.pem", "client.pem", "serving.pem", "token"}

func TestWhatIsKept(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "hello.db.pki")
	open(t, credentials.Options{Dir: dir})
	wantMode(t, dir, fs.ModeDir|0o700)
	if got := list(t, dir); !slices.Equal(got, files) {
		t.Errorf("the directory holds %q, want %q", got, files)
	}
	for _, name := range files {
		wantMode(t, filepath.Join(dir, name), 0o600)
	}
}

func TestModesAreTightened(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "pki")
	open(t, credentials.Options{Dir: dir})
	for _, name := range files {
		if err := os.Chmod(filepath.Join(dir, name), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	if err := os.Chmod(dir, 0o755); err != nil {
		t.Fatal(err)
	}
	open(t, credentials.Options{Dir: dir})
	wantMode(t, dir, fs.ModeDir|0o700)
	for _, name := range files {
		wantMode(t, filepath.Join(dir, name), 0o600)
	}
}

func TestCredentialsAreUsedAgain(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "pki")
	o := credentials.Options{Dir: dir, Host: "192.0.2.1"}
	first := open(t, o)
	before := contents(t, dir)
	second := open(t, o)
	if !slices.EqualFunc(before, contents(t, dir), bytes.Equal) {
		t.Error("the files have changed")
	}
	if first.Token != second.Token || !bytes.Equal(first.CAPEM, second.CAPEM) ||
		!bytes.Equal(first.ClientCertPEM, second.ClientCertPEM) || !bytes.Equal(first.ClientKeyPEM, second.ClientKeyPEM) ||
		!first.Serving.Leaf.Equal(second.Serving.Leaf) {
		t.Error("the second Open gives other credentials")
	}
	// A host that is covered already changes nothing.
	for _, host := range []string{"", "0.0.0.0", "::", "localhost", "127.0.0.1", "::1"} {
		if b := open(t, credentials.Options{Dir: dir, Host: host}); !b.Serving.Leaf.Equal(first.Serving.Leaf) {
			t.Errorf("host %q has the serving certificate reissued", host)
		}
	}
}

func TestWhatTheCertificatesSay(t *testing.T) {
	now := time.Now()
	b := open(t, credentials.Options{Dir: filepath.Join(t.TempDir(), "pki"), Host: "example.com", Now: func() time.Time { return now }})
	ca, client := parse(t, b.CAPEM), parse(t, b.ClientCertPEM)
	if !ca.IsCA || client.IsCA || b.Serving.Leaf.IsCA {
		t.Error("only the authority's certificate is to be one")
	}
	for name, c := range map[string]*x509.Certificate{"authority": ca, "client": client, "serving": b.Serving.Leaf} {
		key, ok := c.PublicKey.(*ecdsa.PublicKey)
		if !ok || key.Curve != elliptic.P256() {
			t.Errorf("%s: the key is not an ECDSA key on P-256", name)
		}
		years := 1
		if c == ca {
			years = 10
		}
		if life := c.NotAfter.Sub(now).Round(time.Minute); life != time.Duration(years)*365*24*time.Hour {
			t.Errorf("%s: valid for %v, want %d years", name, life, years)
		}
		if !c.NotBefore.Before(now) {
			t.Errorf("%s: valid from %v, which a clock that is behind has yet to see", name, c.NotBefore)
		}
	}
	if client.Subject.CommonName != "admin" || !slices.Equal(client.Subject.Organization, []string{"system:masters"}) {
		t.Errorf("the client is %v, want admin of system:masters", client.Subject)
	}
	if b.User != "admin" || !slices.Equal(b.Groups, []string{"system:masters"}) {
		t.Errorf("the user is %q of %q", b.User, b.Groups)
	}
	if len(b.Token) < 43 {
		t.Errorf("the token has %d characters, too few for 256 bits", len(b.Token))
	}
}

func TestHosts(t *testing.T) {
	always := []string{"localhost", "127.0.0.1", "::1"}
	for host, want := range map[string]string{
		"": "", "0.0.0.0": "", "::": "", "[::]": "", "localhost": "", "127.0.0.1": "", "::1": "",
		"192.0.2.1":                 "192.0.2.1",
		"2001:db8::1":               "2001:db8::1",
		"[2001:db8::1]":             "2001:db8::1",
		"fe80::1%eth0":              "fe80::1",
		"api.Example.com":           "api.example.com",
		"example.com.":              "example.com",
		"::ffff:192.0.2.7":          "192.0.2.7",
		"keelson":                   "keelson",
		"very-long." + name(60):     "very-long." + name(60),
		"xn--bcher-kva.example.com": "xn--bcher-kva.example.com",
	} {
		leaf := open(t, credentials.Options{Host: host}).Serving.Leaf
		hosts := slices.Clone(always)
		if want != "" {
			hosts = append(hosts, want)
		}
		for _, h := range hosts {
			if err := leaf.VerifyHostname(h); err != nil {
				t.Errorf("host %q: %v", host, err)
			}
		}
		if n := len(leaf.DNSNames) + len(leaf.IPAddresses); n != len(hosts) {
			t.Errorf("host %q: valid for %q and %v, want %q", host, leaf.DNSNames, leaf.IPAddresses, hosts)
		}
	}
	for _, host := range []string{"a b", "a/b", "exa_mple", "127.0.0.1:6443", "*.example.com"} {
		if _, err := credentials.Open(credentials.Options{Host: host}); err == nil || !strings.Contains(err.Error(), host) {
			t.Errorf("host %q: error %v, want one that names it", host, err)
		}
	}
}

func TestAnotherHostHasTheServingCertificateReissued(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "pki")
	first := open(t, credentials.Options{Dir: dir})
	second := open(t, credentials.Options{Dir: dir, Host: "192.0.2.1"})
	if second.Serving.Leaf.Equal(first.Serving.Leaf) {
		t.Fatal("the serving certificate is the old one")
	}
	if err := second.Serving.Leaf.VerifyHostname("192.0.2.1"); err != nil {
		t.Error(err)
	}
	wantSameAuthority(t, first, second)
	if !bytes.Equal(first.ClientCertPEM, second.ClientCertPEM) {
		t.Error("the client certificate has changed too")
	}
}

func TestAnotherUserHasTheClientCertificateReissued(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "pki")
	first := open(t, credentials.Options{Dir: dir})
	for _, o := range []credentials.Options{
		{Dir: dir, User: "jane"},
		{Dir: dir, User: "jane", Groups: []string{"a", "b"}},
		{Dir: dir, User: "jane", Groups: []string{}},
	} {
		b := open(t, o)
		wantSameAuthority(t, first, b)
		subject := parse(t, b.ClientCertPEM).Subject
		want := o.Groups
		if want == nil {
			want = []string{"system:masters"}
		}
		if subject.CommonName != "jane" || !slices.Equal(subject.Organization, want) && len(want)+len(subject.Organization) > 0 {
			t.Errorf("the certificate is that of %v, want jane of %q", subject, want)
		}
		if again := open(t, o); !bytes.Equal(again.ClientCertPEM, b.ClientCertPEM) {
			t.Errorf("%v: reissued without need", subject)
		}
	}
}

func TestExpiry(t *testing.T) {
	const day = 24 * time.Hour
	dir := filepath.Join(t.TempDir(), "pki")
	start := time.Now()
	at := func(d time.Duration) credentials.Options {
		return credentials.Options{Dir: dir, Now: func() time.Time { return start.Add(d) }}
	}
	first := open(t, at(0))
	soon := open(t, at(300*day))
	if !soon.Serving.Leaf.Equal(first.Serving.Leaf) || !bytes.Equal(soon.ClientCertPEM, first.ClientCertPEM) {
		t.Error("reissued long before the end")
	}
	for _, d := range []time.Duration{340 * day, 5 * 365 * day, 9*365*day + 200*day} { // near the end, and long after
		b := open(t, at(d))
		wantSameAuthority(t, first, b)
		for name, c := range map[string]*x509.Certificate{"serving": b.Serving.Leaf, "client": parse(t, b.ClientCertPEM)} {
			if c.NotAfter.Before(start.Add(d + 30*day)) {
				t.Errorf("after %v the %s certificate is valid until %v", d, name, c.NotAfter)
			}
		}
	}
	last := open(t, at(11*365*day))
	if bytes.Equal(last.CAPEM, first.CAPEM) {
		t.Error("the authority is the old one although its time is up")
	}
	if last.Token != first.Token {
		t.Error("the token has changed")
	}
	wantVerified(t, last, start.Add(11*365*day))
}

// A server that runs for years always has a valid certificate, of the authority that its clients have.
func TestServingCertificateIsRenewed(t *testing.T) {
	const day = 24 * time.Hour
	dir := filepath.Join(t.TempDir(), "pki")
	start := time.Now()
	var after, renewals atomic.Int64
	now := func() time.Time { return start.Add(time.Duration(after.Load())) }
	b := open(t, credentials.Options{Dir: dir, Now: now, Renewed: func(until time.Time, err error) {
		renewals.Add(1)
		if err != nil || until.Before(now()) {
			t.Errorf("renewed until %v, %v", until, err)
		}
	}})
	shown := func() *x509.Certificate {
		t.Helper()
		client, conn := net.Pipe()
		server := tls.Server(conn, b.TLSConfig())
		done := make(chan error, 1)
		go func() { done <- server.Handshake() }()
		c := tls.Client(client, &tls.Config{RootCAs: b.ClientCAs, ServerName: "localhost", Time: now, MinVersion: tls.VersionTLS12})
		if err := errors.Join(c.Handshake(), <-done); err != nil {
			t.Fatal(err)
		}
		_, _ = client.Close(), conn.Close()
		return c.ConnectionState().PeerCertificates[0]
	}
	if !shown().Equal(b.Serving.Leaf) {
		t.Error("another certificate is shown than that of Open")
	}
	after.Store(int64(330 * day))
	if !shown().Equal(b.Serving.Leaf) || renewals.Load() != 0 {
		t.Error("renewed long before the end")
	}
	for n, d := range []time.Duration{340 * day, 2 * 365 * day, 9*365*day + 200*day} { // near the end, and long after
		after.Store(int64(d))
		var all sync.WaitGroup
		for range 20 {
			all.Go(func() { _, _ = b.Certificate(nil) })
		}
		all.Wait()
		leaf := shown()
		if got := renewals.Load(); got != int64(n+1) || leaf.NotAfter.Before(now().Add(30*day)) {
			t.Errorf("after %v: %d renewals, until %v", d, got, leaf.NotAfter)
		}
		if again := open(t, credentials.Options{Dir: dir, Now: now}); !again.Serving.Leaf.Equal(leaf) {
			t.Errorf("after %v: what is shown is not kept", d)
		}
	}
	before := renewals.Load()
	after.Store(int64(10*365*day - 20*day)) // the authority ends soon, and so does what it issues
	for range 5 {
		shown()
	}
	if got := renewals.Load() - before; got > 1 {
		t.Errorf("%d renewals in an instant", got)
	}
}

// A certificate that cannot be written is used all the same, and made only once.
func TestServingCertificateThatIsNotKept(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "pki")
	start := time.Now()
	var after atomic.Int64
	var problems []error
	b := open(t, credentials.Options{
		Dir: dir, Now: func() time.Time { return start.Add(time.Duration(after.Load())) },
		Renewed: func(_ time.Time, err error) { problems = append(problems, err) },
	})
	if err := os.RemoveAll(dir); err != nil {
		t.Fatal(err)
	}
	after.Store(int64(2 * 365 * 24 * time.Hour))
	for range 3 {
		c, err := b.Certificate(nil)
		if err != nil {
			t.Fatal(err)
		}
		if _, err := c.Leaf.Verify(x509.VerifyOptions{Roots: b.ClientCAs, CurrentTime: start.Add(time.Duration(after.Load())), DNSName: "localhost"}); err != nil {
			t.Error(err)
		}
	}
	if len(problems) != 1 || problems[0] == nil {
		t.Errorf("told of %v", problems)
	}
}

func TestFromFiles(t *testing.T) {
	dir := t.TempDir()
	certFile, keyFile := filepath.Join(dir, "cert"), filepath.Join(dir, "key")
	if _, err := credentials.FromFiles(certFile, keyFile, nil); err == nil || !strings.Contains(err.Error(), certFile) {
		t.Error(err)
	}
	stamp := time.Now()
	put := func(path string, content []byte) {
		t.Helper()
		write(t, path, content)
		stamp = stamp.Add(time.Second) // for file systems with coarse times
		if err := os.Chtimes(path, stamp, stamp); err != nil {
			t.Fatal(err)
		}
	}
	first, second := open(t, credentials.Options{}), open(t, credentials.Options{})
	put(certFile, first.ClientCertPEM)
	put(keyFile, first.ClientKeyPEM)
	var problems []error
	get, err := credentials.FromFiles(certFile, keyFile, func(err error) { problems = append(problems, err) })
	if err != nil {
		t.Fatal(err)
	}
	want := func(certPEM []byte, reported int) {
		t.Helper()
		for range 3 {
			if c, err := get(nil); err != nil || !bytes.Equal(c.Certificate[0], parse(t, certPEM).Raw) {
				t.Errorf("another certificate, %v", err)
			}
		}
		if len(problems) != reported {
			t.Errorf("told of %v, want %d", problems, reported)
		}
	}
	want(first.ClientCertPEM, 0)
	put(certFile, second.ClientCertPEM)
	want(first.ClientCertPEM, 1) // its key is not written yet
	put(keyFile, second.ClientKeyPEM)
	want(second.ClientCertPEM, 1)
	if err := os.Remove(keyFile); err != nil {
		t.Fatal(err)
	}
	want(second.ClientCertPEM, 2)
	put(keyFile, first.ClientKeyPEM)
	put(certFile, first.ClientCertPEM)
	want(first.ClientCertPEM, 2)
}

func TestDamagedOrForeignCertificatesAreReissued(t *testing.T) {
	for _, name := range []string{"serving.pem", "client.pem"} {
		t.Run(name, func(t *testing.T) {
			dir := filepath.Join(t.TempDir(), "pki")
			path := filepath.Join(dir, name)
			first := open(t, credentials.Options{Dir: dir})
			good := read(t, path)
			other := filepath.Join(t.TempDir(), "other")
			open(t, credentials.Options{Dir: other})
			for what, content := range map[string][]byte{
				"empty":             {},
				"garbage":           []byte("garbage"),
				"half":              good[:len(good)/2],
				"without its key":   good[:bytes.Index(good, []byte("-----BEGIN PRIVATE"))],
				"of another CA":     read(t, filepath.Join(other, name)),
				"the authority":     read(t, filepath.Join(dir, "ca.pem")),
				"another's key":     mixed(good, read(t, filepath.Join(other, name))),
				"for another usage": read(t, filepath.Join(dir, map[string]string{"serving.pem": "client.pem", "client.pem": "serving.pem"}[name])),
			} {
				write(t, path, content)
				b := open(t, credentials.Options{Dir: dir})
				wantSameAuthority(t, first, b)
				wantVerified(t, b, time.Now())
				if bytes.Equal(read(t, path), content) {
					t.Errorf("%s: the file was left as it was", what)
				}
			}
			if err := os.Remove(path); err != nil {
				t.Fatal(err)
			}
			wantVerified(t, open(t, credentials.Options{Dir: dir}), time.Now())
		})
	}
}

func TestADamagedAuthorityOrTokenIsAnError(t *testing.T) {
	for name, contents := range map[string][]string{
		"ca.pem": {"", "garbage", "-----BEGIN CERTIFICATE-----\nAAAA\n-----END CERTIFICATE-----\n", "client"},
		"token":  {"", "short", "two words of which each is long enough to be one", "\x00\x01"},
	} {
		for _, content := range contents {
			dir := filepath.Join(t.TempDir(), "pki")
			open(t, credentials.Options{Dir: dir})
			if content == "client" {
				content = string(read(t, filepath.Join(dir, "client.pem")))
			}
			path := filepath.Join(dir, name)
			write(t, path, []byte(content))
			_, err := credentials.Open(credentials.Options{Dir: dir})
			if err == nil || !strings.Contains(err.Error(), path) || !strings.Contains(err.Error(), "restore it, or delete") {
				t.Errorf("%s holding %.20q: error %v, want one that names it and a cure", name, content, err)
			}
			if got := read(t, path); string(got) != content {
				t.Errorf("%s was changed", name)
			}
		}
	}
}

func TestPlacesThatAreRefused(t *testing.T) {
	dir := t.TempDir()
	file := filepath.Join(dir, "file")
	write(t, file, []byte("x"))
	for path, want := range map[string]string{
		file:                               "is not a directory",
		filepath.Join(dir, "missing", "a"): "no such file or directory",
	} {
		if _, err := credentials.Open(credentials.Options{Dir: path}); err == nil ||
			!strings.Contains(err.Error(), path) || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: error %v, want %q", path, err, want)
		}
	}
}

// A process may end between any two files, and in the middle of writing a temporary one.
func TestAnUnfinishedDirectoryIsCompleted(t *testing.T) {
	whole := filepath.Join(t.TempDir(), "pki")
	first := open(t, credentials.Options{Dir: whole})
	for n := range len(files) + 1 {
		dir := filepath.Join(t.TempDir(), "pki")
		if err := os.Mkdir(dir, 0o700); err != nil {
			t.Fatal(err)
		}
		write(t, filepath.Join(dir, ".ca.pem.123"), []byte("half"))
		for _, name := range []string{"ca.pem", "serving.pem", "client.pem", "token"}[:n] {
			write(t, filepath.Join(dir, name), read(t, filepath.Join(whole, name)))
		}
		b := open(t, credentials.Options{Dir: dir})
		wantVerified(t, b, time.Now())
		if n > 0 {
			wantAuthority(t, first, b)
		}
	}
}

func TestManyOpenAtOnce(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "pki")
	bundles := make([]*credentials.Bundle, 16)
	var all sync.WaitGroup
	for i := range bundles {
		all.Go(func() { bundles[i] = open(t, credentials.Options{Dir: dir}) })
	}
	all.Wait()
	for _, b := range bundles {
		if b == nil {
			t.Fatal("no credentials")
		}
		wantSameAuthority(t, bundles[0], b)
		wantVerified(t, b, time.Now())
	}
	if got := list(t, dir); !slices.Equal(got, files) {
		t.Errorf("the directory holds %q, want %q", got, files)
	}
}

func TestNothingIsKeptWithoutADirectory(t *testing.T) {
	a, b := open(t, credentials.Options{}), open(t, credentials.Options{})
	wantVerified(t, a, time.Now())
	if a.Token == b.Token || bytes.Equal(a.CAPEM, b.CAPEM) {
		t.Error("two bundles share credentials")
	}
}

func TestDialableHost(t *testing.T) {
	for in, want := range map[string]string{
		"0.0.0.0:6443":         "127.0.0.1:6443",
		"[::]:6443":            "127.0.0.1:6443",
		"127.0.0.1:80":         "127.0.0.1:80",
		"192.0.2.1:80":         "192.0.2.1:80",
		"[2001:db8::1]:80":     "[2001:db8::1]:80",
		"[::ffff:0.0.0.0]:443": "127.0.0.1:443",
		":80":                  "127.0.0.1:80",
	} {
		addr, err := net.ResolveTCPAddr("tcp", in)
		if err != nil {
			t.Fatal(err)
		}
		if got := credentials.DialableHost(addr); got != want {
			t.Errorf("DialableHost(%s) = %s, want %s", in, got, want)
		}
	}
	if got := credentials.DialableHost(&net.UnixAddr{Name: "/run/x.sock", Net: "unix"}); got != "/run/x.sock" {
		t.Errorf("DialableHost of a unix socket = %s", got)
	}
}

func open(t *testing.T, o credentials.Options) *credentials.Bundle {
	t.Helper()
	b, err := credentials.Open(o)
	if err != nil {
		t.Error(err)
		t.FailNow()
	}
	return b
}

// wantVerified checks that both sides' certificates verify against the authority.
func wantVerified(t *testing.T, b *credentials.Bundle, now time.Time) {
	t.Helper()
	serving := x509.VerifyOptions{Roots: b.ClientCAs, CurrentTime: now, DNSName: "localhost"}
	if _, err := b.Serving.Leaf.Verify(serving); err != nil {
		t.Errorf("the serving certificate: %v", err)
	}
	client := x509.VerifyOptions{Roots: b.ClientCAs, CurrentTime: now, KeyUsages: []x509.ExtKeyUsage{x509.ExtKeyUsageClientAuth}}
	if _, err := parse(t, b.ClientCertPEM).Verify(client); err != nil {
		t.Errorf("the client certificate: %v", err)
	}
	if _, err := tls.X509KeyPair(b.ClientCertPEM, b.ClientKeyPEM); err != nil {
		t.Errorf("the client certificate and key: %v", err)
	}
}

func wantSameAuthority(t *testing.T, a, b *credentials.Bundle) {
	t.Helper()
	wantAuthority(t, a, b)
	if a.Token != b.Token {
		t.Error("the token has changed")
	}
}

func wantAuthority(t *testing.T, a, b *credentials.Bundle) {
	t.Helper()
	if !bytes.Equal(a.CAPEM, b.CAPEM) {
		t.Error("the authority has changed")
	}
}

func wantMode(t *testing.T, path string, want fs.FileMode) {
	t.Helper()
	info, err := os.Stat(path)
	if err != nil {
		t.Fatal(err)
	}
	if info.Mode() != want {
		t.Errorf("%s has mode %v, want %v", path, info.Mode(), want)
	}
}

func parse(t *testing.T, content []byte) *x509.Certificate {
	t.Helper()
	block, _ := pem.Decode(content)
	if block == nil {
		t.Fatal("no PEM")
	}
	c, err := x509.ParseCertificate(block.Bytes)
	if err != nil {
		t.Fatal(err)
	}
	return c
}

// mixed returns the certificate of one file with the key of another.
func mixed(cert, key []byte) []byte {
	const begin = "-----BEGIN PRIVATE"
	i, j := bytes.Index(cert, []byte(begin)), bytes.Index(key, []byte(begin))
	return append(bytes.Clone(cert[:i]), key[j:]...)
}

func name(n int) string { return strings.Repeat("n", n) }

func contents(t *testing.T, dir string) (all [][]byte) {
	t.Helper()
	for _, name := range list(t, dir) {
		all = append(all, read(t, filepath.Join(dir, name)))
	}
	return all
}

func list(t *testing.T, dir string) (names []string) {
	t.Helper()
	entries, err := os.ReadDir(dir)
	if err != nil {
		t.Fatal(err)
	}
	for _, e := range entries {
		names = append(names, e.Name())
	}
	return names
}

func read(t *testing.T, path string) []byte {
	t.Helper()
	content, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	return content
}

func write(t *testing.T, path string, content []byte) {
	t.Helper()
	if err := os.WriteFile(path, content, 0o600); err != nil {
		t.Fatal(err)
	}
}
