package options

func auditFlags() []flag {
	return []flag{
		{name: "audit-policy-file", kind: "string", help: "File of the audit policy."},
		{name: "audit-log-path", kind: "string", help: "File that audit events are written to; - is standard output."},
		{name: "audit-log-format", kind: "string", help: "Format of the audit log: json or legacy."},
		{name: "audit-log-version", kind: "string", help: "Group and version of events in the audit log."},
		{name: "audit-log-mode", kind: "string", help: "Whether requests wait for the audit log: batch, blocking or blocking-strict."},
		{name: "audit-log-maxage", kind: "int", help: "Days that old audit logs are kept."},
		{name: "audit-log-maxbackup", kind: "int", help: "How many old audit logs are kept."},
		{name: "audit-log-maxsize", kind: "int", help: "Megabytes after which the audit log is rotated."},
		{name: "audit-log-compress", kind: "bool", help: "Compress old audit logs."},
		{name: "audit-log-batch-buffer-size", kind: "int", help: "Events that wait for a batch."},
		{name: "audit-log-batch-max-size", kind: "int", help: "Events of a batch."},
		{name: "audit-log-batch-max-wait", kind: "duration", help: "How long a batch waits for events."},
		{name: "audit-log-batch-throttle-burst", kind: "int", help: "Batches that may be written at once."},
		{name: "audit-log-batch-throttle-enable", kind: "bool", help: "Limit the rate of batches."},
		{name: "audit-log-batch-throttle-qps", kind: "float32", help: "Batches a second."},
		{name: "audit-log-truncate-enabled", kind: "bool", help: "Truncate large events and batches."},
		{name: "audit-log-truncate-max-batch-size", kind: "int", help: "Bytes of a batch."},
		{name: "audit-log-truncate-max-event-size", kind: "int", help: "Bytes of an event."},
	}
}

func auditWebhookFlags() []flag {
	return []flag{
		{name: "audit-webhook-config-file", kind: "string", help: "File of the audit webhook, a kubeconfig."},
		{name: "audit-webhook-version", kind: "string", help: "Group and version of events for the webhook."},
		{name: "audit-webhook-mode", kind: "string", help: "Whether requests wait for the webhook: batch, blocking or blocking-strict."},
		{name: "audit-webhook-initial-backoff", kind: "duration", help: "How long to wait before a batch is sent again."},
		{name: "audit-webhook-batch-initial-backoff", kind: "duration", help: "An old name of --audit-webhook-initial-backoff."},
		{name: "audit-webhook-batch-buffer-size", kind: "int", help: "Events that wait for a batch."},
		{name: "audit-webhook-batch-max-size", kind: "int", help: "Events of a batch."},
		{name: "audit-webhook-batch-max-wait", kind: "duration", help: "How long a batch waits for events."},
		{name: "audit-webhook-batch-throttle-burst", kind: "int", help: "Batches that may be sent at once."},
		{name: "audit-webhook-batch-throttle-enable", kind: "bool", help: "Limit the rate of batches."},
		{name: "audit-webhook-batch-throttle-qps", kind: "float32", help: "Batches a second."},
		{name: "audit-webhook-truncate-enabled", kind: "bool", help: "Truncate large events and batches."},
		{name: "audit-webhook-truncate-max-batch-size", kind: "int", help: "Bytes of a batch."},
		{name: "audit-webhook-truncate-max-event-size", kind: "int", help: "Bytes of an event."},
	}
}
