package storage_test

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"reflect"
	"slices"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/keelson-dev/keelson/runtime"
	"github.com/keelson-dev/keelson/runtime/codec"
	"github.com/keelson-dev/keelson/storage"
	"github.com/keelson-dev/keelson/storage/bolt"
	"github.com/keelson-dev/keelson/storage/cacher"
	"github.com/keelson-dev/keelson/storage/memory"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/watch"
)

// Tins are stored in two versions: in v1beta1 the color has another name, and the size is a text that a conversion has
// to read. A color of "glass" cannot be converted to v1.
type (
	Tin = runtime.Resource[struct {
		Color string `json:"color,omitempty"`
		Size  int32  `json:"size,omitempty"`
	}, struct{}]
	TinV1Beta1 = runtime.Resource[struct {
		Colour string `json:"colour,omitempty"`
		Size   string `json:"size,omitempty"`
	}, struct{}]
)

func tinKind(version string) schema.GroupVersionKind {
	return schema.GroupVersionKind{Group: "test.example.com", Version: version, Kind: "Tin"}
}

// tinOptions returns the options of a store of tins with the given storage version; the hub is v1.
func tinOptions(t testing.TB, version string) storage.StoreOptions {
	t.Helper()
	s := runtime.NewScheme()
	for _, err := range []error{
		runtime.Register(s, tinKind("v1"), runtime.KindOptions[*Tin]{SelectableFields: []string{"spec.color", "spec.size"}}),
		runtime.Register(s, tinKind("v1beta1"), runtime.KindOptions[*TinV1Beta1]{RenamedFields: map[string]string{"spec.colour": "spec.color"}}),
		runtime.AddConversion(s, func(in *TinV1Beta1, out *Tin) error {
			if in.Spec.Colour == "glass" {
				return errors.New("a tin is not made of glass")
			}
			out.Spec.Color = in.Spec.Colour
			_, err := fmt.Sscanf(in.Spec.Size, "%d ml", &out.Spec.Size)
			return err
		}, func(in *Tin, out *TinV1Beta1) error {
			out.Spec.Colour, out.Spec.Size = in.Spec.Color, fmt.Sprintf("%d ml", in.Spec.Size)
			return nil
		}),
	} {
		if err != nil {
			t.Fatal(err)
		}
	}
	typed, err := codec.NewTyped(s, tinKind(version))
	if err != nil {
		t.Fatal(err)
	}
	return storage.StoreOptions{
		Prefix: "/registry/test.example.com/tins", Codec: typed, Namespaced: true,
		Fields: []string{"spec.color", "spec.size"}, FieldPaths: s.FieldPaths(tinKind("v1").GroupKind()),
	}
}

const tinRoot = "/registry/test.example.com/tins/"

func tinKey(i int) string { return fmt.Sprintf("ns/t%05d", i) }

func tin(key, color string, size int32) *Tin {
	ns, name, _ := strings.Cut(key, "/")
	out := &Tin{ObjectMeta: metav1.ObjectMeta{Namespace: ns, Name: name, Generation: 3, Labels: map[string]string{"color": color}}}
	out.Spec.Color, out.Spec.Size = color, size
	return out
}

// oldTins stores n tins in v1beta1, like a program with that storage version.
func oldTins(t testing.TB, b storage.Backend, n int) {
	t.Helper()
	old := newStore(t, b, tinOptions(t, "v1beta1"))
	for i := range n {
		if _, err := old.Create(t.Context(), tinKey(i), tin(tinKey(i), "red", int32(i)), storage.WriteOptions{}); err != nil {
			t.Fatal(err)
		}
	}
}

// stored counts the values that are in a version.
func stored(t testing.TB, b storage.Backend, version string) (n int) {
	t.Helper()
	res, err := b.Range(t.Context(), storage.Range{From: tinRoot, To: tinRoot + "~"})
	if err != nil {
		t.Fatal(err)
	}
	for _, kv := range res.KVs {
		if strings.HasPrefix(string(kv.Value), `{"kind":"Tin","apiVersion":"test.example.com/`+version+`"`) {
			n++
		}
	}
	return n
}

func wantMigrated(t testing.TB, got, want storage.Migrated) {
	t.Helper()
	got.Failures, got.Revision, got.Continue = nil, 0, ""
	if !reflect.DeepEqual(got, want) {
		t.Errorf("migrated %+v, want %+v", got, want)
	}
}

