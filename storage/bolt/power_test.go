package bolt_test

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"maps"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/keelson-dev/keelson/storage"
	"github.com/keelson-dev/keelson/storage/bolt"
	"github.com/keelson-dev/keelson/storage/bolt/internal/powercut"
)

// powerKind is what a process does with the file in TestPowerFailures.
const powerKind = "KEELSON_BOLT_POWER"

// powerLife is a process and how it ends: normally, "killed", or with a power failure ("cut").
type powerLife struct{ kind, end string }

// powers are sequences of processes that use a file one after the other, beginning without a file, and how many in a hundred
// power failures each sequence gets.
var powers = map[string]struct {
	share int
	lives []powerLife
}{
	"written":  {50, []powerLife{{"write", "killed"}, {"write", "killed"}, {"write", "cut"}, {"write", "killed"}, {"write", "cut"}, {"write", ""}}},
	"shrunk":   {20, []powerLife{{"hollow", ""}, {"shrink", "killed"}, {"hollow", ""}, {"shrink", "cut"}, {"hollow", ""}, {"shrink", ""}}},
	"interval": {15, []powerLife{{"interval", "killed"}, {"interval", "cut"}, {"write", "killed"}, {"interval", ""}}},
	"loaded":   {7, []powerLife{{"load", ""}, {"write", ""}}},
	"restored": {8, []powerLife{{"restore", "killed"}, {"write", ""}}},
}

const powerWriters = 3

// power is the process of a life. It prints what it finds, what it tries and what is acknowledged.
func power(path string) error {
	kind := os.Getenv(powerKind)
	life, err := strconv.Atoi(os.Getenv(childSync))
	if err != nil {
		return err
	}
	if kind == "restore" {
		if err := powerRestore(path); err != nil {
			return err
		}
	}
	o := bolt.Options{WindowChanges: 60, Shrink: kind == "shrink"}.WithJournal(32<<10, 1).WithSyncing(func(changes int) error {
		if changes > powerWriters {
			time.Sleep(20 * time.Millisecond) // in a flush: the journal fills up meanwhile
		}
		return nil
	})
	if kind == "interval" {
		o.Sync, o.Interval = bolt.SyncInterval, 5*time.Millisecond
		o = o.WithBlock(100)
	}
	tidied := make(chan int64, 1000)
	o.Hooks.Compacted = func(revision int64, _ int) {
		select {
		case tidied <- revision:
		default:
		}
	}
	b, err := bolt.Open(path, o)
	if err != nil {
		return err
	}
	if kind == "load" {
		if err := powerLoad(b); err != nil {
			return err
		}
	}
	if err := powerReport(b); err != nil {
		return err
	}
	errs := make([]error, powerWriters)
	var all sync.WaitGroup
	for w := range powerWriters {
		all.Go(func() { errs[w] = powerWrite(b, life, w, 40) })
	}
	if all.Wait(); kind == "hollow" {
		errs = append(errs, powerHollow(b, life, tidied))
	}
	return errors.Join(append(errs, b.Close())...)
}

// powerReport prints the content: "found revision", and "has revision key value" for each key.
func powerReport(b *bolt.Backend) error {
	res, err := b.Range(context.Background(), storage.Range{})
	if err != nil {
		return err
	}
	var text strings.Builder
	for _, kv := range res.KVs {
		fmt.Fprintln(&text, "has", kv.Revision, kv.Key, string(kv.Value))
	}
	fmt.Fprintln(&text, "found", res.Revision)
	_, err = os.Stdout.WriteString(text.String())
	return err
}

// powerCommit prints "try key value", where - is a deletion, and "ack revision key value".
func powerCommit(b *bolt.Backend, key, value string, ttl time.Duration) (revision int64, err error) {
	c := storage.Commit{Key: key, Expect: storage.AnyRevision, TTL: ttl}
	if c.Delete = value == "-"; !c.Delete {
		c.Value = []byte(value)
	}
	fmt.Println("try", key, value)
	res, err := b.Commit(context.Background(), c)
	if err == nil {
		fmt.Println("ack", res.Revision, key, value)
	}
	return res.Revision, err
}

