package main

import (
	"fmt"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/keelson-dev/keelson/authn"
	"github.com/keelson-dev/keelson/examples/bench/internal/etcdtest"
	"github.com/keelson-dev/keelson/examples/bench/internal/programtest"
)

const (
	base    = "/apis/bench.example.com/v1"
	widgets = base + "/namespaces/nowhere/widgets" // the namespace does not exist
	asJSON  = "application/json"
)

func TestMain(m *testing.M) { os.Exit(programtest.Main(m, main)) }

// start is programtest.Start with the flags that all tests have.
func start(t *testing.T, args ...string) *programtest.Process {
	t.Helper()
	return programtest.Start(t, append([]string{"-addr", "127.0.0.1:0", "-token", "secret"}, args...)...)
}

func newWidget(name, labels string) string {
	return fmt.Sprintf(`{"apiVersion":"bench.example.com/v1","kind":"Widget","metadata":{"name":%q,"labels":{%s}},"spec":{"size":7,"replicas":2}}`, name, labels)
}

// TestServes checks that widgets are served with every verb, status and scale, from each storage, and that persistent storages
// keep them.
func TestServes(t *testing.T) {
	for _, storage := range []struct {
		name string
		args func(t *testing.T) []string
		kept bool
	}{
		{"memory", func(*testing.T) []string { return nil }, false},
		{"bolt", func(t *testing.T) []string { return []string{"-data", filepath.Join(t.TempDir(), "widgets.db")} }, true},
		{"etcd", func(t *testing.T) []string { return []string{"-etcd", etcdtest.Start(t)} }, true},
	} {
		t.Run(storage.name, func(t *testing.T) {
			args := storage.args(t)
			p := start(t, args...)
			serves(t, p)
			p.Do(http.MethodPost, widgets, asJSON, newWidget("kept", "")).Want(http.StatusCreated)
			if rest := p.Lines(); len(rest) > 0 {
				t.Errorf("stdout has more than the ready line: %q", rest)
			}
			p.Kill() // acknowledged objects are kept even so
			again := start(t, args...)
			want := http.StatusNotFound
			if storage.kept {
				want = http.StatusOK
			}
			again.Get(widgets + "/kept").Want(want)
			again.Stop().Want(0)
		})
	}
}

func serves(t *testing.T, p *programtest.Process) {
	t.Helper()
	if url := regexp.MustCompile(`^https://127\.0\.0\.1:[1-9][0-9]*$`); !url.MatchString(p.URL) {
		t.Errorf("the URL is %q, want one like %s", p.URL, url)
	}
	if proto := p.Get("/readyz").Want(http.StatusOK).Proto; proto != "HTTP/2.0" {
		t.Errorf("served over %s, want HTTP/2.0", proto)
	}
	watch := p.Watch(base + "/widgets?watch=1")
	p.Do(http.MethodPost, widgets, asJSON, newWidget("one", `"a":"b"`)).Want(http.StatusCreated, `"generation":1`)
	one := widgets + "/one"
	p.Get(one).Want(http.StatusOK, `"size":7`)
	p.Get(base+"/widgets").Want(http.StatusOK, `"kind":"WidgetList"`, `"name":"one"`)
	p.Do(http.MethodPatch, one, "application/merge-patch+json", `{"spec":{"size":8}}`).Want(http.StatusOK, `"size":8`, `"generation":2`)
	p.Do(http.MethodPatch, one+"?fieldManager=a&force=true", "application/apply-patch+yaml", newWidget("one", "")).
		Want(http.StatusOK, `"size":7`, `"operation":"Apply"`)
	p.Do(http.MethodPatch, one+"/status", "application/merge-patch+json", `{"status":{"replicas":1,"selector":"a=b"},"spec":{"size":9}}`).
		Want(http.StatusOK, `"replicas":1`, `"size":7`)
	p.Get(one+"/scale").Want(http.StatusOK, `"kind":"Scale"`, `"spec":{"replicas":2}`, `"status":{"replicas":1,"selector":"a=b"}`)
	p.Do(http.MethodPatch, one, "application/merge-patch+json", `{"spec":{"size":-1}}`).
		Want(http.StatusUnprocessableEntity, "spec.size in body should be greater than or equal to 0")
	p.Do(http.MethodDelete, one, "", "").Want(http.StatusOK)
	var seen []string
	for range 5 {
		kind, _ := watch.Next()
		seen = append(seen, kind)
	}
	if want := []string{"ADDED", "MODIFIED", "MODIFIED", "MODIFIED", "DELETED"}; !slices.Equal(seen, want) {
		t.Errorf("the watch has seen %v, want %v", seen, want)
	}
}

// TestEnd checks that the program ends its watches and exits with 0.
func TestEnd(t *testing.T) {
	p := start(t, "-data", filepath.Join(t.TempDir(), "widgets.db"))
	watch := p.Watch(base + "/widgets?watch=1")
	p.Stop().Want(0)
	if kind, object := watch.Next(); kind != "" {
		t.Errorf("the watch goes on with %s %s", kind, object)
	}
}