func TestMigrate(t *testing.T) {
	for _, writers := range []int{1, 4} {
		for _, cached := range []bool{false, true} {
			t.Run(fmt.Sprintf("%d writers, cache %v", writers, cached), func(t *testing.T) {
				b := memory.New(memory.Options{})
				t.Cleanup(func() { b.Close() })
				oldTins(t, b, 25)
				store := newStore(t, b, tinOptions(t, "v1"))
				right, err := store.Create(t.Context(), "ns/a", tin("ns/a", "blue", 1), storage.WriteOptions{})
				if err != nil {
					t.Fatal(err)
				}
				var s storage.Interface = store
				if cached {
					c, err := cacher.New(store, cacher.Options{Namespaced: true})
					if err != nil {
						t.Fatal(err)
					}
					t.Cleanup(c.Close)
					s = c
				}
				w, err := s.Watch(t.Context(), storage.WatchOptions{From: right.Revision})
				if err != nil {
					t.Fatal(err)
				}
				defer w.Close()
				before, err := s.Get(t.Context(), tinKey(7), storage.Read{})
				if err != nil {
					t.Fatal(err)
				}
				was, err := s.Decode(before)
				if err != nil {
					t.Fatal(err)
				}

				var reports []storage.Migrated
				done, err := storage.Migrate(t.Context(), s, storage.MigrateOptions{PageSize: 10, Writers: writers, Progress: func(m storage.Migrated) { reports = append(reports, m) }})
				if err != nil {
					t.Fatal(err)
				}
				wantMigrated(t, done, storage.Migrated{Examined: 26, Rewritten: 25, Unchanged: 1})
				if n := stored(t, b, "v1"); n != 26 {
					t.Errorf("%d of 26 are in v1", n)
				}
				if len(reports) != 3 || reports[0].Examined != 10 || reports[1].Examined != 20 || reports[0].Continue == "" || reports[2].Continue != "" || reports[0].Revision != right.Revision || reports[2].Revision != right.Revision {
					t.Errorf("progress %+v", reports)
				}

				// Each is the same object at a new revision, and an event.
				after, err := s.Get(t.Context(), tinKey(7), storage.Read{})
				if err != nil {
					t.Fatal(err)
				}
				is, err := s.Decode(after)
				if err != nil {
					t.Fatal(err)
				}
				is.(*Tin).ResourceVersion = was.(*Tin).ResourceVersion
				if !reflect.DeepEqual(is, was) || after.Revision <= right.Revision || after.Stale {
					t.Errorf("%+v at %d, before %+v", is, after.Revision, was)
				}
				seen := map[string]bool{}
				for len(seen) < 25 {
					events, err := w.Next(t.Context())
					if err != nil {
						t.Fatal(err)
					}
					for _, e := range events {
						if e.Type != watch.Modified || seen[e.Record.Key] || e.Record.Key == "ns/a" {
							t.Fatalf("%s of %s", e.Type, e.Record.Key)
						}
						seen[e.Record.Key] = true
					}
				}
				if r, err := s.Get(t.Context(), "ns/a", storage.Read{}); err != nil || r.Revision != right.Revision {
					t.Errorf("what was as it should be is at %d, %v", r.Revision, err)
				}

				now, err := s.Revision(t.Context())
				if err != nil {
					t.Fatal(err)
				}
				p := &pages{Interface: s}
				done, err = storage.Migrate(t.Context(), p, storage.MigrateOptions{Writers: writers})
				if err != nil {
					t.Fatal(err)
				}
				wantMigrated(t, done, storage.Migrated{Examined: 26, Unchanged: 26})
				if n := p.updates.Load(); n != 0 {
					t.Errorf("%d updates of objects that are as they should be", n)
				}
				if again, err := s.Revision(t.Context()); err != nil || again != now {
					t.Errorf("a second migration: revision %d after %d, %v", again, now, err)
				}
			})
		}
	}
}

