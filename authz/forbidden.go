package authz

import (
	"errors"
	"fmt"
	"strings"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

var htmlSafe = strings.NewReplacer("&", "&amp;", "<", "&lt;", ">", "&gt;")

// EscapeHTML makes a message that quotes a client harmless for a browser that takes the answer for a page.
func EscapeHTML(message string) string { return htmlSafe.Replace(message) }

// ForbiddenMessage says, in kube-apiserver's words, what the user of a may not do. It is safe in HTML.
func ForbiddenMessage(a Attributes) string {
	name := ""
	if a.User != nil {
		name = a.User.Name
	}
	if !a.ResourceRequest {
		return htmlSafe.Replace(fmt.Sprintf("User %q cannot %s path %q", name, a.Verb, a.Path))
	}
	resource := a.Resource
	if a.Subresource != "" {
		resource += "/" + a.Subresource
	}
	where := "at the cluster scope"
	if a.Namespace != "" {
		where = fmt.Sprintf("in the namespace %q", a.Namespace)
	}
	return htmlSafe.Replace(fmt.Sprintf("User %q cannot %s resource %q in API group %q %s", name, a.Verb, resource, a.APIGroup, where))
}

// Forbidden is the 403 for what was not allowed; reason, which may be empty, is that of the authorizer.
func Forbidden(a Attributes, reason string) *apierrors.StatusError {
	message := ForbiddenMessage(a)
	if reason != "" {
		message += ": " + reason
	}
	return apierrors.NewForbidden(schema.GroupResource{Group: a.APIGroup, Resource: a.Resource}, a.Name, errors.New(message))
}
