package main

import (
	"bytes"
	"crypto/ecdsa"
	"crypto/elliptic"
	cryptorand "crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"fmt"
	"math/big"
	"math/rand/v2"
	"net"
	"net/url"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"
)

const deployment = `{"apiVersion":"apps/v1","kind":"Deployment","metadata":{"name":"web"},"spec":{"replicas":2},"status":{"replicas":7}}`

// With a storage file and without flags for users, there is an administrator. Objects and credentials outlive the process.
func TestAdministrator(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	p := start(t, dir, "--storage-file=plane.db")
	if p.kubeconfig != filepath.Join(dir, "certs", "admin.kubeconfig") {
		t.Errorf("the kubeconfig is said to be at %s", p.kubeconfig)
	}
	certificate := read(t, filepath.Join(dir, "certs", "apiserver.crt"))
	token := string(bytes.TrimSpace(read(t, filepath.Join(dir, "certs", "token"))))
	nobody, admin := p.client("", nil, certificate), p.client(token, nil, certificate)
	for _, path := range []string{"/readyz", "/livez", "/healthz", "/readyz/ping"} {
		nobody.want(200, "ok", "GET", path, "")
	}
	for _, path := range []string{"/version", "/api", "/api/v1/namespaces", "/readyz/../api/v1/namespaces", "/readyz/x/../../api/v1/namespaces"} {
		if code, text := nobody.ask("GET", path, ""); code == 200 {
			t.Errorf("the mode AlwaysAllow answers nobody at %s: %s", path, text)
		}
	}
	for _, namespace := range []string{"default", "kube-system", "kube-public", "kube-node-lease"} {
		admin.want(200, `"phase":"Active"`, "GET", "/api/v1/namespaces/"+namespace, "")
	}
	admin.want(201, `"status":{}`, "POST", "/apis/apps/v1/namespaces/default/deployments", deployment)
	admin.want(404, `namespaces \"missing\" not found`, "POST", "/apis/apps/v1/namespaces/missing/deployments", deployment)
	admin.want(201, "", "POST", "/apis/apiextensions.k8s.io/v1/customresourcedefinitions", definition)
	p.stop()
	if got := strings.Count(p.stdout.String(), "\n"); got != 1 {
		t.Errorf("it wrote %d lines to standard output: %s", got, p.stdout.String())
	}

	p = start(t, dir, "--storage-file=plane.db", "--disable-admission-plugins=NamespaceLifecycle")
	if !bytes.Equal(certificate, read(t, filepath.Join(dir, "certs", "apiserver.crt"))) {
		t.Error("the serving certificate changed with the restart")
	}
	admin = p.client(token, nil, certificate)
	admin.want(200, `"replicas":2`, "GET", "/apis/apps/v1/namespaces/default/deployments/web", "")
	admin.want(201, `"size":1`, "POST", "/apis/example.com/v1/namespaces/default/things", `{"apiVersion":"example.com/v1","kind":"Thing","metadata":{"name":"a"},"spec":{"size":1}}`)
	admin.want(201, "", "POST", "/apis/apps/v1/namespaces/missing/deployments", deployment)
	p.stop()
}

const definition = `{"apiVersion":"apiextensions.k8s.io/v1","kind":"CustomResourceDefinition","metadata":{"name":"things.example.com"},
"spec":{"group":"example.com","scope":"Namespaced","names":{"plural":"things","kind":"Thing"},"versions":[{"name":"v1","served":true,"storage":true,
"schema":{"openAPIV3Schema":{"type":"object","x-kubernetes-preserve-unknown-fields":true}}}]}}`

