package definition_test

import (
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/keelson-dev/keelson/server/crd/internal/definition"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

type names = apiextensionsv1.CustomResourceDefinitionNames

func shorts(n names) string {
	return fmt.Sprint(n.Plural, n.Singular, n.ShortNames, n.Kind, n.ListKind, n.Categories)
}

// Most results are those of kube-apiserver 1.37.1; the others follow its source.
func TestAcceptNames(t *testing.T) {
	t.Parallel()
	aa := names{Plural: "aa", Singular: "aa", ShortNames: []string{"a", "x"}, Kind: "Aa", ListKind: "AaList"}
	for what, c := range map[string]struct {
		want, before  names
		taken         []names
		established   bool
		accepted      names
		names, served string // conditions
	}{
		"nothing is taken": {
			want: aa, accepted: aa,
			names: "True NoConflicts: no conflicts found", served: "False Installing: the initial names have been accepted",
		},
		"all but the plural are taken": {
			want:  names{Plural: "bb", Singular: "aa", ShortNames: []string{"a", "y"}, Kind: "Aa", ListKind: "AaList", Categories: []string{"all"}},
			taken: []names{aa}, accepted: names{Plural: "bb", Categories: []string{"all"}},
			names: `False ListKindConflict: "AaList" is already in use`, served: "False NotAccepted: not all names are accepted",
		},
		"the plural is another's short name": {
			want: names{Plural: "a", Singular: "zz", Kind: "Zz", ListKind: "ZzList"}, taken: []names{aa},
			accepted: names{Singular: "zz", Kind: "Zz", ListKind: "ZzList"},
			names:    `False PluralConflict: "a" is already in use`, served: "False NotAccepted: not all names are accepted",
		},
		"the singular is taken": {
			want: names{Plural: "zz", Singular: "aa", Kind: "Zz", ListKind: "ZzList"}, taken: []names{aa},
			accepted: names{Plural: "zz", Kind: "Zz", ListKind: "ZzList"},
			names:    `False SingularConflict: "aa" is already in use`, served: "False NotAccepted: not all names are accepted",
		},
		"the kind is another's list kind": {
			want: names{Plural: "zz", Singular: "zz", Kind: "AaList", ListKind: "ZzList"}, taken: []names{aa},
			accepted: names{Plural: "zz", Singular: "zz", ListKind: "ZzList"},
			names:    `False KindConflict: "AaList" is already in use`, served: "False NotAccepted: not all names are accepted",
		},
		"some short names are taken": {
			want: names{Plural: "zz", Singular: "z", ShortNames: []string{"a", "q", "x", "a"}, Kind: "Zz", ListKind: "ZzList"}, taken: []names{aa},
			accepted: names{Plural: "zz", Singular: "z", Kind: "Zz", ListKind: "ZzList"},
			names:    `False ShortNamesConflict: ["a" is already in use, "x" is already in use]`, served: "False NotAccepted: not all names are accepted",
		},
		"an established one asks for short names that are taken": {
			established: true, taken: []names{aa},
			want:     names{Plural: "zz", Singular: "z", ShortNames: []string{"q", "a"}, Kind: "Zz", ListKind: "ZzList", Categories: []string{"new"}},
			before:   names{Plural: "zz", Singular: "z", ShortNames: []string{"q"}, Kind: "Zz", ListKind: "ZzList", Categories: []string{"old"}},
			accepted: names{Plural: "zz", Singular: "z", ShortNames: []string{"q"}, Kind: "Zz", ListKind: "ZzList", Categories: []string{"new"}},
			names:    `False ShortNamesConflict: "a" is already in use`, served: "True InitialNamesAccepted: the initial names have been accepted",
		},
		"names accepted before are not in conflict": {
			established: true, want: aa, before: aa, taken: []names{aa}, accepted: aa,
			names: "True NoConflicts: no conflicts found", served: "True InitialNamesAccepted: the initial names have been accepted",
		},
		// kube-apiserver compares the accepted plural of the definition with the singular that it asks for later.
		"the singular is the own plural": {
			want: names{Plural: "bb", Singular: "bb", Kind: "Bb", ListKind: "BbList"}, before: names{Plural: "bb"}, taken: []names{aa},
			accepted: names{Plural: "bb", Singular: "bb", Kind: "Bb", ListKind: "BbList"},
			names:    "True NoConflicts: no conflicts found", served: "False Installing: the initial names have been accepted",
		},
	} {
		t.Run(what, func(t *testing.T) {
			t.Parallel()
			d := &apiextensionsv1.CustomResourceDefinition{}
			d.Spec.Names, d.Status.AcceptedNames = c.want, c.before
			if c.established {
				definition.SetEstablished(d, metav1.Now())
			}
			taken := &definition.Taken{}
			for _, n := range c.taken {
				taken.Add(n, false)
			}
			if !definition.AcceptNames(d, taken, metav1.Now()) {
				t.Error("nothing has changed")
			}
			if got, want := shorts(d.Status.AcceptedNames), shorts(c.accepted); got != want {
				t.Errorf("accepted are %s, want %s", got, want)
			}
			if got := conditionText(d, apiextensionsv1.NamesAccepted); got != c.names {
				t.Errorf("NamesAccepted is %q, want %q", got, c.names)
			}
			if got := conditionText(d, apiextensionsv1.Established); got != c.served {
				t.Errorf("Established is %q, want %q", got, c.served)
			}
			if definition.AcceptNames(d, taken, metav1.Now()) {
				t.Error("the same once more changes something")
			}
		})
	}
}

// If two definitions were accepted with one kind, the first one keeps it. An established one always keeps it.
func TestTheFirstClaimWins(t *testing.T) {
	t.Parallel()
	mine := names{Plural: "bb", Singular: "bb", ShortNames: []string{"a", "b"}, Kind: "Aa", ListKind: "AaList"}
	d := &apiextensionsv1.CustomResourceDefinition{}
	d.Spec.Names, d.Status.AcceptedNames = mine, mine
	later, first := &definition.Taken{}, &definition.Taken{}
	later.Add(names{ShortNames: []string{"a"}, Kind: "Aa", ListKind: "AaList"}, false)
	first.Add(names{ShortNames: []string{"a"}, Kind: "Aa", ListKind: "AaList"}, true)
	definition.AcceptNames(d, later, metav1.Now())
	if !definition.IsTrue(d, apiextensionsv1.NamesAccepted) {
		t.Error("a later claim takes names away")
	}
	sure := d.DeepCopy()
	definition.SetEstablished(sure, metav1.Now())
	if definition.AcceptNames(sure, first, metav1.Now()); !definition.IsTrue(sure, apiextensionsv1.NamesAccepted) {
		t.Error("an established definition loses names")
	}
	definition.AcceptNames(d, first, metav1.Now())
	if got := d.Status.AcceptedNames; definition.IsTrue(d, apiextensionsv1.NamesAccepted) || got.Kind != "" || got.ListKind != "" || got.Plural != "bb" {
		t.Errorf("accepted are %s", shorts(got))
	}
	if got := d.Status.AcceptedNames.ShortNames; slices.Contains(got, "a") {
		t.Errorf("short names are %v", got)
	}
}

func conditionText(d *apiextensionsv1.CustomResourceDefinition, t apiextensionsv1.CustomResourceDefinitionConditionType) string {
	c := definition.Condition(d, t)
	if c == nil {
		return "none"
	}
	return fmt.Sprintf("%s %s: %s", c.Status, c.Reason, c.Message)
}

func TestSetCondition(t *testing.T) {
	t.Parallel()
	d := &apiextensionsv1.CustomResourceDefinition{}
	at := func(minute int) metav1.Time { return metav1.NewTime(time.Date(2026, 1, 1, 0, minute, 0, 0, time.UTC)) }
	set := func(status apiextensionsv1.ConditionStatus, reason string, minute int) bool {
		return definition.SetCondition(d, apiextensionsv1.CustomResourceDefinitionCondition{Type: apiextensionsv1.Established, Status: status, Reason: reason, ObservedGeneration: 9}, at(minute))
	}
	check := func(what string, minute int, generation int64) {
		t.Helper()
		c := definition.Condition(d, apiextensionsv1.Established)
		if want := at(minute); !c.LastTransitionTime.Equal(&want) || c.ObservedGeneration != generation || len(d.Status.Conditions) != 1 {
			t.Errorf("%s: %+v", what, d.Status.Conditions)
		}
	}
	d.Status.Conditions = []apiextensionsv1.CustomResourceDefinitionCondition{{Type: apiextensionsv1.Established, Status: "False", ObservedGeneration: 4}}
	if !set("False", "A", 1) {
		t.Error("a time where there was none is no change")
	}
	check("a time where there was none", 1, 4) // the generation of another writer is kept
	if set("False", "A", 2) {
		t.Error("the same is a change")
	}
	check("the same", 1, 4)
	if !set("False", "B", 3) {
		t.Error("another reason is no change")
	}
	check("another reason", 1, 4)
	if !set("True", "B", 4) {
		t.Error("another status is no change")
	}
	check("another status", 4, 4)
	if !definition.RemoveCondition(d, apiextensionsv1.Established) || definition.RemoveCondition(d, apiextensionsv1.Established) || definition.IsTrue(d, apiextensionsv1.Established) {
		t.Errorf("it is not removed: %+v", d.Status.Conditions)
	}
}

func TestTerminate(t *testing.T) {
	t.Parallel()
	d := &apiextensionsv1.CustomResourceDefinition{ObjectMeta: metav1.ObjectMeta{Generation: 3, Finalizers: []string{"example.com/hold"}}}
	now := metav1.Now()
	if !definition.Terminate(d, now) || !d.DeletionTimestamp.Equal(&now) || d.Generation != 3 || !definition.IsTerminating(d) ||
		fmt.Sprint(d.Finalizers) != "[example.com/hold customresourcecleanup.apiextensions.k8s.io]" {
		t.Errorf("the definition is %+v", d.ObjectMeta)
	}
	if definition.Terminate(d, now) || len(d.Finalizers) != 2 {
		t.Errorf("a second DELETE is as the first: %+v", d.ObjectMeta)
	}
	for stage, want := range map[definition.Deletion]string{
		definition.DeletionPending:    "True InstanceDeletionPending: CustomResourceDefinition marked for deletion; CustomResource deletion will begin soon",
		definition.DeletionInProgress: "True InstanceDeletionInProgress: CustomResource deletion is in progress",
		definition.DeletionFailed:     "True InstanceDeletionFailed: a detail",
		definition.DeletionCheck:      "True InstanceDeletionCheck: could not confirm zero CustomResources remaining: a detail",
		definition.DeletionCompleted:  "False InstanceDeletionCompleted: removed all instances",
		definition.NeverEstablished:   "False NeverEstablished: resource was never established",
		definition.OverlapsBuiltIn:    "False OverlappingBuiltInResource: instances overlap with built-in resources in storage",
	} {
		definition.SetTerminating(d, stage, "a detail", now)
		if got := conditionText(d, apiextensionsv1.Terminating); got != want {
			t.Errorf("Terminating is %q, want %q", got, want)
		}
	}
}

func TestSetApproval(t *testing.T) {
	t.Parallel()
	const see = `, see https://github.com/kubernetes/enhancements/pull/1111`
	for _, c := range []struct{ group, annotation, want string }{
		{"example.com", "", "none"},
		{"notk8s.io", "", "none"},
		{"k8s.io", "", `False MissingAnnotation: protected groups must have approval annotation "api-approved.kubernetes.io"` + see},
		{"a.kubernetes.io", "unapproved, for now", `False UnapprovedAnnotation: not approved: "unapproved, for now"`},
		{"a.k8s.io", "https://github.com/kubernetes/kubernetes/pull/1", "True ApprovedAnnotation: approved in https://github.com/kubernetes/kubernetes/pull/1"},
		{"a.k8s.io", "/pull/1", `False InvalidAnnotation: protected groups must have approval annotation "api-approved.kubernetes.io" with either a URL or a reason starting with "unapproved"` + see},
		{"a.k8s.io", "soon", `False InvalidAnnotation: protected groups must have approval annotation "api-approved.kubernetes.io" with either a URL or a reason starting with "unapproved"` + see},
	} {
		d := &apiextensionsv1.CustomResourceDefinition{}
		d.Spec.Group = c.group
		if c.annotation != "" {
			d.Annotations = map[string]string{"api-approved.kubernetes.io": c.annotation}
		}
		changed := definition.SetApproval(d, metav1.Now())
		if got := conditionText(d, apiextensionsv1.KubernetesAPIApprovalPolicyConformant); got != c.want || changed != (c.want != "none") {
			t.Errorf("%s with %q: %q, want %q", c.group, c.annotation, got, c.want)
		}
	}
}

// The texts are kube-apiserver's.
func TestSetStructural(t *testing.T) {
	t.Parallel()
	d := &apiextensionsv1.CustomResourceDefinition{}
	d.Spec.PreserveUnknownFields = true
	d.Spec.Versions = []apiextensionsv1.CustomResourceDefinitionVersion{{Name: "v1"}, {Name: "v2", Schema: &apiextensionsv1.CustomResourceValidation{
		OpenAPIV3Schema: &apiextensionsv1.JSONSchemaProps{Properties: map[string]apiextensionsv1.JSONSchemaProps{"a": {}}},
	}}}
	if !definition.SetStructural(d, metav1.Now()) {
		t.Error("nothing has changed")
	}
	const want = "True Violations: [spec.preserveUnknownFields: Invalid value: true: must be false, " +
		"spec.versions[1].schema.openAPIV3Schema.properties[a].type: Required value: must not be empty for specified object fields, " +
		"spec.versions[1].schema.openAPIV3Schema.type: Required value: must not be empty at the root]"
	if got := conditionText(d, apiextensionsv1.NonStructuralSchema); got != want {
		t.Errorf("NonStructuralSchema is %q, want %q", got, want)
	}
	d.Spec.PreserveUnknownFields, d.Spec.Versions = false, d.Spec.Versions[:1]
	if !definition.SetStructural(d, metav1.Now()) || definition.SetStructural(d, metav1.Now()) || definition.Condition(d, apiextensionsv1.NonStructuralSchema) != nil {
		t.Errorf("it stays: %+v", d.Status.Conditions)
	}
}
