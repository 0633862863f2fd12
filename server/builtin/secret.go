package builtin

import (
	"crypto/tls"
	"encoding/json"
	"maps"
	"slices"

	"github.com/keelson-dev/keelson/server"
	"github.com/keelson-dev/keelson/server/registry"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/validation"
	"k8s.io/apimachinery/pkg/util/validation/field"
)

// Secret returns the kind Secret for v1 of the core group, as kube-apiserver serves it. It is stored like any other object.
// Encrypt the storage to keep secrets from those who can read it.
//
// See https://kubernetes.io/docs/concepts/configuration/secret/.
func Secret() server.Resource {
	return server.Kind("Secret", server.KindOptions[*corev1.Secret]{
		Default:          defaultSecret,
		SelectableFields: []string{"type"},
		Strategy: registry.Strategy[*corev1.Secret]{
			Validate:       func(_ *registry.Call, s *corev1.Secret) field.ErrorList { return validateSecret(s) },
			ValidateUpdate: validateSecretUpdate,
			WarnOnCreate:   func(_ *registry.Call, s *corev1.Secret) []string { return secretWarnings(s) },
			WarnOnUpdate:   func(_ *registry.Call, s, _ *corev1.Secret) []string { return secretWarnings(s) },
			NoGeneration:   true,
		},
		Columns: []server.Column[*corev1.Secret]{
			{Name: "Type", Description: corev1.Secret{}.SwaggerDoc()["type"], Value: func(s *corev1.Secret) any { return string(s.Type) }},
			{Name: "Data", Description: corev1.Secret{}.SwaggerDoc()["data"], Value: func(s *corev1.Secret) any { return int64(len(s.Data)) }},
			ageColumn[*corev1.Secret](),
		},
	})
}

// defaultSecret sets the default type and moves stringData, which is write-only, into data. A null in data becomes empty.
func defaultSecret(s *corev1.Secret) {
	if s.Type == "" {
		s.Type = corev1.SecretTypeOpaque
	}
	if len(s.StringData) > 0 && s.Data == nil {
		s.Data = map[string][]byte{}
	}
	for key, value := range s.StringData {
		s.Data[key] = []byte(value)
	}
	s.StringData = nil
	emptyNulls(s.Data)
}

func validateSecret(s *corev1.Secret) field.ErrorList {
	at := field.NewPath("data")
	var errs field.ErrorList
	size := 0
	for _, key := range slices.Sorted(maps.Keys(s.Data)) {
		errs = append(errs, validateDataKey(at, key)...)
		size += len(s.Data[key])
	}
	if size > corev1.MaxSecretSize {
		errs = append(errs, field.TooLong(at, "", corev1.MaxSecretSize))
	}
	return append(errs, validateSecretType(s, at)...)
}

// validateSecretType returns an error for each key that a secret of its type lacks. Types that Kubernetes does not define may
// have any keys.
func validateSecretType(s *corev1.Secret, at *field.Path) field.ErrorList {
	has := func(key string) bool {
		_, ok := s.Data[key]
		return ok
	}
	missing := func(keys ...string) (errs field.ErrorList) {
		for _, key := range keys {
			if !has(key) {
				errs = append(errs, field.Required(at.Key(key), ""))
			}
		}
		return errs
	}
	switch s.Type {
	case corev1.SecretTypeServiceAccountToken:
		if s.Annotations[corev1.ServiceAccountNameKey] == "" {
			return field.ErrorList{field.Required(field.NewPath("metadata", "annotations").Key(corev1.ServiceAccountNameKey), "")}
		}
	case corev1.SecretTypeDockercfg:
		return validateDockerConfig(s.Data, corev1.DockerConfigKey, at)
	case corev1.SecretTypeDockerConfigJson:
		return validateDockerConfig(s.Data, corev1.DockerConfigJsonKey, at)
	case corev1.SecretTypeBasicAuth:
		if !has(corev1.BasicAuthUsernameKey) && !has(corev1.BasicAuthPasswordKey) {
			return missing(corev1.BasicAuthUsernameKey, corev1.BasicAuthPasswordKey)
		}
	case corev1.SecretTypeSSHAuth:
		if len(s.Data[corev1.SSHAuthPrivateKey]) == 0 {
			return field.ErrorList{field.Required(at.Key(corev1.SSHAuthPrivateKey), "")}
		}
	case corev1.SecretTypeTLS:
		return missing(corev1.TLSCertKey, corev1.TLSPrivateKeyKey)
	}
	return nil
}

// validateDockerConfig requires a JSON object at a key. The error does not show the value.
func validateDockerConfig(data map[string][]byte, key string, at *field.Path) field.ErrorList {
	text, ok := data[key]
	if !ok {
		return field.ErrorList{field.Required(at.Key(key), "")}
	}
	if err := json.Unmarshal(text, &map[string]any{}); err != nil {
		return field.ErrorList{field.Invalid(at.Key(key), "<secret contents redacted>", err.Error())}
	}
	return nil
}

func validateSecretUpdate(_ *registry.Call, s, old *corev1.Secret) field.ErrorList {
	errs := validation.ValidateImmutableField(s.Type, old.Type, field.NewPath("type"))
	if isSet(old.Immutable) {
		if !isSet(s.Immutable) {
			errs = append(errs, field.Forbidden(field.NewPath("immutable"), whenImmutable))
		}
		if changesBytes(s.Data, old.Data) {
			errs = append(errs, field.Forbidden(field.NewPath("data"), whenImmutable))
		}
	}
	errs = append(errs, validateGenerateName(s, validation.NameIsDNSSubdomain)...)
	return append(errs, validateSecret(s)...)
}

// secretWarnings returns a warning if a certificate and a key do not match.
func secretWarnings(s *corev1.Secret) []string {
	if s.Type != corev1.SecretTypeTLS {
		return nil
	}
	if _, err := tls.X509KeyPair(s.Data[corev1.TLSCertKey], s.Data[corev1.TLSPrivateKeyKey]); err != nil {
		return []string{err.Error()}
	}
	return nil
}