// Users of a token file and of a client authority have their groups, and no other users are authenticated.
func TestUsers(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	ca := newAuthority(t)
	write(t, filepath.Join(dir, "ca.crt"), string(ca.pem))
	write(t, filepath.Join(dir, "tokens.csv"), "t-admin,root,0,\"ops,system:masters\"\nt-dev,dev,1,dev\n")
	p := start(t, dir, "--storage-file=plane.db", "--token-auth-file=tokens.csv", "--client-ca-file=ca.crt", "--authorization-mode=RBAC", "--v=2", "--event-ttl=2h")
	if p.kubeconfig != "" {
		t.Errorf("there is a kubeconfig at %s", p.kubeconfig)
	}
	if want := "controlplane: without effect yet: --event-ttl --v\n"; !strings.HasPrefix(p.stderr.String(), want) {
		t.Errorf("it begins with %s", p.stderr.String())
	}
	const namespaces = "/api/v1/namespaces"
	p.client("t-admin", nil, nil).want(200, `"kube-system"`, "GET", namespaces, "")
	p.client("t-dev", nil, nil).want(403, `User \"dev\" cannot list resource \"namespaces\"`, "GET", namespaces, "")
	p.client("t-dev", nil, nil).want(200, `"apps"`, "GET", "/apis", "")
	p.client("", nil, nil).want(403, `User \"system:anonymous\" cannot list`, "GET", namespaces, "")
	p.client("", nil, nil).want(200, "ok", "GET", "/readyz", "")
	p.client("", ca.issue(t, "root", "system:masters"), nil).want(200, `"kube-system"`, "GET", namespaces, "")
	p.client("", ca.issue(t, "carol"), nil).want(403, `User \"carol\" cannot list`, "GET", namespaces, "")
	p.client("", newAuthority(t).issue(t, "root", "system:masters"), nil).want(401, "Unauthorized", "GET", namespaces, "")
	p.client("wrong", nil, nil).want(401, "Unauthorized", "GET", "/readyz", "")
	own := string(bytes.TrimSpace(read(t, filepath.Join(dir, "certs", "token"))))
	p.client(own, nil, nil).want(401, "Unauthorized", "GET", namespaces, "")
	p.stop()
}

// After a restart no request is decided by a part of the roles and bindings. While they are being loaded, requests are refused
// and /readyz fails. The first request after /readyz is ok is decided by all of them.
func TestRolesAfterRestart(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	users, err := filepath.Abs("testdata/users.csv")
	if err != nil {
		t.Fatal(err)
	}
	args := []string{"--storage-file=plane.db", "--token-auth-file=" + users, "--authorization-mode=RBAC"}
	p := start(t, dir, args...)
	answersOf(t, p, "alice GET /api/v1/namespaces/team/pods")
	for i := range 10 { // their loading takes a while
		large := fmt.Sprintf(`{"metadata":{"name":"large-%d"},"rules":[{"verbs":["get"],"apiGroups":["example.com"],"resources":["a"%s]}]}`, i, strings.Repeat(`,"b"`, 100_000))
		p.client("t-admin", nil, nil).want(201, "", "POST", "/apis/rbac.authorization.k8s.io/v1/clusterroles", large)
	}
	p.stop()
	port := freePort(t)
	args = append(args, "--secure-port="+port, "--bind-address=127.0.0.1", "--cert-dir=certs")
	for range 3 {
		again := launch(t, dir, args...)
		again.url = "https://127.0.0.1:" + port
		var users sync.WaitGroup
		for user, want := range map[string]firstAnswer{
			"admin": {200, `"items":[]`}, "alice": {200, `"items":[]`}, "named": {403, `in the namespace \"team\"","reason"`},
			"lost": {403, `rbac: RBAC: [clusterrole.rbac.authorization.k8s.io \"gone\" not found, role.rbac.authorization.k8s.io \"gone\" not found]`},
		} {
			nobody, user := again.client("", nil, nil), again.client("t-"+user, nil, nil)
			users.Go(func() { want.check(nobody, user) })
		}
		users.Wait()
		again.stop()
	}
}

// firstAnswer is the answer to a request for the pods of a namespace, according to all roles and bindings.
type firstAnswer struct {
	code int
	part string
}

