package patch

import (
	"bytes"
	"cmp"
	"reflect"
	"slices"
	"sync"
	"time"
	"unicode/utf8"

	"github.com/keelson-dev/keelson/runtime"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/structured-merge-diff/v6/fieldpath"
	"sigs.k8s.io/structured-merge-diff/v6/typed"
)

const (
	// maxUpdaters is the number of managers that update an object after which apimachinery merges the oldest.
	maxUpdaters = 10
	// maxKept is the approximate maximum number of bytes that a tracker keeps.
	maxKept = 1 << 20
	// maxText is the maximum length of a text that a tracker handles.
	maxText = 16 << 10
)

// tracker does the work of apimachinery's field manager for most updates. It handles objects that a plan can compare, in one
// version, whose entries all have that version. It computes with the same sets, and keeps the results, because most requests to
// one kind change the same fields, with the same managers.
type tracker struct {
	model       *model
	plan        *plan
	apiVersion  string
	subresource string
	filter      fieldpath.Filter // removes the reset fields; nil if there are none
	stripped    *fieldpath.Set   // fields that no manager owns by an update
	nothing     reflect.Value    // an empty object as begin makes it; new objects are compared with it

	mu      sync.Mutex // guards the fields below
	entries map[string]*owned
	changes map[string]*change
	results map[step]string
	size    int // approximate size of the maps
}

// owned is the set of fields in an entry, adapted to the current schema.
type owned struct{ set *fieldpath.Set }

// change is the result of a comparison: the fields that got a value, and those that lost it.
type change struct{ touched, gone, own *fieldpath.Set }

// step is the effect of a change on a manager's fields. own means that this manager makes the change.
type step struct {
	from *owned // nil if the manager has no fields
	by   *change
	own  bool
}

// forget empties the maps. The caller holds mu, or no other goroutine has t.
func (t *tracker) forget() {
	t.entries, t.changes, t.results, t.size = map[string]*owned{}, map[string]*change{}, map[step]string{}, 0
}

// keep makes room for a result that is about to be kept.
func (t *tracker) keep(size int) {
	const perMember = 8 // memory of a set and its share of a map, as a multiple of its text
	if t.size += (size + 64) * perMember; t.size > maxKept {
		t.forget()
		t.size = (size + 64) * perMember
	}
}

