package client

import (
	"cmp"
	"fmt"
	"slices"
	"sort"
	"strings"

	"github.com/keelson-dev/keelson/runtime"
	"github.com/tidwall/btree"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
)

// item is one object that is kept. It is immutable.
type item struct {
	obj      runtime.Object
	meta     metav1.Object // of obj
	uid      types.UID
	revision int64
	size     int // of its JSON
}

// key returns a key that sorts objects by namespace and name. No name contains a NUL.
func key(namespace, name string) string { return namespace + "\x00" + name }

func splitKey(k string) (namespace, name string) {
	namespace, name, _ = strings.Cut(k, "\x00")
	return namespace, name
}

func (i *item) same(other *item) bool {
	return other != nil && i.revision == other.revision && i.uid == other.uid
}

// entry is one change. was is the object before the change, nil if it was created; is is the object after it, nil if it was
// deleted.
type entry struct {
	revision int64
	key      string
	was, is  *item
}

// state holds the objects of a kind at one revision, and the changes that led to it. It is immutable.
type state struct {
	items    *btree.Map[string, *item] // must only be read; its method Copy would write to it
	revision int64
	changed  int64 // the revision of the newest known change
	// generation grows when the objects are loaded without being compared with the old objects.
	generation int64

	log []entry // by revision
	// Changes after a revision are complete from changesFrom on, and states from exactFrom on. The two differ because a list
	// shows which objects have changed before it, but not when.
	changesFrom, exactFrom int64
	// replaced is the last revision of a history that was dropped here, or that the server no longer has; 0 means none.
	replaced int64
}

// limits limit what a history keeps.
type limits struct {
	objects, bytes    int // of the state
	changes, logBytes int // of the log: changes, and bytes of objects that are no longer in the state
}

// tooMuchError is the reason why a kind is not kept.
type tooMuchError struct{ what string }

func (e tooMuchError) Error() string { return e.what }

// history is a state and the operations that change it. It has no lock, clock or goroutine.
type history struct {
	limits limits
	state
	bytes, logBytes int
	begun           bool
	// listed is the revision of the last list. Events up to it, which a watch that began before it still sends, are already in
	// the state.
	listed int64
}

// publish returns the current state, which is not changed by later operations.
func (h *history) publish() *state {
	s := h.state
	s.items = h.items.Copy()
	s.log = slices.Clip(s.log)
	return &s
}

// load holds the objects of a list.
type load struct {
	items map[string]*item
	bytes int
}

// add adds an object to a load, or returns an error if there are too many. An object that the state also has is shared.
func (h *history) add(l *load, k string, i *item) error {
	if h.begun {
		if old, ok := h.items.Get(k); ok && i.same(old) {
			i = old
		}
	}
	h.remove(l, k)
	l.items[k] = i
	l.bytes += i.size
	return h.limits.check(len(l.items), l.bytes)
}

func (h *history) remove(l *load, k string) {
	if before, ok := l.items[k]; ok {
		l.bytes -= before.size
		delete(l.items, k)
	}
}

func (l limits) check(objects, bytes int) error {
	switch {
	case objects > l.objects:
		return tooMuchError{fmt.Sprintf("there are more than %d objects; raise ReadersOptions.MaxObjects", l.objects)}
	case bytes > l.bytes:
		return tooMuchError{fmt.Sprintf("the objects have more than %d bytes of JSON; raise ReadersOptions.MaxBytes", l.bytes)}
	}
	return nil
}

// reset drops everything except the old revisions and generations.
func (h *history) reset() {
	*h = history{limits: h.limits, state: state{replaced: max(h.replaced, h.revision), generation: h.generation}}
}

// replace makes the objects of a list the state. before is the state's revision when the list was requested. A list with a lower
// revision than before is of another history. A list with a lower revision than the current state contains nothing new.
func (h *history) replace(l *load, revision, before int64) {
	switch {
	case !h.begun:
		h.begin(l, revision)
	case revision < before:
		replaced := max(h.replaced, h.revision)
		h.begin(l, revision)
		h.replaced = replaced
	case revision >= h.revision:
		h.difference(l, revision)
	}
}

func (h *history) begin(l *load, revision int64) {
	h.state = state{items: new(btree.Map[string, *item]), revision: revision, changed: revision,
		changesFrom: revision, exactFrom: revision, replaced: h.replaced, generation: h.generation + 1}
	for k, i := range l.items {
		h.items.Set(k, i)
	}
	h.bytes, h.logBytes, h.begun, h.listed = l.bytes, 0, true, revision
}

// difference applies the differences between a list and the state.
func (h *history) difference(l *load, revision int64) {
	var changes []entry
	h.items.Scan(func(k string, was *item) bool {
		if is := l.items[k]; is == nil || !is.same(was) {
			changes = append(changes, entry{revision, k, was, is})
		}
		return true
	})
	for k, is := range l.items {
		if _, ok := h.items.Get(k); !ok {
			changes = append(changes, entry{revision, k, nil, is})
		}
	}
	h.revision, h.listed, h.exactFrom = revision, revision, revision
	if len(changes) == 0 {
		return
	}
	h.changed = revision
	for _, c := range changes {
		h.apply(c)
	}
}