// check repeats a user's request until one is sent after /readyz is ok.
func (want firstAnswer) check(nobody, user *client) {
	for begin := time.Now(); time.Since(begin) < limit; time.Sleep(time.Millisecond) {
		ready, _, err := nobody.try("GET", "/readyz", "")
		if err != nil {
			continue // the server does not listen yet
		}
		code, text, err := user.try("GET", "/api/v1/namespaces/team/pods", "")
		loading := ready != 200 && code == 403 && strings.Contains(text, "roles and bindings are not loaded yet")
		if err != nil || !loading && (code != want.code || !strings.Contains(text, want.part)) {
			user.t.Errorf("%s: /readyz is %d, and then the answer %d %s, %v; want %d and %s", user.token, ready, code, text, err, want.code, want.part)
		}
		if err != nil || ready == 200 {
			return
		}
	}
	user.t.Error("it does not get ready")
}

// freePort returns a free port that the system does not assign automatically.
func freePort(t *testing.T) string {
	t.Helper()
	for range 100 {
		port := strconv.Itoa(20000 + rand.IntN(10000))
		if ln, err := net.Listen("tcp", "127.0.0.1:"+port); err == nil {
			ln.Close()
			return port
		}
	}
	t.Fatal("no port is free")
	return ""
}

func TestModesAndAnonymous(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		flags                  string
		dev, anonymous, health int // codes for a user, for a request without credentials, and for such a request to /readyz
	}{
		{"--authorization-mode=AlwaysAllow", 200, 401, 200},
		{"--authorization-mode=AlwaysDeny", 403, 403, 403},
		{"--authorization-mode=RBAC,AlwaysAllow", 200, 401, 200},
		{"--authorization-mode=RBAC --anonymous-auth=false", 403, 401, 401},
	} {
		t.Run(c.flags, func(t *testing.T) {
			t.Parallel()
			dir := t.TempDir()
			write(t, filepath.Join(dir, "tokens.csv"), "t-admin,root,0,system:masters\nt-dev,dev,1\n")
			p := start(t, dir, append(strings.Fields(c.flags), "--storage-file=plane.db", "--token-auth-file=tokens.csv")...)
			p.client("t-admin", nil, nil).want(200, "", "GET", "/api/v1/pods", "")
			p.client("t-dev", nil, nil).want(c.dev, "", "GET", "/api/v1/pods", "")
			p.client("", nil, nil).want(c.anonymous, "", "GET", "/api/v1/pods", "")
			p.client("", nil, nil).want(c.health, "", "GET", "/readyz", "")
			p.stop()
		})
	}
}

// A given certificate, from the flags or from the directory, is served and not changed.
func TestServingCertificate(t *testing.T) {
	t.Parallel()
	ca := newAuthority(t)
	for _, where := range []string{"flags", "directory"} {
		dir := t.TempDir()
		cert, key := filepath.Join(dir, "certs", "apiserver.crt"), filepath.Join(dir, "certs", "apiserver.key")
		args := []string{"--storage-file=plane.db"}
		if where == "flags" {
			cert, key = filepath.Join(dir, "tls.crt"), filepath.Join(dir, "tls.key")
			args = append(args, "--tls-cert-file=tls.crt", "--tls-private-key-file=tls.key")
		}
		ca.write(t, cert, key, ca.issue(t, "server"))
		before := read(t, cert)
		p := start(t, dir, args...)
		p.client("", nil, ca.pem).want(200, "ok", "GET", "/readyz", "")
		p.client(string(bytes.TrimSpace(read(t, filepath.Join(dir, "certs", "token")))), nil, ca.pem).want(200, "", "GET", "/api", "")
		if p.kubeconfig != "" {
			t.Errorf("%s: the kubeconfig %s trusts another authority", where, p.kubeconfig)
		}
		p.stop()
		if !bytes.Equal(before, read(t, cert)) {
			t.Errorf("%s: the certificate was replaced", where)
		}
	}
}

// Serving files that the program created and that an interrupted start left incomplete are created again.
func TestIncompleteServingFiles(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	start(t, dir, "--storage-file=plane.db").stop()
	if err := os.Remove(filepath.Join(dir, "certs", "apiserver.key")); err != nil {
		t.Fatal(err)
	}
	p := start(t, dir, "--storage-file=plane.db")
	if _, err := tls.LoadX509KeyPair(filepath.Join(dir, "certs", "apiserver.crt"), filepath.Join(dir, "certs", "apiserver.key")); err != nil {
		t.Error(err)
	}
	p.stop()
}

