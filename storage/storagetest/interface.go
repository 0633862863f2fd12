package storagetest

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/keelson-dev/keelson/runtime"
	"github.com/keelson-dev/keelson/runtime/codec"
	"github.com/keelson-dev/keelson/storage"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

// Gadget is the kind that Interface stores: namespaced, with the selectable field spec.color.
type Gadget = runtime.Resource[GadgetSpec, struct{}]

// GadgetSpec is the spec of a Gadget. Size has the default 1.
type GadgetSpec struct {
	Size  int32  `json:"size"`            // default 1
	Color string `json:"color,omitempty"` // selectable
}

var gadgetKind = schema.GroupVersionKind{Group: "test.example.com", Version: "v1", Kind: "Gadget"}

// GadgetOptions returns the options of a store of gadgets.
func GadgetOptions() (storage.StoreOptions, error) {
	scheme := runtime.NewScheme()
	err := runtime.Register[*Gadget](scheme, gadgetKind, runtime.KindOptions[*Gadget]{
		SelectableFields: []string{"spec.color"},
		Default: func(g *Gadget) {
			if g.Spec.Size == 0 {
				g.Spec.Size = 1
			}
		},
	})
	if err != nil {
		return storage.StoreOptions{}, err
	}
	typed, err := codec.NewTyped(scheme, gadgetKind)
	if err != nil {
		return storage.StoreOptions{}, err
	}
	return storage.StoreOptions{
		Prefix:     "/registry/test.example.com/gadgets",
		Codec:      typed,
		Namespaced: true,
		Fields:     []string{"spec.color"},
	}, nil
}

// OpenInterface returns an empty storage with the given options, and the backend below it, to which tests write directly. A
// nil backend skips these tests. OpenInterface closes what it opens with t.Cleanup.
type OpenInterface func(t *testing.T, o storage.StoreOptions) (storage.Interface, storage.Backend)

// Interface tests that what open returns is a storage.Interface. open is called for every subtest.
func Interface(t *testing.T, open OpenInterface) {
	for _, topic := range []struct {
		name  string
		tests []objectTest
	}{
		{"Get", getTests},
		{"Create", createTests},
		{"Update", updateTests},
		{"List", listTests},
		{"Page", pageTests},
		{"Watch", eventTests},
		{"Initial", initialTests},
		{"Matrix", matrixTests},
		{"Foreign", foreignTests},
		{"Unreadable", unreadableTests},
		{"Source", sourceTests},
		{"UpdateFrom", updateFromTests},
		{"History", replayTests},
		{"Concurrent", objectConcurrentTests},
	} {
		for _, test := range topic.tests {
			t.Run(topic.name+"/"+test.name, func(t *testing.T) { test.run(t, newObjects(t, open, test.options)) })
		}
	}
}

type objectTest struct {
	name    string
	run     func(*testing.T, *objects)
	options func(*storage.StoreOptions) // nil: no change
}

// objects is the storage under test, with methods for the most frequent calls.
type objects struct {
	storage.Interface
	backend storage.Backend // may be nil
	prefix  string
	t       *testing.T
	ctx     context.Context
}

func newObjects(t *testing.T, open OpenInterface, change func(*storage.StoreOptions)) *objects {
	t.Helper()
	o, err := GadgetOptions()
	if err != nil {
		t.Fatal(err)
	}
	o.ReadWait = 50 * time.Millisecond
	if change != nil {
		change(&o)
	}
	ctx, cancel := context.WithTimeout(context.Background(), 4*Timeout)
	t.Cleanup(cancel)
	s, b := open(t, o)
	return &objects{Interface: s, backend: b, prefix: o.Prefix + "/", t: t, ctx: ctx}
}

// gadget makes an object; more has labels ("a=b") and fields of the spec ("color:red").
func gadget(key string, more ...string) *Gadget {
	ns, name, _ := strings.Cut(key, "/")
	g := &Gadget{ObjectMeta: metav1.ObjectMeta{Namespace: ns, Name: name}, Spec: GadgetSpec{Size: 1}}
	for _, m := range more {
		if color, ok := strings.CutPrefix(m, "color:"); ok {
			g.Spec.Color = color
			continue
		}
		k, v, _ := strings.Cut(m, "=")
		if g.Labels == nil {
			g.Labels = map[string]string{}
		}
		g.Labels[k] = v
	}
	return g
}

func (s *objects) create(key string, more ...string) storage.Record {
	s.t.Helper()
	r, err := s.Create(s.ctx, key, gadget(key, more...), storage.WriteOptions{})
	if err != nil {
		s.t.Fatalf("Create(%q): %v", key, err)
	}
	return r
}

