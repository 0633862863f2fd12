package apiset

import (
	"cmp"
	"errors"
	"fmt"
	"slices"

	"github.com/keelson-dev/keelson/runtime"
	"github.com/keelson-dev/keelson/runtime/patch"
	apischema "github.com/keelson-dev/keelson/runtime/schema"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/validation"
)

// describer registers the kinds of groups in a scheme, and checks them against each other and against the kinds that are served.
type describer struct {
	scheme *runtime.Scheme
	models *patch.Models // models of the scheme's kinds
	served []*served
}

// kinds registers the types and conversions of groups, and returns their resources after checking them. With an error it returns
// the resources that were registered before.
func (d describer) kinds(groups []Group) ([]*served, error) {
	added, err := d.describe(groups)
	if err == nil {
		err = d.checkVersions(added)
	}
	return added, err
}

func (d describer) isServed(gvr schema.GroupVersionResource) bool {
	return slices.ContainsFunc(d.served, func(r *served) bool { return r.gvr == gvr })
}

// describe registers the types and conversions of groups, and returns their resources, in each group the hubs first. With an
// error it returns the resources that were registered before.
func (d describer) describe(groups []Group) ([]*served, error) {
	lists := make([][]*served, len(groups))
	for i, g := range groups {
		var err error
		if lists[i], err = d.describeGroup(g); err != nil {
			return slices.Concat(lists...), fmt.Errorf("server: group %q: %w", g.Name, err)
		}
	}
	if err := d.join(groups, slices.Concat(lists...)); err != nil {
		return slices.Concat(lists...), err
	}
	for _, list := range lists {
		for _, r := range list {
			r.hub, _ = r.scheme.Hub(r.gvk.GroupKind())
		}
		slices.SortStableFunc(list, hubFirst)
	}
	return slices.Concat(lists...), nil
}

// join adds the conversions of groups. The types of all groups must be registered before: a hub may be in another group.
func (d describer) join(groups []Group, added []*served) error {
	var apart []*served
	for _, r := range added {
		if !r.scheme.Converts(r.gvk) {
			apart = append(apart, r)
		}
	}
	defer func() {
		for _, r := range apart {
			r.joined = r.scheme.Converts(r.gvk)
		}
	}()
	for _, g := range groups {
		for _, c := range g.Conversions {
			if c == nil {
				return fmt.Errorf("server: group %q: a conversion is the zero Conversion; make it with server.Convert", g.Name)
			}
			if err := c(cmp.Or(g.Scheme, d.scheme)); err != nil {
				return fmt.Errorf("server: group %q: %w", g.Name, err)
			}
		}
	}
	return nil
}

// describeGroup registers a group's types and returns its resources. With an error it returns those that were registered before.
func (d describer) describeGroup(g Group) ([]*served, error) {
	if g.Name != "" && len(validation.IsDNS1123Subdomain(g.Name)) > 0 {
		return nil, errors.New("the name must be a DNS name such as example.com, or empty for the core group")
	}
	if len(g.Versions) == 0 {
		return nil, errors.New("it has no Versions; list at least one, or remove the group")
	}
	scheme, models := d.scheme, d.models
	if g.Scheme != nil {
		scheme, models = g.Scheme, patch.NewModels(g.Scheme)
	}
	var out []*served
	for _, v := range g.Versions {
		gv := schema.GroupVersion{Group: g.Name, Version: v.Name}
		if len(validation.IsDNS1035Label(v.Name)) > 0 {
			return out, fmt.Errorf("version %q: a version's name is letters, digits and '-', such as v1 or v1beta1", v.Name)
		}
		if len(v.Resources) == 0 {
			return out, fmt.Errorf("version %s has no Resources; list at least one, made with server.Kind, or remove the version", v.Name)
		}
		docs := &apischema.Docs{}
		if v.Docs != nil {
			var err error
			if docs, err = v.Docs(); err != nil {
				return out, fmt.Errorf("version %s: Docs: %w", v.Name, err)
			}
		}
		for _, r := range v.Resources {
			if err := r.check(gv); err != nil {
				return out, err
			}
			one := &served{Resource: r, gvr: gv.WithResource(r.Plural), gvk: gv.WithKind(r.Kind), docs: docs, scheme: scheme, models: models}
			if d.isServed(one.gvr) { // before the kind is registered: an error that the kind exists would not help
				return out, fmt.Errorf("%s %w", one.gvr.GroupResource(), ErrServed)
			}
			known := scheme.Lookup(one.gvk) != nil
			if err := r.Register(scheme, one.gvk); err != nil {
				return out, err
			}
			if !known {
				one.own = append(one.own, one.gvk)
			}
			if d, ok := r.Table.(Described); ok {
				one.Table = d.DescribedBy(docs)
			}
			out = append(out, one)
			if scheme.Lookup(one.gvk).Untyped() {
				continue // there are no struct tags to check
			}
			if err := apischema.Check(apischema.Kind{GVK: one.gvk, Type: r.GoType, Docs: docs}); err != nil {
				return out, fmt.Errorf("resource %s in %s: %w", r.Plural, gv, err)
			}
		}
	}
	return out, checkHubs(out)
}

// hubFirst compares versions, so that hubs are sorted before others.
func hubFirst(a, b *served) int {
	spoke := func(r *served) int {
		if r.gvk == r.hub {
			return 0
		}
		return 1
	}
	return cmp.Compare(spoke(a), spoke(b))
}