// If the program cannot start, the error names the flag, file and line that is wrong, and how to correct it.
func TestWhatCannotStart(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	ca := newAuthority(t)
	broken := pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: []byte("no certificate")})
	for name, content := range map[string]string{
		"two.csv":            "good,u,1\ns3cret,user\n",
		"nobody.csv":         "s3cret,,1\n",
		"quote.csv":          "good,u,1\n\ns3\"cret,u,1\n",
		"open.csv":           "\"s3cret,u,1\n",
		"line.csv":           strings.Repeat("s3cret", 10<<20/6),
		"large.csv":          strings.Repeat("s3cret,u,1\n", 2<<20),
		"binary.csv":         "\x00\xffs3cret\x00",
		"ca.crt":             string(ca.pem),
		"broken.crt":         string(ca.pem) + string(broken),
		"half/apiserver.key": "a key",
		"text":               strings.Repeat("This is no database.\n", 1000),
	} {
		write(t, filepath.Join(dir, name), content)
	}
	ca.write(t, filepath.Join(dir, "a.crt"), filepath.Join(dir, "a.key"), ca.issue(t, "a"))
	ca.write(t, filepath.Join(dir, "b.crt"), filepath.Join(dir, "b.key"), ca.issue(t, "b"))
	taken, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer taken.Close()
	_, port, _ := net.SplitHostPort(taken.Addr().String())
	const line = `; a line is token,user,uid,"group1,group2"`
	for _, c := range []struct{ args, want string }{
		{"--nonsense", "unknown flag: --nonsense; --help lists the flags"},
		{"--storage-fil=db", "unknown flag: --storage-fil; did you mean --storage-file?"},
		{"db", `controlplane does not take any arguments, got ["db"]`},
		{"", "--etcd-servers or --storage-file must be specified"},
		{"--storage-file=db --authorization-mode=Node,RBAC", "the mode Node is not available yet"},
		{"--storage-file=db --authorization-mode=ABAC --authorization-policy-file=missing", "invalid authorization config: open missing: no such file or directory"},
		{"--storage-file=db --authorization-mode=ABAC --authorization-policy-file=two.csv", "invalid authorization config: error reading policy file two.csv, line 1: "},
		{"--storage-file=db --authorization-mode=Webhook --authorization-webhook-config-file=two.csv", "--authorization-webhook-config-file: kubeconfig two.csv: it is no kubeconfig"},
		{"--storage-file=db --authorization-config=missing", "open missing: no such file or directory"},
		{"--storage-file=db --authorization-config=two.csv", "--authorization-config two.csv: failed to load AuthorizationConfiguration from file: "},

		{"--storage-file=db --token-auth-file=missing", "--token-auth-file: open missing: no such file or directory"},
		{"--storage-file=db --token-auth-file=half", "--token-auth-file: half is no regular file\n"},
		{"--storage-file=db --token-auth-file=two.csv", "--token-auth-file: two.csv: token file: line 2 has 2 of the at least 3 columns token, user name and user uid" + line},
		{"--storage-file=db --token-auth-file=nobody.csv", "--token-auth-file: nobody.csv: token file: line 1 has an empty user name" + line},
		{"--storage-file=db --token-auth-file=quote.csv", `--token-auth-file: quote.csv: token file: parse error on line 3, column 3: bare " in non-quoted-field` + line},
		{"--storage-file=db --token-auth-file=open.csv", `--token-auth-file: open.csv: token file: parse error on line 1, column 13: extraneous or missing " in quoted-field` + line},
		{"--storage-file=db --token-auth-file=line.csv", "--token-auth-file: line.csv: token file: line 1 has 1 of the at least 3 columns"},
		{"--storage-file=db --token-auth-file=large.csv", "--token-auth-file: large.csv has more than 16777216 bytes"},
		{"--storage-file=db --token-auth-file=binary.csv", "--token-auth-file: binary.csv: token file: line 1 has 1 of the at least 3 columns"},

		{"--storage-file=db --client-ca-file=missing", "--client-ca-file: open missing: no such file or directory"},
		{"--storage-file=db --client-ca-file=two.csv", "--client-ca-file: two.csv: it has no certificate in PEM"},
		{"--storage-file=db --client-ca-file=a.key", "--client-ca-file: a.key: it has no certificate in PEM"},
		{"--storage-file=db --client-ca-file=broken.crt", "--client-ca-file: broken.crt: certificate 2: x509: malformed certificate: replace or remove it"},
		{"--storage-file=db --requestheader-client-ca-file=missing", "--requestheader-client-ca-file: open missing: no such file or directory"},
		{"--storage-file=db --requestheader-client-ca-file=a.key", "--requestheader-client-ca-file: a.key: it has no certificate in PEM"},
		{"--storage-file=db --requestheader-username-headers=a,", `--requestheader-username-headers ["a" ""] has an empty value`},
		{"--storage-file=db --authentication-token-webhook-config-file=missing", "--authentication-token-webhook-config-file: open missing: no such file or directory"},
		{"--storage-file=db --authentication-token-webhook-config-file=two.csv", "--authentication-token-webhook-config-file: two.csv: kubeconfig two.csv: it is no kubeconfig"},
		{"--storage-file=db --authentication-token-webhook-config-file=ca.crt --authentication-token-webhook-version=v2", `--authentication-token-webhook-version: "v2" is no version of TokenReview`},

		{"--storage-file=db --tls-cert-file=a.crt --tls-private-key-file=missing", "--tls-cert-file a.crt and --tls-private-key-file missing: open missing: no such file or directory"},
		{"--storage-file=db --tls-cert-file=a.crt --tls-private-key-file=b.key", "--tls-cert-file a.crt and --tls-private-key-file b.key: tls: private key does not match public key"},
		{"--storage-file=db --tls-cert-file=a.key --tls-private-key-file=a.crt", "--tls-cert-file a.key and --tls-private-key-file a.crt: tls: failed to find certificate PEM data in certificate input, but did find a private key; PEM inputs may have been switched"},
		{"--storage-file=db --tls-cert-file=text --tls-private-key-file=a.key", "--tls-cert-file text and --tls-private-key-file a.key: tls: failed to find any PEM data in certificate input"},
		{"--storage-file=db --tls-cert-file=a.crt", "--tls-cert-file and --tls-private-key-file must be given together"},
		{"--storage-file=db --cert-dir=half", "--cert-dir: half/apiserver.crt and half/apiserver.key: open half/apiserver.crt"},
		{"--storage-file=db --cert-dir=text", "--cert-dir: text/apiserver.crt and text/apiserver.key: open text/apiserver.crt: not a directory"},

		{"--storage-file=text", "--storage-file: bolt: open text: it is not a storage file of this library (another program's data?) (invalid database): use another file"},
		{"--storage-file=half", "--storage-file: bolt: open half: it is a directory: name a file"},
		{"--storage-file=missing/db", "--storage-file: bolt: open missing/db: stat missing: no such file or directory: create the directory missing first"},
		{"--etcd-servers=http://127.0.0.1:1", "--etcd-servers: etcd: open http://127.0.0.1:1: dial tcp 127.0.0.1:1: connect: connection refused: start etcd there"},
		{"--etcd-servers=ftp://127.0.0.1:1", `--etcd-servers: etcd: endpoint 1, "ftp://127.0.0.1:1": scheme "ftp" is unknown: use http://, https:// or unix://`},
		{"--etcd-servers=https://127.0.0.1:1 --etcd-cafile=missing", "--etcd-cafile: open missing"},
		{"--etcd-servers=https://127.0.0.1:1 --etcd-certfile=a.crt --etcd-keyfile=b.key", "--etcd-certfile a.crt and --etcd-keyfile b.key: tls: private key does not match public key"},

		{"--storage-file=db --secure-port=" + port, "--bind-address and --secure-port: server: listen on 127.0.0.1:" + port + ": listen tcp 127.0.0.1:" + port +
			": bind: address already in use: stop the program that listens there, or use another address or port; port 0 is any free one"},
		{"--storage-file=db --bind-address=192.0.2.1", "--bind-address and --secure-port: server: listen on 192.0.2.1:0: listen tcp 192.0.2.1:0: bind: cannot assign requested address"},
	} {
		p := launch(t, dir, append([]string{"--cert-dir=certs", "--bind-address=127.0.0.1", "--secure-port=0"}, strings.Fields(c.args)...)...)
		code, stderr := p.wait(), p.stderr.String()
		if code != 1 || !strings.HasPrefix(stderr, "controlplane: ") || !strings.Contains(stderr, c.want) || p.stdout.String() != "" {
			t.Errorf("%s: exit code %d, %s%s; want %q", c.args, code, p.stdout.String(), stderr, c.want)
		}
		if strings.Contains(stderr, "s3") || strings.Contains(stderr, "goroutine") || strings.Count(stderr, "\n") != 1 {
			t.Errorf("%s: the error has a token, a stack or several lines: %s", c.args, stderr)
		}
	}
	if content := read(t, filepath.Join(dir, "text")); !strings.HasPrefix(string(content), "This is no database.\n") {
		t.Error("the file that is no database was changed")
	}
}

