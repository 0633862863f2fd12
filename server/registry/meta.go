package registry

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"unicode/utf8"

	"github.com/keelson-dev/keelson/server/internal/finalizers"
	"k8s.io/apimachinery/pkg/api/equality"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/validate/content"
	"k8s.io/apimachinery/pkg/api/validation"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/validation/field"
)

// wipe clears the metadata of a new object that only the server writes.
func wipe(m metav1.Object) {
	m.SetCreationTimestamp(metav1.Time{})
	m.SetUID("")
	m.SetDeletionTimestamp(nil)
	m.SetDeletionGracePeriodSeconds(nil)
	m.SetSelfLink("")
	if isReset(m.GetManagedFields()) {
		m.SetManagedFields(nil)
	}
}

// isReset reports whether entries are one of the two lists with which a client clears managedFields: an empty list, and a list
// with one empty entry.
func isReset(entries []metav1.ManagedFieldsEntry) bool {
	return entries != nil && len(entries) == 0 ||
		len(entries) == 1 && equality.Semantic.DeepEqual(entries[0], metav1.ManagedFieldsEntry{})
}

// keepManagedFields copies old's managedFields to the new state, unless the new state has entries. Otherwise clients that do not
// know the field would remove the entries.
func keepManagedFields(m, old metav1.Object) {
	switch entries := m.GetManagedFields(); {
	case isReset(entries):
		m.SetManagedFields(nil)
	case len(entries) == 0:
		m.SetManagedFields(old.GetManagedFields())
	}
}

// settleNamespace sets the namespace of an object to that of the request. It returns an error if the object has another
// namespace.
func (r *Registry) settleNamespace(call *Call, m metav1.Object) error {
	want := ""
	if r.namespaced {
		want = call.Namespace
	}
	if got := m.GetNamespace(); want != "" && got != "" && got != want {
		return apierrors.NewBadRequest("the namespace of the provided object does not match the namespace sent on the request")
	}
	m.SetNamespace(want)
	return nil
}

// ownerKey is a comparable form of an owner reference. Two ownerKeys are equal if their references are.
type ownerKey struct {
	apiVersion, kind, name string
	uid                    types.UID
	controller, block      setting
}

// setting is a *bool as a value: set says whether there is a bool, and value is the bool.
type setting struct{ set, value bool }

func settingOf(b *bool) setting {
	if b == nil {
		return setting{}
	}
	return setting{true, *b}
}

func keyOf(ref *metav1.OwnerReference) ownerKey {
	return ownerKey{ref.APIVersion, ref.Kind, ref.Name, ref.UID, settingOf(ref.Controller), settingOf(ref.BlockOwnerDeletion)}
}

// dedupOwners removes repeated owner references and returns a warning about them, or "".
func dedupOwners(m metav1.Object, when string) string {
	refs := m.GetOwnerReferences()
	if len(refs) < 2 {
		return ""
	}
	seen := make(map[ownerKey]struct{}, len(refs))
	kept := make([]metav1.OwnerReference, 0, len(refs))
	var repeated []string
	for i := range refs {
		key := keyOf(&refs[i])
		if _, ok := seen[key]; ok {
			repeated = append(repeated, string(key.uid))
			continue
		}
		seen[key] = struct{}{}
		kept = append(kept, refs[i])
	}
	if len(repeated) == 0 {
		return ""
	}
	m.SetOwnerReferences(kept)
	return fmt.Sprintf(".metadata.ownerReferences contains duplicate entries%s; API server dedups owner references in 1.20+, and may reject such requests as early as 1.24; please fix your requests; duplicate UID(s) observed: %s",
		when, strings.Join(repeated, ", "))
}

// The end of the warning if the repeated references are found after mutating admission.
const afterMutation = " after mutating admission happens"

// A generated name is a prefix, cut to leave room, and random characters that form no words.
const (
	nameAlphabet  = "bcdfghjklmnpqrstvwxz2456789"
	nameRandom    = 5
	namePrefixMax = 63 - nameRandom
	generateNames = 8 // attempts to find a free name
	generateRetry = 1 // seconds for the Retry-After after the last attempt
)

