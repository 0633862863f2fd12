package storagetest

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"os"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/keelson-dev/keelson/storage"
)

// The environment variables with which Kill configures a child.
const (
	childStore = "KEELSON_STORAGETEST_STORE" // name of the store
	childDir   = "KEELSON_STORAGETEST_DIR"
	childRound = "KEELSON_STORAGETEST_ROUND"
)

// Child runs as the process that [Kill] kills. TestMain calls Child first, with the same stores as the tests. If Child
// returns true, TestMain returns:
//
//	func TestMain(m *testing.M) {
//		if storagetest.Child(stores) {
//			return
//		}
//		os.Exit(m.Run())
//	}
func Child(stores map[string]Killed) bool {
	name, isChild := os.LookupEnv(childStore)
	if !isChild {
		return false
	}
	out := json.NewEncoder(os.Stdout)
	store, ok := stores[name]
	if !ok {
		_ = out.Encode(report{Kind: reportError, Value: fmt.Sprintf("storagetest.Child was not given the store %q", name)})
		return true
	}
	b, err := store.Open(os.Getenv(childDir))
	if err != nil {
		_ = out.Encode(report{Kind: reportError, Value: fmt.Sprint("opening the store: ", err)})
		return true
	}
	p := &playing{b: b, out: out, round: os.Getenv(childRound)}
	p.play()
	_ = b.Close()
	return true
}

// report is a line that a child writes: what it is about to do, or a result.
type report struct {
	Kind     reportKind
	Client   int    `json:",omitempty"` // the client that commits
	Key      string `json:",omitempty"`
	Value    string `json:",omitempty"` // without its filling; or the text of an error
	Deleted  bool   `json:",omitempty"`
	Revision int64  `json:",omitempty"` // of the value or of the deletion; 0: the key was absent
	At       int64  `json:",omitempty"` // the revision at which this is true
}

type reportKind string

const (
	reportOpen   reportKind = "open"   // the store's revision
	reportBegin  reportKind = "begin"  // a commit
	reportDone   reportKind = "done"   // the commit is acknowledged
	reportShown  reportKind = "shown"  // a reader or a conflict has returned the value of a key
	reportChange reportKind = "change" // a watch has delivered a change
	reportError  reportKind = "error"
)

// playing is a running child: clients, a reader and a watcher, until the process is killed or its parent has ended.
type playing struct {
	b     storage.Backend
	round string

	mu  sync.Mutex // guards out
	out *json.Encoder
}

const childKeys = 8

func (p *playing) say(r report) {
	p.mu.Lock()
	defer p.mu.Unlock()
	_ = p.out.Encode(r) // one write: what the parent can read is complete except for the last line
}

func (p *playing) play() {
	ctx, cancel := context.WithCancel(context.Background())
	defer cancel()
	var all sync.WaitGroup
	fail := func(f func(context.Context) error) {
		all.Go(func() {
			if err := f(ctx); err != nil && ctx.Err() == nil {
				p.say(report{Kind: reportError, Value: err.Error()})
			}
		})
	}
	now, err := p.b.Get(ctx, "revision", 0)
	if err != nil {
		p.say(report{Kind: reportError, Value: err.Error()})
		return
	}
	p.say(report{Kind: reportOpen, At: now.Revision})
	for i := range 6 {
		fail(func(ctx context.Context) error { return p.write(ctx, i) })
	}
	fail(p.read)
	fail(func(ctx context.Context) error { return p.watch(ctx, now.Revision) })
	_, _ = io.Copy(io.Discard, os.Stdin) // ends when the parent ends
	cancel()
	all.Wait()
}

// write makes commits of every kind.
func (p *playing) write(ctx context.Context, client int) error {
	seen := map[string]int64{}
	for i := 0; ; i++ {
		c := storage.Commit{Key: "k" + strconv.Itoa(rand.IntN(childKeys)), Expect: storage.AnyRevision}
		if rand.IntN(2) == 0 {
			c.Expect = seen[c.Key]
		}
		if c.Delete = rand.IntN(6) == 0; !c.Delete {
			c.Value = filled(fmt.Sprintf("%s.%d.%d", p.round, client, i))
		}
		p.say(report{Kind: reportBegin, Client: client, Key: c.Key, Value: unfilled(c.Value), Deleted: c.Delete})
		res, err := p.b.Commit(ctx, c)
		switch {
		case errors.Is(err, storage.ErrConflict):
			seen[c.Key] = res.Current.Revision
			p.say(shownReport(c.Key, res.Current, res.Found, res.Revision))
		case err != nil:
			return fmt.Errorf("Commit(%s): %w", describe(c), err)
		case c.Delete && c.Expect == storage.AnyRevision: // there may have been nothing to change
			seen[c.Key] = 0
			p.say(report{Kind: reportShown, Key: c.Key, At: res.Revision})
		default:
			seen[c.Key] = res.Revision
			p.say(report{
				Kind: reportDone, Client: client, Key: c.Key, Value: unfilled(c.Value), Deleted: c.Delete,
				Revision: res.Revision, At: res.Revision,
			})
			if c.Delete {
				seen[c.Key] = 0
			}
		}
	}
}

// read reports states of the store.
func (p *playing) read(ctx context.Context) error {
	for {
		res, err := p.b.Range(ctx, storage.Range{From: "k", To: "l"})
		if err != nil {
			return fmt.Errorf("Range: %w", err)
		}
		for _, kv := range res.KVs {
			p.say(shownReport(kv.Key, kv, true, res.Revision))
		}
		key := "k" + strconv.Itoa(rand.IntN(childKeys))
		got, err := p.b.Get(ctx, key, 0)
		if err != nil {
			return fmt.Errorf("Get: %w", err)
		}
		p.say(shownReport(key, got.KV, got.Found, got.Revision))
		time.Sleep(time.Millisecond) // the clients matter more
	}
}

func shownReport(key string, kv storage.KV, found bool, at int64) report {
	if !found {
		return report{Kind: reportShown, Key: key, At: at}
	}
	return report{Kind: reportShown, Key: key, Value: unfilled(kv.Value), Revision: kv.Revision, At: at}
}

// watch reports all changes.
func (p *playing) watch(ctx context.Context, from int64) error {
	f, err := p.b.Watch(ctx, storage.WatchRange{From: from})
	if err != nil {
		return fmt.Errorf("Watch: %w", err)
	}
	defer f.Close()
	for {
		got, err := f.Next(ctx)
		if errors.Is(err, storage.ErrCompacted) {
			return nil // the reader is too slow for this store's window
		}
		if err != nil {
			return fmt.Errorf("Next: %w", err)
		}
		for _, c := range got.Changes {
			p.say(report{Kind: reportChange, Key: c.Key, Value: unfilled(c.Value), Deleted: c.Deleted, Revision: c.Revision, At: c.Revision})
		}
	}
}

// filled returns a value followed by a filling of some length, with which a damaged value is detected.
func filled(value string) []byte {
	n := 0
	for _, c := range value {
		n = n*31 + int(c)
	}
	return []byte(value + "#" + strings.Repeat("filling ", n%500) + ".")
}

// unfilled returns the value without its filling; for a damaged value it returns a text that says so.
func unfilled(value []byte) string {
	if len(value) == 0 {
		return ""
	}
	short, _, _ := strings.Cut(string(value), "#")
	if string(filled(short)) != string(value) {
		return fmt.Sprintf("damaged: %.60q, %d bytes", value, len(value))
	}
	return short
}
