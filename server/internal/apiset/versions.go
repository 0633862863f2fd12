package apiset

import (
	"errors"
	"fmt"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/runtime/schema"
)

// checkVersions refuses resources that do not fit together: versions of one kind with different values of options that must be
// the same, and kinds that would be stored in the same place.
func (d describer) checkVersions(added []*served) error {
	if err := chooseStored(added); err != nil {
		return err
	}
	for _, r := range added {
		if err := r.chooseShown(); err != nil {
			return fmt.Errorf("server: resource %s: %w", r.gvr, err)
		}
	}
	for _, r := range added {
		if other := d.otherPlural(r, added); other != nil {
			return fmt.Errorf("server: kind %s is served as %s and as %s; a kind has one resource: give the other a kind and a Go type of its own", r.gvk, other.gvr.GroupResource(), r.gvr.GroupResource())
		}
		if r.Custom != nil {
			if r.HubWrites && r.gvk != r.hub {
				return fmt.Errorf("server: resource %s: Computed.Create and Computed.Update receive objects of the hub %s, so only that may have them; give this version a Storage", r.gvr, r.hub)
			}
			continue
		}
		if r.gvk != r.hub {
			if err := checkSpoke(r, added); err != nil {
				return fmt.Errorf("server: resource %s: %w", r.gvr, err)
			}
			if i := slices.IndexFunc(added, func(o *served) bool { return o.gvk == r.hub }); i >= 0 {
				r.share(added[i])
			}
			continue
		}
		if r.Renamed != nil {
			return fmt.Errorf("server: resource %s: it is the hub, whose names the RenamedFields of other versions lead to; remove its own, and list the fields in SelectableFields", r.gvr)
		}
		if other := d.storedNear(r, added); other != nil {
			return fmt.Errorf("server: %s would be stored in the same place as %s, %q: give one of them another StoragePath", r.gvr, other.gvr, other.path())
		}
	}
	return nil
}

// chooseShown determines the fields that selectors compare as the version shows them. Those are all selectable fields of a version whose
// objects a function of the program makes from the stored ones: only the function knows where a field is in a stored object.
func (r *served) chooseShown() error {
	switch k := r.scheme.Lookup(r.gvk); {
	case len(r.Shown) > 0 && r.Schema == nil:
		return errors.New("ShownFields are for a kind without a Go type that has a Schema in each version; remove them")
	case r.Schema != nil && k != nil && k.HasConvert() && (r.gvk != r.hub || r.stored != r.hub):
		r.Shown = r.Selectable
	}
	for _, field := range r.Shown {
		switch {
		case !slices.Contains(r.Selectable, field):
			return fmt.Errorf("ShownFields: %q cannot be selected by; add it to SelectableFields, or remove it here", field)
		case slices.Contains(r.IndexFields, field):
			return fmt.Errorf("IndexFields: %q is compared as this version shows it; an index would need the conversion of each object when it is written, and without the other program no object could be written; remove it there", field)
		}
	}
	return nil
}

// share sets fields of a version to those of its hub, and adds to the hub what it needs of its versions. Versions with a schema
// have their own selectable fields, which the hub stores and indexes, unless they are compared as the version shows them.
func (r *served) share(hub *served) {
	if r.Schema == nil {
		r.Scale = hub.Scale
		return
	}
	stored := slices.DeleteFunc(slices.Clone(r.Selectable), func(field string) bool { return slices.Contains(r.Shown, field) })
	hub.Selectable, hub.IndexFields = union(hub.Selectable, stored), union(hub.IndexFields, r.IndexFields)
}

func union(a, b []string) []string {
	out := slices.Clone(a)
	for _, x := range b {
		if !slices.Contains(out, x) {
			out = append(out, x)
		}
	}
	return out
}

// otherPlural returns a resource of the same kind and version with another plural, or nil.
func (d describer) otherPlural(r *served, added []*served) *served {
	for _, o := range slices.Concat(d.served, added) {
		if o.gvk == r.gvk && o.Plural != r.Plural {
			return o
		}
	}
	return nil
}

