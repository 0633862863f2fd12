package cacher_test

import (
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"sort"
	"strings"
	"testing"

	"github.com/keelson-dev/keelson/storage"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/labels"
)

// thing is the value of a key in the backend's log.
type thing struct {
	revision int64
	broken   bool
	labels   map[string]string
	color    string
	size     int32
}

// turn is one change of the resource: the values before and after; nil is no value.
type turn struct {
	key      string
	revision int64
	was, is  *thing
	after    map[string]*thing // the state after the change
}

// truth is a replay of the backend's log.
type truth struct {
	t     *testing.T
	b     storage.Backend
	root  string
	feed  storage.Feed
	first int64 // the store's revision before all changes
	now   int64 // the store's revision
	turns []turn
}

func newTruth(t *testing.T, b storage.Backend, root string) *truth {
	t.Helper()
	res, err := b.Range(t.Context(), storage.Range{CountOnly: true})
	if err != nil {
		t.Fatal(err)
	}
	h := &truth{t: t, b: b, root: root, first: res.Revision}
	if h.feed, err = b.Watch(context.Background(), storage.WatchRange{From: res.Revision, Prev: true}); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(h.feed.Close)
	h.read()
	return h
}

// read adds everything that has been committed.
func (h *truth) read() {
	h.t.Helper()
	res, err := h.b.Range(h.t.Context(), storage.Range{From: "\x00", To: "\x00", CountOnly: true})
	if err != nil {
		h.t.Fatal(err)
	}
	for h.now < res.Revision {
		h.feed.RequestProgress()
		got, err := h.feed.Next(h.t.Context())
		if err != nil {
			h.t.Fatal(err)
		}
		for _, c := range got.Changes {
			h.add(c)
		}
		h.now = got.Progress
	}
}

func (h *truth) add(c storage.Change) {
	key, ok := strings.CutPrefix(c.Key, h.root)
	if !ok {
		return
	}
	before := h.latest()
	m := turn{key: key, revision: c.Revision, was: before[key], after: maps.Clone(before)}
	if (c.Prev != nil) != (m.was != nil) || c.Prev != nil && c.Prev.Revision != m.was.revision {
		h.t.Fatalf("the log contradicts itself at %d", c.Revision)
	}
	if m.after == nil {
		m.after = map[string]*thing{}
	}
	if delete(m.after, key); !c.Deleted {
		m.is = thingOf(c.Value, c.Revision)
		m.after[key] = m.is
	}
	h.turns = append(h.turns, m)
}

func thingOf(value []byte, revision int64) *thing {
	var g struct {
		Metadata struct{ Labels map[string]string }
		Spec     struct {
			Color string
			Size  int32
		}
	}
	if err := json.Unmarshal(value, &g); err != nil {
		return &thing{revision: revision, broken: true}
	}
	return &thing{revision: revision, labels: g.Metadata.Labels, color: g.Spec.Color, size: g.Spec.Size}
}

func (h *truth) latest() map[string]*thing {
	if len(h.turns) == 0 {
		return nil
	}
	return h.turns[len(h.turns)-1].after
}

// after returns the index of the first change after a revision.
func (h *truth) after(revision int64) int {
	return sort.Search(len(h.turns), func(i int) bool { return h.turns[i].revision > revision })
}

// at returns the state at a revision.
func (h *truth) at(revision int64) map[string]*thing {
	if i := h.after(revision); i > 0 {
		return h.turns[i-1].after
	}
	return nil
}

// wish is a selection and its meaning.
type wish struct {
	storage.Selection
	name   string
	covers func(key string) bool
	wants  func(*thing) bool
}

func (w wish) has(key string, o *thing) bool {
	return o != nil && !o.broken && w.covers(key) && w.wants(o)
}

func allKeys(string) bool   { return true }
func allThings(*thing) bool { return true }

