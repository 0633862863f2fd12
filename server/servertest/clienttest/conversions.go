package clienttest

import (
	"context"
	"errors"
	"fmt"

	keelson "github.com/keelson-dev/keelson/runtime"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/conversion"
)

// Converter converts between the Go types of the versions of one kind. conversion.NewHubSpokeConverter of controller-runtime's
// webhooks returns one for a scheme, and builder.WithConverter takes one.
type Converter interface {
	// ConvertObject converts src to the type of dst and stores the result in dst.
	ConvertObject(ctx context.Context, src, dst runtime.Object) error
}

// Conversions returns conversion functions for the types of a scheme, by kind. They convert as controller-runtime's conversion
// webhook does, and for the same kinds: those of several versions of which one is a conversion.Hub and all others are
// conversion.Convertible. They are meant for Options.Conversions of package server/crd, in place of a webhook:
//
//	srv := servertest.New(t, crd.New(crd.Options{Conversions: clienttest.Conversions(scheme)}))
//	servertest.InstallCRDs(t, srv, "config/crd/bases")
//
// The scheme must not be changed while the functions are in use.
func Conversions(s *runtime.Scheme) map[schema.GroupKind]keelson.ConvertUntyped {
	versions := map[schema.GroupKind]map[schema.GroupVersionKind]runtime.Object{}
	for gvk := range s.AllKnownTypes() {
		obj, err := s.New(gvk)
		if err != nil || gvk.Version == runtime.APIVersionInternal {
			continue
		}
		if versions[gvk.GroupKind()] == nil {
			versions[gvk.GroupKind()] = map[schema.GroupVersionKind]runtime.Object{}
		}
		versions[gvk.GroupKind()][gvk] = obj
	}
	out := map[schema.GroupKind]keelson.ConvertUntyped{}
	for gk, objects := range versions {
		if hub, ok := hubOf(objects); ok {
			out[gk] = ConvertWith(s, hubConverter{s, hub})
		}
	}
	return out
}

// hubOf returns the hub of a kind's versions. ok is true only if exactly one of at least two versions is a Hub and all others are
// Convertible.
func hubOf(versions map[schema.GroupVersionKind]runtime.Object) (hub schema.GroupVersionKind, ok bool) {
	hubs := 0
	for gvk, obj := range versions {
		if _, isHub := obj.(conversion.Hub); isHub {
			hub, hubs = gvk, hubs+1
		} else if _, ok := obj.(conversion.Convertible); !ok {
			return hub, false
		}
	}
	return hub, hubs == 1 && len(versions) > 1
}

// hubConverter converts by the methods of the types.
type hubConverter struct {
	scheme *runtime.Scheme
	hub    schema.GroupVersionKind
}

// ConvertObject implements Converter.
func (c hubConverter) ConvertObject(_ context.Context, src, dst runtime.Object) error {
	from, fromSpoke := src.(conversion.Convertible)
	to, toSpoke := dst.(conversion.Convertible)
	switch hub, ok := src.(conversion.Hub); {
	case ok && toSpoke:
		return to.ConvertFrom(hub)
	case !fromSpoke:
		return fmt.Errorf("a %T is not converted", src)
	}
	if hub, ok := dst.(conversion.Hub); ok {
		return from.ConvertTo(hub)
	}
	obj, err := c.scheme.New(c.hub)
	if err != nil {
		return err
	}
	hub, ok := obj.(conversion.Hub)
	if !ok || !toSpoke {
		return fmt.Errorf("a %T is not converted to a %T", src, dst)
	}
	if err := from.ConvertTo(hub); err != nil {
		return err
	}
	return to.ConvertFrom(hub)
}

// ConvertWith returns a function that converts with c, for Options.Conversions of package server/crd. The scheme must have the Go
// types of the versions.
func ConvertWith(s *runtime.Scheme, c Converter) keelson.ConvertUntyped {
	return func(in *unstructured.Unstructured, to schema.GroupVersion) (*unstructured.Unstructured, error) {
		src, err := s.New(in.GroupVersionKind())
		if err != nil {
			return nil, err
		}
		dst, err := s.New(to.WithKind(in.GetKind()))
		if err != nil {
			return nil, err
		}
		if err := runtime.DefaultUnstructuredConverter.FromUnstructured(in.Object, src); err != nil {
			return nil, err
		}
		dst.GetObjectKind().SetGroupVersionKind(to.WithKind(in.GetKind()))
		if err := c.ConvertObject(context.Background(), src, dst); err != nil {
			return nil, err
		}
		dst.GetObjectKind().SetGroupVersionKind(to.WithKind(in.GetKind()))
		members, err := runtime.DefaultUnstructuredConverter.ToUnstructured(dst)
		if err == nil && members == nil {
			err = errors.New("the conversion made nothing")
		}
		return &unstructured.Unstructured{Object: members}, err
	}
}
