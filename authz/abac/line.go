package abac

import (
	"bytes"
	"fmt"

	"github.com/keelson-dev/keelson/authn"
	v0 "github.com/keelson-dev/keelson/authz/abac/internal/v0"
	"github.com/keelson-dev/keelson/authz/abac/internal/v1beta1"
	"github.com/keelson-dev/keelson/runtime/codec"
	apiruntime "k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	apijson "k8s.io/apimachinery/pkg/runtime/serializer/json"
)

const (
	policyGroup = "abac.authorization.kubernetes.io"
	policyKind  = "Policy"
	oldVersion  = "v0"
	newVersion  = "v1beta1"
	all         = "*"
	// scheme stands in the message about kinds that are not known.
	scheme = "pkg/runtime/scheme.go:111"
)

// readLine reads a line, which is JSON or YAML. unversioned is true for one in the old form, which states no version.
func readLine(line []byte) (r rule, unversioned bool, err error) {
	text := line
	if !bytes.HasPrefix(bytes.TrimSpace(line), []byte("{")) {
		if text, _, err = codec.YAML().ToJSON(line, codec.Ignore); err != nil {
			return rule{}, false, err
		}
	}
	kind, err := apijson.DefaultMetaFactory.Interpret(text)
	if err != nil {
		return rule{}, false, err
	}
	is := *kind
	if unversioned = is.Kind == "" || is.Version == ""; unversioned {
		is = asOld(is)
	}
	switch {
	case is.Group != policyGroup || is.Kind != policyKind || is.Version != oldVersion && is.Version != newVersion:
		return rule{}, false, apiruntime.NewNotRegisteredErrForKind(scheme, is)
	case is.Version == oldVersion:
		r, err = readOld(text)
	case unversioned:
		err = fmt.Errorf("converting (%s.%s) to (%s.%s): unknown conversion", newVersion, policyKind, oldVersion, policyKind)
	default:
		r, err = readVersioned(text)
	}
	return r, unversioned, err
}

// asOld returns what a line is that does not state its version or its kind.
func asOld(is schema.GroupVersionKind) schema.GroupVersionKind {
	if is.Kind == "" {
		is.Kind = policyKind
	}
	if is.Version == "" {
		is.Group, is.Version = policyGroup, oldVersion
	}
	return is
}

// readVersioned reads a line in v1beta1.
func readVersioned(text []byte) (rule, error) {
	var p v1beta1.Policy
	if _, err := codec.Unmarshal(text, &p, codec.Ignore); err != nil {
		return rule{}, err
	}
	r := rule(p.Spec)
	if r.User == all || r.Group == all {
		r.User, r.Group = "", authn.AuthenticatedAll
	}
	return r, nil
}

// readOld reads a line in the old form.
func readOld(text []byte) (rule, error) {
	var p v0.Policy
	if _, err := codec.Unmarshal(text, &p, codec.Ignore); err != nil {
		return rule{}, err
	}
	r := rule{User: p.User, Group: p.Group, Readonly: p.Readonly, APIGroup: all, Resource: p.Resource, Namespace: p.Namespace}
	if p.User == "" && p.Group == "" || p.User == all || p.Group == all {
		r.User, r.Group = "", authn.AuthenticatedAll
	}
	if p.Resource == "" && p.Namespace == "" {
		r.NonResourcePath = all
	}
	if p.Resource == "" {
		r.Resource = all
	}
	if p.Namespace == "" {
		r.Namespace = all
	}
	return r, nil
}
