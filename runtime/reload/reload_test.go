package reload_test

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/keelson-dev/keelson/runtime/reload"
)

// used is a list of contents that were used. Content that begins with "bad" is refused.
type used struct {
	mu    sync.Mutex // guards all below
	all   []string
	tried int
	last  error // of the last attempt
}

func (u *used) use(content []byte) error {
	if strings.HasPrefix(string(content), "bad") {
		return errors.New("cannot be parsed")
	}
	u.mu.Lock()
	defer u.mu.Unlock()
	u.all = append(u.all, string(content))
	return nil
}

func (u *used) want(t *testing.T, want ...string) {
	t.Helper()
	u.mu.Lock()
	defer u.mu.Unlock()
	if !slices.Equal(u.all, want) {
		t.Errorf("used %q, want %q", u.all, want)
	}
}

func write(t *testing.T, path, content string) {
	t.Helper()
	if err := os.WriteFile(path, []byte(content), 0o600); err != nil {
		t.Fatal(err)
	}
}

// open opens a file that is followed until the test ends. It is for a bubble.
func open(t *testing.T, path string, u *used) *reload.File {
	t.Helper()
	f, err := reload.Open(path, u.use, reload.Options{Tried: func(err error) { u.mu.Lock(); u.tried, u.last = u.tried+1, err; u.mu.Unlock() }})
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	var following sync.WaitGroup
	following.Go(func() { f.Follow(ctx) })
	t.Cleanup(func() { cancel(); following.Wait() })
	return f
}

func TestChangedContentIsUsed(t *testing.T) {
	path := filepath.Join(t.TempDir(), "policy")
	write(t, path, "one")
	synctest.Test(t, func(t *testing.T) {
		u := &used{}
		f := open(t, path, u)
		u.want(t, "one")
		time.Sleep(time.Hour)
		u.want(t, "one") // once, though it was read often
		write(t, path, "two")
		time.Sleep(time.Minute)
		u.want(t, "one", "two")
		write(t, path, "bad")
		time.Sleep(time.Minute)
		if err := f.Err(); err == nil || err.Error() != path+": cannot be parsed" {
			t.Errorf("of bad content: %v", err)
		}
		write(t, path, "two") // as it was
		time.Sleep(time.Minute)
		u.want(t, "one", "two")
		if err := f.Err(); err != nil {
			t.Errorf("of the content in use: %v", err)
		}
		u.mu.Lock()
		tried := u.tried
		if u.last != nil {
			t.Errorf("the end of a failure is not told: %v", u.last)
		}
		u.mu.Unlock()
		time.Sleep(time.Hour)
		u.mu.Lock()
		if u.tried != tried {
			t.Errorf("%d attempts without a change", u.tried-tried)
		}
		u.mu.Unlock()
		write(t, path, "bad again")
		time.Sleep(time.Minute)
		write(t, path, "three")
		time.Sleep(time.Minute)
		u.want(t, "one", "two", "three")
		if f.Err() != nil || u.tried < 4 {
			t.Errorf("%d attempts, %v", u.tried, f.Err())
		}
	})
}

func TestAFileThatVanishesChangesNothing(t *testing.T) {
	path := filepath.Join(t.TempDir(), "policy")
	write(t, path, "one")
	synctest.Test(t, func(t *testing.T) {
		u := &used{}
		f := open(t, path, u)
		for what, vanish := range map[string]func() error{
			"removed":  func() error { return os.Remove(path) },
			"a folder": func() error { return errors.Join(os.Remove(path), os.Mkdir(path, 0o700)) },
			"too long": func() error { return os.WriteFile(path, make([]byte, 4<<20), 0o600) },
		} {
			if err := vanish(); err != nil {
				t.Fatal(err)
			}
			time.Sleep(time.Minute)
			u.want(t, "one")
			if f.Err() == nil {
				t.Errorf("%s: no error", what)
			}
			_ = os.Remove(path)
			write(t, path, "one")
			time.Sleep(time.Minute)
			u.want(t, "one")
			if err := f.Err(); err != nil {
				t.Errorf("after it was %s: %v", what, err)
			}
		}
	})
}

