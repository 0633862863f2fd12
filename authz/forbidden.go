package authz

import (
	"errors"
	"fmt"
	"strings"
	"unicode/utf8"

	"github.com/keelson-dev/keelson/runtime/excerpt"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

var htmlSafe = strings.NewReplacer("&", "&amp;", "<", "&lt;", ">", "&gt;")

// EscapeHTML escapes a message that contains text from a client, so that a browser that renders the response as HTML is not
// harmed.
func EscapeHTML(message string) string { return htmlSafe.Replace(message) }

// ForbiddenMessage returns the message, in the words of kube-apiserver, that the user of a may not make the request. It is safe
// in HTML. It contains at most 1 KiB of each text that the client chose, and at most 4 KiB of a path.
func ForbiddenMessage(a Attributes) string {
	name := ""
	if a.User != nil {
		name = excerpt.Of(a.User.Name, excerpt.Name)
	}
	verb := excerpt.Of(a.Verb, excerpt.Name)
	if !a.ResourceRequest {
		return htmlSafe.Replace(fmt.Sprintf("User %q cannot %s path %q", name, verb, excerpt.Of(a.Path, excerpt.Text)))
	}
	resource := excerpt.Of(a.Resource, excerpt.Name)
	if a.Subresource != "" {
		resource += "/" + excerpt.Of(a.Subresource, excerpt.Name)
	}
	where := "at the cluster scope"
	if a.Namespace != "" {
		where = fmt.Sprintf("in the namespace %q", excerpt.Of(a.Namespace, excerpt.Name))
	}
	return htmlSafe.Replace(fmt.Sprintf("User %q cannot %s resource %q in API group %q %s", name, verb, resource, excerpt.Of(a.APIGroup, excerpt.Name), where))
}

// maxText is the maximum length of the text of an authorizer that is shown or logged. Such a text may be long: the name of a role
// has no bound, for example.
const maxText = 1 << 10

// Shorten returns the part of the reason or error of an authorizer or authenticator that may be shown: at most 1 KiB, which ends
// with "..." if the text was cut.
func Shorten(text string) string {
	const cut = "..."
	if len(text) <= maxText {
		return text
	}
	end := maxText - len(cut)
	for end > 0 && !utf8.RuneStart(text[end]) {
		end--
	}
	return text[:end] + cut
}

// Forbidden returns the error for a request that is not allowed, with status 403. reason, which may be empty, is that of the
// authorizer; it is shortened as by Shorten.
func Forbidden(a Attributes, reason string) *apierrors.StatusError {
	message := ForbiddenMessage(a)
	if reason != "" {
		message += ": " + Shorten(reason)
	}
	resource := schema.GroupResource{Group: excerpt.Of(a.APIGroup, excerpt.Name), Resource: excerpt.Of(a.Resource, excerpt.Name)}
	return apierrors.NewForbidden(resource, excerpt.Of(a.Name, excerpt.Name), errors.New(message))
}
