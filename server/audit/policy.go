package audit

import (
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/keelson-dev/keelson/authz"
	"github.com/keelson-dev/keelson/runtime/codec"
	"k8s.io/apimachinery/pkg/util/validation"
	"k8s.io/apimachinery/pkg/util/validation/field"
)

// maxPolicyBytes bounds the text of a policy.
const maxPolicyBytes = 1 << 20

// Policy says which requests are recorded. The first rule that matches a request decides; a request that matches no rule is not
// recorded. The zero Policy records nothing.
type Policy struct {
	Rules []Rule `json:"rules,omitempty"`
	// OmitStages are stages for which no events are made, in addition to those of the rule.
	OmitStages []Stage `json:"omitStages,omitempty"`
	// OmitManagedFields removes metadata.managedFields from recorded objects, unless the rule says otherwise.
	OmitManagedFields bool `json:"omitManagedFields,omitempty"`
}

// Rule says how much is recorded of the requests that it matches. A request matches if each list that is not empty matches it.
type Rule struct {
	Level Level `json:"level"`
	// Users are names of users, and UserGroups names of groups of which a user must be in one.
	Users      []string `json:"users,omitempty"`
	UserGroups []string `json:"userGroups,omitempty"`
	// Verbs are verbs of the API, such as list, or HTTP methods in lower case for requests that are not for a resource.
	Verbs []string `json:"verbs,omitempty"`
	// Resources and Namespaces match only requests for resources. The namespace "" is that of resources without a namespace.
	Resources  []GroupResources `json:"resources,omitempty"`
	Namespaces []string         `json:"namespaces,omitempty"`
	// NonResourceURLs match only requests for paths. Each is a path, or the beginning of paths and a "*", or "*" alone.
	NonResourceURLs []string `json:"nonResourceURLs,omitempty"`
	OmitStages      []Stage  `json:"omitStages,omitempty"`
	// OmitManagedFields takes the place of that of the Policy; nil leaves it.
	OmitManagedFields *bool `json:"omitManagedFields,omitempty"`
}

// GroupResources are resources of one API group.
type GroupResources struct {
	Group string `json:"group,omitempty"` // "" is the core group, "*" all groups
	// Resources are "pods", "pods/log", "pods/*" (all subresources of pods, and not pods), "*/scale" (that subresource of all
	// resources) or "*" (everything in the group). If there are none, everything in the group matches.
	Resources []string `json:"resources,omitempty"`
	// ResourceNames are names of objects; none matches all objects. They need Resources.
	ResourceNames []string `json:"resourceNames,omitempty"`
}

// Decision says how a request is recorded. The zero Decision records nothing.
type Decision struct {
	Level             Level
	OmitManagedFields bool
	policy, rule      []Stage // that are omitted
}

// Records reports whether a stage of the request is recorded.
func (d Decision) Records(s Stage) bool {
	return d.Level.AtLeast(Metadata) && !slices.Contains(d.policy, s) && !slices.Contains(d.rule, s)
}

// Decide returns how a request is recorded. The User of a may be nil: such a request has no user whom the policy could name.
func (p *Policy) Decide(a *authz.Attributes) Decision {
	for i := range p.Rules {
		if r := &p.Rules[i]; r.matches(a) {
			d := Decision{Level: r.Level, OmitManagedFields: p.OmitManagedFields, policy: p.OmitStages, rule: r.OmitStages}
			if r.OmitManagedFields != nil {
				d.OmitManagedFields = *r.OmitManagedFields
			}
			return d
		}
	}
	return Decision{}
}

func (r *Rule) matches(a *authz.Attributes) bool {
	if len(r.Verbs) > 0 && !slices.Contains(r.Verbs, a.Verb) {
		return false
	}
	if len(r.Users) > 0 && (a.User == nil || !slices.Contains(r.Users, a.User.Name)) {
		return false
	}
	if len(r.UserGroups) > 0 && (a.User == nil || !slices.ContainsFunc(r.UserGroups, func(g string) bool { return slices.Contains(a.User.Groups, g) })) {
		return false
	}
	if len(r.NonResourceURLs) > 0 {
		return !a.ResourceRequest && slices.ContainsFunc(r.NonResourceURLs, func(url string) bool { return matchesPath(url, a.Path) })
	}
	if len(r.Resources) == 0 && len(r.Namespaces) == 0 {
		return true
	}
	return a.ResourceRequest && (len(r.Namespaces) == 0 || slices.Contains(r.Namespaces, a.Namespace)) &&
		(len(r.Resources) == 0 || slices.ContainsFunc(r.Resources, func(g GroupResources) bool { return g.matches(a) }))
}

func matchesPath(pattern, path string) bool {
	if head, ok := strings.CutSuffix(pattern, "*"); ok {
		return strings.HasPrefix(path, head)
	}
	return pattern == path
}

func (g *GroupResources) matches(a *authz.Attributes) bool {
	if g.Group != a.APIGroup && g.Group != "*" || len(g.ResourceNames) > 0 && !slices.Contains(g.ResourceNames, a.Name) {
		return false
	}
	return len(g.Resources) == 0 || slices.ContainsFunc(g.Resources, func(pattern string) bool { return matchesResource(pattern, a) })
}

