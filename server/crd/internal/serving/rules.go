package serving

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/keelson-dev/keelson/runtime"
	celrules "github.com/keelson-dev/keelson/runtime/cel/rules"
	"github.com/keelson-dev/keelson/runtime/structural"
	"github.com/keelson-dev/keelson/server/registry"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/validation/field"
)

// rules are what the versions of one custom resource say against objects. An object is judged by the schema of the version
// that the request names, and by no other: what another version would say against it is said to whoever writes it there.
type rules struct {
	scheme   *runtime.Scheme // of the kind's versions
	resource schema.GroupResource
	hub      string // the name of the version that the registry has objects in
	versions map[string]versionRules
}

// versionRules are what one version says.
type versionRules struct {
	schema *objectSchema
	scale  *registry.Scale // nil: there is none
}

// strategy makes a strategy of the rules. Metadata is the registry's to judge.
func (r *rules) strategy() registry.Strategy[*unstructured.Unstructured] {
	return registry.Strategy[*unstructured.Unstructured]{
		Validate:             r.validate,
		ValidateUpdate:       r.validateUpdate,
		ValidateStatusUpdate: r.validateStatusUpdate,
		OwnScaleChecks:       true, // between those of the schema and of lists
		PlainFinalizers:      true, // of which the next two tell
		WarnOnCreate: func(_ *registry.Call, obj *unstructured.Unstructured) []string {
			return finalizerWarnings(obj.GetFinalizers(), nil)
		},
		WarnOnUpdate: func(_ *registry.Call, obj, old *unstructured.Unstructured) []string {
			return finalizerWarnings(obj.GetFinalizers(), old.GetFinalizers())
		},
	}
}

func (r *rules) validate(call *registry.Call, obj *unstructured.Unstructured) field.ErrorList {
	version := r.version(call)
	obj, err := r.asSent(call, version, obj, nil, nil)
	if err != nil {
		return field.ErrorList{field.InternalError(nil, err)}
	}
	return r.judge(call.Context, version, obj)
}

// judge returns what is wrong with an object of a version.
func (r *rules) judge(ctx context.Context, version string, obj *unstructured.Unstructured) field.ErrorList {
	s := r.versions[version].schema.structure()
	errs := s.Validate(nil, obj.Object)
	errs = append(errs, registry.CheckScale(obj, r.versions[version].scale, false)...)
	errs = append(errs, s.ValidateEmbedded(nil, obj.Object)...)
	errs = append(errs, s.CheckLists(nil, obj.Object)...)
	return r.evaluate(version, errs, func(compiled *celrules.Rules) celrules.Outcome {
		return compiled.Validate(ctx, nil, obj.Object, celrules.Budget)
	})
}

func (r *rules) validateUpdate(call *registry.Call, obj, old *unstructured.Unstructured) field.ErrorList {
	version := r.version(call)
	was, err := r.in(call, version, old)
	if err != nil { // what cannot be shown in this version excuses nothing
		return append(r.validate(call, obj), r.withoutPast(version, err)...)
	}
	if obj, err = r.asSent(call, version, obj, old, was); err != nil {
		return field.ErrorList{field.InternalError(nil, err)}
	}
	s := r.versions[version].schema.structure()
	errs := s.ValidateUpdate(nil, obj.Object, was.Object)
	errs = append(errs, registry.CheckScale(obj, r.versions[version].scale, false)...)
	errs = append(errs, s.ValidateEmbedded(nil, obj.Object)...)
	errs = append(errs, s.CheckListsUpdate(nil, obj.Object, was.Object)...)
	return r.evaluateUpdate(call, version, errs, obj, was)
}

// validateStatusUpdate judges the status by what the schema says of it, and all lists and rules, as kube-apiserver does.
func (r *rules) validateStatusUpdate(call *registry.Call, obj, old *unstructured.Unstructured) field.ErrorList {
	version := r.version(call)
	var was map[string]any
	past, err := r.in(call, version, old)
	if err == nil {
		was = past.Object
	}
	obj, fault := r.statusAsSent(call, version, obj, old, past)
	if fault != nil {
		return field.ErrorList{field.InternalError(nil, fault)}
	}
	s := r.versions[version].schema.structure()
	var errs field.ErrorList
	if status, ok := obj.Object["status"]; ok {
		errs = statusOf(s).ValidateUpdate(field.NewPath("status"), status, was["status"])
	}
	errs = append(errs, registry.CheckScale(obj, r.versions[version].scale, true)...)
	errs = append(errs, s.CheckListsUpdate(nil, obj.Object, was)...)
	if err != nil {
		return append(errs, r.withoutPast(version, err)...)
	}
	return r.evaluateUpdate(call, version, errs, obj, past)
}

// evaluateUpdate evaluates the rules of a version on what becomes of old, both in that version, and adds what they say to errs.
// Rules that fail on what does not change are told in warnings, also of a request that is refused for something else.
func (r *rules) evaluateUpdate(call *registry.Call, version string, errs field.ErrorList, obj, old *unstructured.Unstructured) field.ErrorList {
	return r.evaluate(version, errs, func(compiled *celrules.Rules) celrules.Outcome {
		outcome := compiled.ValidateUpdate(call.Context, nil, obj.Object, old.Object, celrules.Budget)
		for _, err := range outcome.Tolerated {
			call.Warn(err.Error())
		}
		return outcome
	})
}

