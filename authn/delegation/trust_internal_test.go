package delegation

import (
	"bytes"
	"encoding/json"
	"os"
	"testing"

	"github.com/google/go-cmp/cmp"
	"go.uber.org/goleak"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// TestConfigMapOfKubeAPIServer reads a ConfigMap that kube-apiserver 1.37.1 has written.
func TestConfigMapOfKubeAPIServer(t *testing.T) {
	text, err := os.ReadFile("testdata/kube-apiserver.json")
	if err != nil {
		t.Fatal(err)
	}
	var stored configMap
	if err := json.Unmarshal(text, &stored); err != nil {
		t.Fatal(err)
	}
	s, err := (&state{}).after(stored.Data)
	if err != nil || !s.read || s.clients == nil || s.proxy == nil {
		t.Fatal(s, err)
	}
	want := Trust{
		ClientCA: []byte(stored.Data["client-ca-file"]), ProxyCA: []byte(stored.Data["requestheader-client-ca-file"]), Names: []string{"front"},
		User: []string{"X-Remote-User"}, UID: []string{"X-Remote-Uid"}, Group: []string{"X-Remote-Group"}, Extra: []string{"X-Remote-Extra-"},
	}
	if diff := cmp.Diff(want, s.trust); diff != "" {
		t.Error(diff)
	}
	again, err := s.after(stored.Data)
	if err != nil || again.clients != s.clients || again.proxy != s.proxy {
		t.Error("certificates that have verified are verified again after a ConfigMap that says the same: ", err)
	}
}

// FuzzConfigMap checks that a ConfigMap, whatever it has, is taken whole, or leaves what was known with an error.
func FuzzConfigMap(f *testing.F) {
	text, err := os.ReadFile("testdata/kube-apiserver.json")
	if err != nil {
		f.Fatal(err)
	}
	var stored configMap
	if err := json.Unmarshal(text, &stored); err != nil {
		f.Fatal(err)
	}
	ca := stored.Data[clientCAKey]
	for _, seed := range [][4]string{
		{ca, ca, `["X-Remote-User"]`, `["X-Remote-Extra-"]`}, {"", ca, `["X-Remote-User"]`, ""}, {"", "", "", ""}, {ca, "none", "[]", "null"}, {ca, ca, "[]", "[]"},
		{"-----BEGIN CERTIFICATE-----\nMIIB\n-----END CERTIFICATE-----\n", ca, `[""]`, `{}`}, {ca + ca, ca[:200] + ca, `["\u0000"]`, `["",""]`},
	} {
		f.Add(seed[0], seed[1], seed[2], seed[3])
	}
	f.Fuzz(func(t *testing.T, clients, proxies, user, extra string) {
		before, err := (&state{}).after(stored.Data)
		if err != nil {
			t.Fatal(err)
		}
		next, err := before.after(map[string]string{clientCAKey: clients, proxyCAKey: proxies, userKey: user, extraKey: extra})
		if !next.read {
			t.Error("a ConfigMap that is damaged makes the server unready")
		}
		if (next.clients == nil) != (len(bytes.TrimSpace(next.trust.ClientCA)) == 0) {
			t.Errorf("clients are trusted: %v, by %q", next.clients != nil, next.trust.ClientCA)
		}
		if (next.proxy == nil) != (len(next.trust.ProxyCA) == 0) {
			t.Errorf("proxies are trusted: %v, by %q", next.proxy != nil, next.trust.ProxyCA)
		}
		first, firstErr := (&state{}).after(map[string]string{clientCAKey: clients, proxyCAKey: proxies, userKey: user, extraKey: extra})
		if (firstErr == nil) != (err == nil) || first.read != (firstErr == nil) {
			t.Errorf("%v at first, and %v later", firstErr, err)
		}
	})
}
