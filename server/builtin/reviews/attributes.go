package reviews

import (
	"fmt"

	"github.com/keelson-dev/keelson/authn"
	"github.com/keelson-dev/keelson/authz"
	"github.com/keelson-dev/keelson/runtime/selector"
	authorizationv1 "k8s.io/api/authorization/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	metav1validation "k8s.io/apimachinery/pkg/apis/meta/v1/validation"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/selection"
	"k8s.io/apimachinery/pkg/util/validation"
	"k8s.io/apimachinery/pkg/util/validation/field"
)

// attributesOf returns the attributes that a review asks about, and what is wrong with its selectors. As in kube-apiserver, a
// requirement that no selector of a request can have is left out, which makes the request a larger one.
func attributesOf(user *authn.User, resource *authorizationv1.ResourceAttributes, path *authorizationv1.NonResourceAttributes, limit selector.Limit) (a authz.Attributes, problems []string) {
	if resource == nil {
		return authz.Attributes{User: user, Verb: path.Verb, Path: path.Path}, nil
	}
	a = authz.Attributes{
		User: user, Verb: resource.Verb, ResourceRequest: true,
		APIGroup: resource.Group, APIVersion: resource.Version, Resource: resource.Resource, Subresource: resource.Subresource,
		Namespace: resource.Namespace, Name: resource.Name,
	}
	note := func(name string, some int, whole bool) {
		switch {
		case whole:
		case some > 0:
			problems = append(problems, "spec.resourceAttributes."+name+" partially ignored due to parse error")
		default:
			problems = append(problems, "spec.resourceAttributes."+name+" ignored due to parse error")
		}
	}
	if s := resource.FieldSelector; s != nil {
		var whole bool
		a.FieldSelector, whole = fieldRequirements(s, limit)
		note("fieldSelector", len(a.FieldSelector), whole)
	}
	if s := resource.LabelSelector; s != nil {
		var whole bool
		a.LabelSelector, whole = labelRequirements(s, limit)
		note("labelSelector", len(a.LabelSelector), whole)
	}
	return a, problems
}

// fieldRequirements returns the requirements of a field selector, and whether they are all that it has. A field selector of a request
// can only compare a field with one value.
func fieldRequirements(s *authorizationv1.FieldSelectorAttributes, limit selector.Limit) (all fields.Requirements, whole bool) {
	if s.RawSelector != "" {
		parsed, err := limit.ParseFields(s.RawSelector)
		if err != nil {
			return nil, false
		}
		return parsed.Requirements(), true
	}
	whole = true
	for _, r := range s.Requirements {
		one := fields.Requirement{Field: r.Key}
		switch {
		case len(r.Values) == 1 && r.Operator == metav1.FieldSelectorOpIn:
			one.Operator, one.Value = selection.Equals, r.Values[0]
		case len(r.Values) == 1 && r.Operator == metav1.FieldSelectorOpNotIn:
			one.Operator, one.Value = selection.NotEquals, r.Values[0]
		default:
			whole = false
			continue
		}
		all = append(all, one)
	}
	return all, whole
}

// labelRequirements returns the requirements of a label selector, and whether they are all that it has.
func labelRequirements(s *authorizationv1.LabelSelectorAttributes, limit selector.Limit) (all labels.Requirements, whole bool) {
	if s.RawSelector != "" {
		parsed, err := limit.ParseLabels(s.RawSelector)
		if err != nil {
			return nil, false
		}
		all, _ = parsed.Requirements()
		return all, true
	}
	whole = true
	operators := map[metav1.LabelSelectorOperator]selection.Operator{
		metav1.LabelSelectorOpIn: selection.In, metav1.LabelSelectorOpNotIn: selection.NotIn,
		metav1.LabelSelectorOpExists: selection.Exists, metav1.LabelSelectorOpDoesNotExist: selection.DoesNotExist,
	}
	for _, r := range s.Requirements {
		one, err := labels.NewRequirement(r.Key, operators[r.Operator], r.Values)
		if err != nil {
			whole = false
			continue
		}
		all = append(all, *one)
	}
	return all, whole
}

// invalid returns errs as an error of a review, in the words of kube-apiserver, which names no kind; nil if there are none.
func invalid(errs field.ErrorList) error {
	if len(errs) == 0 {
		return nil
	}
	return apierrors.NewInvalid(schema.GroupKind{Group: authorizationv1.GroupName}, "", errs)
}

