package builtin

import (
	"maps"
	"slices"

	"github.com/keelson-dev/keelson/server"
	"github.com/keelson-dev/keelson/server/registry"
	corev1 "k8s.io/api/core/v1"
	apivalidation "k8s.io/apimachinery/pkg/api/validation"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/validation"
	"k8s.io/apimachinery/pkg/util/validation/field"
)

// whenImmutable is the error text for a change of an immutable ConfigMap or Secret.
const whenImmutable = "field is immutable when `immutable` is set"

// ConfigMap returns the kind ConfigMap for v1 of the core group, as kube-apiserver serves it.
//
// See https://kubernetes.io/docs/concepts/configuration/configmap/.
func ConfigMap() server.Resource {
	return server.Kind("ConfigMap", server.KindOptions[*corev1.ConfigMap]{
		ShortNames: []string{"cm"},
		Default:    func(m *corev1.ConfigMap) { emptyNulls(m.BinaryData) },
		Strategy: registry.Strategy[*corev1.ConfigMap]{
			Validate:       func(_ *registry.Call, m *corev1.ConfigMap) field.ErrorList { return validateConfigMap(m) },
			ValidateUpdate: validateConfigMapUpdate,
			NoGeneration:   true,
		},
		Columns: []server.Column[*corev1.ConfigMap]{
			{Name: "Data", Description: corev1.ConfigMap{}.SwaggerDoc()["data"], Value: func(m *corev1.ConfigMap) any { return int64(len(m.Data) + len(m.BinaryData)) }},
			ageColumn[*corev1.ConfigMap](),
		},
	})
}

func validateConfigMap(m *corev1.ConfigMap) field.ErrorList {
	data, binary := field.NewPath("data"), field.NewPath("binaryData")
	var errs field.ErrorList
	size := 0
	for _, key := range slices.Sorted(maps.Keys(m.Data)) {
		errs = append(errs, validateDataKey(data, key)...)
		if _, twice := m.BinaryData[key]; twice {
			errs = append(errs, field.Invalid(data.Key(key), key, "duplicate of key present in binaryData"))
		}
		size += len(m.Data[key])
	}
	for _, key := range slices.Sorted(maps.Keys(m.BinaryData)) {
		errs = append(errs, validateDataKey(binary, key)...)
		size += len(m.BinaryData[key])
	}
	if size > corev1.MaxSecretSize {
		errs = append(errs, field.TooLong(field.NewPath(""), "", corev1.MaxSecretSize)) // the path is that of the whole object
	}
	return errs
}

func validateDataKey(at *field.Path, key string) field.ErrorList {
	var errs field.ErrorList
	for _, why := range validation.IsConfigMapKey(key) {
		errs = append(errs, field.Invalid(at.Key(key), key, why))
	}
	return errs
}

func validateConfigMapUpdate(_ *registry.Call, m, old *corev1.ConfigMap) field.ErrorList {
	var errs field.ErrorList
	if isSet(old.Immutable) {
		if !isSet(m.Immutable) {
			errs = append(errs, field.Forbidden(field.NewPath("immutable"), whenImmutable))
		}
		if !maps.Equal(m.Data, old.Data) {
			errs = append(errs, field.Forbidden(field.NewPath("data"), whenImmutable))
		}
		if changesBytes(m.BinaryData, old.BinaryData) {
			errs = append(errs, field.Forbidden(field.NewPath("binaryData"), whenImmutable))
		}
	}
	errs = append(errs, validateGenerateName(m, apivalidation.NameIsDNSSubdomain)...)
	return append(errs, validateConfigMap(m)...)
}

// validateGenerateName validates the generateName in an update, which may change it. For some kinds kube-apiserver validates all
// metadata in updates as in creates.
func validateGenerateName(m metav1.Object, rule apivalidation.ValidateNameFunc) field.ErrorList {
	prefix := m.GetGenerateName()
	if prefix == "" {
		return nil
	}
	var errs field.ErrorList
	for _, why := range rule(prefix, true) {
		errs = append(errs, field.Invalid(field.NewPath("metadata", "generateName"), prefix, why))
	}
	return errs
}

func isSet(b *bool) bool { return b != nil && *b }

// changesBytes reports whether data differs from what is stored. An empty map is stored as none, and differs from it, as in
// kube-apiserver.
func changesBytes(data, stored map[string][]byte) bool {
	if len(stored) == 0 {
		return data != nil
	}
	return !maps.EqualFunc(data, stored, slices.Equal)
}

// emptyNulls replaces null values by empty ones, as clients read them from kube-apiserver: its storage does not distinguish them.
func emptyNulls(data map[string][]byte) {
	for key, value := range data {
		if value == nil {
			data[key] = []byte{}
		}
	}
}
