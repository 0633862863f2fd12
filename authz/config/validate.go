package config

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/keelson-dev/keelson/authz/webhook"
	"github.com/keelson-dev/keelson/authz/webhook/condition"
	"k8s.io/apimachinery/pkg/util/validation"
	"k8s.io/apimachinery/pkg/util/validation/field"
)

const (
	// MaxAuthorizers is the largest number of entries of a Configuration.
	MaxAuthorizers = 128
	// maxTimeout is the longest time of an attempt.
	maxTimeout = 30 * time.Second
)

const (
	policyNoOpinion, policyDeny = "NoOpinion", "Deny"
	inCluster, kubeconfigFile   = "InClusterConfig", "KubeConfigFile"
)

// Validate returns an error with all faults of a configuration, in the words of kube-apiserver. It looks whether kubeconfigs exist, and
// does not read them.
func Validate(c *Configuration) error {
	_, err := compile(c)
	return err
}

// compile checks a configuration and compiles its conditions. The results are nil for authorizers without any.
func compile(c *Configuration) ([]*condition.Conditions, error) {
	at := field.NewPath("authorizers")
	switch {
	case len(c.Authorizers) == 0:
		return nil, field.ErrorList{field.Required(at, "at least one authorization mode must be defined")}.ToAggregate()
	case len(c.Authorizers) > MaxAuthorizers:
		return nil, field.ErrorList{field.TooMany(at, len(c.Authorizers), MaxAuthorizers)}.ToAggregate()
	}
	compiler, err := condition.NewCompiler()
	if err != nil {
		return nil, err
	}
	v := &validator{compiler: compiler, types: map[string]bool{}, names: map[string]bool{}, conditions: make([]*condition.Conditions, len(c.Authorizers))}
	var errs field.ErrorList
	for i := range c.Authorizers {
		errs = append(errs, v.entry(i, &c.Authorizers[i], at.Index(i))...)
	}
	if err := errs.ToAggregate(); err != nil {
		return nil, err
	}
	for _, e := range c.Authorizers {
		if want := strings.ToLower(e.Type); e.Type != WebhookType && e.Name != want {
			return nil, fmt.Errorf("expected name %s for authorizer %s instead of %s", want, e.Type, e.Name)
		}
	}
	return v.conditions, nil
}

// validator checks the entries of one configuration.
type validator struct {
	compiler     *condition.Compiler
	types, names map[string]bool // of the entries before; types without Webhook
	conditions   []*condition.Conditions
}

func (v *validator) entry(i int, e *Entry, at *field.Path) field.ErrorList {
	switch {
	case e.Type == "":
		return field.ErrorList{field.Required(at.Child("type"), "")}
	case !slices.Contains(types(), e.Type):
		return field.ErrorList{field.NotSupported(at.Child("type"), e.Type, types())}
	case v.types[e.Type]:
		return field.ErrorList{field.Duplicate(at.Child("type"), e.Type)}
	}
	v.types[e.Type] = e.Type != WebhookType
	errs := v.name(e.Name, at.Child("name"))
	switch {
	case e.Type != WebhookType && e.Webhook != nil:
		errs = append(errs, field.Invalid(at.Child("webhook"), "non-null", "may only be specified when type=Webhook"))
	case e.Type == WebhookType && e.Webhook == nil:
		errs = append(errs, field.Required(at.Child("webhook"), "required when type=Webhook"))
	case e.Type == WebhookType:
		errs = append(errs, v.webhook(i, e.Webhook, at)...)
	}
	return errs
}

func (v *validator) name(name string, at *field.Path) field.ErrorList {
	switch {
	case name == "":
		return field.ErrorList{field.Required(at, "")}
	case v.names[name]:
		return field.ErrorList{field.Duplicate(at, name)}
	}
	v.names[name] = true
	if problems := validation.IsDNS1123Subdomain(name); len(problems) > 0 {
		return field.ErrorList{field.Invalid(at, name, "authorizer name is invalid: "+strings.Join(problems, ", "))}
	}
	return nil
}

