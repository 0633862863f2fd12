package server_test

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/keelson-dev/keelson/server"
	"github.com/keelson-dev/keelson/storage/bolt"
)

// A path that is not a storage file is often a typing mistake: no keys are made beside it.
func TestARefusedStorageLeavesNothingBehind(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	notes := filepath.Join(dir, "notes.txt")
	if err := os.WriteFile(notes, []byte("not a database\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	for _, path := range []string{notes, dir, filepath.Join(dir, "missing", "hello.db")} {
		_, err := server.New(server.Options{Storage: bolt.At(path), Serving: server.Serving{Credentials: path + ".pki"}})
		if err == nil || !strings.Contains(err.Error(), "storage: bolt: open "+path) {
			t.Errorf("%s: %v", path, err)
		}
		if _, err := os.Stat(path + ".pki"); !os.IsNotExist(err) {
			t.Errorf("%s.pki was made: %v", path, err)
		}
	}
}

// If the credentials cannot be opened, the storage is closed.
func TestRefusedCredentialsReleaseTheStorage(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	file := filepath.Join(dir, "hello.db")
	blocked := filepath.Join(dir, "blocked")
	if err := os.WriteFile(blocked, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	if _, err := server.New(server.Options{Storage: bolt.At(file), Serving: server.Serving{Credentials: blocked}}); err == nil || !strings.Contains(err.Error(), blocked) {
		t.Errorf("credentials in a file: %v", err)
	}
	srv, err := server.New(server.Options{Storage: bolt.At(file), Serving: server.Serving{Credentials: file + ".pki"}})
	if err != nil {
		t.Fatal(err)
	}
	if err := srv.Close(); err != nil {
		t.Error(err)
	}
}