// The first line lists exactly the flags without effect, and the program serves nevertheless.
func TestFlagsWithoutEffect(t *testing.T) {
	t.Parallel()
	without := strings.Fields(`--advertise-address=127.0.0.1 --allow-privileged=true --contention-profiling=true
		--egress-selector-config-file=e --emulated-version=1.36 --enable-admission-plugins=NodeRestriction,PodSecurity --enable-aggregator-routing
		--encryption-provider-config=e --endpoint-reconciler-type=none --event-ttl=1h --feature-gates=A=true
		--kubelet-client-certificate=c --kubelet-client-key=k --max-requests-inflight=400
		--proxy-client-cert-file=c --proxy-client-key-file=k --request-timeout=1m --runtime-config=api/all=true
		--service-cluster-ip-range=10.96.0.0/16 --service-node-port-range=30000-32767 --storage-backend=etcd3 --tls-min-version=VersionTLS13 --v=2
		--watch-cache=true`)
	names := slices.Clone(without)
	for i, flag := range names {
		if !strings.HasPrefix(flag, "--enable-admission-plugins") {
			names[i], _, _ = strings.Cut(flag, "=")
		}
	}
	p := start(t, t.TempDir(), append(without, "--storage-file=plane.db", "--authorization-mode=RBAC", "--enable-admission-plugins=NamespaceLifecycle", "--disable-admission-plugins=ServiceAccount")...)
	p.client("", nil, nil).want(200, "ok", "GET", "/readyz", "")
	if line, _, _ := strings.Cut(p.stderr.String(), "\n"); line != "controlplane: without effect yet: "+strings.Join(names, " ") {
		t.Errorf("it begins with %s; want the flags %s", line, names)
	}
	p.stop()

	p = start(t, t.TempDir(), "--storage-file=plane.db")
	p.stop()
	if strings.Contains(p.stderr.String(), "without effect") {
		t.Errorf("without such flags it says %s", p.stderr.String())
	}
}

