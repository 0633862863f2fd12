package definition

import (
	"fmt"
	"net/url"
	"slices"
	"strings"

	"github.com/keelson-dev/keelson/runtime/webhook"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	utilvalidation "k8s.io/apimachinery/pkg/util/validation"
	"k8s.io/apimachinery/pkg/util/validation/field"
)

// reviewVersions returns the versions of ConversionReview that this package supports. A webhook must accept one of them.
func reviewVersions() []string { return []string{"v1", "v1beta1"} }

// conversionErrors validates the conversion of a spec.
func (j *judge) conversionErrors(path *field.Path) field.ErrorList {
	conversion := j.spec.Conversion
	if conversion == nil {
		return nil
	}
	var errs field.ErrorList
	var client *apiextensionsv1.WebhookClientConfig
	var reviews []string
	if conversion.Webhook != nil {
		client, reviews = conversion.Webhook.ClientConfig, conversion.Webhook.ConversionReviewVersions
	}
	clientPath, reviewPath := path.Child("webhookClientConfig"), path.Child("conversionReviewVersions")
	switch conversion.Strategy {
	case apiextensionsv1.WebhookConverter:
		errs = append(errs, j.clientErrors(clientPath, client)...)
		return append(errs, j.reviewErrors(reviewPath, reviews)...)
	case apiextensionsv1.NoneConverter:
	case "":
		errs = append(errs, field.Required(path.Child("strategy"), ""))
	default:
		errs = append(errs, field.NotSupported(path.Child("strategy"), conversion.Strategy,
			[]apiextensionsv1.ConversionStrategyType{apiextensionsv1.NoneConverter, apiextensionsv1.WebhookConverter}))
	}
	const misplaced = "should not be set when strategy is not set to Webhook"
	if client != nil {
		errs = append(errs, field.Forbidden(clientPath, misplaced))
	}
	if len(reviews) > 0 {
		errs = append(errs, field.Forbidden(reviewPath, misplaced))
	}
	return errs
}

// clientErrors validates the address of a webhook.
func (j *judge) clientErrors(path *field.Path, client *apiextensionsv1.WebhookClientConfig) field.ErrorList {
	if client == nil {
		return field.ErrorList{field.Required(path, "required when strategy is set to Webhook")}
	}
	var errs field.ErrorList
	switch {
	case (client.URL == nil) == (client.Service == nil):
		errs = append(errs, field.Required(path, "exactly one of url or service is required"))
	case client.URL != nil:
		errs = append(errs, webhookURLErrors(path.Child("url"), *client.URL)...)
	default:
		errs = append(errs, webhookServiceErrors(path.Child("service"), client.Service)...)
	}
	if err := webhook.CheckBundle(client.CABundle); err != nil && !j.invalidBundle {
		errs = append(errs, field.Invalid(path.Child("caBundle"), client.CABundle, err.Error()))
	}
	return errs
}

func webhookURLErrors(path *field.Path, text string) field.ErrorList {
	const form = "; desired format: https://host[/path]"
	u, err := url.Parse(text)
	if err != nil {
		return field.ErrorList{field.Required(path, "url must be a valid URL: "+err.Error()+form)}
	}
	var errs field.ErrorList
	if u.Scheme != "https" {
		errs = append(errs, field.Invalid(path, u.Scheme, "'https' is the only allowed URL scheme"+form))
	}
	if u.Host == "" {
		errs = append(errs, field.Invalid(path, u.Host, "host must be specified"+form))
	}
	if u.User != nil {
		errs = append(errs, field.Invalid(path, u.User.String(), "user information is not permitted in the URL"))
	}
	if u.Fragment != "" {
		errs = append(errs, field.Invalid(path, u.Fragment, "fragments are not permitted in the URL"))
	}
	if u.RawQuery != "" {
		errs = append(errs, field.Invalid(path, u.RawQuery, "query parameters are not permitted in the URL"))
	}
	return errs
}

func webhookServiceErrors(path *field.Path, service *apiextensionsv1.ServiceReference) field.ErrorList {
	var errs field.ErrorList
	if service.Namespace == "" {
		errs = append(errs, field.Required(path.Child("name"), "")) // sic: kube-apiserver exchanges the two fields
	}
	if service.Name == "" {
		errs = append(errs, field.Required(path.Child("namespace"), ""))
	}
	port := int32(0)
	if service.Port != nil {
		port = *service.Port
	}
	if problems := utilvalidation.IsValidPortNum(int(port)); len(problems) > 0 {
		errs = append(errs, field.Invalid(path.Child("port"), port, "port is not valid: "+strings.Join(problems, ", ")))
	}
	if service.Path == nil {
		return errs
	}
	return append(errs, webhookPathErrors(path.Child("path"), *service.Path)...)
}

func webhookPathErrors(path *field.Path, urlPath string) field.ErrorList {
	switch urlPath {
	case "", "/":
		return nil
	case "//":
		return field.ErrorList{field.Invalid(path, urlPath, "segment[0] may not be empty")}
	}
	var errs field.ErrorList
	if urlPath[0] != '/' {
		errs = append(errs, field.Invalid(path, urlPath, "must start with a '/'"))
	}
	i := 0
	for segment := range strings.SplitSeq(strings.TrimSuffix(urlPath[1:], "/"), "/") { // without the first byte, whatever it is
		if segment == "" {
			errs = append(errs, field.Invalid(path, urlPath, fmt.Sprintf("segment[%d] may not be empty", i)))
		} else {
			for _, problem := range utilvalidation.IsDNS1123Subdomain(segment) {
				errs = append(errs, field.Invalid(path, urlPath, fmt.Sprintf("segment[%d]: %v", i, problem)))
			}
		}
		i++
	}
	return errs
}

// hasInvalidBundle reports whether the CABundle of a definition's webhook is invalid.
func hasInvalidBundle(crd *apiextensionsv1.CustomResourceDefinition) bool {
	conversion := crd.Spec.Conversion
	return conversion != nil && conversion.Webhook != nil && conversion.Webhook.ClientConfig != nil &&
		webhook.CheckBundle(conversion.Webhook.ClientConfig.CABundle) != nil
}

// reviewErrors validates the versions of ConversionReview that a webhook accepts.
func (j *judge) reviewErrors(path *field.Path, versions []string) field.ErrorList {
	if len(versions) == 0 {
		return field.ErrorList{field.Required(path, "")}
	}
	var errs field.ErrorList
	seen := make(map[string]bool, len(versions))
	for i, version := range versions {
		if seen[version] {
			errs = append(errs, field.Invalid(path.Index(i), version, "duplicate version"))
			continue
		}
		seen[version] = true
		for _, problem := range utilvalidation.IsDNS1035Label(version) {
			errs = append(errs, field.Invalid(path.Index(i), version, problem))
		}
	}
	if !j.unknownReviews && !knowsReview(versions) {
		errs = append(errs, field.Invalid(path, versions, "must include at least one of "+strings.Join(reviewVersions(), ", ")))
	}
	return errs
}

func knowsReview(versions []string) bool {
	return slices.ContainsFunc(versions, func(version string) bool { return slices.Contains(reviewVersions(), version) })
}
