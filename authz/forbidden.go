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

// EscapeHTML makes a message that quotes a client harmless for a browser that takes the answer for a page.
func EscapeHTML(message string) string { return htmlSafe.Replace(message) }

// ForbiddenMessage says, in kube-apiserver's words, what the user of a may not do. It is safe in HTML. Of what the
// client chose it shows 1 KiB each, and 4 KiB of a path.
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

// maxText bounds the text of an authorizer that is shown or logged. A role has a name of any length, for one.
const maxText = 1 << 10

// Shorten cuts the reason or the error of an authorizer or authenticator to what is shown of it: 1 KiB, the last of it "...".
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

// Forbidden is the 403 for what was not allowed; reason, which may be empty, is that of the authorizer. The client is shown 1 KiB
// of it: see Shorten.
func Forbidden(a Attributes, reason string) *apierrors.StatusError {
	message := ForbiddenMessage(a)
	if reason != "" {
		message += ": " + Shorten(reason)
	}
	resource := schema.GroupResource{Group: excerpt.Of(a.APIGroup, excerpt.Name), Resource: excerpt.Of(a.Resource, excerpt.Name)}
	return apierrors.NewForbidden(resource, excerpt.Of(a.Name, excerpt.Name), errors.New(message))
}