func (v *validator) webhook(i int, w *Webhook, at *field.Path) field.ErrorList {
	errs := timeout(w.Timeout.Duration, at.Child("timeout"))
	errs = append(errs, remembered(w.AuthorizedTTL.Duration, at.Child("authorizedTTL"))...)
	errs = append(errs, remembered(w.UnauthorizedTTL.Duration, at.Child("unauthorizedTTL"))...)
	errs = append(errs, oneOf(w.SubjectAccessReviewVersion, at.Child("subjectAccessReviewVersion"), webhook.V1, webhook.V1beta1)...)
	errs = append(errs, conditionVersion(w, at.Child("matchConditionSubjectAccessReviewVersion"))...)
	errs = append(errs, oneOf(w.FailurePolicy, at.Child("failurePolicy"), policyNoOpinion, policyDeny)...)
	errs = append(errs, connection(&w.ConnectionInfo, at.Child("connectionInfo"))...)
	expressions := make([]string, 0, len(w.MatchConditions))
	for _, c := range w.MatchConditions {
		expressions = append(expressions, c.Expression)
	}
	if len(expressions) > 0 {
		compiled, more := v.compiler.Compile(expressions, at.Child("matchConditions"))
		v.conditions[i], errs = compiled, append(errs, more...)
	}
	return errs
}

func timeout(d time.Duration, at *field.Path) field.ErrorList {
	switch {
	case d == 0:
		return field.ErrorList{field.Required(at, "")}
	case d < 0 || d > maxTimeout:
		return field.ErrorList{field.Invalid(at, d.String(), "must be > 0s and <= 30s")}
	}
	return nil
}

// remembered checks a time for which answers are remembered.
func remembered(d time.Duration, at *field.Path) field.ErrorList {
	if d < 0 {
		return field.ErrorList{field.Invalid(at, d.String(), "must be > 0s")}
	}
	return nil
}

func oneOf(value string, at *field.Path, supported ...string) field.ErrorList {
	switch {
	case value == "":
		return field.ErrorList{field.Required(at, "")}
	case !slices.Contains(supported, value):
		return field.ErrorList{field.NotSupported(at, value, supported)}
	}
	return nil
}

// conditionVersion checks the version of the variable of the conditions.
func conditionVersion(w *Webhook, at *field.Path) field.ErrorList {
	switch version := w.MatchConditionSubjectAccessReviewVersion; {
	case version == "" && len(w.MatchConditions) > 0:
		return field.ErrorList{field.Required(at, "required if match conditions are specified")}
	case version != "" && version != webhook.V1:
		return field.ErrorList{field.NotSupported(at, version, []string{webhook.V1})}
	}
	return nil
}

func connection(c *Connection, at *field.Path) field.ErrorList {
	file := at.Child("kubeConfigFile")
	switch c.Type {
	case "":
		return field.ErrorList{field.Required(at.Child("type"), "")}
	case inCluster:
		if c.KubeConfigFile != nil {
			return field.ErrorList{field.Invalid(file, *c.KubeConfigFile, "can only be set when type=KubeConfigFile")}
		}
	case kubeconfigFile:
		return kubeconfig(c.KubeConfigFile, file)
	default:
		shown := struct {
			Type           string
			KubeConfigFile *string
		}{c.Type, c.KubeConfigFile}
		return field.ErrorList{field.NotSupported(at.Child("type"), shown, []string{inCluster, kubeconfigFile})}
	}
	return nil
}

func kubeconfig(path *string, at *field.Path) field.ErrorList {
	switch {
	case path == nil || *path == "":
		return field.ErrorList{field.Required(at, "")}
	case !filepath.IsAbs(*path):
		return field.ErrorList{field.Invalid(at, *path, "must be an absolute path")}
	}
	info, err := os.Stat(*path)
	switch {
	case err != nil:
		return field.ErrorList{field.Invalid(at, *path, fmt.Sprintf("error loading file: %v", err))}
	case !info.Mode().IsRegular():
		return field.ErrorList{field.Invalid(at, *path, "must be a regular file")}
	}
	return nil
}
