package metrics_test

import (
	"errors"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/keelson-dev/keelson/authz"
	"github.com/keelson-dev/keelson/server/metrics"
	"github.com/prometheus/client_golang/prometheus"
)

// The names, labels and bounds are those of a kube-apiserver 1.37.1, without apiserver_id_hash.
func TestAuthorizers(t *testing.T) {
	registry := prometheus.NewRegistry()
	m, err := metrics.NewAuthorizers(registry)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := metrics.NewAuthorizers(registry); err == nil {
		t.Error("the metrics are registered twice")
	}
	for _, v := range []authz.Verdict{authz.Allow, authz.NoOpinion, authz.Deny} {
		m.Decided("RBAC", "rbac", v)
	}
	m.Attempted("w", "success", time.Millisecond)
	m.FailedOpen("w", "timeout")
	m.Matched("w", true, nil, time.Millisecond)
	m.Matched("x", false, nil, time.Millisecond)
	m.Matched("y", false, errors.New("no"), time.Millisecond)
	m.Configured([]byte("before"))
	m.Configured([]byte("text"))
	const prefix = "apiserver_authorization_"
	const bounds = " 1 0.001 0.005 0.01 0.025 0.1 0.2 0.25"
	want := []string{
		prefix + "config_controller_last_config_info hash=982d9e3eb996f559e633f4d194def3761d909f5a3b647d1a851fead67c32c9d1",
		prefix + "decisions_total decision=allowed name=rbac type=RBAC",
		prefix + "decisions_total decision=denied name=rbac type=RBAC",
		prefix + "match_condition_evaluation_errors_total name=y type=Webhook",
		prefix + "match_condition_evaluation_seconds name=w type=Webhook" + bounds,
		prefix + "match_condition_evaluation_seconds name=x type=Webhook" + bounds,
		prefix + "match_condition_evaluation_seconds name=y type=Webhook" + bounds,
		prefix + "match_condition_exclusions_total name=x type=Webhook",
		prefix + "webhook_duration_seconds name=w result=success 1 0.005 0.01 0.025 0.05 0.1 0.25 0.5 1 2.5 5 10",
		prefix + "webhook_evaluations_fail_open_total name=w result=timeout",
		prefix + "webhook_evaluations_total name=w result=success",
	}
	if got := series(t, registry); !slices.Equal(got, want) {
		t.Errorf("got\n%s\nwant\n%s", strings.Join(got, "\n"), strings.Join(want, "\n"))
	}
	m.Close()
	if got := series(t, registry); len(got) > 0 {
		t.Errorf("%q are left", got)
	}
}