// Objects that cannot be read, converted or stored are named, and the others are migrated.
func TestMigratePassesOverWhatFails(t *testing.T) {
	b := memory.New(memory.Options{})
	defer b.Close()
	oldTins(t, b, 40)
	o := tinOptions(t, "v1")
	var want []string
	for _, bad := range []struct {
		key, value string
	}{
		{tinKey(0), "\x00"},
		{tinKey(1), "{}"},
		{tinKey(17), `{"kind":"Tin","apiVersion":"test.example.com/v1beta1","metadata":{"name":"t00017","namespace":"ns"},"spec":{"colour":"glass","size":"1 ml"}}`},
		{tinKey(23), `{"kind":"Tin","apiVersion":"test.example.com/v0","metadata":{"name":"t00023","namespace":"ns"}}`},
		{tinKey(39), ""},
	} {
		commit(t, b, storage.Commit{Key: tinRoot + bad.key, Expect: storage.AnyRevision, Value: []byte(bad.value)})
		want = append(want, bad.key)
	}
	store := newStore(t, b, o)
	c, err := cacher.New(newStore(t, b, o), cacher.Options{Namespaced: true})
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	for i, s := range []storage.Interface{store, c} {
		done, err := storage.Migrate(t.Context(), s, storage.MigrateOptions{PageSize: 8})
		if err != nil {
			t.Fatal(err)
		}
		if i == 0 {
			wantMigrated(t, done, storage.Migrated{Examined: 40, Rewritten: 35, Failed: 5})
		} else {
			wantMigrated(t, done, storage.Migrated{Examined: 40, Unchanged: 35, Failed: 5})
		}
		var got []string
		for _, f := range done.Failures {
			got = append(got, f.Key)
			if f.Err == nil || f.Key == tinKey(17) && !strings.Contains(f.Err.Error(), "a tin is not made of glass") {
				t.Errorf("%s: %v", f.Key, f.Err)
			}
		}
		if slices.Sort(got); !slices.Equal(got, want) {
			t.Errorf("failures %q, want %q", got, want)
		}
	}
	done, err := storage.Migrate(t.Context(), store, storage.MigrateOptions{MaxFailures: 2})
	if err != nil || len(done.Failures) != 2 || done.Failed != 5 {
		t.Errorf("%+v, %v", done, err)
	}

	o.MaxObjectBytes = 10
	b2 := memory.New(memory.Options{})
	defer b2.Close()
	oldTins(t, b2, 3)
	done, err = storage.Migrate(t.Context(), newStore(t, b2, o), storage.MigrateOptions{})
	if err != nil || done.Failed != 3 || !errors.Is(done.Failures[0].Err, storage.ErrTooLarge) {
		t.Errorf("objects that have become too large: %+v, %v", done, err)
	}
}

// meddler is a storage in which other clients change objects during a migration.
type meddler struct {
	storage.Interface
	listed  func()
	updated func(key string)
}

func (m *meddler) List(ctx context.Context, o storage.ListOptions) (storage.Page, error) {
	p, err := m.Interface.List(ctx, o)
	if m.listed != nil {
		m.listed()
	}
	return p, err
}

func (m *meddler) Update(ctx context.Context, key string, o storage.WriteOptions, change storage.ChangeFunc) (storage.Record, error) {
	return m.Interface.Update(ctx, key, o, func(ctx context.Context, current runtime.Object, r storage.Record) (storage.Outcome, error) {
		out, err := change(ctx, current, r)
		m.updated(key) // between the read and the write
		return out, err
	})
}

// A write or deletion at the same time wins.
func TestMigrateWithOthers(t *testing.T) {
	b := memory.New(memory.Options{})
	defer b.Close()
	oldTins(t, b, 4)
	store := newStore(t, b, tinOptions(t, "v1"))
	older := newStore(t, b, tinOptions(t, "v1beta1")) // a process that is not as new
	var once [4]bool
	change := func(s storage.Interface, key, color string) {
		_, err := s.Update(t.Context(), key, storage.WriteOptions{}, func(_ context.Context, obj runtime.Object, _ storage.Record) (storage.Outcome, error) {
			if color == "" {
				return storage.Outcome{Delete: true}, nil
			}
			obj.(*Tin).Spec.Color = color
			return storage.Outcome{Object: obj}, nil
		})
		if err != nil {
			t.Error(err)
		}
	}
	m := &meddler{Interface: store, updated: func(key string) {
		i := slices.Index([]string{tinKey(0), tinKey(1), tinKey(2), tinKey(3)}, key)
		if once[i] {
			return
		}
		once[i] = true
		switch i {
		case 0:
			change(store, key, "green")
		case 1:
			change(older, key, "yellow")
		case 2:
			change(store, key, "")
		}
	}}
	done, err := storage.Migrate(t.Context(), m, storage.MigrateOptions{})
	if err != nil {
		t.Fatal(err)
	}
	wantMigrated(t, done, storage.Migrated{Examined: 4, Rewritten: 2, Unchanged: 1, Gone: 1})
	for i, want := range []string{"green", "yellow", "", "red"} {
		r, err := store.Get(t.Context(), tinKey(i), storage.Read{})
		if want == "" {
			if !errors.Is(err, storage.ErrNotFound) {
				t.Errorf("%d: %v, want it gone", i, err)
			}
			continue
		}
		if err != nil || r.Stale || r.Fields.Get("spec.color") != want || !r.Body.InVersion("test.example.com/v1") {
			t.Errorf("%d: %s, stale %v, %v; want %s", i, r.Body.Bytes(), r.Stale, err, want)
		}
	}
}

