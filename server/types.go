package server

import (
	"cmp"
	"errors"
	"fmt"
	"maps"
	"reflect"
	"slices"
	"strings"

	"github.com/keelson-dev/keelson/runtime"
	"github.com/keelson-dev/keelson/server/catalogue"
	"github.com/keelson-dev/keelson/server/registry"
	apiruntime "k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/version"
)

// Types is an extension that serves the kinds of a client's scheme, such as those of an operator's api package and of k8s.io/api:
//
//	err := srv.Install(server.Types{AddToScheme: cachev1.AddToScheme})
//
// A kind is served if the scheme also has the type of its lists. The resource has every verb, the plural that apimachinery
// derives from the kind, and /status if the type has a status. The Items of its list must be a slice of its type. The scheme's
// defaulting functions are called, and struct tags are applied (package constraint of runtime). There is no other validation. In
// particular, a client's scheme does not have the defaults and the validation that kube-apiserver's own code adds to the types of
// k8s.io/api.
//
// If a kind has several versions, those are served that the scheme can convert by functions in both directions
// (AddConversionFunc). The methods ConvertTo and ConvertFrom of controller-runtime are not used. If the scheme has no such
// functions, as for the types of k8s.io/api, only the first version in the order of Kubernetes is served: v2, v1, v1beta1.
//
// A kind that the server serves already is left out, in all its versions. It is an error if the server serves such a kind only in
// versions that the scheme does not have.
type Types struct {
	// AddToScheme registers the kinds. Set either AddToScheme or Scheme.
	AddToScheme func(*apiruntime.Scheme) error
	// Scheme has the kinds. It must not be changed any more.
	Scheme *apiruntime.Scheme

	// ClusterScoped has the cluster-scoped kinds. The cluster-scoped kinds of Kubernetes itself need not be listed.
	ClusterScoped []string
	// NoStatus has the kinds whose status is an ordinary field.
	NoStatus []string
	// Plurals has, by kind, the resources whose plural is not the one that apimachinery derives.
	Plurals map[string]string
	// Scales has the kinds with /scale, and the paths of its fields.
	Scales map[string]registry.Scale
	// Without has the kinds that are not served.
	Without []string
}

// Install implements Extension.
func (t Types) Install(h *Host) error {
	if err := t.install(h); err != nil {
		return fmt.Errorf("server.Types: %w", err)
	}
	return nil
}

func (t Types) install(h *Host) error {
	src, err := t.scheme()
	if err != nil {
		return err
	}
	found := kindsOf(src)
	if err := t.check(found); err != nil {
		return err
	}
	left, err := t.leftToServe(found, h.Catalogue().Kinds())
	if err != nil {
		return err
	}
	if err := checkLists(src, slices.Concat(left...)); err != nil {
		return err
	}
	var groups []Group
	for _, versions := range left {
		kinds, err := importKind(h.Scheme(), src, versions)
		if err != nil {
			return err
		}
		for _, k := range kinds {
			groups = append(groups, Group{Name: k.GVK.Group, Versions: []Version{{
				Name: k.GVK.Version, Resources: []Resource{t.resource(k)},
			}}})
		}
	}
	return h.Serve(groups...)
}

// leftToServe returns the kinds to serve that are not served yet, each with its versions, sorted by name.
func (t Types) leftToServe(found map[schema.GroupKind][]schema.GroupVersionKind, served []catalogue.Kind) ([][]schema.GroupVersionKind, error) {
	taken := map[schema.GroupKind][]schema.GroupVersionKind{}
	for _, k := range served {
		for _, gvk := range k.Kinds {
			taken[gvk.GroupKind()] = append(taken[gvk.GroupKind()], gvk)
		}
	}
	var left [][]schema.GroupVersionKind
	for _, gk := range slices.SortedFunc(maps.Keys(found), byName) {
		versions, by := found[gk], taken[gk]
		switch {
		case slices.Contains(t.Without, gk.Kind):
		case by == nil:
			left = append(left, versions)
		case !slices.ContainsFunc(versions, func(gvk schema.GroupVersionKind) bool { return slices.Contains(by, gvk) }):
			return nil, fmt.Errorf("%s is served already, and in no version that the scheme has, %v: install all versions of a kind together, or name it in Without", by[0], versions)
		}
	}
	return left, nil
}

func byName(a, b schema.GroupKind) int {
	return cmp.Or(cmp.Compare(a.Group, b.Group), cmp.Compare(a.Kind, b.Kind))
}

