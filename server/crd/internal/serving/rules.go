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
	"k8s.io/apimachinery/pkg/api/validation"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/validation/field"
)

// rules validates the objects of one custom resource. An object is validated by the schema of the version that the request names,
// and by no other. The schema of another version applies only to requests in that version.
type rules struct {
	scheme     *runtime.Scheme // of the versions of the kind
	resource   schema.GroupResource
	namespaced bool
	hub        string // the name of the version in which the registry has objects
	versions   map[string]versionRules
}

// versionRules are the schema and the scale of one version.
type versionRules struct {
	schema *objectSchema
	scale  *registry.Scale // nil if there is none
}

// strategy returns a strategy that applies the rules. The registry validates the metadata.
func (r *rules) strategy() registry.Strategy[*unstructured.Unstructured] {
	return registry.Strategy[*unstructured.Unstructured]{
		Validate:             r.validate,
		ValidateUpdate:       r.validateUpdate,
		ValidateStatusUpdate: r.validateStatusUpdate,
		HubFieldNames:        true, // the schema of each version has its own errors
		OwnScaleChecks:       true, // judge makes them between the checks of the schema and of lists
		PlainFinalizers:      true, // the two functions below warn about them
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
	sent, err := r.asSent(call, version, obj, nil, nil)
	if err != nil {
		return field.ErrorList{field.InternalError(nil, err)}
	}
	return r.judge(call.Context, version, sent, func() field.ErrorList {
		return validation.ValidateObjectMetaAccessor(obj, r.namespaced, validation.NameIsDNSSubdomain, field.NewPath("metadata"))
	})
}

// judge returns the errors of an object in a version. metadata returns the errors in its metadata; nil is none.
func (r *rules) judge(ctx context.Context, version string, obj *unstructured.Unstructured, metadata func() field.ErrorList) field.ErrorList {
	s := r.versions[version].schema.structure()
	errs := s.Validate(nil, obj.Object)
	errs = append(errs, registry.CheckScale(obj, r.versions[version].scale, false)...)
	errs = append(errs, s.ValidateEmbedded(nil, obj.Object)...)
	errs = append(errs, s.CheckLists(nil, obj.Object)...)
	return r.evaluate(version, errs, metadata, func(compiled *celrules.Rules) celrules.Outcome {
		return compiled.Validate(ctx, nil, obj.Object, celrules.Budget)
	})
}

func (r *rules) validateUpdate(call *registry.Call, obj, old *unstructured.Unstructured) field.ErrorList {
	version := r.version(call)
	was, err := r.in(call, version, old)
	if err != nil { // an old object that cannot be converted makes nothing tolerable
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

// validateStatusUpdate validates the status by its schema, and the whole object by all lists and rules, as kube-apiserver does.
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

// evaluateUpdate evaluates the rules of a version on a change from old to obj, both in that version, and adds the errors to errs.
// Rules that fail on unchanged values give warnings, also if the request is refused for another reason.
func (r *rules) evaluateUpdate(call *registry.Call, version string, errs field.ErrorList, obj, old *unstructured.Unstructured) field.ErrorList {
	metadata := func() field.ErrorList {
		return validation.ValidateObjectMetaAccessorUpdate(obj, old, field.NewPath("metadata"))
	}
	return r.evaluate(version, errs, metadata, func(compiled *celrules.Rules) celrules.Outcome {
		outcome := compiled.ValidateUpdate(call.Context, nil, obj.Object, old.Object, celrules.Budget)
		for _, err := range outcome.Tolerated {
			call.Warn(err.Error())
		}
		return outcome
	})
}

// evaluate adds the errors of a version's rules to errs, unless the rules cannot be evaluated because of errs, or because of the
// errors in the metadata, which the registry returns.
func (r *rules) evaluate(version string, errs field.ErrorList, metadata func() field.ErrorList, judge func(*celrules.Rules) celrules.Outcome) field.ErrorList {
	compiled, err := r.versions[version].schema.compileRules()
	switch {
	case err != nil:
		return append(errs, field.InternalError(nil, err))
	case compiled == nil:
		return errs
	}
	blocking := errs
	if metadata != nil {
		blocking = slices.Concat(metadata(), errs)
	}
	if err := celrules.Blocked(blocking); err != nil {
		return append(errs, err)
	}
	return append(errs, judge(compiled).Errors...)
}

// withoutPast returns the error of an update if there are rules, which may compare with the old object, but the old object cannot
// be converted to the version because of err.
func (r *rules) withoutPast(version string, err error) field.ErrorList {
	if compiled, fault := r.versions[version].schema.compileRules(); compiled == nil && fault == nil {
		return nil
	}
	return field.ErrorList{field.InternalError(nil, fmt.Errorf("rules about changes cannot be evaluated: %w", err))}
}

// statusOf returns the schema of the property status, or nil.
func statusOf(s *structural.Schema) *structural.Schema {
	if s == nil {
		return nil
	}
	return s.Properties["status"]
}

// version returns the name of the version that a request names, or that of the hub if the request is not for this resource.
func (r *rules) version(call *registry.Call) string {
	if call.APIGroup != r.resource.Group || call.Resource != r.resource.Resource {
		return r.hub
	}
	if _, ok := r.versions[call.APIVersion]; !ok {
		return r.hub
	}
	return call.APIVersion
}

// in returns an object of the hub in a version. The result must not be changed.
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

// finalizerWarnings returns warnings about finalizers that are not in old and whose names others may use too.
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

// isStandardFinalizer reports whether a name is a finalizer that Kubernetes defines.
func isStandardFinalizer(name string) bool {
	return name == "orphan" || name == "foregroundDeletion" || name == "kubernetes"
}

// asSent returns an object of the hub in the version of a request that wants to store it. If the object was made from what the
// request sent, the result is that. Otherwise the object is converted. Conversions may add required fields and drop unknown ones,
// so that the converted object would not show what is wrong with the sent one. The status is that of obj, because the registry
// may have taken it from old or left it out. was is old in the version, nil on create. The result must not be changed.
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

// statusAsSent is asSent for a request that changes only the status of old.
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
