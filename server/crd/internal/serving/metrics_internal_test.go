package serving

import (
	"errors"
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/keelson-dev/keelson/server/crd/conversion"
	"github.com/prometheus/client_golang/prometheus"
)

func TestWebhookMetrics(t *testing.T) {
	t.Parallel()
	in := prometheus.NewRegistry()
	m, err := newWebhookMetrics(in)
	if err != nil {
		t.Fatal(err)
	}
	if again, err := newWebhookMetrics(in); err != nil || again.requests != m.requests {
		t.Fatalf("registered twice: %v", err)
	}
	calls := 0
	h := m.hooks(conversion.Hooks{
		Converted: func(conversion.Conversion) { calls++ },
		Called:    func(conversion.Call) { calls++ },
	})
	m.serve("widgets.example.com")
	m.serve("gears.example.com")
	h.Called(conversion.Call{Definition: "widgets.example.com", Objects: 3, Took: time.Millisecond})
	h.Called(conversion.Call{Definition: "widgets.example.com", Objects: 3, Failure: conversion.PartialResponse, Took: time.Millisecond})
	h.Converted(conversion.Conversion{Definition: "widgets.example.com", From: "v1", To: "v2", Took: time.Second, Sent: 3, Remembered: 2})
	h.Converted(conversion.Conversion{Definition: "gears.example.com", From: "v2", To: "v1", Err: errors.New("no"), Shared: 1})
	if calls != 4 {
		t.Errorf("others were told %d times", calls)
	}
	want := []string{
		"apiserver_conversion_webhook_duration_seconds failure_type= result=success 1",
		"apiserver_conversion_webhook_duration_seconds failure_type=conversion_webhook_partial_response_failure result=failure 1",
		"apiserver_conversion_webhook_request_total failure_type= result=success 1",
		"apiserver_conversion_webhook_request_total failure_type=conversion_webhook_partial_response_failure result=failure 1",
		"apiserver_crd_conversion_webhook_duration_seconds crd_name=gears.example.com from_version=v2 succeeded=false to_version=v1 1",
		"apiserver_crd_conversion_webhook_duration_seconds crd_name=widgets.example.com from_version=v1 succeeded=true to_version=v2 1",
		"keelson_conversion_webhook_objects_total crd_name=gears.example.com source=shared 1",
		"keelson_conversion_webhook_objects_total crd_name=widgets.example.com source=remembered 2",
		"keelson_conversion_webhook_objects_total crd_name=widgets.example.com source=sent 3",
	}
	if got := seriesOf(t, in); !slices.Equal(got, want) {
		t.Errorf("got %q", got)
	}
	m.forget("gears.example.com")
	h.Converted(conversion.Conversion{Definition: "gears.example.com", From: "v2", To: "v1", Sent: 1}) // began before the definition's end
	want = slices.DeleteFunc(want, func(s string) bool { return s == want[4] || s == want[6] })
	if got := seriesOf(t, in); !slices.Equal(got, want) {
		t.Errorf("after forgetting: %q", got)
	}
}

// seriesOf are the series of a registry with their labels and what was counted.
func seriesOf(t *testing.T, from prometheus.Gatherer) []string {
	t.Helper()
	families, err := from.Gather()
	if err != nil {
		t.Fatal(err)
	}
	var out []string
	for _, family := range families {
		for _, m := range family.GetMetric() {
			line := family.GetName()
			for _, label := range m.GetLabel() {
				line += " " + label.GetName() + "=" + label.GetValue()
			}
			out = append(out, fmt.Sprintf("%s %v", line, m.GetCounter().GetValue()+float64(m.GetHistogram().GetSampleCount())))
		}
	}
	slices.Sort(out)
	return out
}
