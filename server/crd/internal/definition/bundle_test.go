package definition_test

import (
	"testing"

	"github.com/keelson-dev/keelson/server/crd/internal/definition"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// A definition with an invalid CABundle is not established until that is corrected. One that is established stays so, and may
// keep it.
func TestInvalidBundle(t *testing.T) {
	t.Parallel()
	url := "https://example.com"
	d := &apiextensionsv1.CustomResourceDefinition{}
	d.Spec.Conversion = &apiextensionsv1.CustomResourceConversion{Strategy: apiextensionsv1.WebhookConverter, Webhook: &apiextensionsv1.WebhookConversion{
		ClientConfig: &apiextensionsv1.WebhookClientConfig{URL: &url, CABundle: []byte("none")}, ConversionReviewVersions: []string{"v1"},
	}}
	const invalid = "False InvalidCABundle: The conversion webhook CABundle is invalid"
	check := func(what string, changed, wantChanged bool, want string) {
		t.Helper()
		if got := conditionText(d, apiextensionsv1.Established); got != want || changed != wantChanged {
			t.Errorf("%s: Established is %q, want %q; changed: %t", what, got, want, changed)
		}
	}
	check("established", definition.SetEstablished(d, metav1.Now()), true, invalid)
	check("again", definition.SetEstablished(d, metav1.Now()), false, invalid)
	check("not served", definition.SetNotServed(d, "for this reason", metav1.Now()), false, invalid)
	if !definition.IsNotServed(d) {
		t.Error("it does not say that it is not served")
	}
	d.Spec.Conversion.Webhook.ClientConfig.CABundle = nil
	check("mended, and not served", definition.SetNotServed(d, "for this reason", metav1.Now()), true, "False NotServed: for this reason")
	check("mended", definition.SetEstablished(d, metav1.Now()), true, "True InitialNamesAccepted: the initial names have been accepted")
	d.Spec.Conversion.Webhook.ClientConfig.CABundle = []byte("none")
	check("later", definition.SetNotServed(d, "for this reason", metav1.Now()), false, "True InitialNamesAccepted: the initial names have been accepted")
}

// TestUpdateOfAWebhook checks which changes of a webhook an update may make, before and after a definition is established.
func TestUpdateOfAWebhook(t *testing.T) {
	validator := validatorOf(t)
	const invalid = `spec.conversion.webhookClientConfig.caBundle: Invalid value: "bm9uZQ==": unable to load root certificates: unable to parse bytes as PEM block`
	for name, test := range map[string]struct {
		established       bool
		before, after     string // the bundles; "-" means no webhook
		reviews, reviewed []string
		want              []string
	}{
		"before":                         {before: "", after: "none"},
		"after":                          {established: true, before: "", after: "none", want: []string{invalid}},
		"it was so":                      {established: true, before: "none", after: "none"},
		"from none":                      {established: true, before: "-", after: "none", want: []string{invalid}},
		"to none":                        {established: true, before: "none", after: "-"},
		"reviews that nobody knows":      {before: "", after: "", reviews: []string{"v1"}, reviewed: []string{"v7"}, want: []string{`spec.conversion.conversionReviewVersions: Invalid value: ["v7"]: must include at least one of v1, v1beta1`}},
		"reviews that nobody knew, ever": {before: "", after: "", reviews: []string{"v6"}, reviewed: []string{"v7"}},
	} {
		t.Run(name, func(t *testing.T) {
			set := func(c *crd, bundle string, reviews []string) {
				if bundle == "-" {
					c.Spec.Conversion = &apiextensionsv1.CustomResourceConversion{Strategy: apiextensionsv1.NoneConverter}
					return
				}
				url := "https://example.com/convert"
				if reviews == nil {
					reviews = []string{"v1"}
				}
				c.Spec.Conversion = &apiextensionsv1.CustomResourceConversion{Strategy: apiextensionsv1.WebhookConverter, Webhook: &apiextensionsv1.WebhookConversion{
					ClientConfig: &apiextensionsv1.WebhookClientConfig{URL: &url, CABundle: []byte(bundle)}, ConversionReviewVersions: reviews,
				}}
			}
			old := parse(t, good)
			set(old, test.before, test.reviews)
			if test.established {
				old.Status.Conditions = []apiextensionsv1.CustomResourceDefinitionCondition{{Type: apiextensionsv1.Established, Status: apiextensionsv1.ConditionTrue}}
			}
			c := old.DeepCopy()
			set(c, test.after, test.reviewed)
			definition.PrepareForUpdate(c, old)
			got := texts(validator.ValidateUpdate(t.Context(), c, old))
			if len(got) != len(test.want) {
				t.Fatalf("%v, want %v", got, test.want)
			}
			for i := range got {
				if got[i] != test.want[i] {
					t.Errorf("%s\nwant %s", got[i], test.want[i])
				}
			}
		})
	}
}
