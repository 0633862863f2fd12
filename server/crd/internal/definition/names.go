package definition

import (
	"fmt"
	"slices"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	utilerrors "k8s.io/apimachinery/pkg/util/errors"
)

// Taken has the names of a group that others than the validated definition have. Plurals, singulars and short names are one set,
// kinds and list kinds another. The zero Taken is empty.
type Taken struct {
	resources, kinds map[string]bool // by name: whether the claim is also stronger than names that were accepted before
}

// Add adds the accepted names of another definition. first says that its claim is older than that of the validated definition. As
// long as the validated definition is not established, it then loses the names that both definitions were accepted with; two
// servers may have accepted them at the same time.
func (t *Taken) Add(names apiextensionsv1.CustomResourceDefinitionNames, first bool) {
	t.AddResource(first, append([]string{names.Plural, names.Singular}, names.ShortNames...)...)
	t.AddKind(first, names.Kind, names.ListKind)
}

// AddResource adds plurals, singulars and short names, for example those of resources without a definition.
func (t *Taken) AddResource(first bool, names ...string) {
	t.resources = claim(t.resources, first, names)
}

// AddKind adds kinds and list kinds.
func (t *Taken) AddKind(first bool, names ...string) { t.kinds = claim(t.kinds, first, names) }

func claim(all map[string]bool, first bool, names []string) map[string]bool {
	if all == nil {
		all = map[string]bool{}
	}
	for _, name := range names {
		if name != "" { // the name was not accepted
			all[name] = all[name] || first
		}
	}
	return all
}

// AcceptNames sets in the status of a definition, in place, which names of its spec it has: status.acceptedNames and the
// condition NamesAccepted. If the condition Established is not True, it sets that too; only SetEstablished makes it True.
// AcceptNames reports whether it changed anything.
//
// Names are accepted one by one. If a name is taken it is not accepted, and the name accepted before stays. The other names are
// accepted nevertheless, except that either all short names are accepted or none. The condition reports the last conflict, in the
// order of plural, singular, short names, kind and list kind. The names of the definition itself are never taken.
func AcceptNames(crd *apiextensionsv1.CustomResourceDefinition, taken *Taken, now metav1.Time) bool {
	accepted, conflict := acceptedNames(crd, taken)
	changed := !equality.Semantic.DeepEqual(crd.Status.AcceptedNames, accepted)
	crd.Status.AcceptedNames = accepted
	changed = SetCondition(crd, conflict, now) || changed

	if IsTrue(crd, apiextensionsv1.Established) {
		return changed
	}
	established := apiextensionsv1.CustomResourceDefinitionCondition{
		Type: apiextensionsv1.Established, Status: apiextensionsv1.ConditionFalse, Reason: "NotAccepted", Message: "not all names are accepted",
	}
	old := Condition(crd, apiextensionsv1.Established)
	switch accepted := conflict.Status == apiextensionsv1.ConditionTrue; {
	case old != nil && (!accepted || old.Reason == reasonNotServed):
		return changed // unchanged
	case accepted:
		established.Reason, established.Message = "Installing", "the initial names have been accepted"
	}
	return SetCondition(crd, established, now) || changed
}

// acceptedNames returns the new accepted names of crd and the condition NamesAccepted.
func acceptedNames(crd *apiextensionsv1.CustomResourceDefinition, taken *Taken) (apiextensionsv1.CustomResourceDefinitionNames, apiextensionsv1.CustomResourceDefinitionCondition) {
	want, got := crd.Spec.Names, *crd.Status.AcceptedNames.DeepCopy()
	if !IsTrue(crd, apiextensionsv1.Established) {
		got = taken.keep(got)
	}
	out := apiextensionsv1.CustomResourceDefinitionCondition{
		Type: apiextensionsv1.NamesAccepted, Status: apiextensionsv1.ConditionTrue, Reason: "NoConflicts", Message: "no conflicts found",
	}
	conflict := func(reason string, err error) {
		out.Status, out.Reason, out.Message = apiextensionsv1.ConditionFalse, reason, err.Error()
	}
	one := func(reason string, in map[string]bool, want string, got *string) {
		if _, ok := in[want]; ok && want != *got {
			conflict(reason, inUse(want))
			return
		}
		*got = want
	}
	one("PluralConflict", taken.resources, want.Plural, &got.Plural)
	one("SingularConflict", taken.resources, want.Singular, &got.Singular)
	var errs []error
	for _, name := range want.ShortNames {
		if _, ok := taken.resources[name]; ok && !slices.Contains(got.ShortNames, name) {
			errs = append(errs, inUse(name))
		}
	}
	if err := utilerrors.NewAggregate(errs); err != nil {
		conflict("ShortNamesConflict", err)
	} else {
		got.ShortNames = slices.Clone(want.ShortNames)
	}
	one("KindConflict", taken.kinds, want.Kind, &got.Kind)
	one("ListKindConflict", taken.kinds, want.ListKind, &got.ListKind)
	got.Categories = slices.Clone(want.Categories)
	return got, out
}

// keep returns accepted names without those for which others have an older claim.
func (t *Taken) keep(names apiextensionsv1.CustomResourceDefinitionNames) apiextensionsv1.CustomResourceDefinitionNames {
	lost := func(in map[string]bool, name *string) {
		if in[*name] {
			*name = ""
		}
	}
	lost(t.resources, &names.Plural)
	lost(t.resources, &names.Singular)
	lost(t.kinds, &names.Kind)
	lost(t.kinds, &names.ListKind)
	names.ShortNames = slices.DeleteFunc(names.ShortNames, func(name string) bool { return t.resources[name] })
	return names
}

func inUse(name string) error { return fmt.Errorf("%q is already in use", name) }