// The program listens on the address of the flag, and its certificate is valid for the URL that it prints.
func TestBindAddress(t *testing.T) {
	t.Parallel()
	for address, want := range map[string]string{"127.0.0.1": "127.0.0.1", "0.0.0.0": "127.0.0.1", "::1": "::1", "127.0.0.2": "127.0.0.2"} {
		ln, err := net.Listen("tcp", net.JoinHostPort(address, "0"))
		if err != nil {
			t.Logf("%s is no address of this machine: %v", address, err)
			continue
		}
		ln.Close()
		dir := t.TempDir()
		p := start(t, dir, "--storage-file=plane.db", "--bind-address="+address)
		if u, err := url.Parse(p.url); err != nil || u.Hostname() != want {
			t.Errorf("at %s the URL is %s", address, p.url)
		}
		p.client("", nil, read(t, filepath.Join(dir, "certs", "apiserver.crt"))).want(200, "ok", "GET", "/readyz", "")
		p.stop()
	}
}

// Lines of a token file that kube-apiserver skips are skipped, with a warning.
func TestOddTokenFile(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	write(t, filepath.Join(dir, "tokens.csv"), "same,dev,1\nsame,root,0,system:masters\n,nobody,2\n\n\"a\"\"b\",quoted,3,\"x,y\",more\n")
	p := start(t, dir, "--storage-file=plane.db", "--token-auth-file=tokens.csv", "--authorization-mode=RBAC")
	p.client("same", nil, nil).want(200, "", "GET", "/api/v1/namespaces", "")
	p.client(`a"b`, nil, nil).want(403, `User \"quoted\" cannot list`, "GET", "/api/v1/namespaces", "")
	for _, want := range []string{"line 2 has the token of line 1 and replaces it", "line 3 has an empty token and is skipped"} {
		if !strings.Contains(p.stderr.String(), want) {
			t.Errorf("no warning %q", want)
		}
	}
	if strings.Contains(p.stderr.String(), "same") {
		t.Error("a warning has a token")
	}
	p.stop()
}

