package logfile_test

import (
	"bytes"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/keelson-dev/keelson/server/audit"
	"github.com/keelson-dev/keelson/server/audit/logfile"
	"go.uber.org/goleak"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

func open(t *testing.T, path string, o logfile.Options) *logfile.File {
	t.Helper()
	f, err := logfile.Open(path, o)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := f.Close(); err != nil {
			t.Error(err)
		}
	})
	return f
}

func names(t *testing.T, folder string) []string {
	t.Helper()
	entries, err := os.ReadDir(folder)
	if err != nil {
		t.Fatal(err)
	}
	var out []string
	for _, e := range entries {
		out = append(out, e.Name())
		if info, err := e.Info(); err != nil || info.Mode().Perm() != 0o600 {
			t.Errorf("%s: %v %v", e.Name(), info.Mode(), err)
		}
	}
	return out
}

func TestFilesBeginAnew(t *testing.T) {
	for _, compress := range []bool{false, true} {
		folder := t.TempDir()
		f, err := logfile.Open(filepath.Join(folder, "audit.log"), logfile.Options{MaxMegabytes: 1, MaxBackups: 2, Compress: compress})
		if err != nil {
			t.Fatal(err)
		}
		line := append(bytes.Repeat([]byte("x"), 300<<10), '\n')
		for range 16 { // three lines fit in a file
			if _, err := f.Write(line); err != nil {
				t.Fatal(err)
			}
			time.Sleep(2 * time.Millisecond) // files of one millisecond count as one
		}
		if err := f.Close(); err != nil {
			t.Fatal(err)
		}
		all := names(t, folder)
		compressed := 0
		for _, name := range all {
			if strings.HasSuffix(name, ".gz") {
				compressed++
			}
		}
		if len(all) != 3 || compressed != map[bool]int{true: 2}[compress] {
			t.Errorf("compress %t: %q", compress, all)
		}
	}
}

func TestFilesContinue(t *testing.T) {
	path := filepath.Join(t.TempDir(), "audit.log")
	for _, text := range []string{"a\n", "b\n"} {
		f, err := logfile.Open(path, logfile.Options{MaxMegabytes: -1, MaxDays: -1, MaxBackups: -1})
		if err != nil {
			t.Fatal(err)
		}
		if _, err := f.Write([]byte(text)); err != nil {
			t.Fatal(err)
		}
		if err := f.Close(); err != nil {
			t.Fatal(err)
		}
	}
	if text, err := os.ReadFile(path); err != nil || string(text) != "a\nb\n" {
		t.Errorf("%q %v", text, err)
	}
}

func TestFilesThatCannotBeOpened(t *testing.T) {
	folder := t.TempDir()
	file := filepath.Join(folder, "file")
	open(t, file, logfile.Options{})
	for path, want := range map[string]string{
		"":                                     "no name",
		folder:                                 "cannot be written",
		filepath.Join(file, "audit.log"):       "folder",
		filepath.Join(folder, "no", "log.log"): "folder",
	} {
		if _, err := logfile.Open(path, logfile.Options{}); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v", path, err)
		}
	}
}

func TestEventsInAFile(t *testing.T) {
	path := filepath.Join(t.TempDir(), "audit.log")
	sink, err := audit.NewLog(open(t, path, logfile.Options{}), audit.JSONLines)
	if err != nil {
		t.Fatal(err)
	}
	if err := sink.Record(t.Context(), &audit.Event{AuditID: "1"}); err != nil {
		t.Fatal(err)
	}
	if text, err := os.ReadFile(path); err != nil || !strings.HasPrefix(string(text), `{"kind":"Event","apiVersion":"audit.k8s.io/v1",`) {
		t.Errorf("%s %v", text, err)
	}
}