// event applies one event of a watch; is is nil for a deletion. It reports whether the state has changed.
func (h *history) event(k string, is *item, revision int64) (bool, error) {
	was, _ := h.items.Get(k)
	switch {
	case revision <= h.listed: // sent by a watch that began before the list
		return false, nil
	case is == nil && (was == nil || was.revision > revision):
		h.progress(revision)
		return false, nil
	case is != nil && was != nil && was.revision >= revision:
		return false, nil
	}
	h.progress(revision)
	h.changed = h.revision
	h.apply(entry{h.revision, k, was, is})
	return true, h.limits.check(h.items.Len(), h.bytes)
}

// progress records that the state is also the state at a later revision.
func (h *history) progress(revision int64) { h.revision = max(h.revision, revision) }

// apply applies a change and logs it.
func (h *history) apply(e entry) {
	if e.is != nil {
		h.items.Set(e.key, e.is)
		h.bytes += e.is.size
	} else {
		h.items.Delete(e.key)
	}
	if e.was != nil {
		h.bytes -= e.was.size
		h.logBytes += e.was.size
	}
	h.log = append(h.log, e)
	for len(h.log) > 0 && (len(h.log) > h.limits.changes || h.logBytes > h.limits.logBytes) {
		oldest := h.log[0]
		if oldest.was != nil {
			h.logBytes -= oldest.was.size
		}
		h.changesFrom = oldest.revision
		h.exactFrom = max(h.exactFrom, oldest.revision)
		h.log = h.log[1:]
	}
}

// get returns the object at a revision for which the state has the log.
func (s *state) get(k string, revision int64) (*item, bool) {
	for _, e := range s.after(revision) {
		if e.key == k {
			return e.was, e.was != nil
		}
	}
	return s.items.Get(k)
}

// after returns the changes after a revision.
func (s *state) after(revision int64) []entry {
	return s.log[sort.Search(len(s.log), func(i int) bool { return s.log[i].revision > revision }):]
}

// scan calls visit in order with the objects of a namespace, or of all namespaces if it is "", at a revision for which the state
// has the log. It ends when visit returns false.
func (s *state) scan(namespace string, revision int64, visit func(*item) bool) {
	then := map[string]*item{} // objects that were different at that revision
	for _, e := range s.after(revision) {
		if _, ok := then[e.key]; !ok {
			then[e.key] = e.was
		}
	}
	var gone []string // objects deleted since then, in order
	prefix := ""
	if namespace != "" {
		prefix = key(namespace, "")
	}
	for k, was := range then {
		if _, ok := s.items.Get(k); !ok && was != nil && strings.HasPrefix(k, prefix) {
			gone = append(gone, k)
		}
	}
	slices.Sort(gone)
	goOn := true
	s.items.Ascend(prefix, func(k string, i *item) bool {
		if !strings.HasPrefix(k, prefix) {
			return false
		}
		for goOn && len(gone) > 0 && gone[0] < k {
			goOn = visit(then[gone[0]])
			gone = gone[1:]
		}
		if was, ok := then[k]; ok {
			i = was
		}
		if goOn && i != nil {
			goOn = visit(i)
		}
		return goOn
	})
	for ; goOn && len(gone) > 0; gone = gone[1:] {
		goOn = visit(then[gone[0]])
	}
}

// changes returns the changes between two revisions; the state must have reached the later one.
func (s *state) changes(since, revision int64) runtime.Changes[runtime.Object] {
	out := runtime.Changes[runtime.Object]{Revision: revision}
	if since <= 0 || since < s.changesFrom || since <= s.replaced {
		out.Reset = true
		s.scan("", revision, func(i *item) bool {
			out.All = append(out.All, changeOf(key(i.meta.GetNamespace(), i.meta.GetName()), i))
			return true
		})
		return out
	}
	if since > revision { // from a live read: no later changes are known
		out.Revision = since
		return out
	}
	last := map[string]*item{}
	for _, e := range s.after(since) {
		if e.revision > revision {
			break
		}
		last[e.key] = e.is
	}
	for k, is := range last {
		out.All = append(out.All, changeOf(k, is))
	}
	slices.SortFunc(out.All, func(a, b runtime.Change[runtime.Object]) int {
		return cmp.Or(cmp.Compare(a.Namespace, b.Namespace), cmp.Compare(a.Name, b.Name))
	})
	return out
}

func changeOf(k string, i *item) runtime.Change[runtime.Object] {
	namespace, name := splitKey(k)
	c := runtime.Change[runtime.Object]{Namespace: namespace, Name: name, Deleted: i == nil}
	if i != nil {
		c.Object = i.obj
	}
	return c
}