func TestHelpAndVersion(t *testing.T) {
	t.Parallel()
	for flag, want := range map[string]string{"--help": "--etcd-servers strings", "--version": "controlplane "} {
		p := launch(t, t.TempDir(), flag)
		if code := p.wait(); code != 0 || !strings.Contains(p.stdout.String(), want) || p.stderr.String() != "" {
			t.Errorf("%s: exit code %d, stdout %s, stderr %s", flag, code, p.stdout.String(), p.stderr.String())
		}
	}
}

// authority issues certificates for clients and for servers on 127.0.0.1.
type authority struct {
	cert *x509.Certificate
	key  *ecdsa.PrivateKey
	pem  []byte
}

func newAuthority(t *testing.T) *authority {
	t.Helper()
	a := &authority{}
	template := &x509.Certificate{Subject: pkix.Name{CommonName: "ca"}, IsCA: true, KeyUsage: x509.KeyUsageCertSign}
	pair := a.sign(t, template)
	a.cert, a.key = pair.Leaf, pair.PrivateKey.(*ecdsa.PrivateKey)
	a.pem = pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: pair.Certificate[0]})
	return a
}

// issue issues a certificate for a name and groups.
func (a *authority) issue(t *testing.T, name string, groups ...string) *tls.Certificate {
	t.Helper()
	return a.sign(t, &x509.Certificate{
		Subject: pkix.Name{CommonName: name, Organization: groups}, IPAddresses: []net.IP{net.IPv4(127, 0, 0, 1)},
		ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageClientAuth, x509.ExtKeyUsageServerAuth},
	})
}

// sign completes a template. The first certificate is self-signed.
func (a *authority) sign(t *testing.T, template *x509.Certificate) *tls.Certificate {
	t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), cryptorand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	now := time.Now()
	template.SerialNumber, template.NotBefore, template.NotAfter = big.NewInt(now.UnixNano()), now.Add(-time.Hour), now.Add(time.Hour)
	template.BasicConstraintsValid = true
	parent, signer := a.cert, a.key
	if parent == nil {
		parent, signer = template, key
	}
	der, err := x509.CreateCertificate(cryptorand.Reader, template, parent, &key.PublicKey, signer)
	if err != nil {
		t.Fatal(err)
	}
	leaf, err := x509.ParseCertificate(der)
	if err != nil {
		t.Fatal(err)
	}
	return &tls.Certificate{Certificate: [][]byte{der}, PrivateKey: key, Leaf: leaf}
}

// write writes a pair.
func (a *authority) write(t *testing.T, cert, key string, pair *tls.Certificate) {
	t.Helper()
	der, err := x509.MarshalPKCS8PrivateKey(pair.PrivateKey)
	if err != nil {
		t.Fatal(err)
	}
	write(t, cert, string(pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: pair.Certificate[0]})))
	write(t, key, string(pem.EncodeToMemory(&pem.Block{Type: "PRIVATE KEY", Bytes: der})))
}
