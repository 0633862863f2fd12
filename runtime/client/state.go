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

// key orders objects by namespace and name: no name has a NUL.
func key(namespace, name string) string { return namespace + "\x00" + name }

func splitKey(k string) (namespace, name string) {
	namespace, name, _ = strings.Cut(k, "\x00")
	return namespace, name
}

func (i *item) same(other *item) bool {
	return other != nil && i.revision == other.revision && i.uid == other.uid
}

// entry is one change: was is nil for an object that was created, is for one that was deleted.
type entry struct {
	revision int64
	key      string
	was, is  *item
}

// state is the objects of a kind at one revision, and the changes that led there. It is immutable.
type state struct {
	items    *btree.Map[string, *item] // only read; Copy would write to it
	revision int64
	changed  int64 // the revision of the newest change that is known
	// generation grows when the objects are loaded without a look at those of before.
	generation int64

	log []entry // by revision
	// Changes after a revision are known from changesFrom on, and states from exactFrom on: what a list found to be different
	// has happened at some time before that list.
	changesFrom, exactFrom int64
	// replaced is the last revision of what was forgotten, or of a history that the server does not have any more; 0 is none.
	replaced int64
}

// limits bound what a history keeps.
type limits struct {
	objects, bytes    int // of the state
	changes, logBytes int // of the log: bytes of objects that are not in the state any more
}

// tooMuchError is why a kind is not kept.
type tooMuchError struct{ what string }

func (e tooMuchError) Error() string { return e.what }

// history is the state that changes. It has no lock, clock or goroutine.
type history struct {
	limits limits
	state
	bytes, logBytes int
	begun           bool
	// listed is the revision of the last list; the events up to it, which a stream that began before it still brings, are in
	// the state already.
	listed int64
}

// publish returns the state, which stays as it is.
func (h *history) publish() *state {
	s := h.state
	s.items = h.items.Copy()
	s.log = slices.Clip(s.log)
	return &s
}

// load is the objects that a list brings.
type load struct {
	items map[string]*item
	bytes int
}

// add adds an object to a load, or says that there are too many. What the state has too is shared with it.
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

// reset forgets everything but which revisions and generations there were.
func (h *history) reset() {
	*h = history{limits: h.limits, state: state{replaced: max(h.replaced, h.revision), generation: h.generation}}
}

// replace makes the state what a list of a revision says. before was the state's revision when the list was asked for: a
// list that is older is of another history, and one that is older than the state now says nothing new.
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

// difference applies what a list has and the state has not, and the other way around.
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

// event applies one event of a watch; is is nil for a deletion. It reports whether the state changed.
func (h *history) event(k string, is *item, revision int64) (bool, error) {
	was, _ := h.items.Get(k)
	switch {
	case revision <= h.listed: // the stream began before the list
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

// progress says that the state is that of a revision too.
func (h *history) progress(revision int64) { h.revision = max(h.revision, revision) }

// apply makes a change and logs it.
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

// get returns the object at a revision that the state reaches and has.
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

// scan calls visit with the objects of a namespace, or of all if it is "", in order, at a revision that the state has. It
// ends when visit returns false.
func (s *state) scan(namespace string, revision int64, visit func(*item) bool) {
	then := map[string]*item{} // what was else at that revision
	for _, e := range s.after(revision) {
		if _, ok := then[e.key]; !ok {
			then[e.key] = e.was
		}
	}
	var gone []string // deleted since, in order
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

// changes returns what has changed between two revisions, of which the state has the later one.
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
	if since > revision { // of a live read: nothing later is known
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