// wishes returns selections of every kind, over things with the labels app and tier and the field spec.color.
func wishes(t *testing.T) []wish {
	t.Helper()
	label := func(text string) labels.Selector {
		sel, err := labels.Parse(text)
		if err != nil {
			t.Fatal(err)
		}
		return sel
	}
	field := func(text string) fields.Selector {
		sel, err := fields.ParseSelector(text)
		if err != nil {
			t.Fatal(err)
		}
		return sel
	}
	in := func(ns string) func(string) bool {
		return func(key string) bool { return strings.HasPrefix(key, ns+"/") }
	}
	named := func(name string) func(string) bool {
		return func(key string) bool { return strings.HasSuffix(key, "/"+name) }
	}
	only := func(one string) func(string) bool { return func(key string) bool { return key == one } }
	red := func(o *thing) bool { return o.color == "red" }
	app := func(o *thing) bool { return o.labels["app"] == "x" }
	type s = storage.Selection
	return []wish{
		{s{}, "all", allKeys, allThings},
		{s{Namespace: "n1"}, "namespace", in("n1"), allThings},
		{s{Namespace: "none"}, "no such namespace", in("none"), allThings},
		{s{Name: "k1"}, "name", named("k1"), allThings},
		{s{Namespace: "n0", Name: "k2"}, "key", only("n0/k2"), allThings},
		{s{Namespace: "n0", Fields: field("metadata.namespace=n1")}, "nothing", func(string) bool { return false }, allThings},
		{s{Fields: field("metadata.name=k3,spec.color=red")}, "name and color", named("k3"), red},
		{s{Fields: field("spec.color=red")}, "color", allKeys, red},
		{s{Fields: field("spec.color=")}, "no color", allKeys, func(o *thing) bool { return o.color == "" }},
		{s{Fields: field("spec.color!=red")}, "other color", allKeys, func(o *thing) bool { return o.color != "red" }},
		{s{Labels: label("app=x")}, "app", allKeys, app},
		{s{Labels: label("!app")}, "no app", allKeys, func(o *thing) bool { _, ok := o.labels["app"]; return !ok }},
		{s{Labels: label("app in (x, y)")}, "apps", allKeys, func(o *thing) bool { return o.labels["app"] == "x" || o.labels["app"] == "y" }},
		{s{Labels: label("tier=gold")}, "tier", allKeys, func(o *thing) bool { return o.labels["tier"] == "gold" }},
		{s{Namespace: "n1", Labels: label("app=x")}, "app of a namespace", in("n1"), app},
		{s{Namespace: "n2", Labels: label("tier"), Fields: field("spec.color=red")}, "tiers and color of a namespace", in("n2"), func(o *thing) bool {
			_, ok := o.labels["tier"]
			return ok && red(o)
		}},
		{s{Name: "k0", Labels: label("app=x"), Fields: field("spec.color=red")}, "app, color and name", named("k0"), func(o *thing) bool { return app(o) && red(o) }},
		{s{Namespace: "n0", Name: "k1", Fields: field("spec.color=red")}, "color of a key", only("n0/k1"), red},
	}
}

// row is a record in a list.
func row(key string, o *thing) string {
	return fmt.Sprintf("%s@%d size %d %q %v", key, o.revision, o.size, o.color, labels.Set(o.labels))
}

// rowOf returns the row of a record. Its labels and fields must agree with its body.
func rowOf(t *testing.T, r storage.Record) string {
	t.Helper()
	o := thingOf(r.Body.Bytes(), r.Revision)
	for _, l := range []string{"app", "tier"} {
		want, has := o.labels[l]
		if got, ok := r.Labels.Lookup(l); got != want || ok != has || r.Labels.Has(l) != has || r.Labels.Get(l) != want {
			t.Fatalf("%s@%d has the label %s: %q, %v; want %q, %v", r.Key, r.Revision, l, got, ok, want, has)
		}
	}
	ns, name, _ := strings.Cut(r.Key, "/")
	if r.Fields.Get("spec.color") != o.color || r.Fields.Get("metadata.name") != name || r.Fields.Get("metadata.namespace") != ns {
		t.Fatalf("the fields of %s@%d are not its own", r.Key, r.Revision)
	}
	return row(r.Key, o)
}

// expected describes what a page must have.
type expected struct {
	rows   []string
	broken []string // keys whose values make it fail
	left   int      // matching records that follow
	hidden int      // number of keys in the scope that follow, matching or not
	spoilt bool     // some of the following values are unreadable
}

// page returns the expected page of a state, from a key on.
func (h *truth) page(state map[string]*thing, w wish, from string, limit int) (p expected) {
	for _, key := range slices.Sorted(maps.Keys(state)) {
		o := state[key]
		full := limit > 0 && len(p.rows) == limit
		switch {
		case key < from || !w.covers(key):
		case full:
			p.hidden++
			if p.spoilt = p.spoilt || o.broken; w.has(key, o) {
				p.left++
			}
		case o.broken:
			p.broken = append(p.broken, key)
		case w.has(key, o):
			p.rows = append(p.rows, row(key, o))
		}
	}
	return p
}
