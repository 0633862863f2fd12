package builtin

import (
	"fmt"
	"time"

	"github.com/keelson-dev/keelson/server/internal/finalizers"
	"github.com/keelson-dev/keelson/server/registry"
	corev1 "k8s.io/api/core/v1"
	eventsv1 "k8s.io/api/events/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	"k8s.io/apimachinery/pkg/api/validate/content"
	"k8s.io/apimachinery/pkg/api/validation"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/validation/field"
)

// These are the maximum lengths of texts of an event, in bytes: see the doc comments of k8s.io/api/events/v1.
const (
	maxEventWord = 128
	maxEventNote = 1024
)

// validateEvent returns the errors that kube-apiserver finds in a new event. It has the rules of two APIs. An event with an
// eventTime is from a recorder of the new API and must be complete. For an older event only the namespace is validated. An event
// created in the version events.k8s.io/v1 must be from the new API, must not have fields of older events, and its metadata is that
// of any object. Of an event created in the core group, the registry validates the metadata when everything else is valid, and does
// not require a domain in finalizers. Paths are those of the core group in both.
func validateEvent(call *registry.Call, e *corev1.Event) field.ErrorList {
	errs := validateParts(call, e)
	if !isNewAPI(call) {
		return errs
	}
	errs = append(errs, validation.ValidateObjectMeta(&e.ObjectMeta, true, validation.NameIsDNSSubdomain, field.NewPath("metadata"))...)
	errs = append(errs, validateEventFinalizers(e)...)
	errs = append(errs, validateSeries(e.Series)...)
	if e.EventTime.IsZero() {
		errs = append(errs, field.Required(field.NewPath("eventTime"), ""))
	}
	if e.Type != corev1.EventTypeNormal && e.Type != corev1.EventTypeWarning {
		errs = append(errs, field.Invalid(field.NewPath("type"), "", "has invalid value: "+e.Type))
	}
	for _, old := range []struct {
		name string
		set  bool
	}{
		{"firstTimestamp", e.FirstTimestamp != metav1.Time{}}, // the year 1 counts as set
		{"lastTimestamp", e.LastTimestamp != metav1.Time{}},
		{"count", e.Count != 0},
		{"source", e.Source != corev1.EventSource{}},
	} {
		if old.set {
			errs = append(errs, field.Invalid(field.NewPath(old.name), "", "needs to be unset"))
		}
	}
	return errs
}

// validateEventUpdate returns the errors that kube-apiserver finds in a change. In the version events.k8s.io/v1 only the series
// and the metadata may change.
func validateEventUpdate(call *registry.Call, e, old *corev1.Event) field.ErrorList {
	errs := validateParts(call, e)
	if !isNewAPI(call) {
		return errs
	}
	errs = append(errs, validateEventFinalizers(e)...)
	if !equality.Semantic.DeepEqual(e.Series, old.Series) {
		errs = append(errs, validateSeries(e.Series)...)
	}
	for _, same := range []struct {
		name     string
		now, was any
	}{
		{"involvedObject", reference(e.InvolvedObject), reference(old.InvolvedObject)},
		{"reason", e.Reason, old.Reason},
		{"message", e.Message, old.Message},
		{"source", reporter(e.Source), reporter(old.Source)},
		{"firstTimestamp", e.FirstTimestamp, old.FirstTimestamp},
		{"lastTimestamp", e.LastTimestamp, old.LastTimestamp},
		{"count", e.Count, old.Count},
		{"type", e.Type, old.Type},
		{"eventTime", microseconds(e.EventTime), microseconds(old.EventTime)},
		{"action", e.Action, old.Action},
		{"related", (*reference)(e.Related), (*reference)(old.Related)},
		{"reportingController", e.ReportingController, old.ReportingController},
		{"reportingInstance", e.ReportingInstance, old.ReportingInstance},
	} {
		errs = append(errs, validation.ValidateImmutableField(same.now, same.was, field.NewPath(same.name))...)
	}
	return errs
}