// checkSubject checks the spec of a review about a user.
func checkSubject(spec *authorizationv1.SubjectAccessReviewSpec) field.ErrorList {
	errs := checkAttributes(spec.ResourceAttributes, spec.NonResourceAttributes)
	if spec.User == "" && len(spec.Groups) == 0 {
		errs = append(errs, field.Invalid(field.NewPath("spec", "user"), spec.User, "at least one of user or group must be specified"))
	}
	return errs
}

// pathValue has a request for a path in the form in which kube-apiserver shows it.
type pathValue struct{ Path, Verb string }

func valueOf(path *authorizationv1.NonResourceAttributes) *pathValue {
	if path == nil {
		return nil
	}
	return &pathValue{path.Path, path.Verb}
}

// checkAttributes checks what a review asks.
func checkAttributes(resource *authorizationv1.ResourceAttributes, path *authorizationv1.NonResourceAttributes) (errs field.ErrorList) {
	spec := field.NewPath("spec")
	if (resource == nil) == (path == nil) {
		errs = append(errs, field.Invalid(spec, valueOf(path), "exactly one of nonResourceAttributes or resourceAttributes must be specified"))
	}
	if resource == nil {
		return errs
	}
	if s := resource.FieldSelector; s != nil {
		at := spec.Child("resourceAttributes", "fieldSelector")
		errs = append(errs, checkForms(s.RawSelector, len(s.Requirements), at)...)
		for i := range s.Requirements {
			r, at := &s.Requirements[i], at.Child("requirements").Index(i)
			if r.Key == "" {
				errs = append(errs, field.Required(at.Child("key"), "must be specified"))
			}
			errs = append(errs, checkValues(string(r.Operator), r.Values, at.Child("values"))...)
		}
	}
	if s := resource.LabelSelector; s != nil {
		at := spec.Child("resourceAttributes", "labelSelector")
		errs = append(errs, checkForms(s.RawSelector, len(s.Requirements), at)...)
		for i := range s.Requirements {
			r, at := &s.Requirements[i], at.Child("requirements").Index(i)
			errs = append(errs, metav1validation.ValidateLabelName(r.Key, at.Child("key"))...)
			errs = append(errs, checkValues(string(r.Operator), r.Values, at.Child("values"))...)
			for j, value := range r.Values {
				for _, why := range validation.IsValidLabelValue(value) {
					errs = append(errs, field.Invalid(at.Child("values").Index(j), value, why))
				}
			}
		}
	}
	return errs
}

// checkForms checks that a selector has one form.
func checkForms(raw string, requirements int, at *field.Path) field.ErrorList {
	switch {
	case raw != "" && requirements > 0:
		return field.ErrorList{field.Invalid(at.Child("rawSelector"), raw, "may not specified at the same time as requirements")}
	case raw == "" && requirements == 0:
		return field.ErrorList{field.Required(at.Child("requirements"), fmt.Sprintf("when %s is specified, requirements or rawSelector is required", at))}
	}
	return nil
}

// checkValues checks that a requirement has values if its operator needs some. Other operators may have any.
func checkValues(operator string, values []string, at *field.Path) field.ErrorList {
	switch operator {
	case "In", "NotIn":
		if len(values) == 0 {
			return field.ErrorList{field.Required(at, "must be specified when `operator` is 'In' or 'NotIn'")}
		}
	case "Exists", "DoesNotExist":
		if len(values) > 0 {
			return field.ErrorList{field.Forbidden(at, "may not be specified when `operator` is 'Exists' or 'DoesNotExist'")}
		}
	}
	return nil
}

// checkMeta checks that the metadata of a review is empty, but for what the server or the path of the request sets.
func checkMeta(m *metav1.ObjectMeta, want metav1.ObjectMeta, detail string) field.ErrorList {
	m.ManagedFields = nil
	m.SetSelfLink("")
	m.UID, m.CreationTimestamp, m.DeletionTimestamp, m.DeletionGracePeriodSeconds = "", metav1.Time{}, nil, nil
	if equality.Semantic.DeepEqual(*m, want) {
		return nil
	}
	return field.ErrorList{field.Invalid(field.NewPath("metadata"), *m, detail)}
}

// checkLocal checks that a review is about its namespace.
func checkLocal(r *authorizationv1.LocalSubjectAccessReview) (errs field.ErrorList) {
	spec := field.NewPath("spec")
	if a := r.Spec.ResourceAttributes; a != nil && a.Namespace != r.Namespace {
		errs = append(errs, field.Invalid(spec.Child("resourceAttributes", "namespace"), a.Namespace, "must match metadata.namespace"))
	}
	if path := r.Spec.NonResourceAttributes; path != nil {
		errs = append(errs, field.Invalid(spec.Child("nonResourceAttributes"), valueOf(path), "disallowed on this kind of request"))
	}
	return errs
}