// If the examined state leaves the retained history, the migration continues at a later one.
func TestMigrateGoesOnAfterACompaction(t *testing.T) {
	b := memory.New(memory.Options{})
	defer b.Close()
	oldTins(t, b, 9)
	store := newStore(t, b, tinOptions(t, "v1"))
	m := &meddler{Interface: store, updated: func(string) {}, listed: func() {
		now, err := store.Revision(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		commit(t, b, storage.Commit{Key: "/registry/other", Expect: storage.AnyRevision, Value: []byte("x")})
		if err := b.Compact(t.Context(), now+1); err != nil {
			t.Fatal(err)
		}
	}}
	done, err := storage.Migrate(t.Context(), m, storage.MigrateOptions{PageSize: 2})
	if err != nil {
		t.Fatal(err)
	}
	wantMigrated(t, done, storage.Migrated{Examined: 9, Rewritten: 9})
	if n := stored(t, b, "v1"); n != 9 {
		t.Errorf("%d of 9 are in v1", n)
	}
}

func TestMigrateEndsAndGoesOn(t *testing.T) {
	b := memory.New(memory.Options{})
	defer b.Close()
	oldTins(t, b, 30)
	o := tinOptions(t, "v1")
	ctx, cancel := context.WithCancel(t.Context())
	done, err := storage.Migrate(ctx, newStore(t, b, o), storage.MigrateOptions{PageSize: 10, Progress: func(m storage.Migrated) {
		if m.Examined == 20 {
			cancel()
		}
	}})
	if !errors.Is(err, context.Canceled) || done.Rewritten != 20 || done.Continue == "" {
		t.Fatalf("canceled: %+v, %v", done, err)
	}
	full, err := storage.Migrate(t.Context(), newStore(t, noSpace{b}, o), storage.MigrateOptions{Continue: done.Continue, Writers: 3})
	if !errors.Is(err, storage.ErrNoSpace) || full.Rewritten != 0 || full.Continue != done.Continue {
		t.Errorf("on a full device: %+v, %v", full, err)
	}
	rest, err := storage.Migrate(t.Context(), newStore(t, b, o), storage.MigrateOptions{Continue: done.Continue})
	if err != nil {
		t.Fatal(err)
	}
	wantMigrated(t, rest, storage.Migrated{Examined: 10, Rewritten: 10})
	if n := stored(t, b, "v1"); n != 30 {
		t.Errorf("%d of 30 are in v1", n)
	}
	for name, c := range map[string]struct {
		s    storage.Interface
		o    storage.MigrateOptions
		want string
	}{
		"no storage":    {nil, storage.MigrateOptions{}, "a storage is needed"},
		"a bad token":   {newStore(t, b, o), storage.MigrateOptions{Continue: "x!"}, "continue key is not valid"},
		"a bad number":  {newStore(t, b, o), storage.MigrateOptions{PageSize: -1}, "must not be negative"},
		"a closed base": {newStore(t, closedBackend(), o), storage.MigrateOptions{}, "closed"},
	} {
		if _, err := storage.Migrate(t.Context(), c.s, c.o); err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s: %v, want %q", name, err, c.want)
		}
	}
	nothing := memory.New(memory.Options{})
	defer nothing.Close()
	if done, err := storage.Migrate(t.Context(), newStore(t, nothing, o), storage.MigrateOptions{}); err != nil || done.Examined != 0 || done.Revision == 0 {
		t.Errorf("of nothing: %+v, %v", done, err)
	}
}

func closedBackend() storage.Backend {
	b := memory.New(memory.Options{})
	b.Close()
	return b
}

// pages counts the lists of a migration.
type pages struct {
	storage.Interface
	large   int // number of pages of more than 9 MiB
	updates atomic.Int64
}

func (p *pages) Update(ctx context.Context, key string, o storage.WriteOptions, change storage.ChangeFunc) (storage.Record, error) {
	p.updates.Add(1)
	return p.Interface.Update(ctx, key, o, change)
}

