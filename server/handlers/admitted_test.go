package handlers_test

import (
	"strings"
	"testing"

	"github.com/keelson-dev/keelson/runtime"
	"github.com/keelson-dev/keelson/server/handlers"
	"github.com/keelson-dev/keelson/server/registry"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

// embedding is a Storage that embeds a view. inField has the view in a field.
type (
	embedding struct{ *registry.View }
	inField   struct{ view *registry.View }
)

func (s inField) Update(call *registry.Call, name string, update registry.ObjectUpdate, opts *metav1.UpdateOptions) (runtime.Object, bool, error) {
	rec, created, err := s.view.UpdateRecord(call, name, update, opts)
	if err != nil {
		return nil, false, err
	}
	obj, err := s.view.Decode(rec)
	return obj, created, err
}

// A view with Admitted is refused as the Storage of a resource or a subresource, because nothing would call admission there.
func TestViewsThatNobodyJudgesAreRefused(t *testing.T) {
	for _, c := range []struct {
		admitted bool
		storage  func(v *registry.View) any
		refused  bool
	}{
		{true, func(v *registry.View) any { return v }, true},
		{true, func(v *registry.View) any { return embedding{v} }, true},
		{true, func(v *registry.View) any { return &embedding{v} }, true},
		{true, func(v *registry.View) any { return inField{v} }, false},
		{false, func(v *registry.View) any { return v }, false},
		{false, func(v *registry.View) any { return embedding{v} }, false},
		{true, func(*registry.View) any { return embedding{} }, false}, // there is no view yet
	} {
		h := newHouse(t, tune{})
		v, err := h.registry.View("paint", registry.ViewOptions{Admitted: c.admitted})
		must(t, err)
		scheme := runtime.NewScheme()
		must(t, runtime.Register[*Widget](scheme, gv.WithKind("Widget"), runtime.KindOptions[*Widget]{}))
		o := handlers.Options{Scheme: scheme, Resource: gv.WithResource("widgets"), Kind: gv.WithKind("Widget"), Namespaced: true, Storage: h.registry}
		sub := o
		sub.Subresources = map[string]handlers.Subresource{"paint": {Kind: schema.GroupVersionKind{}, Storage: c.storage(v)}}
		o.Storage = c.storage(v)
		for where, o := range map[string]handlers.Options{"widgets": o, "widgets/paint": sub} {
			_, err := handlers.New(o)
			if (err != nil) != c.refused || err != nil && !strings.Contains(err.Error(), "of "+where+" is, or embeds, a View with ViewOptions.Admitted") {
				t.Errorf("%T, admitted %t, as %s: %v", o.Storage, c.admitted, where, err)
			}
		}
	}
}