func generateName(prefix string) string {
	name := []byte(prefix[:min(len(prefix), namePrefixMax)])
	for range nameRandom {
		name = append(name, nameAlphabet[rand.IntN(len(nameAlphabet))])
	}
	return string(name)
}

var metadataPath = field.NewPath("metadata")

// checkNew returns the errors in the metadata of a new object.
func (r *Registry) checkNew(m metav1.Object) field.ErrorList {
	return validation.ValidateObjectMetaAccessor(m, r.namespaced, r.checkName, metadataPath)
}

// checkChanged returns the errors in the metadata of the new state of an object, in the order of kube-apiserver.
func (r *Registry) checkChanged(m, was metav1.Object) field.ErrorList {
	problems := validation.ValidateObjectMetaAccessor(m, r.namespaced, checkSegment, metadataPath)
	return appendDistinct(problems, validation.ValidateObjectMetaAccessorUpdate(m, was, metadataPath))
}

// checkFinalizers checks the finalizers that are not in old and have no domain. Other controllers could use the same name for
// another finalizer. Such a finalizer is an error for Kubernetes' own kinds, and a warning for other kinds.
func (r *Registry) checkFinalizers(m metav1.Object, old []string) (problems field.ErrorList, warnings []string) {
	if r.strategy.plainFinalizers {
		return nil, nil
	}
	known := memberOf(old)
	for i, name := range m.GetFinalizers() {
		switch {
		case finalizers.IsQualified(name) || known(name):
		case isKubernetes(r.resource.Group):
			problems = append(problems, field.Invalid(metadataPath.Child("finalizers").Index(i), name, finalizers.Unqualified))
		default:
			warnings = append(warnings, fmt.Sprintf("metadata.finalizers: %q: prefer a domain-qualified finalizer name to avoid accidental conflicts with other finalizer writers", name))
		}
	}
	return problems, warnings
}

// memberOf returns a function that reports whether a text is in list. Its time does not depend on the length of the list.
func memberOf(list []string) func(string) bool {
	const few = 8
	if len(list) <= few {
		return func(text string) bool { return slices.Contains(list, text) }
	}
	set := make(map[string]struct{}, len(list))
	for _, text := range list {
		set[text] = struct{}{}
	}
	return func(text string) bool {
		_, ok := set[text]
		return ok
	}
}

// isKubernetes reports whether a group is Kubernetes' own: one without a domain, or in one of the domains that
// https://github.com/kubernetes/enhancements/tree/master/keps/sig-api-machinery/2337-k8s.io-group-protection names.
func isKubernetes(group string) bool {
	return !strings.Contains(group, ".") || strings.HasSuffix(group, ".k8s.io") || strings.HasSuffix(group, ".kubernetes.io")
}

// checkName checks a name with the rule of the kind and the rules for all kinds: a name is one segment of a path, can be part of
// a storage key, and does not change when it is written as JSON.
func (r *Registry) checkName(name string, prefix bool) []string {
	rule := r.strategy.validateName
	if rule == nil {
		rule = validation.NameIsDNSSubdomain
	}
	if problems := rule(name, prefix); len(problems) > 0 {
		return problems
	}
	switch {
	case strings.Contains(name, "\x00"):
		return []string{"may not contain a NUL byte"}
	case !utf8.ValidString(name):
		return []string{"must be UTF-8"}
	}
	return checkSegment(name, prefix)
}

// checkSegment checks that a name, or the beginning of one, is a segment of a path.
func checkSegment(name string, prefix bool) []string {
	if prefix {
		return content.IsPathSegmentPrefix(name)
	}
	return content.IsPathSegmentName(name)
}

// warn sends texts to the client of the call as warnings.
func warn(call *Call, texts []string) {
	for _, text := range texts {
		call.Warn(text)
	}
}
