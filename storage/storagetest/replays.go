package storagetest

import (
	"fmt"
	"maps"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/keelson-dev/keelson/storage"
)

// replayTests compare a random history of objects with a model.
var replayTests = []objectTest{
	{name: "lists and watches of every state", run: func(t *testing.T, s *objects) {
		seed := rand.Uint64()
		t.Logf("seed %d", seed)
		h := &objectHistory{s: s, rnd: rand.New(rand.NewPCG(seed, 2))}
		h.states = []objectState{{revision: s.revision()}}
		for range 150 {
			h.step()
		}
		order := h.rnd.Perm(len(h.states))
		// In random order, because a slow storage does not reach all of them.
		for n, end := 0, time.Now().Add(budget()); n < len(h.states) && (n < 10 || time.Now().Before(end)); n++ {
			h.compareLists(order[n])
		}
		for n, end := 0, time.Now().Add(budget()); n < len(h.states)/5 && (n < 5 || time.Now().Before(end)); n++ {
			h.compareWatch(order[n])
		}
	}},
}

// objectHistory has every state of a storage.
type objectHistory struct {
	s      *objects
	rnd    *rand.Rand
	states []objectState
}

type objectState struct {
	revision int64
	objects  map[string]modelObject
}

type modelObject struct {
	revision int64
	size     int32
	on       bool   // has the label "on"
	color    string // "red" or ""
}

// modelSelection is a selection and its meaning in the model.
type modelSelection struct {
	storage.Selection
	has func(key string, o modelObject) bool
}

func (h *objectHistory) selections() []modelSelection {
	in := func(ns string) func(string) bool {
		return func(key string) bool { return strings.HasPrefix(key, ns+"/") }
	}
	labelled := byLabel("on")
	labelled.Namespace = "n1"
	return []modelSelection{
		{storage.Selection{}, func(string, modelObject) bool { return true }},
		{storage.Selection{Namespace: "n0"}, func(key string, _ modelObject) bool { return in("n0")(key) }},
		{byLabel("on"), func(_ string, o modelObject) bool { return o.on }},
		{byField("spec.color=red"), func(_ string, o modelObject) bool { return o.color == "red" }},
		{labelled, func(key string, o modelObject) bool { return in("n1")(key) && o.on }},
		{byField("metadata.name=k1"), func(key string, _ modelObject) bool { return strings.HasSuffix(key, "/k1") }},
		{storage.Selection{Namespace: "n0", Name: "k2"}, func(key string, _ modelObject) bool { return key == "n0/k2" }},
	}
}

// step creates, changes or removes an object, in the storage and in the model.
func (h *objectHistory) step() {
	h.s.t.Helper()
	key := fmt.Sprintf("n%d/k%d", h.rnd.IntN(2), h.rnd.IntN(4))
	now := h.states[len(h.states)-1].objects
	next := maps.Clone(now)
	if next == nil {
		next = map[string]modelObject{}
	}
	o, found := now[key]
	switch {
	case found && h.rnd.IntN(4) == 0:
		o.revision = h.s.remove(key).Revision
		delete(next, key)
	case found:
		o.size++
		h.dress(&o)
		o.revision = h.s.edit(key, func(g *Gadget) {
			g.Spec.Size, g.Spec.Color, g.Labels = o.size, o.color, nil
			if o.on {
				g.Labels = map[string]string{"on": "", "x": "y"}
			}
		}).Revision
		next[key] = o
	default:
		o.size = 1
		h.dress(&o)
		more := []string{"color:" + o.color}
		if o.on {
			more = append(more, "on=")
		}
		o.revision = h.s.create(key, more...).Revision
		next[key] = o
	}
	h.states = append(h.states, objectState{revision: o.revision, objects: next})
}

func (h *objectHistory) dress(o *modelObject) {
	o.on, o.color = h.rnd.IntN(2) == 0, []string{"", "red"}[h.rnd.IntN(2)]
}

// compareLists lists one state with every selection, whole and in pages.
func (h *objectHistory) compareLists(i int) {
	h.s.t.Helper()
	state := h.states[i]
	for n, sel := range h.selections() {
		var want []string
		for _, key := range slices.Sorted(maps.Keys(state.objects)) {
			if sel.has(key, state.objects[key]) {
				want = append(want, fmt.Sprintf("%s@%d", key, state.objects[key].revision))
			}
		}
		opts := storage.ListOptions{Selection: sel.Selection, At: storage.Read{Match: storage.Exact, Revision: state.revision}}
		opts.Limit = int64(h.rnd.IntN(4))
		var got []string
		for pages := 0; ; pages++ {
			p := h.s.list(opts)
			for r := range p.Records {
				got = append(got, fmt.Sprintf("%s@%d", r.Key, r.Revision))
			}
			if p.Revision != state.revision || pages > 20 {
				h.s.t.Fatalf("page %d is at revision %d, want %d", pages, p.Revision, state.revision)
			}
			if p.Continue == "" {
				break
			}
			opts.At, opts.Continue = storage.Read{}, p.Continue
		}
		if !slices.Equal(got, want) {
			h.s.t.Fatalf("selection %d at %d, limit %d: %q, want %q", n, state.revision, opts.Limit, got, want)
		}
	}
}

// compareWatch watches from one state with every selection.
func (h *objectHistory) compareWatch(i int) {
	h.s.t.Helper()
	for _, sel := range h.selections() {
		w := h.s.watch(storage.WatchOptions{Selection: sel.Selection, From: h.states[i].revision})
		for j := i + 1; j < len(h.states); j++ {
			if text := change(h.states[j-1], h.states[j], sel); text != "" {
				w.want(text)
			}
		}
		w.wantIdle()
		w.Close()
	}
}

// change returns the event of a selection between one state and the next; "" is none.
func change(before, after objectState, sel modelSelection) string {
	for _, key := range slices.Sorted(maps.Keys(union(before.objects, after.objects))) {
		was, hadKey := before.objects[key]
		now, hasKey := after.objects[key]
		if hadKey && hasKey && was.revision == now.revision {
			continue
		}
		had, has := hadKey && sel.has(key, was), hasKey && sel.has(key, now)
		switch {
		case had && has:
			return fmt.Sprintf("MODIFIED %s size %d @%d", key, now.size, after.revision)
		case has:
			return fmt.Sprintf("ADDED %s size %d @%d", key, now.size, after.revision)
		case had:
			return fmt.Sprintf("DELETED %s size %d @%d", key, was.size, after.revision)
		}
	}
	return ""
}

func union(a, b map[string]modelObject) map[string]modelObject {
	u := maps.Clone(b)
	maps.Copy(u, a)
	return u
}