// edit updates an object in place.
func (s *objects) edit(key string, f func(*Gadget)) storage.Record {
	s.t.Helper()
	r, err := s.Update(s.ctx, key, storage.WriteOptions{}, edit(f))
	if err != nil {
		s.t.Fatalf("Update(%q): %v", key, err)
	}
	return r
}

func edit(f func(*Gadget)) storage.ChangeFunc {
	return func(_ context.Context, obj runtime.Object, _ storage.Record) (storage.Outcome, error) {
		g, ok := obj.(*Gadget)
		if !ok {
			return storage.Outcome{}, fmt.Errorf("the object is a %T", obj)
		}
		f(g)
		return storage.Outcome{Object: g}, nil
	}
}

// resize makes a change that does not affect the selectors of these tests.
func (s *objects) resize(key string) storage.Record {
	s.t.Helper()
	return s.edit(key, func(g *Gadget) { g.Spec.Size++ })
}

func (s *objects) remove(key string) storage.Record {
	s.t.Helper()
	r, err := s.Update(s.ctx, key, storage.WriteOptions{}, remove)
	if err != nil {
		s.t.Fatalf("Update(%q) with a deletion: %v", key, err)
	}
	return r
}

func remove(context.Context, runtime.Object, storage.Record) (storage.Outcome, error) {
	return storage.Outcome{Delete: true}, nil
}

func (s *objects) get(key string, at storage.Read) storage.Record {
	s.t.Helper()
	r, err := s.Get(s.ctx, key, at)
	if err != nil {
		s.t.Fatalf("Get(%q, %+v): %v", key, at, err)
	}
	return r
}

func (s *objects) gone(key string) {
	s.t.Helper()
	if r, err := s.Get(s.ctx, key, storage.Read{}); !errors.Is(err, storage.ErrNotFound) {
		s.t.Fatalf("Get(%q): %+v, %v; want ErrNotFound", key, r, err)
	}
}

func (s *objects) decode(r storage.Record) *Gadget {
	s.t.Helper()
	obj, err := s.Decode(r)
	if err != nil {
		s.t.Fatalf("Decode(%s): %v", r.Key, err)
	}
	g, ok := obj.(*Gadget)
	if !ok {
		s.t.Fatalf("Decode(%s) is a %T", r.Key, obj)
	}
	return g
}

func (s *objects) list(opts storage.ListOptions) storage.Page {
	s.t.Helper()
	p, err := s.List(s.ctx, opts)
	if err != nil {
		s.t.Fatalf("List(%+v): %v", opts, err)
	}
	n := 0
	for r := range p.Records {
		n++
		if p.Version != "" && r.Body.APIVersion() != p.Version {
			s.t.Fatalf("List(%+v): Version is %s, but %s is written in %s", opts, p.Version, r.Key, r.Body.APIVersion())
		}
	}
	if n != p.Count {
		s.t.Fatalf("List(%+v): Count is %d, there are %d records", opts, p.Count, n)
	}
	return p
}

func (s *objects) revision() int64 {
	s.t.Helper()
	r, err := s.Revision(s.ctx)
	if err != nil {
		s.t.Fatalf("Revision: %v", err)
	}
	return r
}

// behind returns the backend, or skips the test.
func (s *objects) behind() storage.Backend {
	s.t.Helper()
	if s.backend == nil {
		s.t.Skip("there is no backend to reach behind the storage")
	}
	return s.backend
}

// plant writes bytes directly to the backend.
func (s *objects) plant(key, value string) int64 {
	s.t.Helper()
	c := storage.Commit{Key: s.prefix + key, Expect: storage.AnyRevision, Value: []byte(value)}
	res, err := s.behind().Commit(s.ctx, c)
	if err != nil {
		s.t.Fatal(err)
	}
	return res.Revision
}

// compact removes all history, or skips the test.
func (s *objects) compact() {
	s.t.Helper()
	c, ok := s.behind().(storage.Compactor)
	if !ok {
		s.t.Skip("the backend is no storage.Compactor")
	}
	if err := c.Compact(s.ctx, s.revision()); err != nil {
		s.t.Fatal(err)
	}
}

// names returns the keys of a page, in order.
func names(p storage.Page) string {
	var keys []string
	for r := range p.Records {
		keys = append(keys, r.Key)
	}
	return strings.Join(keys, " ")
}

func byLabel(s string) storage.Selection {
	sel, err := labels.Parse(s)
	if err != nil {
		sel = labels.Nothing()
	}
	return storage.Selection{Labels: sel}
}

func byField(s string) storage.Selection {
	sel, err := fields.ParseSelector(s)
	if err != nil {
		sel = fields.Nothing()
	}
	return storage.Selection{Fields: sel}
}
