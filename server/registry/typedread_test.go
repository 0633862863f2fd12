package registry_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/keelson-dev/keelson/runtime"
	"github.com/keelson-dev/keelson/server/registry"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/watch"
)

// A Typed lists by labels, fields and a limit, and a field that cannot be selected by is an error.
func TestTypedList(t *testing.T) {
	f := setup(t, func(o *registry.Options) {
		o.Scheme = runtime.NewScheme()
		must(t, runtime.Register[*Widget](o.Scheme, widgetKind, runtime.KindOptions[*Widget]{SelectableFields: []string{"spec.color"}}))
	})
	for i, color := range []string{"red", "red", "blue"} {
		f.create(fmt.Sprint("w", i), func(w *Widget) { w.Spec.Color, w.Labels = color, map[string]string{"i": fmt.Sprint(i)} })
	}
	for want, o := range map[string]registry.ListOptions{
		"w0 w1 w2": {},
		"w0 w1":    {Limit: 2},
		"w2":       {Labels: labels.SelectorFromSet(labels.Set{"i": "2"})},
		"w1":       {Fields: fields.OneTermEqualSelector("metadata.name", "w1")},
	} {
		var all, one []string
		items, err := f.typed.List(f.ctx, "ns", o)
		must(t, err)
		for _, w := range items {
			all = append(all, w.Name)
		}
		for w, err := range f.typed.All(f.ctx, "ns", o) {
			must(t, err)
			one = append(one, w.Name)
		}
		if got := strings.Join(all, " "); got != want || strings.Join(one, " ") != want {
			t.Errorf("%+v: %v and %v, want %s", o, all, one, want)
		}
	}
	o := registry.ListOptions{Fields: fields.OneTermEqualSelector("spec.size", "1")}
	_, err := f.typed.List(f.ctx, "ns", o)
	wantBadField := func(err error) {
		t.Helper()
		if !apierrors.IsBadRequest(err) || !strings.Contains(err.Error(), "field label not supported: spec.size") {
			t.Errorf("an unknown field: %v", err)
		}
	}
	wantBadField(err)
	for _, err := range f.typed.All(f.ctx, "ns", o) {
		wantBadField(err)
	}
	for _, err := range f.typed.Watch(f.ctx, "ns", o) {
		wantBadField(err)
	}
}

// ChangeStatus changes the status alone, and Change all but the status.
func TestTypedChangeStatus(t *testing.T) {
	f := setup(t, nil)
	f.create("a")
	both := func(w *Widget) error {
		w.Spec.Size++
		w.Status.Replicas++
		return nil
	}
	w, err := f.typed.ChangeStatus(f.ctx, "ns", "a", both)
	must(t, err)
	if w.Spec.Size != 1 || w.Status.Replicas != 1 || w.Generation != 1 {
		t.Errorf("after ChangeStatus: %+v", w)
	}
	w, err = f.typed.Change(f.ctx, "ns", "a", both)
	must(t, err)
	if w.Spec.Size != 2 || w.Status.Replicas != 1 || w.Generation != 2 {
		t.Errorf("after Change: %+v", w)
	}
	own := errors.New("own")
	if _, err = f.typed.ChangeStatus(f.ctx, "ns", "a", func(*Widget) error { return own }); !errors.Is(err, own) {
		t.Errorf("an error of change: %v", err)
	}
	if _, err = f.typed.ChangeStatus(f.ctx, "ns", "none", both); !apierrors.IsNotFound(err) {
		t.Errorf("an object that is not there: %v", err)
	}
}

// A Watch begins with what exists, and then has each change until its context ends.
func TestTypedWatch(t *testing.T) {
	f := setup(t, nil)
	f.create("a")
	f.create("b", func(w *Widget) { w.Labels = map[string]string{"seen": "no"} })
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	steps := []func(){ // one after each event
		func() { f.create("c") },
		func() {
			_, err := f.typed.Change(f.ctx, "ns", "a", func(w *Widget) error { w.Spec.Size = 7; return nil })
			must(t, err)
		},
		func() {
			_, err := f.typed.Change(f.ctx, "ns", "c", func(w *Widget) error { w.Labels = map[string]string{"seen": "no"}; return nil })
			must(t, err)
		},
		func() {
			_, _, err := f.typed.Delete(f.ctx, "ns", "a", nil)
			must(t, err)
		},
	}
	var got []string
	for e, err := range f.typed.Watch(ctx, "ns", registry.ListOptions{Labels: labels.SelectorFromSet(labels.Set{"seen": "no"})}) {
		if err != nil || e.Object.Name != "b" {
			t.Errorf("%+v %v", e, err)
		}
		break // ends the watch
	}
	not, err := labels.Parse("seen!=no")
	must(t, err)
	for e, err := range f.typed.Watch(ctx, "ns", registry.ListOptions{Labels: not}) {
		if err != nil {
			got = append(got, fmt.Sprint(errors.Is(err, context.Canceled)))
			continue
		}
		if e.Type == watch.Bookmark {
			got = append(got, "-")
		} else {
			got = append(got, fmt.Sprint(e.Type, " ", e.Object.Name, " ", e.Object.Spec.Size))
			e.Object.Spec.Size = 99 // the caller's own
		}
		if n := len(got) - 2; n >= 0 && n < len(steps) {
			steps[n]()
		} else if n == len(steps) {
			cancel()
		}
	}
	want := "ADDED a 1, -, ADDED c 1, MODIFIED a 7, DELETED c 1, DELETED a 7, true"
	if s := strings.Join(got, ", "); s != want {
		t.Errorf("got %s, want %s", s, want)
	}
}