func powerWrite(b *bolt.Backend, life, w, n int) error {
	for i := range n {
		key, ttl := fmt.Sprint("w", w, "k", i%4), time.Duration(0)
		value := fmt.Sprint(key, "#", life, "#", i, ".")
		switch {
		case i%9 == 5:
			value = "-"
		case i%11 == 10:
			value += strings.Repeat("l", 9000)
		case i%37 == 36:
			value += strings.Repeat("h", 40000) // no journal takes it
		default:
			value += strings.Repeat("s", i*97%2500)
		}
		if i%8 == 3 {
			ttl = 1000 * time.Hour
		}
		revision, err := powerCommit(b, key, value, ttl)
		if err == nil && w == 1 && i%20 == 19 {
			if err = b.Flush(context.Background()); err == nil {
				fmt.Println("durable", revision)
			}
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// powerHollow writes values that make the file large, and deletes them.
func powerHollow(b *bolt.Backend, life int, tidied <-chan int64) error {
	const n = 60
	for i := range n {
		if _, err := powerCommit(b, fmt.Sprint("h", i), strings.Repeat(fmt.Sprint(life, "h"), 20_000), 0); err != nil {
			return err
		}
	}
	for i := range n {
		if _, err := powerCommit(b, fmt.Sprint("h", i), "-", 0); err != nil {
			return err
		}
	}
	res, err := b.Range(context.Background(), storage.Range{CountOnly: true})
	if err == nil {
		err = b.Compact(context.Background(), res.Revision)
	}
	if err != nil {
		return err
	}
	for <-tidied < res.Revision-1 {
	}
	_, err = powerCommit(b, "last", fmt.Sprint(life), 0)
	return err
}

// powerLoad prints "loading", and "will key value" for what it loads.
func powerLoad(b *bolt.Backend) error {
	fmt.Println("loading")
	return b.Load(context.Background(), 1000, func(yield func(storage.KV, error) bool) {
		for i := range 300 {
			kv := storage.KV{Key: fmt.Sprintf("l%03d", i), Value: []byte(strings.Repeat("l", i*7)), Revision: int64(i*37%300 + 2)}
			if fmt.Println("will", kv.Key, string(kv.Value)); !yield(kv, nil) {
				return
			}
		}
	})
}

// powerRestore prints "will key value" for what it restores, and "restored".
func powerRestore(path string) error {
	dir, err := os.MkdirTemp("", "")
	if err != nil {
		return err
	}
	defer func() { _ = os.RemoveAll(dir) }()
	from := filepath.Join(dir, "from.db")
	b, err := bolt.Open(from, bolt.Options{Sync: bolt.NoSync})
	if err != nil {
		return err
	}
	for i := range 100 {
		c := storage.Commit{Key: fmt.Sprint("r", i), Expect: storage.AnyRevision, Value: []byte(strings.Repeat("r", i*50))}
		fmt.Println("will", c.Key, string(c.Value))
		if _, err := b.Commit(context.Background(), c); err != nil {
			return err
		}
	}
	if err := b.Close(); err != nil {
		return err
	}
	f, err := os.Open(from)
	if err != nil {
		return err
	}
	defer f.Close()
	// Without WriteTo, so that the writes can be traced.
	if err := bolt.Restore(path, struct{ io.Reader }{f}, bolt.RestoreOptions{RevisionBump: -1}); err != nil {
		return err
	}
	fmt.Println("restored")
	return nil
}

// powerStory has the output of the processes, one after the other.
type powerStory struct {
	lives []*lifeStory
	last  int64 // the newest revision shown
	safe  int64 // nothing may be lost up to here
	must  bool  // there is a file
	owner map[int64]string

	loading bool // the file may be refused until it must be complete
}

// lifeStory has the output of one process.
type lifeStory struct {
	found  int64             // the revision it found; 0 before it has printed it
	state  map[string]string // and the values
	acks   []acknowledged    // by revision
	trying map[string]string // not acknowledged, by key
	plan   map[string]string // what it wants to make at once
}

type acknowledged struct {
	revision   int64
	key, value string // "-" is a deletion
}

func (s *powerStory) clone() *powerStory {
	c := *s
	c.owner = maps.Clone(s.owner)
	c.lives = nil
	for _, l := range s.lives {
		c.lives = append(c.lives, &lifeStory{l.found, maps.Clone(l.state), slices.Clone(l.acks), maps.Clone(l.trying), maps.Clone(l.plan)})
	}
	return &c
}

// begin is called when a process begins.
func (s *powerStory) begin() {
	s.lives = append(s.lives, &lifeStory{state: map[string]string{}, trying: map[string]string{}, plan: map[string]string{}})
}

// hear processes a line.
func (s *powerStory) hear(line string) error {
	l := s.lives[len(s.lives)-1]
	w := strings.Split(line, " ")
	number := func() int64 {
		n, _ := strconv.ParseInt(w[1], 10, 64)
		s.last = max(s.last, n)
		return n
	}
	switch {
	case w[0] == "loading":
		s.loading = true
	case w[0] == "restored":
		s.must = true
	case w[0] == "found":
		l.found, s.must = number(), true
	case w[0] == "has":
		number()
		l.state[w[2]] = w[3]
	case w[0] == "will":
		l.plan[w[1]] = w[2]
	case w[0] == "try":
		l.trying[w[1]] = w[2]
	case w[0] == "durable":
		s.safe = max(s.safe, number())
	case w[0] == "ack":
		a := acknowledged{number(), w[2], w[3]}
		delete(l.trying, a.key)
		l.acks = append(l.acks, a)
		what := a.key + " " + a.value
		if was, ok := s.owner[a.revision]; ok && was != what {
			return fmt.Errorf("revision %d was acknowledged for %.50q and %.50q", a.revision, was, what)
		}
		s.owner[a.revision] = what
	}
	return nil
}

// at returns the state at a revision, and the keys that may have another value.
func (s *powerStory) at(revision int64) (state, other map[string]string) {
	for _, l := range slices.Backward(s.lives) {
		if l.found == 0 || l.found > revision {
			continue
		}
		state, acks := maps.Clone(l.state), slices.Clone(l.acks)
		slices.SortFunc(acks, func(a, b acknowledged) int { return int(a.revision - b.revision) })
		for _, a := range acks {
			switch {
			case a.revision > revision:
			case a.value == "-":
				delete(state, a.key)
			default:
				state[a.key] = a.value
			}
		}
		return state, l.trying
	}
	if len(s.lives) > 0 && revision > 1 {
		return s.lives[0].plan, nil
	}
	return nil, nil
}

// check compares the content of a file at a revision.
func (s *powerStory) check(revision int64, kvs []storage.KV) (err error) {
	if revision < s.safe {
		return fmt.Errorf("what was made durable at revision %d is lost, the file has %d", s.safe, revision)
	}
	from := revision
	if l := s.lives[len(s.lives)-1]; revision > s.last && s.last > 0 && l.found == 0 {
		// The store continues after revisions that may have been shown, and it is not known yet which of them exist.
		from, revision = max(s.safe, 1), max(s.last, 1)
	}
	for ; revision >= from; revision-- {
		if err = s.checkAt(revision, kvs); err == nil {
			return nil
		}
	}
	return err
}

func (s *powerStory) checkAt(revision int64, kvs []storage.KV) error {
	want, other := s.at(revision)
	found := map[string]string{}
	for _, kv := range kvs {
		found[kv.Key] = string(kv.Value)
	}
	for key := range mergedKeys(want, found) {
		was, wanted := want[key]
		is, there := found[key]
		if wanted == there && was == is {
			continue
		}
		if tried, ok := other[key]; ok && (tried == is || tried == "-" && !there) {
			continue
		}
		return fmt.Errorf("key %s is %.20q (%t) at revision %d, want %.20q (%t)", key, is, there, revision, was, wanted)
	}
	return nil
}

func mergedKeys(a, b map[string]string) map[string]string {
	all := maps.Clone(b)
	maps.Copy(all, a)
	return all
}

// powerRun is a directory while processes use a file in it.
type powerRun struct {
	*powercut.Disk
	dir    string
	story  *powerStory // before the recording
	begins []int       // points at which the processes begin
	kinds  []string    // of the processes
}

// until processes the output up to a point.
func (p *powerRun) until(point int) (*powerStory, error) {
	s := p.story.clone()
	life := 0
	for _, e := range p.Events {
		for life < len(p.begins) && p.begins[life] <= e.Began {
			s.begin()
			life++
		}
		if e.Kind == powercut.Output && e.Began < point {
			if err := s.hear(string(e.Data)); err != nil {
				return nil, err
			}
		}
	}
	return s, nil
}

// some returns a point after another one. Mostly it is a point where failures are likely: when a name or a meta page of bbolt
// was written, or before a process has flushed anything more than a few times.
func (p *powerRun) some(r *rand.Rand, from int) int {
	kind, life, flushes := r.IntN(4), 0, 0
	var likely []int
	for _, e := range p.Events {
		for life < len(p.begins) && p.begins[life] <= e.Began {
			life, flushes = life+1, 0
		}
		if e.Kind == powercut.Flush {
			flushes++
		}
		name, meta := e.Kind >= powercut.Create && e.Kind <= powercut.Remove, e.Kind == powercut.Write && e.At < 2*4096
		if e.Began >= from && (kind == 0 && name || kind == 1 && meta || kind == 2 && flushes < 5) {
			likely = append(likely, min(e.Ended+1, p.Points))
		}
	}
	if len(likely) > 0 {
		return likely[r.IntN(len(likely))] + r.IntN(2)
	}
	return from + r.IntN(p.Points-from+1)
}

// killPoint returns a point at which a process that began at another point is killed. Sometimes all that the process has done
// is written, but not flushed.
func (p *powerRun) killPoint(r *rand.Rand, from int) int {
	point := p.some(r, from)
	if r.IntN(4) == 0 {
		for _, e := range p.Events {
			if e.Kind == powercut.Write && e.At < 2*4096 {
				point = e.Ended + 1
			}
		}
	}
	return point
}

func (p *powerRun) run(t *testing.T, kind string, number int) {
	t.Helper()
	p.begins, p.kinds = append(p.begins, p.Points+1), append(p.kinds, kind)
	env := append(os.Environ(), childRole+"=power", childFile+"="+filepath.Join(p.dir, "test.db"), powerKind+"="+kind,
		fmt.Sprint(childSync, "=", number))
	if err := p.Run(p.dir, filepath.Dir(p.dir), env, os.Args[0]); err != nil {
		t.Fatalf("life %d, %s: %v", number, kind, err)
	}
}

// place puts files into a directory, and removes everything else.
func place(dir string, files map[string][]byte) error {
	if err := os.RemoveAll(dir); err != nil {
		return err
	}
	if err := os.Mkdir(dir, 0o700); err != nil {
		return err
	}
	for name, content := range files {
		if err := os.WriteFile(filepath.Join(dir, name), content, 0o600); err != nil {
			return err
		}
	}
	return nil
}

// TestPowerFailures records everything that processes do to a file and its directory, some of which are killed, and simulates
// power failures at random points. Data that was not flushed then may be there in any part (see package powercut). The file
// that is left must be sound. It must have everything that was shown before that point, and each attempt as a whole or not at
// all; and it must be writable.
func TestPowerFailures(t *testing.T) {
	t.Parallel()
	if err := powercut.Available(); err != nil {
		t.Skip(err)
	}
	failures := 600
	if testing.Short() {
		failures = 200
	}
	if os.Getenv("KEELSON_SOAK") != "" {
		failures = 10_000
	}
	seed := rand.Uint64()
	if s := os.Getenv("KEELSON_SEED"); s != "" {
		var err error
		if seed, err = strconv.ParseUint(s, 10, 64); err != nil {
			t.Fatalf("KEELSON_SEED: %v", err)
		}
	}
	for name, p := range powers {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			failPower(t, p.lives, failures*p.share/100, seed)
		})
	}
}

// quickDir returns a directory in memory if there is one: the disk is simulated, so a real one is not needed.
func quickDir(t *testing.T) string {
	t.Helper()
	dir, err := os.MkdirTemp("/dev/shm", "keelson-bolt-")
	if err != nil {
		dir = t.TempDir()
	}
	t.Cleanup(func() { _ = os.RemoveAll(dir) })
	if dir, err = filepath.EvalSymlinks(dir); err != nil {
		t.Fatal(err)
	}
	return dir
}

func failPower(t *testing.T, lives []powerLife, failures int, seed uint64) {
	dir := quickDir(t)
	r := rand.New(rand.NewPCG(seed, 1))
	used, left := filepath.Join(dir, "used"), filepath.Join(dir, "left")
	if err := place(used, nil); err != nil {
		t.Fatal(err)
	}
	p := &powerRun{Disk: powercut.NewDisk(nil), dir: used, story: &powerStory{owner: map[int64]string{}}}
	tried, cuts, journals, absent, events := 0, 1, 0, 0, 0
	for _, l := range lives {
		if l.end == "cut" {
			cuts++
		}
	}
	// try simulates one power failure.
	try := func() map[string][]byte {
		tried++
		point := p.some(r, 0)
		files := p.Cut(point, r)
		story, err := p.until(point)
		if err == nil {
			err = place(left, files)
		}
		if err == nil {
			err = survives(t.Context(), filepath.Join(left, "test.db"), story, &journals, &absent)
		}
		if err != nil {
			t.Fatalf("seed %d: power failure %d, at point %d of %d: %v", seed, tried, point, p.Points, err)
		}
		return files
	}
	for i, l := range lives {
		from := p.Points + 1
		if p.run(t, l.kind, i); l.end == "killed" {
			p.Kill(p.killPoint(r, from))
			if err := place(used, p.Files()); err != nil {
				t.Fatal(err)
			}
		}
		if l.end != "cut" && i < len(lives)-1 {
			continue
		}
		events += len(p.Events)
		flushedOnce(t, p.Events)
		flushedFirst(t, p)
		for range failures / cuts {
			try()
		}
		if l.end == "cut" {
			point := p.some(r, from)
			story, err := p.until(point)
			files := p.Cut(point, r)
			if err = errors.Join(err, place(used, files)); err != nil {
				t.Fatal(err)
			}
			p = &powerRun{Disk: powercut.NewDisk(files), dir: used, story: story}
		}
	}
	t.Logf("seed %d: %d events, %d power failures, %d with records in the journal, %d without a file", seed, events, tried, journals, absent)
}

// flushedOnce checks that no file is written to while it is flushed with the same descriptor. A system reports a failed write
// once for each open file, so only one of two concurrent flushes would receive it.
func flushedOnce(t *testing.T, events []*powercut.Event) {
	t.Helper()
	for _, s := range events {
		if s.Kind != powercut.Flush || s.Ended == powercut.Never {
			continue
		}
		for _, e := range events {
			if e.File == s.File && e.FD == s.FD && e.Began > s.Began && e.Began < s.Ended &&
				(e.Kind == powercut.Write || e.Kind == powercut.Flush) {
				t.Fatalf("descriptor %d is used while it is flushed for somebody else", e.FD)
			}
		}
	}
}

// flushedFirst checks that a process makes the data of the previous process durable before it writes. bbolt uses pages that
// are free in the newest state, and those may be in use in the last durable one. An empty file has no pages. The process also
// makes the file's name durable before it reports what it has found. A meta page is written when everything it refers to is
// durable. Exceptions are Load, and the copies of Shrink and Restore, which are not used before they are complete.
func flushedFirst(t *testing.T, p *powerRun) {
	t.Helper()
	for i, from := range p.begins {
		to := p.Points + 1
		if i+1 < len(p.begins) {
			to = p.begins[i+1]
		}
		mine, named := map[int]bool{}, false // files that were created or flushed
		since := map[int]int{}               // when a descriptor was written to last, if its file was not flushed afterwards
		strict := p.kinds[i] == "write" || p.kinds[i] == "interval" || p.kinds[i] == "hollow"
		for _, e := range p.Events {
			if e.Began < from || e.Began >= to {
				continue
			}
			meta := e.At < 2*4096 && len(e.Data) <= 4096
			switch {
			case e.Kind == powercut.Flush && e.Ended < to:
				maps.DeleteFunc(since, func(_, at int) bool { return at < e.Began })
			case e.Kind == powercut.Write && !meta:
				since[e.FD] = e.Ended
			case e.Kind == powercut.Write && meta && since[e.FD] != 0 && strict:
				t.Errorf("process %d, %s, writes a meta page at point %d before what it leads to is flushed", i, p.kinds[i], e.Began)
				return
			}
			switch {
			case e.Kind == powercut.Create, e.Kind == powercut.Flush && e.Ended < to:
				mine[e.File] = true
			case e.Kind == powercut.FlushDir && e.Ended < to:
				named = true
			case e.Kind == powercut.Write && !mine[e.File] && !p.Empty(e.File, from):
				t.Errorf("process %d writes to a file at point %d that it has not flushed", i, e.Began)
				return
			case e.Kind == powercut.Output && strings.HasPrefix(string(e.Data), "found ") && !named:
				t.Errorf("process %d has found something and not flushed the directory", i)
				return
			}
		}
	}
}

// survives checks the files after a power failure. It counts files with records in the journal, and those that are absent, or
// refused because they were not complete.
func survives(ctx context.Context, path string, story *powerStory, journals, absent *int) error {
	_, err := os.Stat(path)
	switch {
	case errors.Is(err, fs.ErrNotExist) && !story.must:
		*absent++
		return openNew(ctx, path)
	case err != nil:
		return err
	}
	switch err := bolt.Verify(path); {
	case err != nil && story.loading && !story.must:
		*absent++
		if b, err := bolt.Open(path, bolt.Options{}); err == nil {
			return errors.Join(errors.New("a copy that was interrupted is not refused"), b.Close())
		}
		return nil
	case err != nil:
		return err
	}
	kept, err := bolt.FileRevision(path)
	if err != nil {
		return err
	}
	if records, _, _, err := bolt.Journal(path); err != nil {
		return err
	} else if len(records) > 0 {
		*journals++
	}
	b, err := bolt.Open(path, bolt.Options{Sync: bolt.NoSync})
	if err != nil {
		return err
	}
	defer b.Close()
	res, err := b.Range(ctx, storage.Range{})
	if err != nil {
		return err
	}
	if res.Revision < story.last {
		return fmt.Errorf("revision %d was shown, the file opens at %d", story.last, res.Revision)
	}
	if err := story.check(kept, res.KVs); err != nil {
		return err
	}
	c, err := b.Commit(ctx, storage.Commit{Key: "after", Expect: storage.AnyRevision, Value: []byte("v")})
	if err == nil && c.Revision <= res.Revision {
		err = fmt.Errorf("revision %d comes after %d", c.Revision, res.Revision)
	}
	if err = errors.Join(err, b.Close()); err != nil {
		return err
	}
	return bolt.Verify(path)
}

// openNew checks that a store can be made where there is none, whatever other files are there.
func openNew(ctx context.Context, path string) error {
	b, err := bolt.Open(path, bolt.Options{Sync: bolt.NoSync})
	if err != nil {
		return err
	}
	_, err = b.Commit(ctx, storage.Commit{Key: "k", Value: []byte("v")})
	return errors.Join(err, b.Close())
}