// reference and reporter have the forms in which kube-apiserver shows two types of its API in errors: with the names of Go
// fields.
type (
	reference struct {
		Kind, Namespace, Name                  string
		UID                                    types.UID
		APIVersion, ResourceVersion, FieldPath string
	}
	reporter struct{ Component, Host string }
)

// microseconds truncates a time to the precision of JSON; a time from protobuf may be more precise.
func microseconds(t metav1.MicroTime) metav1.MicroTime {
	return metav1.NewMicroTime(t.UTC().Truncate(time.Microsecond))
}

// validateParts validates what must be valid in creates and updates, and in both versions.
func validateParts(call *registry.Call, e *corev1.Event) field.ErrorList {
	errs := validateEventNamespace(e)
	if !e.EventTime.IsZero() {
		controller := field.NewPath("reportingComponent")
		if isNewAPI(call) {
			controller = field.NewPath("reportingController")
		}
		errs = append(errs, required(controller, e.ReportingController)...)
		for _, msg := range content.IsLabelKey(e.ReportingController) {
			errs = append(errs, field.Invalid(controller, e.ReportingController, msg))
		}
		for _, word := range []struct{ name, text string }{
			{"reportingInstance", e.ReportingInstance}, {"action", e.Action}, {"reason", e.Reason},
		} {
			path := field.NewPath(word.name)
			errs = append(errs, required(path, word.text)...)
			errs = append(errs, atMost(path, word.text, maxEventWord)...)
		}
		errs = append(errs, atMost(field.NewPath("message"), e.Message, maxEventNote)...)
	}
	for _, msg := range content.IsDNS1123Subdomain(e.Namespace) {
		errs = append(errs, field.Invalid(field.NewPath("namespace"), e.Namespace, msg))
	}
	return errs
}

// validateEventFinalizers requires a domain in the names of finalizers.
func validateEventFinalizers(e *corev1.Event) (errs field.ErrorList) {
	for i, name := range e.Finalizers {
		if !finalizers.IsQualified(name) {
			errs = append(errs, field.Invalid(field.NewPath("metadata", "finalizers").Index(i), name, finalizers.Unqualified))
		}
	}
	return errs
}

// validateEventNamespace returns an error if an event is in a wrong namespace. An older event must be in the namespace of its
// object; an event of the new API may be anywhere. An event about an object without a namespace must be in default, where
// recorders put it. If it is of the new API, kube-system is also allowed.
func validateEventNamespace(e *corev1.Event) field.ErrorList {
	regarding := e.InvolvedObject.Namespace
	ok := e.Namespace == regarding
	switch {
	case regarding == "":
		ok = e.Namespace == metav1.NamespaceDefault || !e.EventTime.IsZero() && e.Namespace == metav1.NamespaceSystem
	case !e.EventTime.IsZero():
		ok = true
	}
	if ok {
		return nil
	}
	return field.ErrorList{field.Invalid(field.NewPath("involvedObject", "namespace"), regarding, "does not match event.namespace")}
}

// validateSeries validates the series of an event.
func validateSeries(s *corev1.EventSeries) (errs field.ErrorList) {
	if s == nil {
		return nil
	}
	if s.Count < 2 {
		errs = append(errs, field.Invalid(field.NewPath("series.count"), "", "should be at least 2"))
	}
	if s.LastObservedTime.IsZero() {
		errs = append(errs, field.Required(field.NewPath("series.lastObservedTime"), ""))
	}
	return errs
}

func required(path *field.Path, text string) field.ErrorList {
	if text == "" {
		return field.ErrorList{field.Required(path, "")}
	}
	return nil
}

func atMost(path *field.Path, text string, limit int) field.ErrorList {
	if len(text) > limit {
		return field.ErrorList{field.Invalid(path, "", fmt.Sprintf("can have at most %d characters", limit))}
	}
	return nil
}

// isNewAPI reports whether a request came in the version events.k8s.io/v1. Calls in the process count as calls in the core group.
func isNewAPI(call *registry.Call) bool {
	return call.APIGroup == eventsv1.GroupName && call.APIVersion == "v1"
}