// TestAccess checks that the token's user may do everything, and others may read health and version.
func TestAccess(t *testing.T) {
	public := []string{"/healthz", "/livez", "/readyz", "/version"}
	private := []string{"/metrics", "/apis", "/openapi/v3", base + "/widgets"}
	t.Run("with a token", func(t *testing.T) {
		p := start(t)
		for _, path := range append(public, private...) {
			p.Get(path).Want(http.StatusOK)
		}
		p.Get("/metrics").Want(http.StatusOK, "\napiserver_request_total{")
		for _, path := range public {
			p.WithToken("").Get(path).Want(http.StatusOK)
		}
		for _, path := range private {
			p.WithToken("").Get(path).Want(http.StatusForbidden, "system:anonymous")
			p.WithToken("guess").Get(path).Want(http.StatusUnauthorized)
		}
	})
	t.Run("without", func(t *testing.T) {
		p := programtest.Start(t, "-addr", "127.0.0.1:0")
		for _, path := range public {
			p.Get(path).Want(http.StatusOK)
		}
		for _, path := range private {
			p.Get(path).Want(http.StatusForbidden, "system:anonymous")
			p.WithToken("guess").Get(path).Want(http.StatusForbidden)
		}
		p.WithToken("").Do(http.MethodPost, widgets, asJSON, newWidget("one", "")).Want(http.StatusForbidden)
	})
}

// TestUser checks that the user is bench of the group bench, and is subject to flow control, unlike a member of system:masters.
func TestUser(t *testing.T) {
	c := config{}
	c.Token = "secret"
	req, err := http.NewRequestWithContext(t.Context(), http.MethodGet, "/", http.NoBody)
	if err != nil {
		t.Fatal(err)
	}
	req.Header.Set("Authorization", "Bearer secret")
	who, err := c.options().Policy.Authenticator.Authenticate(req)
	if err != nil {
		t.Fatal(err)
	}
	if who.User.Name != "bench" || !who.User.InGroup("bench") || !who.User.InGroup(authn.AuthenticatedAll) || who.User.InGroup(authn.MastersGroup) {
		t.Errorf("the user is %+v", who.User)
	}
}

// TestChain checks that the filter chain is the default one.
func TestChain(t *testing.T) {
	c := config{}
	o := c.options()
	if o.Serving.Filters != nil || o.Limits.MaxReadsInFlight != 0 || o.Limits.MaxWritesInFlight != 0 || o.Limits.RequestTimeout != 0 {
		t.Error("the filter chain is not the default one")
	}
}

// TestIndex checks that a list by the indexed label is the same as without an index.
func TestIndex(t *testing.T) {
	p := start(t, "-index", "group")
	for i := range 10 {
		p.Do(http.MethodPost, widgets, asJSON, newWidget(fmt.Sprintf("w-%d", i), fmt.Sprintf(`"group":"g-%d"`, i%2))).Want(http.StatusCreated)
	}
	var list struct {
		Items []struct{ Metadata struct{ Name string } }
	}
	p.Get(base + "/widgets?labelSelector=group%3Dg-1").Want(http.StatusOK).JSON(&list)
	if len(list.Items) != 5 {
		t.Errorf("%d widgets are in g-1, want 5: %v", len(list.Items), list.Items)
	}
	c := config{index: "group"}
	if got := c.indexes(); !slices.Equal(got, []string{"group"}) {
		t.Errorf("the indexes are %q", got)
	}
	if got := new(config).indexes(); got != nil {
		t.Errorf("without -index the indexes are %q", got)
	}
}

// TestMisuse checks that an invalid command line ends the program with 2, and other errors with 1.
func TestMisuse(t *testing.T) {
	busy, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer busy.Close()
	missing := filepath.Join(t.TempDir(), "missing")
	nothing := filepath.Join(t.TempDir(), "empty")
	if err := os.WriteFile(nothing, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct {
		name   string
		args   []string
		code   int
		stderr string
	}{
		{"two storages", []string{"-data", missing, "-etcd", "http://127.0.0.1:1"}, 2, "keelson: -data and -etcd exclude each other"},
		{"argument", []string{"widgets.db"}, 2, `keelson: unexpected argument "widgets.db"`},
		{"flag", []string{"-nonsense"}, 2, "flag provided but not defined: -nonsense"},
		{"cert alone", []string{"-cert", missing}, 2, "keelson: -cert and -key belong together"},
		{"key alone", []string{"-key", missing}, 2, "keelson: -cert and -key belong together"},
		{"index", []string{"-index", "a b"}, 2, `keelson: -index "a b" is no label key`},
		{"two indexes", []string{"-index", "a,b"}, 2, `keelson: -index "a,b" is no label key`},
		{"no file", []string{"-cert", missing, "-key", missing}, 1, "keelson: -cert: open " + missing},
		{"no certificate", []string{"-cert", nothing, "-key", nothing}, 1, "keelson: -cert and -key: tls: failed to find any PEM data"},
		{"address taken", []string{"-addr", busy.Addr().String()}, 1, "address already in use"},
		{"no directory", []string{"-addr", "127.0.0.1:0", "-data", filepath.Join(missing, "widgets.db")}, 1, "no such file or directory"},
	} {
		t.Run(c.name, func(t *testing.T) {
			p := programtest.Run(t, c.args...)
			p.Want(c.code, c.stderr)
			if lines := p.Lines(); len(lines) > 0 {
				t.Errorf("stdout: %q", lines)
			}
			if _, err := os.Stat(missing); err == nil {
				t.Error("a file was made")
			}
		})
	}
	t.Run("help", func(t *testing.T) {
		p := programtest.Run(t, "-help")
		var flags []string
		for _, line := range strings.Split(p.Stderr(), "\n") {
			if name, ok := strings.CutPrefix(line, "  -"); ok {
				flags = append(flags, strings.Fields(name)[0])
			}
		}
		if want := []string{"addr", "cert", "client-ca", "crds", "data", "etcd", "index", "key", "proxy-ca", "token", "webhook"}; !slices.Equal(flags, want) {
			t.Errorf("the flags are %q, want %q", flags, want)
		}
		p.Want(0)
	})
}