func (t Types) scheme() (*apiruntime.Scheme, error) {
	switch {
	case (t.AddToScheme == nil) == (t.Scheme == nil):
		return nil, errors.New("set AddToScheme or Scheme, one of both")
	case t.Scheme != nil:
		return t.Scheme, nil
	}
	src := apiruntime.NewScheme()
	if err := t.AddToScheme(src); err != nil {
		return nil, fmt.Errorf("AddToScheme: %w", err)
	}
	return src, nil
}

// check returns an error if the options name a kind that does not exist, because it must be misspelt.
func (t Types) check(found map[schema.GroupKind][]schema.GroupVersionKind) error {
	if len(found) == 0 {
		return errors.New("the scheme has no kind with a list type; does its SchemeBuilder register any?")
	}
	have := map[string]bool{}
	for gk := range found {
		have[gk.Kind] = true
	}
	for option, kinds := range map[string][]string{
		"ClusterScoped": t.ClusterScoped, "NoStatus": t.NoStatus, "Without": t.Without,
		"Plurals": slices.Collect(maps.Keys(t.Plurals)), "Scales": slices.Collect(maps.Keys(t.Scales)),
	} {
		for _, kind := range kinds {
			if !have[kind] {
				return fmt.Errorf("%s names the kind %q, which the scheme does not have with a list type; it has %v", option, kind, slices.Sorted(maps.Keys(have)))
			}
		}
	}
	return nil
}

// kindsOf returns the kinds of a scheme that can be served, with their versions in the order of Kubernetes.
func kindsOf(src *apiruntime.Scheme) map[schema.GroupKind][]schema.GroupVersionKind {
	found := map[schema.GroupKind][]schema.GroupVersionKind{}
	for _, gvk := range runtime.Importable(src) {
		if src.Recognizes(listOf(gvk)) {
			found[gvk.GroupKind()] = append(found[gvk.GroupKind()], gvk)
		}
	}
	types := src.AllKnownTypes()
	for gk, versions := range found {
		slices.SortFunc(versions, func(a, b schema.GroupVersionKind) int {
			return version.CompareKubeAwareVersionStrings(b.Version, a.Version)
		})
		met := map[reflect.Type]bool{}
		found[gk] = slices.DeleteFunc(versions, func(gvk schema.GroupVersionKind) bool { // no function converts a type to itself
			again := met[types[gvk]]
			met[types[gvk]] = true
			return again
		})
	}
	return found
}

func listOf(gvk schema.GroupVersionKind) schema.GroupVersionKind {
	return gvk.GroupVersion().WithKind(gvk.Kind + "List")
}

// checkLists returns an error for kinds whose lists have Items of another type, such as pointers. They cannot be served.
func checkLists(src *apiruntime.Scheme, kinds []schema.GroupVersionKind) error {
	var odd []string
	types := src.AllKnownTypes()
	for _, gvk := range kinds {
		items, ok := types[listOf(gvk)].FieldByName("Items")
		if !ok || items.Type != reflect.SliceOf(types[gvk]) {
			odd = append(odd, fmt.Sprintf("%s (%v)", gvk.Kind, types[listOf(gvk)]))
		}
	}
	if odd != nil {
		return fmt.Errorf("the lists of these kinds have no Items that are a slice of the kind's type, so that they cannot be served: %s; name them in Without", strings.Join(odd, ", "))
	}
	return nil
}

// importKind registers the versions of a kind, unless the program has registered them, and returns those that can be served: the
// hub and the versions that convert to it.
func importKind(s *runtime.Scheme, src *apiruntime.Scheme, versions []schema.GroupVersionKind) ([]*runtime.Kind, error) {
	if slices.ContainsFunc(versions, func(gvk schema.GroupVersionKind) bool { return s.Lookup(gvk) != nil }) {
		return slices.DeleteFunc(s.Versions(versions[0].GroupKind()), func(k *runtime.Kind) bool {
			return !s.Converts(k.GVK) || k.ListType == nil || !slices.Contains(versions, k.GVK)
		}), nil
	}
	kinds, err := s.ImportFrom(src, versions...)
	return slices.DeleteFunc(kinds, func(k *runtime.Kind) bool {
		if err == nil && s.Converts(k.GVK) {
			return false
		}
		s.Unregister(k.GVK)
		return true
	}), err
}

func (t Types) resource(k *runtime.Kind) Resource {
	kind := k.GVK.Kind
	o := KindOptions[runtime.Object]{
		Plural:        t.Plurals[kind],
		ClusterScoped: isClusterScoped(k.GVK.GroupKind()) || slices.Contains(t.ClusterScoped, kind),
		NoStatus:      slices.Contains(t.NoStatus, kind),
	}
	if scale, ok := t.Scales[kind]; ok {
		o.Scale = &scale
	}
	return ImportedKind(k, o)
}
