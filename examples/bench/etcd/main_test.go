package main

import (
	"io"
	"net/http"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/keelson-dev/keelson/examples/bench/internal/programtest"
	clientv3 "go.etcd.io/etcd/client/v3"
)

func TestMain(m *testing.M) { os.Exit(programtest.Main(m, main)) }

// TestServes checks that written data exists after a kill and a new start on the same directory.
func TestServes(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "data")
	first := programtest.Start(t, "-data", dir)
	if url := regexp.MustCompile(`^http://127\.0\.0\.1:[1-9][0-9]*$`); !url.MatchString(first.URL) {
		t.Errorf("the URL is %q, want one like %s", first.URL, url)
	}
	if _, err := client(t, first.URL).Put(t.Context(), "key", "value"); err != nil {
		t.Fatal(err)
	}
	first.Kill()
	second := programtest.Start(t, "-data", dir)
	got, err := client(t, second.URL).Get(t.Context(), "key")
	if err != nil || got.Count != 1 || string(got.Kvs[0].Value) != "value" {
		t.Errorf("after a kill: %v, %v", got, err)
	}
	res, err := http.Get(second.URL + "/health")
	if err != nil {
		t.Fatal(err)
	}
	defer res.Body.Close()
	if body, err := io.ReadAll(res.Body); err != nil || !strings.Contains(string(body), `"health":"true"`) {
		t.Errorf("health: %s, %v", body, err)
	}
	second.Stop().Want(0)
}

func client(t *testing.T, url string) *clientv3.Client {
	t.Helper()
	c, err := clientv3.New(clientv3.Config{Endpoints: []string{url}})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { c.Close() })
	return c
}

func TestMisuse(t *testing.T) {
	programtest.Run(t).Want(2, "etcd: -data is missing")
}