// update does the work of [FieldManager.Update]. If it returns false, obj is unchanged, and the library must do the work.
func (t *tracker) update(live, obj runtime.Object, manager string) bool {
	m, ok := obj.(metav1.Object)
	if !ok || reflect.TypeOf(obj) != t.nothing.Type() || reflect.ValueOf(obj).IsNil() || !utf8.ValidString(manager) {
		return false
	}
	was, exists, entries := t.nothing, false, m.GetManagedFields()
	var stored []metav1.ManagedFieldsEntry
	if live != nil {
		l, ok := live.(metav1.Object)
		if was = reflect.ValueOf(live); !ok || was.Type() != t.nothing.Type() || was.IsNil() {
			return false
		}
		exists, stored = l.GetUID() != "", l.GetManagedFields()
	}
	if entries == nil || t.subresource != "" {
		entries = stored
	}
	var room [256]byte // large enough for most traces
	c := comparer{trace: room[:0]}
	if !t.known(entries) || live != nil && !c.fits(t.plan, was) || !c.fits(t.plan, reflect.ValueOf(obj)) {
		return false
	}
	if c.compare(t.plan.root, was.Elem(), reflect.ValueOf(obj).Elem()); c.unsure || len(c.trace) > maxText {
		return false
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	if !t.readable(stored) {
		return false
	}
	if len(entries) == 0 && exists {
		m.SetManagedFields([]metav1.ManagedFieldsEntry{})
		return true
	}
	next, ok := t.next(entries, t.changeOf(c.trace), cmp.Or(manager, "unknown"))
	if ok {
		m.SetManagedFields(next)
	}
	return ok
}

// known reports whether t can handle entries: they are well formed, in its version, and each is of another manager.
func (t *tracker) known(entries []metav1.ManagedFieldsEntry) bool {
	if len(entries) > 2*maxUpdaters {
		return false
	}
	for i, e := range entries {
		if e.Operation != metav1.ManagedFieldsOperationApply && e.Operation != metav1.ManagedFieldsOperationUpdate ||
			e.APIVersion != t.apiVersion || e.FieldsType != "FieldsV1" || !utf8.ValidString(e.Manager) || !utf8.ValidString(e.Subresource) {
			return false
		}
		for _, other := range entries[:i] {
			if other.Manager == e.Manager && other.Operation == e.Operation && other.Subresource == e.Subresource {
				return false
			}
		}
	}
	return true
}

// readable reports whether the entries of a stored object can be encoded as JSON and decoded again. The caller holds mu.
func (t *tracker) readable(entries []metav1.ManagedFieldsEntry) bool {
	for _, e := range entries {
		if e.FieldsV1 != nil && t.read(e.FieldsV1) == nil {
			return false
		}
	}
	return true
}

// read returns the fields of an entry, or nil if t cannot handle the entry. The caller holds mu.
func (t *tracker) read(fields *metav1.FieldsV1) *owned {
	text := []byte("{}")
	if fields != nil {
		text = fields.GetRawBytes()
	}
	if o, ok := t.entries[string(text)]; ok {
		return o
	}
	if len(text) > maxText {
		return nil
	}
	t.keep(len(text))
	o := t.model.owned(text)
	t.entries[string(text)] = o
	return o
}

// owned decodes the text of an entry. It returns nil if the library may decode the text differently.
func (m *model) owned(text []byte) *owned {
	if _, err := mergeable(text); err != nil {
		return nil
	}
	set := &fieldpath.Set{}
	if err := set.FromJSON(bytes.NewReader(text)); err != nil {
		return nil
	}
	empty, err := m.parse.FromUnstructured(map[string]any{})
	if err != nil {
		return nil
	}
	upToDate, err := typed.ReconcileFieldSetWithSchema(set, empty)
	if err != nil {
		return nil
	}
	return &owned{cmp.Or(upToDate, set)}
}

// changeOf returns the change of a trace. The caller holds mu.
func (t *tracker) changeOf(trace []byte) *change {
	if c := t.changes[string(trace)]; c != nil {
		return c
	}
	c := &change{}
	c.touched, c.gone = readTrace(trace)
	if t.filter != nil {
		c.touched, c.gone = t.filter.Filter(c.touched), t.filter.Filter(c.gone)
	}
	c.own = c.touched.Difference(t.stripped)
	t.keep(len(trace))
	t.changes[string(trace)] = c
	return c
}

// next returns the entries after a change by manager. The result is false if t cannot handle the entries. The caller holds mu.
func (t *tracker) next(entries []metav1.ManagedFieldsEntry, by *change, manager string) ([]metav1.ManagedFieldsEntry, bool) {
	next := make([]metav1.ManagedFieldsEntry, 0, len(entries)+1)
	changes, updaters, found := !by.own.Empty(), 0, false
	add := func(e metav1.ManagedFieldsEntry, s step) bool {
		text, ok := t.after(s)
		if !ok || text == "" {
			return ok
		}
		if s.own {
			e.Time = &metav1.Time{Time: time.Now().UTC()}
		}
		if e.FieldsV1 = metav1.NewFieldsV1(text); e.Operation == metav1.ManagedFieldsOperationUpdate {
			updaters++
		}
		next = append(next, e)
		return true
	}
	for _, e := range entries {
		from := t.read(e.FieldsV1)
		if from == nil {
			return nil, false
		}
		self := e.Operation == metav1.ManagedFieldsOperationUpdate && e.Manager == manager && e.Subresource == t.subresource
		found = found || self
		if !add(e, step{from, by, self && changes}) {
			return nil, false
		}
	}
	if changes && !found {
		e := metav1.ManagedFieldsEntry{
			Manager: manager, Operation: metav1.ManagedFieldsOperationUpdate, APIVersion: t.apiVersion,
			FieldsType: "FieldsV1", Subresource: t.subresource,
		}
		if !add(e, step{nil, by, true}) {
			return nil, false
		}
	}
	slices.SortFunc(next, byTime)
	return next, updaters <= maxUpdaters
}

// byTime compares entries by their order in an object.
func byTime(a, b metav1.ManagedFieldsEntry) int {
	return cmp.Or(cmp.Compare(a.Operation, b.Operation), cmp.Compare(seconds(a.Time), seconds(b.Time)),
		cmp.Compare(a.Manager, b.Manager), cmp.Compare(a.Subresource, b.Subresource))
}

func seconds(t *metav1.Time) int64 {
	if t == nil {
		return 0
	}
	return t.Unix()
}

// after returns the text of a manager's fields after a step, "" if none remain. The caller holds mu.
func (t *tracker) after(s step) (string, bool) {
	if text, ok := t.results[s]; ok {
		return text, true
	}
	set := fieldpath.NewSet()
	if s.from != nil {
		set = s.from.set
		if taken := set.Intersection(s.by.touched); !taken.Empty() {
			set = set.Difference(taken)
		}
		if !s.by.gone.Empty() {
			set = set.Difference(s.by.gone)
		}
	}
	if s.own {
		set = s.by.own.Union(set)
	}
	text := ""
	if !set.Empty() {
		b, err := set.ToJSON()
		if err != nil {
			return "", false
		}
		text = string(b)
	}
	t.keep(len(text))
	t.results[s] = text
	return text, true
}
