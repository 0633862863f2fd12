package options

func auditFlags() []flag {
	return []flag{
		{name: "audit-policy-file", kind: "string", help: "File of the audit policy, which is used again when it changes. Without it nothing is recorded.", effect: func(o *Options) any { return &o.Audit.PolicyFile }},
		{name: "audit-log-path", kind: "string", help: "File that audit events are written to; - is standard output.", effect: func(o *Options) any { return &o.Audit.Log.Path }},
		{name: "audit-log-format", kind: "string", help: "Format of the audit log: json or legacy.", effect: func(o *Options) any { return &o.Audit.Log.Format }},
		{name: "audit-log-version", kind: "string", help: "Group and version of events in the audit log: audit.k8s.io/v1.", effect: func(o *Options) any { return &o.Audit.Log.Version }},
		{name: "audit-log-mode", kind: "string", help: "Whether requests wait for the audit log: batch, blocking or blocking-strict.", effect: func(o *Options) any { return &o.Audit.Log.Mode }},
		{name: "audit-log-maxage", kind: "int", help: "Days that old audit logs are kept; 0 is for ever.", effect: func(o *Options) any { return &o.Audit.Log.MaxAge }},
		{name: "audit-log-maxbackup", kind: "int", help: "How many old audit logs are kept; 0 is all.", effect: func(o *Options) any { return &o.Audit.Log.MaxBackup }},
		{name: "audit-log-maxsize", kind: "int", help: "Megabytes after which the audit log is rotated; 0 is never.", effect: func(o *Options) any { return &o.Audit.Log.MaxSize }},
		{name: "audit-log-compress", kind: "bool", help: "Compress old audit logs.", effect: func(o *Options) any { return &o.Audit.Log.Compress }},
		{name: "audit-log-batch-buffer-size", kind: "int", help: "Events that wait, in the mode batch; more are lost.", effect: func(o *Options) any { return &o.Audit.Log.Buffer }},
		{name: "audit-log-batch-max-size", kind: "int", help: "Events of a batch.", effect: func(o *Options) any { return &o.Audit.Log.BatchSize }},
		{name: "audit-log-batch-max-wait", kind: "duration", help: "How long a batch waits for events.", effect: func(o *Options) any { return &o.Audit.Log.BatchWait }},
		{name: "audit-log-batch-throttle-burst", kind: "int", help: "Batches that may be written at once.", effect: func(o *Options) any { return &o.Audit.Log.Burst }},
		{name: "audit-log-batch-throttle-enable", kind: "bool", help: "Limit the rate of batches.", effect: func(o *Options) any { return &o.Audit.Log.Throttle }},
		{name: "audit-log-batch-throttle-qps", kind: "float32", help: "Batches a second.", effect: func(o *Options) any { return &o.Audit.Log.QPS }},
		{name: "audit-log-truncate-enabled", kind: "bool", help: "Leave the objects out of large events, and divide large batches.", effect: func(o *Options) any { return &o.Audit.Log.Truncate }},
		{name: "audit-log-truncate-max-batch-size", kind: "int", help: "Bytes of a batch.", effect: func(o *Options) any { return &o.Audit.Log.MaxBatchBytes }},
		{name: "audit-log-truncate-max-event-size", kind: "int", help: "Bytes of an event.", effect: func(o *Options) any { return &o.Audit.Log.MaxEventBytes }},
	}
}

func auditWebhookFlags() []flag {
	return []flag{
		{name: "audit-webhook-config-file", kind: "string", help: "File of the audit webhook, a kubeconfig.", effect: func(o *Options) any { return &o.Audit.Webhook.ConfigFile }},
		{name: "audit-webhook-version", kind: "string", help: "Group and version of events for the webhook: audit.k8s.io/v1.", effect: func(o *Options) any { return &o.Audit.Webhook.Version }},
		{name: "audit-webhook-mode", kind: "string", help: "Whether requests wait for the webhook: batch, blocking or blocking-strict.", effect: func(o *Options) any { return &o.Audit.Webhook.Mode }},
		{name: "audit-webhook-initial-backoff", kind: "duration", help: "How long to wait before a batch is sent again.", effect: func(o *Options) any { return &o.Audit.Webhook.Backoff }},
		{name: "audit-webhook-batch-initial-backoff", kind: "duration", help: "An old name of --audit-webhook-initial-backoff.", effect: func(o *Options) any { return &o.Audit.Webhook.Backoff }},
		{name: "audit-webhook-batch-buffer-size", kind: "int", help: "Events that wait, in the mode batch; more are lost.", effect: func(o *Options) any { return &o.Audit.Webhook.Buffer }},
		{name: "audit-webhook-batch-max-size", kind: "int", help: "Events of a batch.", effect: func(o *Options) any { return &o.Audit.Webhook.BatchSize }},
		{name: "audit-webhook-batch-max-wait", kind: "duration", help: "How long a batch waits for events.", effect: func(o *Options) any { return &o.Audit.Webhook.BatchWait }},
		{name: "audit-webhook-batch-throttle-burst", kind: "int", help: "Batches that may be sent at once.", effect: func(o *Options) any { return &o.Audit.Webhook.Burst }},
		{name: "audit-webhook-batch-throttle-enable", kind: "bool", help: "Limit the rate of batches.", effect: func(o *Options) any { return &o.Audit.Webhook.Throttle }},
		{name: "audit-webhook-batch-throttle-qps", kind: "float32", help: "Batches a second.", effect: func(o *Options) any { return &o.Audit.Webhook.QPS }},
		{name: "audit-webhook-truncate-enabled", kind: "bool", help: "Leave the objects out of large events, and divide large batches.", effect: func(o *Options) any { return &o.Audit.Webhook.Truncate }},
		{name: "audit-webhook-truncate-max-batch-size", kind: "int", help: "Bytes of a batch.", effect: func(o *Options) any { return &o.Audit.Webhook.MaxBatchBytes }},
		{name: "audit-webhook-truncate-max-event-size", kind: "int", help: "Bytes of an event.", effect: func(o *Options) any { return &o.Audit.Webhook.MaxEventBytes }},
	}
}