// A volume of a ConfigMap has a link "..data" to the folder with the files, which is replaced by a rename.
func TestLinksAreFollowed(t *testing.T) {
	dir := t.TempDir()
	for _, v := range []string{"1", "2"} {
		if err := os.Mkdir(filepath.Join(dir, v), 0o700); err != nil {
			t.Fatal(err)
		}
		write(t, filepath.Join(dir, v, "policy"), v)
	}
	swap := func(to string) {
		if err := errors.Join(os.Symlink(to, filepath.Join(dir, "..new")), os.Rename(filepath.Join(dir, "..new"), filepath.Join(dir, "..data"))); err != nil {
			t.Fatal(err)
		}
	}
	swap("1")
	if err := os.Symlink("..data/policy", filepath.Join(dir, "policy")); err != nil {
		t.Fatal(err)
	}
	synctest.Test(t, func(t *testing.T) {
		u := &used{}
		open(t, filepath.Join(dir, "policy"), u)
		swap("2")
		if err := os.RemoveAll(filepath.Join(dir, "1")); err != nil {
			t.Fatal(err)
		}
		time.Sleep(time.Minute)
		u.want(t, "1", "2")
	})
}

// A file that is being written is used when it is whole.
func TestHalfAFileIsNotUsed(t *testing.T) {
	path := filepath.Join(t.TempDir(), "policy")
	write(t, path, "one")
	synctest.Test(t, func(t *testing.T) {
		u := &used{}
		f := open(t, path, u)
		for text := range 100 { // for 40 s
			write(t, path, strings.Repeat("x", text))
			time.Sleep(400 * time.Millisecond)
		}
		u.want(t, "one")
		time.Sleep(time.Minute)
		u.want(t, "one", strings.Repeat("x", 99))
		write(t, path, "three")
		if err := f.Reload(t.Context()); err != nil {
			t.Error(err)
		}
		u.want(t, "one", strings.Repeat("x", 99), "three")
	})
}

// A file that changes at every look is said to fail. What it had before stays in use until it rests.
func TestAFileThatNeverSettles(t *testing.T) {
	path := filepath.Join(t.TempDir(), "policy")
	write(t, path, "one")
	synctest.Test(t, func(t *testing.T) {
		u := &used{}
		f := open(t, path, u)
		for n := range 100 { // for 40 s
			write(t, path, strings.Repeat("x", n+1))
			time.Sleep(400 * time.Millisecond)
		}
		u.want(t, "one")
		u.mu.Lock()
		if err := f.Err(); err == nil || !strings.Contains(err.Error(), path+" has changed every 500ms for 10s") || u.last == nil || u.tried > 2 {
			t.Errorf("after %d attempts: %v, and %v was told", u.tried, err, u.last)
		}
		u.mu.Unlock()
		time.Sleep(time.Minute)
		u.want(t, "one", strings.Repeat("x", 100))
		if f.Err() != nil || u.last != nil {
			t.Errorf("when it rests: %v, and %v was told", f.Err(), u.last)
		}
		for n := range 100 {
			write(t, path, strings.Repeat("y", n+1))
			time.Sleep(400 * time.Millisecond)
		}
		write(t, path, strings.Repeat("x", 100)) // as it was
		time.Sleep(time.Minute)
		u.want(t, "one", strings.Repeat("x", 100))
		if err := f.Err(); err != nil {
			t.Errorf("with the content in use: %v", err)
		}
	})
}

func TestFilesThatCannotBeOpened(t *testing.T) {
	dir := t.TempDir()
	bad := filepath.Join(dir, "bad")
	write(t, bad, "bad")
	u := &used{}
	for path, want := range map[string]string{
		"": "want a path", filepath.Join(dir, "none"): "no such file", dir: "is no regular file", bad: bad + ": cannot be parsed",
	} {
		if _, err := reload.Open(path, u.use, reload.Options{}); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%q: %v, want %q", path, err, want)
		}
	}
	if _, err := reload.Open(bad, u.use, reload.Options{Every: -1}); err == nil {
		t.Error("a negative option is no error")
	}
	write(t, bad, "good")
	f, err := reload.Open(bad, u.use, reload.Options{})
	if err != nil {
		t.Fatal(err)
	}
	ended, cancel := context.WithCancel(t.Context())
	cancel()
	write(t, bad, "better")
	if err := f.Reload(ended); !errors.Is(err, context.Canceled) {
		t.Errorf("with a context that has ended: %v", err)
	}
	u.want(t, "good")
}
