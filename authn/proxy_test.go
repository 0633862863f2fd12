package authn_test

import (
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"net/http"
	"net/http/httptest"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/keelson-dev/keelson/authn"
)

// from returns a request with headers on a connection with client certificates.
func from(headers http.Header, certs ...*x509.Certificate) *http.Request {
	r := httptest.NewRequest(http.MethodGet, "/", nil)
	r.Header, r.TLS = headers, nil
	if len(certs) > 0 {
		r.TLS = &tls.ConnectionState{PeerCertificates: certs}
	}
	return r
}

func TestAuthenticatingProxy(t *testing.T) {
	root, other := ca(t, nil), ca(t, nil)
	pool := x509.NewCertPool()
	pool.AddCert(root.cert)
	roots := func() *x509.CertPool { return pool }
	proxy, user := client(t, root, pkix.Name{CommonName: "front"}), client(t, other, pkix.Name{CommonName: "front"})
	serving := client(t, root, pkix.Name{CommonName: "front"}, func(c *x509.Certificate) { c.ExtKeyUsage = []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth} })
	expired := client(t, root, pkix.Name{CommonName: "front"}, func(c *x509.Certificate) { c.NotAfter = time.Now().Add(-time.Minute) })
	early := client(t, root, pkix.Name{CommonName: "front"}, func(c *x509.Certificate) {
		c.NotBefore, c.NotAfter = time.Now().Add(time.Hour), time.Now().Add(2*time.Hour)
	})
	options := authn.StandardProxy(roots, "front", "spare")
	options.User = append(options.User, "remote-name")
	options.Extra = append(options.Extra, "X-Other-")
	a, err := authn.AuthenticatingProxy(options)
	if err != nil {
		t.Fatal(err)
	}
	named := func(more ...string) http.Header {
		h := http.Header{}
		h.Set("X-Remote-User", "jane")
		for i := 0; i < len(more); i += 2 {
			h.Add(more[i], more[i+1])
		}
		return h
	}
	jane := &authn.User{Name: "jane"}
	for name, test := range map[string]struct {
		headers http.Header
		certs   []*x509.Certificate
		want    *authn.User
		fails   bool
	}{
		"a user":                   {named(), []*x509.Certificate{proxy}, jane, false},
		"no certificate":           {named(), nil, nil, false},
		"a certificate of another": {named(), []*x509.Certificate{user}, nil, true},
		"a serving certificate":    {named(), []*x509.Certificate{serving}, nil, true},
		"an expired certificate":   {named(), []*x509.Certificate{expired}, nil, true},
		"not yet valid":            {named(), []*x509.Certificate{early}, nil, true},
		"another name":             {named(), []*x509.Certificate{client(t, root, pkix.Name{CommonName: "jane"})}, nil, true},
		"no user":                  {http.Header{"X-Remote-Group": {"g"}}, []*x509.Certificate{proxy}, nil, false},
		"an empty user":            {http.Header{"X-Remote-User": {""}}, []*x509.Certificate{proxy}, nil, false},
		"the second header":        {http.Header{"X-Remote-User": {""}, "Remote-Name": {"joe", "jack"}}, []*x509.Certificate{proxy}, &authn.User{Name: "joe"}, false},
		"all headers": {
			named("X-Remote-Uid", "u1", "X-Remote-Group", "a", "X-Remote-Group", "", "X-Remote-Group", "b,c", "x-remote-EXTRA-Key", "v",
				"X-Remote-Extra-example.com%2Fscope", "1", "X-Remote-Extra-Example.com%2fScope", "2", "X-Remote-Extra-bad%zz", "3", "X-Other-Key", "w"),
			[]*x509.Certificate{proxy},
			&authn.User{Name: "jane", UID: "u1", Groups: []string{"a", "b,c"}, Extra: map[string][]string{
				"key": {"v", "w"}, "example.com/scope": {"1", "2"}, "bad%zz": {"3"},
			}}, false,
		},
	} {
		t.Run(name, func(t *testing.T) {
			for range 2 { // the second time, the certificate may be known
				resp, err := a.Authenticate(from(test.headers, test.certs...))
				var got *authn.User
				if resp != nil {
					got = &resp.User
				}
				if diff := cmp.Diff(test.want, got); diff != "" || (err != nil) != test.fails {
					t.Errorf("error %v (-want +got):\n%s", err, diff)
				}
			}
		})
	}
	pool = nil
	if got := result(a, from(named(), proxy)); got != "no opinion" {
		t.Errorf("without authorities: %s", got)
	}
}