func (p *pages) List(ctx context.Context, o storage.ListOptions) (storage.Page, error) {
	page, err := p.Interface.List(ctx, o)
	size := int64(0)
	if err == nil {
		for r := range page.Records {
			size += int64(len(r.Body.Bytes()))
		}
	}
	if size > 9<<20 {
		p.large++
	}
	return page, err
}

// Pages of large objects are short, except the first two, which are read before the size is known.
func TestMigrateHoldsLittle(t *testing.T) {
	b := memory.New(memory.Options{WindowBytes: 1 << 30})
	defer b.Close()
	old := newStore(t, b, tinOptions(t, "v1beta1"))
	for i := range 60 {
		obj := tin(tinKey(i), "red", 1)
		if i >= 9 {
			obj.Annotations = map[string]string{"a": strings.Repeat("x", 1<<20)}
		}
		if _, err := old.Create(t.Context(), tinKey(i), obj, storage.WriteOptions{}); err != nil {
			t.Fatal(err)
		}
	}
	p := &pages{Interface: newStore(t, b, tinOptions(t, "v1"))}
	done, err := storage.Migrate(t.Context(), p, storage.MigrateOptions{PageSize: 20})
	if err != nil || done.Rewritten != 60 {
		t.Fatalf("%+v, %v", done, err)
	}
	if p.large > 2 {
		t.Errorf("%d large pages", p.large)
	}
}

const migrateDir = "KEELSON_MIGRATE_DIR"

// TestMigrateChild is the process that TestMigrateSurvivesAKill kills while it migrates.
func TestMigrateChild(t *testing.T) {
	dir := os.Getenv(migrateDir)
	if dir == "" {
		t.Skip("it is a part of TestMigrateSurvivesAKill")
	}
	b, err := bolt.Open(filepath.Join(dir, "tins.db"), bolt.Options{})
	if err != nil {
		t.Fatal(err)
	}
	_, err = storage.Migrate(t.Context(), newStore(t, b, tinOptions(t, "v1")), storage.MigrateOptions{PageSize: 10, Writers: 4, Progress: func(m storage.Migrated) {
		if m.Examined == 20 {
			fmt.Printf("\ncontinue %s\n", m.Continue)
		}
	}})
	if err != nil {
		t.Fatal(err)
	}
	select {} // to be killed
}

func TestMigrateSurvivesAKill(t *testing.T) {
	dir := t.TempDir()
	open := func() *bolt.Backend {
		b, err := bolt.Open(filepath.Join(dir, "tins.db"), bolt.Options{})
		if err != nil {
			t.Fatal(err)
		}
		return b
	}
	b := open()
	oldTins(t, b, 60)
	if err := b.Close(); err != nil {
		t.Fatal(err)
	}
	cmd := exec.CommandContext(t.Context(), os.Args[0], "-test.run=^TestMigrateChild$")
	cmd.Env = append(os.Environ(), migrateDir+"="+dir)
	out, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	var complaints bytes.Buffer
	cmd.Stderr = &complaints
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	token := ""
	for lines := bufio.NewScanner(out); token == "" && lines.Scan(); {
		token = strings.TrimPrefix(lines.Text(), "continue ")
		if token == lines.Text() {
			token = ""
		}
	}
	if err := cmd.Process.Kill(); err != nil {
		t.Fatal(err)
	}
	_ = cmd.Wait() // it was killed
	if token == "" {
		t.Fatalf("the child has not got far: %s", complaints.Bytes())
	}

	b = open()
	defer b.Close()
	done := stored(t, b, "v1")
	if left := stored(t, b, "v1beta1"); done < 20 || done+left != 60 {
		t.Fatalf("after the kill %d are in v1 and %d in v1beta1", done, left)
	}
	store := newStore(t, b, tinOptions(t, "v1"))
	rest, err := storage.Migrate(t.Context(), store, storage.MigrateOptions{Continue: token})
	if err != nil || rest.Examined != 40 || rest.Failed != 0 {
		t.Errorf("gone on: %+v, %v", rest, err)
	}
	all, err := storage.Migrate(t.Context(), store, storage.MigrateOptions{})
	if err != nil {
		t.Fatal(err)
	}
	wantMigrated(t, all, storage.Migrated{Examined: 60, Unchanged: 60})
	if n := stored(t, b, "v1"); n != 60 {
		t.Errorf("%d of 60 are in v1", n)
	}
	for i := 1; i < 60; i++ { // a size of 0 is left out of the JSON
		if r, err := store.Get(t.Context(), tinKey(i), storage.Read{}); err != nil || r.Fields.Get("spec.size") != fmt.Sprint(i) {
			t.Errorf("%d: %s, %v", i, r.Body.Bytes(), err)
		}
	}
}

