package options

func kindFlags() []flag {
	return []flag{
		{name: "runtime-config", kind: "mapStringString", help: "Groups and versions to serve or not: `group/version=true`."},
		{name: "feature-gates", kind: "colonSeparatedMultimapStringString", help: "Features to use or not: `feature=true`."},
		{name: "emulated-version", kind: "strings", help: "Versions whose features are emulated."},
		{name: "emulation-forward-compatible", kind: "bool", help: "Later versions of enabled beta APIs are served."},
		{name: "min-compatibility-version", kind: "strings", help: "Least versions that the server works together with."},
		{name: "runtime-config-emulation-forward-compatible", kind: "bool", help: "APIs of --runtime-config are served even if they are newer than --emulated-version."},
		{name: "event-ttl", kind: "duration", help: "How long events are kept."},
		{name: "allow-privileged", kind: "bool", help: "Containers may be privileged."},
		{name: "service-cluster-ip-range", kind: "string", help: "Range of the IP addresses of services, in CIDR notation."},
		{name: "service-node-port-range", kind: "portRange", help: "Range of the node ports of services."},
		{name: "kubernetes-service-node-port", kind: "int", help: "Node port of the service kubernetes."},
		{name: "endpoint-reconciler-type", kind: "string", help: "How the endpoints of the service kubernetes are kept: lease, master-count or none."},
		{name: "apiserver-count", kind: "int", help: "Number of servers of the cluster; deprecated."},
		{name: "coordinated-leadership-lease-duration", kind: "duration", help: "How long a Lease of coordinated leader election is valid."},
		{name: "coordinated-leadership-renew-deadline", kind: "duration", help: "How long its holder tries to renew it."},
		{name: "coordinated-leadership-retry-period", kind: "duration", help: "How long its holder waits between attempts."},
	}
}

func componentFlags() []flag {
	return []flag{
		{name: "aggregator-reject-forwarding-redirect", kind: "bool", help: "Redirects of aggregated servers are not passed on."},
		{name: "enable-aggregator-routing", kind: "bool", help: "Aggregated servers are reached at their endpoints."},
		{name: "proxy-client-cert-file", kind: "string", help: "File of the server's client certificate for aggregated servers and webhooks."},
		{name: "proxy-client-key-file", kind: "string", help: "File of the private key of --proxy-client-cert-file."},
		{name: "egress-selector-config-file", kind: "string", help: "File that says which proxies connections go through."},
		{name: "kubelet-certificate-authority", kind: "string", help: "File of the authorities of kubelets."},
		{name: "kubelet-client-certificate", kind: "string", help: "File of the client certificate for kubelets."},
		{name: "kubelet-client-key", kind: "string", help: "File of the private key of --kubelet-client-certificate."},
		{name: "kubelet-preferred-address-types", kind: "strings", help: "Types of node addresses that kubelets are reached at."},
		{name: "kubelet-port", kind: "uint", help: "Port of kubelets; deprecated."},
		{name: "kubelet-read-only-port", kind: "uint", help: "Port of kubelets without TLS; deprecated."},
		{name: "kubelet-timeout", kind: "duration", help: "How long requests to kubelets may take."},
		{name: "peer-advertise-ip", kind: "string", help: "IP address that other servers of the cluster reach this one at."},
		{name: "peer-advertise-port", kind: "string", help: "Port that other servers of the cluster reach this one at."},
		{name: "peer-ca-file", kind: "string", help: "File of the authorities of other servers of the cluster."},
	}
}

func observationFlags() []flag {
	return []flag{
		{name: "allow-metric-labels", kind: "stringToString", help: "Values that labels of metrics may have."},
		{name: "allow-metric-labels-manifest", kind: "string", help: "File of --allow-metric-labels."},
		{name: "disabled-metrics", kind: "strings", help: "Metrics that are not collected."},
		{name: "show-hidden-metrics-for-version", kind: "string", help: "Version whose hidden metrics are shown."},
		{name: "profiling", kind: "bool", help: "Serve profiles below /debug/pprof/."},
		{name: "contention-profiling", kind: "bool", help: "Profile blocking."},
		{name: "debug-socket-path", kind: "string", help: "Socket that profiles are served on without authentication."},
		{name: "tracing-config-file", kind: "string", help: "File that configures tracing."},
		{name: "log-flush-frequency", kind: "duration", help: "How often logs are written."},
		{name: "log-text-info-buffer-size", kind: "quantity", help: "Bytes of logs that are buffered."},
		{name: "log-text-split-stream", kind: "bool", help: "Write errors to standard error and other logs to standard output."},
		{name: "logging-format", kind: "string", help: "Format of logs: text."},
		{name: "enable-logs-handler", kind: "bool", help: "Serve the machine's logs at /logs."},
		{name: "v", kind: "Level", short: "v", help: "How detailed logs are."},
		{name: "vmodule", kind: "pattern=N,...", help: "How detailed the logs of some source files are."},
	}
}
