package server_test

import (
	"context"
	"os"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/keelson-dev/keelson/server"
	"github.com/keelson-dev/keelson/server/audit"
	"github.com/keelson-dev/keelson/server/servertest"
	"go.uber.org/zap"
	"go.uber.org/zap/zaptest/observer"
)

const auditPolicy = "apiVersion: audit.k8s.io/v1\nkind: Policy\nomitStages: [RequestReceived]\nrules:\n- level: "

// The policy of a file is used without a restart. If the file is broken or missing, the server keeps the policy that it has, and a log line and a check say so.
func TestAuditPolicyFileIsFollowed(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "policy.yaml")
	put := func(text string) {
		if err := os.WriteFile(path+".new", []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		if err := os.Rename(path+".new", path); err != nil {
			t.Fatal(err)
		}
	}
	put(auditPolicy + "Metadata\n")
	var events atomic.Int64
	sink := audit.SinkFunc(func(context.Context, ...*audit.Event) error { events.Add(1); return nil })
	core, log := observer.New(zap.InfoLevel)
	srv := servertest.Start(t, server.Options{Groups: []server.Group{widgets()}, Observe: server.Observe{Logger: zap.New(core)}})
	follow := func(h *server.Host) error {
		return h.Follow(server.ConfigFile{Name: "audit", Path: path, Every: time.Millisecond, Use: func(content []byte) error {
			policy, err := audit.ParsePolicy(content)
			if err != nil {
				return err
			}
			return h.Audit(audit.Backend{Name: "log", Policy: policy, Sink: sink})
		}})
	}
	if err := srv.Install(server.ExtensionFunc(follow)); err != nil {
		t.Fatal(err)
	}
	records := func() bool {
		before := events.Load()
		code, body := call(t, srv.Client(), "GET", srv.URL+widgetsPath, "")
		wantCode(t, 200, code, body)
		return events.Load() > before
	}
	if !records() {
		t.Error("the policy of the start is not used")
	}
	put(auditPolicy + "None\n")
	eventually(t, "the changed policy is used", func() bool { return !records() })
	for what, breaks := range map[string]func(){
		"broken":  func() { put(auditPolicy + "Everything\n") },
		"missing": func() { _ = os.Remove(path) },
	} {
		breaks()
		eventually(t, what+": the check tells it", func() bool {
			code, _ := call(t, srv.Client(), "GET", srv.URL+"/readyz/audit-config", "")
			return code == 500
		})
		if records() {
			t.Errorf("%s: the policy from before is not used", what)
		}
		code, body := call(t, srv.Client(), "GET", srv.URL+"/readyz?verbose", "")
		if code != 200 || !strings.Contains(body, "[-]audit-config failed, and does not count: reason withheld\n") {
			t.Errorf("%s: %d %s", what, code, body)
		}
		put(auditPolicy + "None\n")
		eventually(t, what+": the check passes again", func() bool {
			code, _ := call(t, srv.Client(), "GET", srv.URL+"/readyz/audit-config", "")
			return code == 200
		})
	}
	put(auditPolicy + "Metadata\n")
	eventually(t, "the last policy is used", records)
	failures := log.FilterMessage("a changed configuration file cannot be used, and what it had before stays in use")
	if n := failures.Len(); n != 2 {
		t.Errorf("%d lines about failures: %v", n, failures.All())
	}
	_, text := call(t, srv.Client(), "GET", srv.URL+"/metrics", "")
	for _, want := range []string{
		"\napiserver_audit_config_controller_automatic_reloads_total{status=\"success\"} 4\n",
		"\napiserver_audit_config_controller_automatic_reloads_total{status=\"failure\"} ",
		"\napiserver_audit_config_controller_automatic_reload_last_timestamp_seconds{status=\"success\"} ",
	} {
		if !strings.Contains(text, want) {
			t.Errorf("the metrics lack %q", want)
		}
	}
	if err := srv.Install(server.ExtensionFunc(follow)); err == nil {
		t.Error("a second file of the same name is followed")
	}
}

func TestConfigFilesThatCannotBeFollowed(t *testing.T) {
	t.Parallel()
	srv := servertest.Start(t, server.Options{})
	h := host(t, srv)
	use := func([]byte) error { return nil }
	for want, f := range map[string]server.ConfigFile{
		"want a name of lower case letters":        {Name: "A", Path: "x", Use: use},
		"and underscores":                          {Name: "a-b", Path: "x", Use: use},
		"and a function":                           {Name: "a", Path: "x"},
		"no such file":                             {Name: "a", Path: filepath.Join(t.TempDir(), "x"), Use: use},
		"configfile_test.go has more than 9 bytes": {Name: "a", Path: "configfile_test.go", Use: use, MaxBytes: 9},
	} {
		if err := h.Follow(f); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%+v: %v, want %q", f.Name, err, want)
		}
	}
}

// A second file of a name is refused before its content is used. A file that could not be followed leaves its name free.
func TestConfigFilesOfOneName(t *testing.T) {
	t.Parallel()
	h := host(t, servertest.Start(t, server.Options{}))
	path := filepath.Join(t.TempDir(), "f")
	if err := os.WriteFile(path, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	uses := 0
	use := func([]byte) error { uses++; return nil }
	if err := h.Follow(server.ConfigFile{Name: "abc", Path: path + "none", Use: use}); err == nil {
		t.Error("a missing file is followed")
	}
	if err := h.Follow(server.ConfigFile{Name: "abc", Path: path, Use: use}); err != nil {
		t.Error(err)
	}
	if err := h.Follow(server.ConfigFile{Name: "abc", Path: path, Use: use}); err == nil || uses != 1 {
		t.Errorf("a second file: %v, used %d times", err, uses-1)
	}
}