// Fields are found in every version in which an object is stored.
func TestFieldsOfMixedVersions(t *testing.T) {
	b := memory.New(memory.Options{})
	defer b.Close()
	beta, v1 := newStore(t, b, tinOptions(t, "v1beta1")), newStore(t, b, tinOptions(t, "v1"))
	create := func(s *storage.Store, name, color string, size int32) {
		if _, err := s.Create(t.Context(), "ns/"+name, tin("ns/"+name, color, size), storage.WriteOptions{}); err != nil {
			t.Fatal(err)
		}
	}
	create(beta, "a", "red", 5)
	create(v1, "b", "red", 7)
	create(beta, "c", "blue", 7)
	create(v1, "d", "blue", 5)
	commit(t, b, storage.Commit{Key: tinRoot + "ns/e", Expect: storage.AnyRevision, Value: []byte(`{"kind":"Tin","apiVersion":"test.example.com/v1beta1","metadata":{"name":"e","namespace":"ns"},"spec":{"colour":"glass","size":"7 ml"}}`)})
	plain, err := cacher.New(v1, cacher.Options{Namespaced: true})
	if err != nil {
		t.Fatal(err)
	}
	defer plain.Close()
	indexed, err := cacher.New(v1, cacher.Options{Namespaced: true, IndexFields: []string{"spec.color", "spec.size"}})
	if err != nil {
		t.Fatal(err)
	}
	defer indexed.Close()
	all := map[string]storage.Interface{"v1": v1, "v1beta1": beta, "cache": plain, "index": indexed}
	for name, s := range all {
		for selector, want := range map[string]string{
			"spec.color=red": "ns/a ns/b", "spec.color=blue": "ns/c ns/d", "spec.color=glass": "ns/e", "spec.color!=red": "ns/c ns/d ns/e",
			"spec.size=7": "ns/b ns/c", "spec.size=5": "ns/a ns/d", "spec.size=": "ns/e", "spec.size=7,spec.color=blue": "ns/c",
		} {
			page, err := s.List(t.Context(), storage.ListOptions{Selection: storage.Selection{Fields: fields.ParseSelectorOrDie(selector)}})
			if err != nil {
				t.Fatal(err)
			}
			var got []string
			for r := range page.Records {
				got = append(got, r.Key)
			}
			if strings.Join(got, " ") != want {
				t.Errorf("%s: %s: %q, want %q", name, selector, got, want)
			}
		}
	}

	// An object that is stored in the other version begins or ceases to match by its content, not by its version.
	now, err := v1.Revision(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	var watches []storage.Watch
	for name, s := range all {
		w, err := s.Watch(t.Context(), storage.WatchOptions{From: now, Selection: storage.Selection{Fields: fields.ParseSelectorOrDie("spec.color=red,spec.size=5")}})
		if err != nil {
			t.Fatalf("%s: %v", name, err)
		}
		defer w.Close()
		watches = append(watches, w)
	}
	recolor := func(s *storage.Store, key, color string, size int32) {
		_, err := s.Update(t.Context(), key, storage.WriteOptions{}, func(_ context.Context, obj runtime.Object, _ storage.Record) (storage.Outcome, error) {
			obj.(*Tin).Spec.Color, obj.(*Tin).Spec.Size = color, size
			return storage.Outcome{Object: obj}, nil
		})
		if err != nil {
			t.Fatal(err)
		}
	}
	recolor(v1, "ns/a", "red", 5)    // v1beta1 to v1: the same
	recolor(beta, "ns/a", "red", 6)  // out
	recolor(v1, "ns/a", "red", 5)    // and in again
	recolor(beta, "ns/c", "red", 5)  // in, stored in v1beta1
	recolor(v1, "ns/c", "blue", 5)   // out
	recolor(beta, "ns/b", "blue", 5) // never in
	want := "MODIFIED ns/a, DELETED ns/a, ADDED ns/a, ADDED ns/c, DELETED ns/c"
	for i, w := range watches {
		var got []string
		for len(got) < 5 {
			events, err := w.Next(t.Context())
			if err != nil {
				t.Fatal(err)
			}
			for _, e := range events {
				got = append(got, string(e.Type)+" "+e.Record.Key)
			}
		}
		if strings.Join(got, ", ") != want {
			t.Errorf("watch %d: %q, want %s", i, got, want)
		}
	}
}
