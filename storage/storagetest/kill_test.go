package storagetest_test

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"io"
	"os"
	"path/filepath"
	"sync"
	"testing"

	"github.com/keelson-dev/keelson/storage"
	"github.com/keelson-dev/keelson/storage/memory"
	"github.com/keelson-dev/keelson/storage/storagetest"
)

// killed has stores for Kill: one that keeps everything, one that may lose the last commits, and others that break a promise.
var killed = map[string]storagetest.Killed{
	"durable":              {Open: journalMode{}.open},
	"weaker":               {Open: journalMode{buffer: true, skip: true}.open, Weaker: true},
	"loses the last":       {Open: journalMode{buffer: true, skip: true}.open},
	"gives revisions anew": {Open: journalMode{buffer: true}.open, Weaker: true},
	"loses some":           {Open: journalMode{forgetful: true}.open},
	"loses some in between, says that it is weaker": {Open: journalMode{forgetful: true, skip: true}.open, Weaker: true},
	"damages a value": {Open: journalMode{damage: true}.open},
}

func TestMain(m *testing.M) {
	if storagetest.Child(killed) {
		return
	}
	os.Exit(m.Run())
}

func TestKill(t *testing.T) {
	for _, name := range []string{"durable", "weaker"} {
		t.Run(name, func(t *testing.T) { storagetest.Kill(t, killed, name) })
	}
}

func TestDurable(t *testing.T) {
	storagetest.Durable(t, func(t *testing.T, dir string) storage.Backend {
		b, err := journalMode{}.open(dir)
		if err != nil {
			t.Fatal(err)
		}
		return b
	})
}

// TestKillFlaws shows that Kill can fail.
func TestKillFlaws(t *testing.T) {
	for name := range killed {
		if name == "durable" || name == "weaker" {
			continue
		}
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			red(t, "^TestFlawedKill$", flawVariable+"="+name)
		})
	}
}

// TestFlawedKill is the test that fails: it is run by TestKillFlaws.
func TestFlawedKill(t *testing.T) {
	name := os.Getenv(flawVariable)
	if name == "" {
		t.Skip("TestKillFlaws runs it")
	}
	t.Setenv("KEELSON_SOAK", "20s") // ended by the first failure
	storagetest.Kill(t, killed, name)
}

// journalMode determines how a journal keeps its promises, or breaks them.
type journalMode struct {
	buffer    bool // lines wait in the process before they are written
	skip      bool // after an unclean stop, revisions continue far above those that were lost
	forgetful bool // some lines are never written
	damage    bool // half of some values is written
}

// journal is a backend in memory whose commits are lines of a file.
type journal struct {
	storage.Backend
	mode journalMode
	file *os.File

	mu    sync.Mutex // guards lines, and is held while a commit is made and written
	lines *bufio.Writer
	n     int
}

const reserved = 2000 // more revisions than are in the buffer at any time

func (m journalMode) open(dir string) (storage.Backend, error) {
	f, err := os.OpenFile(filepath.Join(dir, "journal"), os.O_RDWR|os.O_CREATE, 0o600)
	if err != nil {
		return nil, err
	}
	j := &journal{Backend: memory.New(memory.Options{}), mode: m, file: f}
	if err := j.replay(); err != nil {
		return nil, errors.Join(err, f.Close())
	}
	j.lines = bufio.NewWriterSize(f, 1)
	if err := errors.Join(j.write(line{}), j.lines.Flush()); err != nil {
		return nil, errors.Join(err, f.Close())
	}
	if m.buffer {
		j.lines = bufio.NewWriterSize(f, 64<<10)
	}
	return j, nil
}

// line is a commit in the file. Without a key it marks the begin or the normal end of a run.
type line struct {
	Commit   storage.Commit
	Revision int64
	Clean    bool
}

// replay makes the commits in the file again. After an unclean stop the last line may be incomplete, and revisions of lines
// that were lost are not used.
func (j *journal) replay() error {
	in := json.NewDecoder(bufio.NewReader(j.file))
	clean, whole := true, int64(0)
	for {
		var l line
		if err := in.Decode(&l); err != nil {
			break
		}
		whole = in.InputOffset()
		if clean = l.Clean; l.Commit.Key == "" {
			continue
		}
		if err := j.raise(l.Revision); err != nil {
			return err
		}
		l.Commit.Expect, l.Commit.TTL = storage.AnyRevision, 0
		if _, err := j.Backend.Commit(context.Background(), l.Commit); err != nil {
			return err
		}
	}
	if err := j.file.Truncate(whole); err != nil {
		return err
	}
	if _, err := j.file.Seek(whole, io.SeekStart); err != nil {
		return err
	}
	if clean || !j.mode.skip {
		return nil
	}
	now, err := j.Get(context.Background(), "revision", 0)
	if err != nil {
		return err
	}
	if err := j.raise(now.Revision + reserved); err != nil {
		return err
	}
	return j.Backend.(storage.Compactor).Compact(context.Background(), now.Revision+reserved-1)
}

// raise makes revision the next one.
func (j *journal) raise(revision int64) error {
	for {
		res, err := j.Get(context.Background(), "raise", 0)
		if err != nil || res.Revision >= revision-1 {
			return err
		}
		c := storage.Commit{Key: "raise", Expect: storage.AnyRevision, Delete: res.Found}
		if _, err := j.Backend.Commit(context.Background(), c); err != nil {
			return err
		}
	}
}

// Commit writes the line first: no reader may see a commit that a kill could still remove.
func (j *journal) Commit(ctx context.Context, c storage.Commit) (storage.CommitResult, error) {
	j.mu.Lock()
	defer j.mu.Unlock()
	now, err := j.Get(ctx, c.Key, 0)
	if err != nil {
		return storage.CommitResult{}, err
	}
	met := c.Expect == storage.AnyRevision || c.Expect == now.KV.Revision && (now.Found || !c.Delete)
	if j.n++; met && (now.Found || !c.Delete) && !(j.mode.forgetful && j.n%10 == 0) {
		l := line{Commit: c, Revision: now.Revision + 1}
		if j.mode.damage && j.n%10 == 0 {
			l.Commit.Value = c.Value[:len(c.Value)/2]
		}
		if err := j.write(l); err != nil {
			return storage.CommitResult{}, err
		}
	}
	return j.Backend.Commit(ctx, c)
}

func (j *journal) write(l line) error {
	text, err := json.Marshal(l)
	if err == nil {
		_, err = j.lines.Write(append(text, '\n'))
	}
	return err
}

func (j *journal) Close() error {
	j.mu.Lock()
	defer j.mu.Unlock()
	if err := j.Backend.Close(); err != nil || j.file == nil {
		return err
	}
	err := errors.Join(j.write(line{Clean: true}), j.lines.Flush(), j.file.Close())
	j.file = nil
	return err
}
