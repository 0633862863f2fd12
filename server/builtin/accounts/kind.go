package accounts

import (
	"time"

	"github.com/keelson-dev/keelson/server"
	"github.com/keelson-dev/keelson/server/registry"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/validation"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/duration"
	"k8s.io/apimachinery/pkg/util/validation/field"
)

// mountableKey is an annotation that clients should not use any more.
const mountableKey = "kubernetes.io/enforce-mountable-secrets"

// serviceAccount returns the kind ServiceAccount for v1 of the core group, as kube-apiserver serves it.
func serviceAccount(token server.Subresource) server.Resource {
	return server.Kind("ServiceAccount", server.KindOptions[*corev1.ServiceAccount]{
		ShortNames: []string{"sa"},
		Strategy: registry.Strategy[*corev1.ServiceAccount]{
			PrepareForCreate: func(_ *registry.Call, a *corev1.ServiceAccount) { keepNames(a) },
			PrepareForUpdate: func(_ *registry.Call, a, _ *corev1.ServiceAccount) { keepNames(a) },
			ValidateUpdate:   validateUpdate,
			WarnOnCreate:     func(_ *registry.Call, a *corev1.ServiceAccount) []string { return warnings(a, nil) },
			WarnOnUpdate:     func(_ *registry.Call, a, old *corev1.ServiceAccount) []string { return warnings(a, old) },
			Canonicalize:     canonicalize,
			NoGeneration:     true,
			ReturnDeleted:    true,
		},
		Columns: []server.Column[*corev1.ServiceAccount]{
			{Name: "Age", Description: metav1.ObjectMeta{}.SwaggerDoc()["creationTimestamp"], Value: func(a *corev1.ServiceAccount) any {
				if a.CreationTimestamp.IsZero() {
					return "<unknown>"
				}
				return duration.HumanDuration(time.Since(a.CreationTimestamp.Time))
			}},
		},
		Subresources: map[string]server.Subresource{"token": token},
	})
}

// keepNames leaves only the names of the Secrets of an account, which are in its namespace.
func keepNames(a *corev1.ServiceAccount) {
	for i, s := range a.Secrets {
		a.Secrets[i] = corev1.ObjectReference{Name: s.Name}
	}
}

// canonicalize replaces empty lists by nil, as kube-apiserver does when it stores them.
func canonicalize(a *corev1.ServiceAccount) {
	if len(a.Secrets) == 0 {
		a.Secrets = nil
	}
	if len(a.ImagePullSecrets) == 0 {
		a.ImagePullSecrets = nil
	}
}

// validateUpdate validates the generateName, which an update may change.
func validateUpdate(_ *registry.Call, a, _ *corev1.ServiceAccount) field.ErrorList {
	var errs field.ErrorList
	if a.GenerateName == "" {
		return nil
	}
	for _, why := range validation.ValidateServiceAccountName(a.GenerateName, true) {
		errs = append(errs, field.Invalid(field.NewPath("metadata", "generateName"), a.GenerateName, why))
	}
	return errs
}

// warnings returns the warning about an annotation that was not there before. old is nil for a new account.
func warnings(a, old *corev1.ServiceAccount) []string {
	if _, there := a.Annotations[mountableKey]; !there {
		return nil
	}
	if old != nil {
		if _, before := old.Annotations[mountableKey]; before {
			return nil
		}
	}
	return []string{field.NewPath("metadata", "annotations").Key(mountableKey).String() + ": deprecated in v1.32+; prefer separate namespaces to isolate access to mounted secrets"}
}