// checkHubs refuses two hubs of one kind, before conversions are added to either of them.
func checkHubs(added []*served) error {
	hubs := map[schema.GroupKind]schema.GroupVersionKind{}
	for _, r := range added {
		kind := r.gvk.GroupKind()
		if other, ok := hubs[kind]; ok && r.IsHub {
			return fmt.Errorf("kind %s: Hub is set in the versions %s and %s; remove it from one", kind, other.GroupVersion(), r.gvk.GroupVersion())
		}
		if r.IsHub {
			hubs[kind] = r.gvk
		}
	}
	return nil
}

// chooseStored sets the version in which each kind is stored.
func chooseStored(added []*served) error {
	chosen := map[schema.GroupVersionKind]schema.GroupVersionKind{} // keys are hubs, since a kind may be in several groups
	for _, r := range added {
		if !r.IsStored {
			continue
		}
		if other, ok := chosen[r.hub]; ok {
			return fmt.Errorf("server: kind %s: Stored is set in the versions %s and %s, and a kind is stored in one; remove it from the other", r.hub.GroupKind(), other.GroupVersion(), r.gvk.GroupVersion())
		}
		chosen[r.hub] = r.gvk
	}
	for _, r := range added {
		r.stored = r.hub
		if gvk, ok := chosen[r.hub]; ok {
			r.stored = gvk
		}
	}
	return nil
}

// checkSpoke refuses a version that does not fit its hub.
func checkSpoke(r *served, added []*served) error {
	i := slices.IndexFunc(added, func(o *served) bool { return o.gvk == r.hub })
	if i < 0 {
		return nil // store returns an error, unless another call has served the hub
	}
	hub := added[i]
	extra := slices.DeleteFunc(slices.Clone(r.Selectable), func(f string) bool {
		_, renamed := r.Renamed[f]
		return renamed || slices.Contains(hub.Selectable, f) || r.Schema != nil
	})
	if len(extra) > 0 {
		return fmt.Errorf("SelectableFields %q are not those of the hub %s, by which objects are stored and selected; give the hub the same paths, say in RenamedFields what it calls them, or remove them here", extra, r.hub)
	}
	switch {
	case r.Plural != hub.Plural:
		return fmt.Errorf("the hub %s has the plural %q; the versions of a kind share one, see KindOptions.Plural", r.hub, hub.Plural)
	case r.Namespaced != hub.Namespaced:
		return fmt.Errorf("the hub %s and this version must both be ClusterScoped, or neither", r.hub)
	case hub.Custom != nil:
		return fmt.Errorf("the hub %s has a Storage of its own, so this version needs one too", r.hub)
	case r.IsHub:
		return fmt.Errorf("%s is the Hub too; a kind has one", r.hub)
	case !r.PlainStrategy:
		return fmt.Errorf("only the hub %s may have a Strategy", r.hub)
	case r.Scale != nil && r.Schema == nil:
		return fmt.Errorf("only the hub %s may have Scale; it is served in every version, and its paths are those of the hub", r.hub)
	case (hub.Schema == nil) != (r.Schema == nil):
		return fmt.Errorf("the hub %s and this version must both have a Schema, or neither", r.hub)
	case r.StoragePath != "" || r.NoStatus && r.Schema == nil || r.TTL != 0 || r.NoCache || r.IndexLabels != nil || r.IndexFields != nil && r.Schema == nil:
		return fmt.Errorf("only the hub %s may have StoragePath, NoStatus, TTL, NoCache, IndexFields and IndexLabels; they hold for all versions", r.hub)
	case !r.scheme.Converts(r.gvk):
		return fmt.Errorf("nothing converts it to the hub %s and back; add a server.Convert to Group.Conversions", r.hub)
	}
	return nil
}

// storedNear returns another kind whose path in the backend is that of r, or above or below it, or nil.
func (d describer) storedNear(r *served, added []*served) *served {
	mine := r.path() + "/"
	for _, o := range slices.Concat(d.served, added) {
		if o == r || o.Custom != nil || o.gvk != o.hub || o.gvk == r.gvk || o.gvr == r.gvr {
			continue
		}
		if theirs := o.path() + "/"; strings.HasPrefix(mine, theirs) || strings.HasPrefix(theirs, mine) {
			return o
		}
	}
	return nil
}

// path returns the path of the objects in the backend, below /registry.
func (r *served) path() string {
	switch {
	case r.StoragePath != "":
		return r.StoragePath
	case r.gvr.Group == "":
		return r.gvr.Resource
	}
	return r.gvr.Group + "/" + r.gvr.Resource
}
