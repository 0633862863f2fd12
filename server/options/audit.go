package options

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"
)

// Audit has the values of the flags about audit.
type Audit struct {
	PolicyFile string       // the file of the policy; "" records nothing
	Log        AuditLog     // the log for events
	Webhook    AuditWebhook // the server that events are sent to
}

// AuditLog has the values of the flags that begin with --audit-log. If there is no Path, the others are not checked.
type AuditLog struct {
	Path   string // "" is no log, "-" standard output
	Format string // json or legacy
	// MaxAge is in days, MaxBackup a number of files, and MaxSize in megabytes. 0 is no bound.
	MaxAge, MaxBackup, MaxSize int
	Compress                   bool
	AuditDelivery
}

// AuditWebhook has the values of the flags that begin with --audit-webhook. If there is no ConfigFile, the others are not checked.
type AuditWebhook struct {
	ConfigFile string        // a kubeconfig; "" is no webhook
	Backoff    time.Duration // before the second attempt
	AuditDelivery
}

// AuditDelivery has the values of the flags that the log and the webhook both have.
type AuditDelivery struct {
	Version string // audit.k8s.io/v1
	Mode    string // batch, blocking or blocking-strict
	// Buffer is the number of events that wait, BatchSize that of a batch, and BatchWait the time that a batch waits for more. They
	// and those of the next line are for the mode batch.
	Buffer, BatchSize int
	BatchWait         time.Duration
	Throttle          bool // QPS and Burst bound the batches
	QPS               float32
	Burst             int
	// Truncate bounds an event and a batch by MaxEventBytes and MaxBatchBytes.
	Truncate                     bool
	MaxEventBytes, MaxBatchBytes int
}

// auditVersion is the only version of events.
const auditVersion = "audit.k8s.io/v1"

// defaultAudit returns the defaults of kube-apiserver.
func defaultAudit() Audit {
	both := AuditDelivery{Version: auditVersion, Buffer: 10_000, MaxEventBytes: 100 << 10, MaxBatchBytes: 10 << 20}
	a := Audit{
		Log:     AuditLog{Format: "json", MaxAge: 366, MaxBackup: 100, MaxSize: 100, AuditDelivery: both},
		Webhook: AuditWebhook{Backoff: 10 * time.Second, AuditDelivery: both},
	}
	a.Log.Mode, a.Log.BatchSize = "blocking", 1
	a.Webhook.Mode, a.Webhook.BatchSize, a.Webhook.BatchWait = "batch", 400, 30*time.Second
	a.Webhook.Throttle, a.Webhook.QPS, a.Webhook.Burst = true, 10, 15
	return a
}

// check refuses values that are wrong for the log or the webhook, if there is one.
func (a *Audit) check() error {
	var all []error
	if l := a.Log; l.Path != "" {
		if l.Format != "json" && l.Format != "legacy" {
			all = append(all, fmt.Errorf("--audit-log-format: %q is no format: use json or legacy", l.Format))
		}
		for _, n := range []struct {
			flag  string
			value int
		}{{"maxage", l.MaxAge}, {"maxbackup", l.MaxBackup}, {"maxsize", l.MaxSize}} {
			if n.value < 0 {
				all = append(all, fmt.Errorf("--audit-log-%s %d must not be negative; 0 is no bound", n.flag, n.value))
			}
		}
		all = append(all, l.check("--audit-log"))
	}
	if w := a.Webhook; w.ConfigFile != "" {
		if w.Backoff <= 0 {
			all = append(all, fmt.Errorf("--audit-webhook-initial-backoff %v must be positive", w.Backoff))
		}
		all = append(all, w.check("--audit-webhook"))
	}
	return errors.Join(all...)
}

// check is for the flags that begin with prefix.
func (d *AuditDelivery) check(prefix string) error {
	var all []error
	bad := func(is bool, flag, format string, args ...any) {
		if is {
			all = append(all, fmt.Errorf(prefix+"-"+flag+format, args...))
		}
	}
	modes := []string{"batch", "blocking", "blocking-strict"}
	bad(d.Version != auditVersion, "version", ": %q is no version of events: use %s", d.Version, auditVersion)
	bad(!slices.Contains(modes, d.Mode), "mode", ": %q is no mode: use %s", d.Mode, strings.Join(modes, ", "))
	if d.Mode == "batch" {
		bad(d.Buffer <= 0, "batch-buffer-size", " %d must be positive", d.Buffer)
		bad(d.BatchSize <= 0, "batch-max-size", " %d must be positive", d.BatchSize)
		bad(d.BatchWait < 0, "batch-max-wait", " %v must not be negative", d.BatchWait)
		bad(d.Throttle && !(d.QPS > 0), "batch-throttle-qps", " %v must be positive, or the rate not limited", d.QPS)
		bad(d.Throttle && d.Burst <= 0, "batch-throttle-burst", " %d must be positive, or the rate not limited", d.Burst)
	}
	if d.Truncate {
		bad(d.MaxEventBytes <= 0, "truncate-max-event-size", " %d must be positive", d.MaxEventBytes)
		bad(d.MaxBatchBytes < d.MaxEventBytes, "truncate-max-batch-size", " %d must not be less than the size of an event, %d", d.MaxBatchBytes, d.MaxEventBytes)
	}
	return errors.Join(all...)
}
