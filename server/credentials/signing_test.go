package credentials_test

import (
	"bytes"
	"os"
	"path/filepath"
	"runtime"
	"sync"
	"testing"

	"github.com/keelson-dev/keelson/server/credentials"
)

// The key is made once, also by several processes at a time, and is not changed afterwards. Others cannot read it; they still can read
// the directory if they could before.
func TestSigningKeyFile(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "keys")
	texts := make([][]byte, 8)
	var all sync.WaitGroup
	for i := range texts {
		all.Go(func() {
			path, err := credentials.SigningKeyFile(dir)
			if err == nil {
				texts[i], err = os.ReadFile(path)
			}
			if err != nil {
				t.Error(err)
			}
		})
	}
	all.Wait()
	for _, text := range texts {
		if len(text) == 0 || !bytes.Equal(text, texts[0]) {
			t.Fatalf("%q is another key than %q", text, texts[0])
		}
	}
	path := filepath.Join(dir, "service-accounts.pem")
	if runtime.GOOS != "windows" {
		for _, mode := range []struct {
			path       string
			open, want os.FileMode
		}{{dir, 0o755, 0o755}, {path, 0o644, 0o600}} {
			if err := os.Chmod(mode.path, mode.open); err != nil {
				t.Fatal(err)
			}
			if _, err := credentials.SigningKeyFile(dir); err != nil {
				t.Fatal(err)
			}
			if info, err := os.Stat(mode.path); err != nil || info.Mode().Perm() != mode.want {
				t.Errorf("%s: %v %v, want %o", mode.path, info.Mode(), err, mode.want)
			}
		}
	}
	if _, err := credentials.SigningKeyFile(filepath.Join(dir, "none", "none")); err == nil {
		t.Error("a directory without a parent is no error")
	}
}
