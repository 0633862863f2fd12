package logfile_test

import (
	"bytes"
	"errors"
	"os"
	"path/filepath"
	"slices"
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

// A file that was removed, or renamed as by logrotate, and a folder that was removed, are made anew, and no text is lost.
func TestFilesThatVanish(t *testing.T) {
	for name, vanish := range map[string]func(path string) error{
		"removed":        os.Remove,
		"renamed":        func(path string) error { return os.Rename(path, path+".1") },
		"folder removed": func(path string) error { return os.RemoveAll(filepath.Dir(path)) },
	} {
		path := filepath.Join(t.TempDir(), "logs", "audit.log")
		if err := os.Mkdir(filepath.Dir(path), 0o700); err != nil {
			t.Fatal(err)
		}
		f := open(t, path, logfile.Options{})
		for _, text := range []string{"a\n", "b\n"} {
			if _, err := f.Write([]byte(text)); err != nil {
				t.Fatal(name, err)
			}
			if got, err := os.ReadFile(path); err != nil || string(got) != text {
				t.Errorf("%s: %q %v", name, got, err)
			}
			if text == "a\n" {
				if err := vanish(path); err != nil {
					t.Fatal(err)
				}
			}
		}
		want := []string{"audit.log"}
		if name == "renamed" {
			want = append(want, "audit.log.1")
		}
		if got := names(t, filepath.Dir(path)); !slices.Equal(got, want) {
			t.Errorf("%s: %q", name, got)
		}
	}
}

// While the folder cannot be made anew, a write fails, and later ones go on.
func TestAFolderThatComesBack(t *testing.T) {
	folder := filepath.Join(t.TempDir(), "logs")
	if err := os.Mkdir(folder, 0o700); err != nil {
		t.Fatal(err)
	}
	path := filepath.Join(folder, "audit.log")
	f := open(t, path, logfile.Options{})
	write := func() error { _, err := f.Write([]byte("a\n")); return err }
	if err := errors.Join(write(), os.RemoveAll(folder), os.WriteFile(folder, nil, 0o600)); err != nil {
		t.Fatal(err)
	}
	if write() == nil {
		t.Error("a write without a folder is no error")
	}
	if err := errors.Join(os.Remove(folder), write()); err != nil {
		t.Error(err)
	}
	if text, err := os.ReadFile(path); err != nil || string(text) != "a\n" {
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
