package runtime

import (
	"cmp"
	"fmt"
	"reflect"
	"slices"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	apiruntime "k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

// Import adds the kinds that an existing AddToScheme function registers, such as that of k8s.io/api/apps/v1, with their list
// types, defaulting functions and conversion functions. Types without ObjectMeta, lists, the option types of metav1 and internal
// versions are not kinds. If a kind is new to the scheme, its first version in the function's order of priority becomes the hub.
// Import returns the kinds that it added, by version and name.
//
// Import returns an error if a kind or Go type is already registered, or if the function panics. Kinds that were added before the
// error stay registered.
func (s *Scheme) Import(addToScheme func(*apiruntime.Scheme) error) ([]*Kind, error) {
	src := apiruntime.NewScheme()
	if err := guard(func() error { return addToScheme(src) }); err != nil {
		return nil, fmt.Errorf("import: %w", err)
	}
	return s.ImportFrom(src, Importable(src)...)
}

// ImportFrom adds kinds of an existing scheme, in the order given, as Import does. The Scheme keeps src, so src must not be
// changed after the call. ImportFrom returns an error for a kind that [Importable] does not return; kinds that were added before
// the error stay registered.
func (s *Scheme) ImportFrom(src *apiruntime.Scheme, kinds ...schema.GroupVersionKind) ([]*Kind, error) {
	var added []*Kind
	for _, gvk := range kinds {
		t, ok := src.AllKnownTypes()[gvk]
		switch {
		case !ok:
			return added, fmt.Errorf("import: %w", apiruntime.NewNotRegisteredErrForKind(src.Name(), gvk))
		case !isKind(gvk, t):
			return added, fmt.Errorf("import: %s, of type %v, is no kind: it is internal, of metav1, or has no ObjectMeta; leave it out", gvk, t)
		}
		k := &Kind{GVK: gvk, Type: t, ListType: importedList(src, gvk, t), setDefaults: src.Default}
		if err := s.add(k, false); err != nil {
			return added, fmt.Errorf("import: %w", err)
		}
		added = append(added, k)
	}
	for _, k := range added {
		s.importConversion(src, k)
	}
	return added, nil
}

// Importable returns the kinds of an existing scheme that Import would add, sorted by group, then by version in the scheme's
// order of priority, then by name. The slice is the caller's own.
func Importable(src *apiruntime.Scheme) []schema.GroupVersionKind {
	rank := map[schema.GroupVersion]int{}
	var kinds []schema.GroupVersionKind
	for gvk, t := range src.AllKnownTypes() {
		if !isKind(gvk, t) {
			continue
		}
		kinds = append(kinds, gvk)
		for i, gv := range src.PrioritizedVersionsForGroup(gvk.Group) {
			rank[gv] = i
		}
	}
	slices.SortFunc(kinds, func(a, b schema.GroupVersionKind) int {
		return cmp.Or(cmp.Compare(a.Group, b.Group), cmp.Compare(rank[a.GroupVersion()], rank[b.GroupVersion()]), cmp.Compare(a.Kind, b.Kind))
	})
	return kinds
}

// isKind reports whether a type of an existing scheme can be served: its version is not internal, it is not a type of metav1, and
// its objects have metadata.
func isKind(gvk schema.GroupVersionKind, t reflect.Type) bool {
	_, isObject := reflect.New(t).Interface().(metav1.ObjectMetaAccessor)
	return isObject && gvk.Version != apiruntime.APIVersionInternal && t.PkgPath() != reflect.TypeFor[metav1.Status]().PkgPath()
}

// importedList returns the list type that src has for a kind, or nil.
func importedList(src *apiruntime.Scheme, gvk schema.GroupVersionKind, t reflect.Type) reflect.Type {
	list, ok := src.AllKnownTypes()[gvk.GroupVersion().WithKind(gvk.Kind+"List")]
	if !ok {
		return nil
	}
	if items, ok := list.FieldByName("Items"); !ok || items.Type != reflect.SliceOf(t) {
		return nil
	}
	return list
}

// importConversion joins an imported version to its hub by the conversions of src: a direct one, or one through an internal
// version. From then on src is only read, so conversions may run concurrently.
func (s *Scheme) importConversion(src *apiruntime.Scheme, k *Kind) {
	s.mu.Lock()
	defer s.mu.Unlock()
	hub := s.byGVK[s.hubs[k.GVK.GroupKind()]]
	if hub == k {
		return
	}
	convert := func(in, out Object) error { return src.Convert(in, out, nil) }
	if !converts(convert, k, hub) {
		internal := schema.GroupVersionKind{Group: k.GVK.Group, Version: apiruntime.APIVersionInternal, Kind: k.GVK.Kind}
		convert = func(in, out Object) error {
			between, err := src.New(internal)
			if err != nil {
				return err
			}
			if err := src.Convert(in, between, nil); err != nil {
				return err
			}
			return src.Convert(between, out, nil)
		}
		if !converts(convert, k, hub) {
			return
		}
	}
	s.toHub[k.GVK], s.fromHub[k.GVK] = convert, convert
}

// converts reports whether a conversion of empty objects works in both directions.
func converts(convert convertFunc, a, b *Kind) bool {
	return guard(func() error { return convert(a.New(), b.New()) }) == nil &&
		guard(func() error { return convert(b.New(), a.New()) }) == nil
}

// AddTo adds the kinds of this Scheme to an apimachinery Scheme, such as that of a client, so that typed clients can decode them.
// It also adds their lists, and the types that every group version has. Kinds without a Go type are left out, because clients do
// not need a scheme for them. Defaults and conversions are not added, because the server applies them. AddTo returns an error if
// dst has another Go type for a kind. If dst already has a list type for a kind registered with [Register], as client-go's scheme
// has for the types of k8s.io/api, that list type stays.
func (s *Scheme) AddTo(dst *apiruntime.Scheme) error {
	s.mu.RLock()
	kinds := make([]*Kind, 0, len(s.byGVK))
	for _, k := range s.byGVK {
		kinds = append(kinds, k)
	}
	s.mu.RUnlock()
	slices.SortFunc(kinds, func(a, b *Kind) int { return cmp.Compare(a.GVK.String(), b.GVK.String()) })
	return guard(func() error {
		seen := map[schema.GroupVersion]bool{}
		for _, k := range kinds {
			if !k.untyped {
				k.addTo(dst)
			}
			if gv := k.GVK.GroupVersion(); !seen[gv] {
				seen[gv] = true
				metav1.AddToGroupVersion(dst, gv)
			}
		}
		return nil
	})
}

// addTo adds a kind with a Go type, and its list, to dst.
func (k *Kind) addTo(dst *apiruntime.Scheme) {
	dst.AddKnownTypeWithName(k.GVK, k.New())
	if list := k.NewList(); list != nil && !(k.listMade && dst.Recognizes(k.ListGVK)) {
		dst.AddKnownTypeWithName(k.ListGVK, list)
	}
}
