package servertest

import (
	"fmt"
	"mime"
	"net/http"
	"slices"
	"strings"

	"github.com/keelson-dev/keelson/server/catalogue"

	"github.com/keelson-dev/keelson/authn"
	"github.com/keelson-dev/keelson/server/request"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/validation"
)

// Match selects requests for a [Fault] or a [Recording]: those that match every field that is set. The zero Match selects every
// request for a resource. Other requests, such as those for discovery and health checks, are never selected.
type Match struct {
	// Verbs are the verbs of authorization (https://kubernetes.io/docs/reference/access-authn-authz/authorization/): get, list,
	// watch, create, update, patch, delete, deletecollection. The verb apply selects the patches that apply a configuration;
	// patch selects them too. "*", or an empty Verbs, means every verb.
	Verbs []string
	// Resources are plural names, with the rules of RBAC: "widgets" selects the objects, without their subresources;
	// "widgets/status" selects one subresource, "widgets/*" all of them, and "*/status" that of every resource. "*", or an empty
	// Resources, means all resources with their subresources. "widgets.example.com" is the resource of one group; "widgets" is
	// that of any group.
	Resources []string
	// Namespace and Name are those of the request's path. A fieldSelector of metadata.name counts as a name. The name of a create
	// is in its body, which is not matched.
	Namespace, Name string
	// User is the name of the user who makes the request.
	User string
	// UserAgent is a prefix of the header User-Agent: "my-controller/".
	UserAgent string
}

// verbs returns the verbs of requests for a resource.
func verbs() []string {
	return []string{"get", "list", "watch", "create", "update", "patch", "delete", "deletecollection"}
}

const (
	anything  = "*"
	applyVerb = "apply" // only in a Match; the verb of authorization is patch
)

// check returns an error for a Match that no request could match.
func (m *Match) check(served []catalogue.Kind) error {
	for _, v := range m.Verbs {
		if v != anything && v != applyVerb && !slices.Contains(verbs(), v) {
			return fmt.Errorf("there is no verb %q: want %s, apply or *", v, strings.Join(verbs(), ", "))
		}
	}
	onlyObjects := len(m.Resources) > 0
	for _, r := range m.Resources {
		if err := checkResource(r, served); err != nil {
			return err
		}
		onlyObjects = onlyObjects && r != anything && !strings.Contains(r, "/")
	}
	nameless := func(v string) bool { return v == "create" || v == "deletecollection" }
	if m.Name != "" && onlyObjects && len(m.Verbs) > 0 && !slices.ContainsFunc(m.Verbs, func(v string) bool { return !nameless(v) }) {
		return fmt.Errorf("the path of a %s has no name, so that none could match %q: leave Name out", strings.Join(m.Verbs, " or a "), m.Name)
	}
	return nil
}

func checkResource(r string, served []catalogue.Kind) error {
	if r == anything {
		return nil
	}
	full, sub, hasSub := strings.Cut(r, "/")
	name, group, hasGroup := strings.Cut(full, ".")
	switch {
	case hasSub && sub != anything && len(validation.IsDNS1123Label(sub)) > 0:
		return fmt.Errorf("there is no resource %q: what is after the slash is a subresource, such as status, or *", r)
	case full == anything && hasSub:
		return nil
	case len(validation.IsDNS1123Label(name)) > 0:
		return fmt.Errorf("there is no resource %q: want the plural in lower case, such as widgets, widgets.example.com or widgets/status", r)
	case hasGroup && len(validation.IsDNS1123Subdomain(group)) > 0:
		return fmt.Errorf("there is no resource %q: what is after the first dot is a group, such as example.com", r)
	}
	// A resource that is not served now may be served later. But an unknown subresource of a served resource, and the name of a
	// served kind in place of its resource, are mistakes.
	var subs []string
	found := false
	for _, k := range served {
		if k.Resource.Resource == name && (!hasGroup || k.Resource.Group == group) {
			found, subs = true, append(subs, k.Subresources...)
		}
	}
	if found {
		if hasSub && sub != anything && !slices.Contains(subs, sub) {
			return fmt.Errorf("there is no resource %q: the subresources of %s are %q", r, full, subs)
		}
		return nil
	}
	for _, k := range served {
		if strings.EqualFold(k.Kind.Kind, name) {
			return fmt.Errorf("there is no resource %q: that of the kind %s is called %s", r, k.Kind.Kind, k.Resource.Resource)
		}
	}
	return nil
}

// matches reports whether all fields except User match. The user may not be known yet.
func (m *Match) matches(r *http.Request, info *request.Info) bool {
	return info.ResourceRequest &&
		(m.Namespace == "" || m.Namespace == info.Namespace) &&
		(m.Name == "" || m.Name == info.Name) &&
		strings.HasPrefix(r.UserAgent(), m.UserAgent) &&
		(len(m.Verbs) == 0 || slices.ContainsFunc(m.Verbs, func(v string) bool { return matchesVerb(v, r, info) })) &&
		(len(m.Resources) == 0 || slices.ContainsFunc(m.Resources, func(s string) bool { return matchesResource(s, info) }))
}

func (m *Match) matchesUser(u *authn.User) bool {
	return m.User == "" || u != nil && u.Name == m.User
}

func matchesVerb(v string, r *http.Request, info *request.Info) bool {
	return v == anything || v == info.Verb || v == applyVerb && isApply(info.Verb, r.Header.Get("Content-Type"))
}

// isApply reports whether a request applies a configuration.
func isApply(verb, contentType string) bool {
	if verb != "patch" {
		return false
	}
	mediaType, _, err := mime.ParseMediaType(contentType)
	return err == nil && mediaType == string(types.ApplyYAMLPatchType)
}

func matchesResource(s string, info *request.Info) bool {
	if s == anything {
		return true
	}
	full, sub, _ := strings.Cut(s, "/")
	if sub != info.Subresource && (sub != anything || info.Subresource == "") {
		return false
	}
	name, group, hasGroup := strings.Cut(full, ".")
	return full == anything || name == info.Resource && (!hasGroup || group == info.APIGroup)
}