func matchesResource(pattern string, a *authz.Attributes) bool {
	resource, sub, both := strings.Cut(pattern, "/")
	switch {
	case pattern == "*":
		return true
	case !both:
		return resource == a.Resource && a.Subresource == ""
	case sub == "*":
		return resource == a.Resource && a.Subresource != ""
	}
	return (resource == "*" || resource == a.Resource) && sub == a.Subresource
}

// ParsePolicy returns the policy of a file in YAML or JSON, with apiVersion audit.k8s.io/v1 and kind Policy. It must have rules.
// Other than kube-apiserver, which logs unknown fields and ignores them, ParsePolicy returns an error for these, because a
// misspelled field can make a rule match everything. The error has a line for each fault.
func ParsePolicy(text []byte) (*Policy, error) {
	if len(text) > maxPolicyBytes {
		return nil, fmt.Errorf("audit: the policy has %d bytes, at most %d are allowed", len(text), maxPolicyBytes)
	}
	json, problems, err := codec.YAML().ToJSON(text, codec.Strict)
	if err != nil {
		return nil, fmt.Errorf("audit: the policy cannot be read: %w", err)
	}
	var file struct {
		APIVersion string         `json:"apiVersion"`
		Kind       string         `json:"kind"`
		Metadata   map[string]any `json:"metadata"`
		Policy     `json:",inline"`
	}
	more, err := codec.Unmarshal(json, &file, codec.Strict)
	if err != nil {
		return nil, fmt.Errorf("audit: the policy cannot be read: %w", err)
	}
	if file.APIVersion != "audit.k8s.io/v1" || file.Kind != "Policy" {
		return nil, fmt.Errorf("audit: the policy has the apiVersion %q and the kind %q: use audit.k8s.io/v1 and Policy", file.APIVersion, file.Kind)
	}
	errs := slices.Concat(problems, more)
	if len(file.Rules) == 0 {
		errs = append(errs, errors.New("rules: Required value: without rules nothing is recorded"))
	}
	if err := file.Validate(); err != nil {
		errs = append(errs, err)
	}
	if len(errs) > 0 {
		return nil, fmt.Errorf("audit: the policy is invalid: %w", errors.Join(errs...))
	}
	return &file.Policy, nil
}

// Validate returns an error with a line for each fault of a policy.
func (p *Policy) Validate() error {
	errs := checkStages(p.OmitStages, field.NewPath("omitStages"))
	for i := range p.Rules {
		errs = append(errs, p.Rules[i].validate(field.NewPath("rules").Index(i))...)
	}
	return errors.Join(toErrors(errs)...)
}

func (r *Rule) validate(at *field.Path) field.ErrorList {
	var errs field.ErrorList
	switch {
	case r.Level == "":
		errs = append(errs, field.Required(at.Child("level"), ""))
	case !slices.Contains(levels[:], r.Level):
		errs = append(errs, field.NotSupported(at.Child("level"), r.Level, levels[:]))
	}
	errs = append(errs, checkStages(r.OmitStages, at.Child("omitStages"))...)
	for i, url := range r.NonResourceURLs {
		star := strings.IndexByte(url, '*')
		if url != "*" && !strings.HasPrefix(url, "/") {
			errs = append(errs, field.Invalid(at.Child("nonResourceURLs").Index(i), url, "must begin with / or be *"))
		}
		if star >= 0 && star < len(url)-1 {
			errs = append(errs, field.Invalid(at.Child("nonResourceURLs").Index(i), url, "may have * only at its end"))
		}
	}
	if len(r.NonResourceURLs) > 0 && (len(r.Resources) > 0 || len(r.Namespaces) > 0) {
		errs = append(errs, field.Invalid(at.Child("nonResourceURLs"), r.NonResourceURLs, "a rule is about resources and namespaces, or about URLs: make two rules"))
	}
	for i := range r.Resources {
		errs = append(errs, r.Resources[i].validate(at.Child("resources").Index(i))...)
	}
	return errs
}

func (g *GroupResources) validate(at *field.Path) field.ErrorList {
	var errs field.ErrorList
	if g.Group != "" && g.Group != "*" {
		if strings.Contains(g.Group, "/") {
			errs = append(errs, field.Invalid(at.Child("group"), g.Group, "must be the name of a group without a version"))
		} else {
			for _, what := range validation.IsDNS1123Subdomain(g.Group) {
				errs = append(errs, field.Invalid(at.Child("group"), g.Group, what))
			}
		}
	}
	if len(g.ResourceNames) > 0 && len(g.Resources) == 0 {
		errs = append(errs, field.Invalid(at.Child("resourceNames"), g.ResourceNames, "need resources"))
	}
	return errs
}

func checkStages(stages []Stage, at *field.Path) field.ErrorList {
	known := []Stage{RequestReceived, ResponseStarted, ResponseComplete, Panic}
	var errs field.ErrorList
	for i, s := range stages {
		if !slices.Contains(known, s) {
			errs = append(errs, field.NotSupported(at.Index(i), s, known))
		}
	}
	return errs
}

func toErrors(list field.ErrorList) []error {
	errs := make([]error, len(list))
	for i, err := range list {
		errs[i] = err
	}
	return errs
}
