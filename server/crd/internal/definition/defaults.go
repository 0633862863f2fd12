package definition

import (
	"strings"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
)

// webhookPort is the default port of a webhook's service.
const webhookPort = 443

// SetDefaults sets the defaults of a definition, in place: the singular and list kind from the kind, the conversion None, the
// port of a webhook's service, and the storage version as the stored version. It is idempotent.
func SetDefaults(crd *apiextensionsv1.CustomResourceDefinition) {
	spec := &crd.Spec
	if spec.Names.Singular == "" {
		spec.Names.Singular = strings.ToLower(spec.Names.Kind)
	}
	if spec.Names.ListKind == "" && spec.Names.Kind != "" {
		spec.Names.ListKind = spec.Names.Kind + "List"
	}
	if spec.Conversion == nil {
		spec.Conversion = &apiextensionsv1.CustomResourceConversion{Strategy: apiextensionsv1.NoneConverter}
	}
	if webhook := spec.Conversion.Webhook; webhook != nil && webhook.ClientConfig != nil && webhook.ClientConfig.Service != nil {
		if service := webhook.ClientConfig.Service; service.Port == nil {
			port := int32(webhookPort)
			service.Port = &port
		}
	}
	if len(crd.Status.StoredVersions) == 0 {
		addStoredVersion(crd)
	}
}
