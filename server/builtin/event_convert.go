package builtin

import (
	corev1 "k8s.io/api/core/v1"
	eventsv1 "k8s.io/api/events/v1"
)

// intoCore converts an event of events.k8s.io to one of the core group, except for the metadata. Both have the same fields under
// different names: the older fields of the core group are called "deprecated" in the other group.
func intoCore(in *eventsv1.Event, out *corev1.Event) {
	out.InvolvedObject = in.Regarding
	out.Related = in.Related
	out.Reason = in.Reason
	out.Action = in.Action
	out.Message = in.Note
	out.Type = in.Type
	out.EventTime = in.EventTime
	out.Series = (*corev1.EventSeries)(in.Series)
	out.ReportingController = in.ReportingController
	out.ReportingInstance = in.ReportingInstance
	out.Source = in.DeprecatedSource
	out.FirstTimestamp = in.DeprecatedFirstTimestamp
	out.LastTimestamp = in.DeprecatedLastTimestamp
	out.Count = in.DeprecatedCount
}

// fromCore is the reverse of intoCore.
func fromCore(in *corev1.Event, out *eventsv1.Event) {
	out.Regarding = in.InvolvedObject
	out.Related = in.Related
	out.Reason = in.Reason
	out.Action = in.Action
	out.Note = in.Message
	out.Type = in.Type
	out.EventTime = in.EventTime
	out.Series = (*eventsv1.EventSeries)(in.Series)
	out.ReportingController = in.ReportingController
	out.ReportingInstance = in.ReportingInstance
	out.DeprecatedSource = in.Source
	out.DeprecatedFirstTimestamp = in.FirstTimestamp
	out.DeprecatedLastTimestamp = in.LastTimestamp
	out.DeprecatedCount = in.Count
}
