package rbac

import (
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/keelson-dev/keelson/authn"
	"github.com/keelson-dev/keelson/runtime/excerpt"
	rbacv1 "k8s.io/api/rbac/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	utilerrors "k8s.io/apimachinery/pkg/util/errors"
)

// CheckGrant returns an error if rules allow more in namespace than the roles of user do; namespace is "" for ClusterRoles. The
// text of the error is that of kube-apiserver. It names the missing permissions and, among the user's roles, those that do not
// exist, as objects of resource, which is the resource of the request. Other errors are [ErrTooManyParts], and one that wraps
// [ErrUnknown].
func (p *Policy) CheckGrant(user *authn.User, namespace, resource string, rules []rbacv1.PolicyRule) error {
	if err := p.unknown(); err != nil {
		return fmt.Errorf("%w: %w", ErrUnknown, err)
	}
	held, lost := p.held(user, namespace)
	missing, more, err := Uncovered(held, rules)
	if err != nil {
		return err
	}
	if len(missing) == 0 {
		return nil
	}
	groups := shortened(user.Groups[:min(len(user.Groups), mostGroups)])
	if len(user.Groups) > mostGroups {
		groups = append(groups, "...")
	}
	text := fmt.Sprintf("user %q (groups=%q) is attempting to grant RBAC permissions not currently held:\n%s",
		excerpt.Of(user.Name, excerpt.Name), groups, listed(missing, more))
	if len(lost) > 0 {
		text += fmt.Sprintf("; resolution errors: [%v]", notFound(resource, lost))
	}
	return errors.New(text)
}

const (
	// mostText bounds the permissions that the text of a refusal names, in bytes.
	mostText = 32 << 10
	// mostGroups bounds the groups of the user in the text of a refusal.
	mostGroups = 100
)

// listed returns parts of rules as lines, with "and more" at the end if there are others.
func listed(parts []rbacv1.PolicyRule, more bool) string {
	var b strings.Builder
	for i, line := range compact(parts) {
		if b.Len()+len(line) > mostText {
			more = true
			break
		}
		if i > 0 {
			b.WriteByte('\n')
		}
		b.WriteString(line)
	}
	if more {
		b.WriteString("\nand more")
	}
	return b.String()
}

// shortened returns texts of which each has at most 1 KiB.
func shortened(texts []string) []string {
	out := make([]string, len(texts))
	for i, text := range texts {
		out[i] = excerpt.Of(text, excerpt.Name)
	}
	return out
}

// ErrUnknown says that roles and bindings are not loaded, or cannot be read.
var ErrUnknown = errors.New("what the user may grant is not known")

// HoldsAll reports whether the roles of user allow everything everywhere. An error wraps [ErrUnknown].
func (p *Policy) HoldsAll(user *authn.User) (bool, error) {
	all := []string{"*"}
	err := p.CheckGrant(user, "", "", []rbacv1.PolicyRule{
		{Verbs: all, APIGroups: all, Resources: all},
		{Verbs: all, NonResourceURLs: all},
	})
	if errors.Is(err, ErrUnknown) {
		return false, err
	}
	return err == nil, nil
}

// RulesOfRole returns the rules of the role that a binding in namespace refers to; namespace is "" for a ClusterRoleBinding. It
// returns false if there is no such role. The rules must not be changed. An error wraps [ErrUnknown].
func (p *Policy) RulesOfRole(ref rbacv1.RoleRef, namespace string) (rules []rbacv1.PolicyRule, ok bool, err error) {
	if err := p.unknown(); err != nil {
		return nil, false, fmt.Errorf("%w: %w", ErrUnknown, err)
	}
	in := p.cluster
	if namespace != "" {
		in = p.namespace(namespace)
	}
	rules, err = p.rulesOf(in, &binding{namespace: namespace, role: ref})
	return rules, err == nil, nil
}

// held returns the rules of a user for the objects of a namespace, and the roles of the user's bindings that do not exist.
func (p *Policy) held(user *authn.User, namespace string) (rules []rbacv1.PolicyRule, lost []error) {
	d := decision{policy: p, user: user}
	for _, s := range []*scope{p.cluster, p.namespace(namespace)} {
		d.each(s, func(more []rbacv1.PolicyRule) { rules = append(rules, more...) })
	}
	return rules, d.missing
}

// notFound returns the errors of roles that do not exist as those of objects of a resource, as kube-apiserver shows them here.
func notFound(resource string, lost []error) error {
	var all []error
	for _, err := range lost {
		var status apierrors.APIStatus
		if errors.As(err, &status) && status.Status().Details != nil {
			err = apierrors.NewNotFound(rbacv1.Resource(resource), status.Status().Details.Name)
		}
		all = append(all, err)
	}
	return utilerrors.NewAggregate(all)
}

// compact returns a text for each resource, with its verbs, and one for each path and verb, in alphabetical order. The parts are
// those of [Uncovered].
func compact(parts []rbacv1.PolicyRule) []string {
	var merged []*rbacv1.PolicyRule
	known := map[[3]string]*rbacv1.PolicyRule{}
	for i := range parts {
		part := rbacv1.PolicyRule{ // a long text is not shown, nor compared, as a whole
			Verbs: shortened(parts[i].Verbs), APIGroups: shortened(parts[i].APIGroups), Resources: shortened(parts[i].Resources),
			ResourceNames: shortened(parts[i].ResourceNames), NonResourceURLs: shortened(parts[i].NonResourceURLs),
		}
		if len(part.Resources) == 1 && len(part.APIGroups) == 1 {
			key := [3]string{part.APIGroups[0], part.Resources[0]}
			if len(part.ResourceNames) == 1 {
				key[2] = "/" + part.ResourceNames[0] // differs from no name
			}
			if first := known[key]; first != nil {
				first.Verbs = append(first.Verbs, part.Verbs...)
				continue
			}
			known[key] = &part
		}
		merged = append(merged, &part)
	}
	var lines []string
	for _, r := range merged {
		lines = append(lines, ruleText(r))
	}
	slices.Sort(lines)
	return slices.Compact(lines)
}

// ruleText returns a rule as kube-apiserver shows it.
func ruleText(r *rbacv1.PolicyRule) string {
	var fields []string
	add := func(name string, values []string) {
		if len(values) == 0 {
			return
		}
		quoted := make([]string, len(values))
		for i, v := range values {
			quoted[i] = strconv.Quote(v)
		}
		fields = append(fields, name+":["+strings.Join(quoted, " ")+"]")
	}
	add("APIGroups", r.APIGroups)
	add("Resources", r.Resources)
	add("NonResourceURLs", r.NonResourceURLs)
	add("ResourceNames", r.ResourceNames)
	add("Verbs", r.Verbs)
	return "{" + strings.Join(fields, ", ") + "}"
}