// evaluate adds to errs what the rules of a version say, unless these make them meaningless.
func (r *rules) evaluate(version string, errs field.ErrorList, judge func(*celrules.Rules) celrules.Outcome) field.ErrorList {
	compiled, err := r.versions[version].schema.compileRules()
	switch {
	case err != nil:
		return append(errs, field.InternalError(nil, err))
	case compiled == nil:
		return errs
	}
	if err := celrules.Blocked(errs); err != nil {
		return append(errs, err)
	}
	return append(errs, judge(compiled).Errors...)
}

// withoutPast refuses an update by rules, which may be about changes, where the old object cannot be shown in the version because
// of err.
func (r *rules) withoutPast(version string, err error) field.ErrorList {
	if compiled, fault := r.versions[version].schema.compileRules(); compiled == nil && fault == nil {
		return nil
	}
	return field.ErrorList{field.InternalError(nil, fmt.Errorf("rules about changes cannot be evaluated: %w", err))}
}

// statusOf returns the schema of the property status, nil for none.
func statusOf(s *structural.Schema) *structural.Schema {
	if s == nil {
		return nil
	}
	return s.Properties["status"]
}

// version is the name of the version that a request names, that of the hub for who is no request for this resource.
func (r *rules) version(call *registry.Call) string {
	if call.APIGroup != r.resource.Group || call.Resource != r.resource.Resource {
		return r.hub
	}
	if _, ok := r.versions[call.APIVersion]; !ok {
		return r.hub
	}
	return call.APIVersion
}

// in returns what an object of the hub is in a version. It is not to be changed.
func (r *rules) in(call *registry.Call, version string, obj *unstructured.Unstructured) (*unstructured.Unstructured, error) {
	if version == r.hub {
		return obj, nil
	}
	there, err := call.InVersion(r.scheme, obj, schema.GroupVersion{Group: r.resource.Group, Version: version})
	if err != nil {
		return nil, err
	}
	u, ok := there.(*unstructured.Unstructured)
	if !ok {
		return nil, fmt.Errorf("%T is no custom resource", there)
	}
	return u, nil
}

// finalizerWarnings tells of finalizers that are not in old and that others may use too.
func finalizerWarnings(finalizers, old []string) []string {
	var warnings []string
	for _, name := range slices.Compact(slices.Sorted(slices.Values(finalizers))) {
		switch {
		case slices.Contains(old, name) || strings.Contains(name, "/") || isStandardFinalizer(name):
		case strings.Contains(name, "."):
			warnings = append(warnings, fmt.Sprintf("metadata.finalizers: %q: prefer a domain-qualified finalizer name including a path (/) to avoid accidental conflicts with other finalizer writers", name))
		default:
			warnings = append(warnings, fmt.Sprintf("metadata.finalizers: %q: prefer a domain-qualified finalizer name to avoid accidental conflicts with other finalizer writers", name))
		}
	}
	return warnings
}

// isStandardFinalizer tells those that Kubernetes gives a meaning to.
func isStandardFinalizer(name string) bool {
	return name == "orphan" || name == "foregroundDeletion" || name == "kubernetes"
}

// asSent returns what an object of the hub is in the version of a request that wants it stored: what the request sent, if the
// object is what was made of that, and otherwise what the conversion makes of it. A conversion adds what is required and drops
// what nobody knows, and so what it returns is no judge of what somebody sent. The status is that of the object, which the
// registry may have taken from old, or left out; was is old in the version, nil on create. The result is not to be changed.
func (r *rules) asSent(call *registry.Call, version string, obj, old, was *unstructured.Unstructured) (*unstructured.Unstructured, error) {
	sent, hub := r.sent(call, version)
	if sent == nil || !sameContent(obj, hub) {
		return r.in(call, version, obj)
	}
	out := maps.Clone(sent.Object)
	switch {
	case sameStatus(obj, hub):
	case obj.Object["status"] == nil:
		delete(out, "status")
	case was != nil && sameStatus(obj, old):
		if delete(out, "status"); was.Object["status"] != nil {
			out["status"] = was.Object["status"]
		}
	default:
		return r.in(call, version, obj)
	}
	return withMetadata(out, obj, hub, sent), nil
}

// statusAsSent is asSent for a request that changes the status of old alone.
func (r *rules) statusAsSent(call *registry.Call, version string, obj, old, was *unstructured.Unstructured) (*unstructured.Unstructured, error) {
	sent, hub := r.sent(call, version)
	if sent == nil || was == nil || !sameContent(obj, old) || !sameStatus(obj, hub) {
		return r.in(call, version, obj)
	}
	out := maps.Clone(was.Object)
	if delete(out, "status"); sent.Object["status"] != nil {
		out["status"] = sent.Object["status"]
	}
	return withMetadata(out, obj, hub, sent), nil
}