func TestAuthenticatingProxyRefusesOptions(t *testing.T) {
	roots := func() *x509.CertPool { return nil }
	for _, o := range []authn.ProxyOptions{{}, {Roots: roots}, {Roots: roots, User: []string{" "}}, {Roots: roots, User: []string{"a"}, Extra: []string{""}}} {
		if _, err := authn.AuthenticatingProxy(o); err == nil {
			t.Errorf("%+v: no error", o)
		}
	}
}

func TestProxyStrip(t *testing.T) {
	o := authn.StandardProxy(func() *x509.CertPool { return nil })
	o.User, o.Extra = []string{"my-user"}, []string{"my-extra-"}
	a, err := authn.AuthenticatingProxy(o)
	if err != nil {
		t.Fatal(err)
	}
	in := http.Header{"My-User": {"a"}, "My-Extra-B": {"b"}, "X-Remote-Uid": {"c"}, "X-Remote-Group": {"d"}, "X-Remote-User": {"of another proxy"}, "Accept": {"e"}}
	was := in.Clone()
	if diff := cmp.Diff(http.Header{"X-Remote-User": {"of another proxy"}, "Accept": {"e"}}, a.Strip(in)); diff != "" {
		t.Error(diff)
	}
	if diff := cmp.Diff(was, in); diff != "" {
		t.Errorf("the headers were changed: %s", diff)
	}
}

// TestCertificatesAreRemembered checks that a certificate is verified again only if the authorities change or a certificate of its
// chain expires.
func TestCertificatesAreRemembered(t *testing.T) {
	root, other := ca(t, nil), ca(t, nil)
	pools := [2]*x509.CertPool{x509.NewCertPool(), x509.NewCertPool()}
	pools[0].AddCert(root.cert)
	pools[1].AddCert(other.cert)
	now := pools[0]
	a := authn.X509(func() *x509.CertPool { return now })
	cert := client(t, root, pkix.Name{CommonName: "u"})
	request := from(http.Header{}, cert)
	if allocs := testing.AllocsPerRun(100, func() {
		if got := result(a, request); got != "u" {
			t.Fatal(got)
		}
	}); allocs > 1 {
		t.Errorf("%v allocations: the certificate is verified again", allocs)
	}
	now = pools[1]
	if got := result(a, request); got == "u" {
		t.Error("the certificate of an authority that was removed is accepted")
	}
	now = pools[0]
	if got := result(a, request); got != "u" {
		t.Errorf("after the authority was added again: %s", got)
	}
	short := client(t, root, pkix.Name{CommonName: "u"}, func(c *x509.Certificate) {
		c.NotBefore, c.NotAfter = time.Now().Add(-time.Hour), time.Now().Add(3*time.Second)
	})
	request = from(http.Header{}, short)
	if got := result(a, request); got != "u" {
		t.Fatal(got)
	}
	time.Sleep(time.Until(short.NotAfter.Add(time.Millisecond)))
	if got := result(a, request); got == "u" {
		t.Error("a certificate is accepted after it has expired, on an open connection")
	}
}

func BenchmarkX509(b *testing.B) {
	root := ca(b, nil)
	pool := x509.NewCertPool()
	pool.AddCert(root.cert)
	a := authn.X509(func() *x509.CertPool { return pool })
	request := from(http.Header{}, client(b, root, pkix.Name{CommonName: "u", Organization: []string{"g"}}))
	for b.Loop() {
		if resp, err := a.Authenticate(request); resp == nil || err != nil {
			b.Fatal(err)
		}
	}
}
