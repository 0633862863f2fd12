package options

func servingFlags() []flag {
	return []flag{
		{name: "secure-port", kind: "int", help: "Port that HTTPS is served on; 0 is any free one.", effect: func(o *Options) any { return &o.SecurePort }},
		{name: "bind-address", kind: "ip", help: "IP address to listen on; 0.0.0.0 and :: are all addresses of the machine.", effect: func(o *Options) any { return &o.BindAddress }},
		{name: "cert-dir", kind: "string", help: "Directory of apiserver.crt and apiserver.key, which are made if they are missing and no other certificate is given. It also holds the administrator's credentials if no users are given.", effect: func(o *Options) any { return &o.CertDir }},
		{name: "tls-cert-file", kind: "string", help: "File of the serving certificate in PEM, followed by those of its authorities.", effect: func(o *Options) any { return &o.TLSCertFile }},
		{name: "tls-private-key-file", kind: "string", help: "File of the private key of --tls-cert-file.", effect: func(o *Options) any { return &o.TLSPrivateKeyFile }},
		{name: "tls-sni-cert-key", kind: "namedCertKey", help: "Certificate and key files for some names of the server: `cert,key[:name,...]`. May be given several times."},
		{name: "tls-cipher-suites", kind: "strings", help: "Cipher suites of TLS 1.2."},
		{name: "tls-curve-preferences", kind: "int32Slice", help: "Numbers of the key exchange mechanisms of TLS."},
		{name: "tls-min-version", kind: "string", help: "Least version of TLS, such as VersionTLS12."},
		{name: "disable-http2-serving", kind: "bool", help: "Serve HTTP/1.1 only."},
		{name: "http2-max-streams-per-connection", kind: "int", help: "Concurrent requests of one HTTP/2 connection."},
		{name: "permit-address-sharing", kind: "bool", help: "Listen with SO_REUSEADDR."},
		{name: "permit-port-sharing", kind: "bool", help: "Listen with SO_REUSEPORT."},
		{name: "advertise-address", kind: "ip", help: "IP address that the members of the cluster reach the server at."},
		{name: "external-hostname", kind: "string", help: "Host name in URLs that the server generates."},
		{name: "cors-allowed-origins", kind: "strings", help: "Regular expressions of the origins whose pages may send requests. Each has ^ or // for its beginning, and $ or : for its end.", effect: func(o *Options) any { return &o.CORSAllowedOrigins }},
		{name: "strict-transport-security-directives", kind: "strings", help: "Directives of the header Strict-Transport-Security: max-age=N, includeSubDomains, preload.", effect: func(o *Options) any { return &o.HSTS }},
	}
}

func storageFlags() []flag {
	return []flag{
		{name: "etcd-servers", kind: "strings", help: "Client URLs of the etcd that keeps the objects. Either this or --storage-file is needed.", effect: func(o *Options) any { return &o.EtcdServers }},
		{name: "etcd-prefix", kind: "string", help: "What keys in etcd begin with. A prefix other than /registry is put before /registry.", effect: func(o *Options) any { return &o.EtcdPrefix }},
		{name: "etcd-cafile", kind: "string", help: "File of the authorities, in PEM, that etcd's certificate is verified by; without it they are the system's.", effect: func(o *Options) any { return &o.EtcdCAFile }},
		{name: "etcd-certfile", kind: "string", help: "File of the client certificate for etcd, in PEM.", effect: func(o *Options) any { return &o.EtcdCertFile }},
		{name: "etcd-keyfile", kind: "string", help: "File of the private key of --etcd-certfile.", effect: func(o *Options) any { return &o.EtcdKeyFile }},
		{name: "storage-file", kind: "string", help: "File that keeps the objects, instead of an etcd. It is made if it is missing.", effect: func(o *Options) any { return &o.StorageFile }},
		{name: "etcd-compaction-interval", kind: "duration", help: "How often the history of etcd is compacted."},
		{name: "etcd-count-metric-poll-period", kind: "duration", help: "How often objects are counted for metrics."},
		{name: "etcd-db-metric-poll-interval", kind: "duration", help: "How often etcd is asked for its size."},
		{name: "etcd-healthcheck-timeout", kind: "duration", help: "How long the health check waits for etcd."},
		{name: "etcd-readycheck-timeout", kind: "duration", help: "How long the readiness check waits for etcd."},
		{name: "etcd-servers-overrides", kind: "strings", help: "Other etcds for some resources: `group/resource#servers`."},
		{name: "lease-reuse-duration-seconds", kind: "int", help: "Seconds in which objects with a time to live share a lease of etcd."},
		{name: "storage-backend", kind: "string", help: "Kind of storage: etcd3."},
		{name: "storage-initialization-timeout", kind: "duration", help: "How long the server waits for its storage before it is ready."},
		{name: "storage-media-type", kind: "string", help: "Media type that objects are stored in."},
		{name: "watch-cache", kind: "bool", help: "Keep objects in memory for reads and watches."},
		{name: "watch-cache-sizes", kind: "strings", help: "Sizes of caches: `resource[.group]#size`."},
		{name: "default-watch-cache-size", kind: "int", help: "Size of caches; without effect in kube-apiserver, too."},
		{name: "encryption-provider-config", kind: "string", help: "File that says how stored objects are encrypted."},
		{name: "encryption-provider-config-automatic-reload", kind: "bool", help: "Read --encryption-provider-config again when it changes."},
		{name: "delete-collection-workers", kind: "int", help: "Objects that a request to delete a collection deletes at the same time."},
		{name: "enable-garbage-collector", kind: "bool", help: "Finalizers for the garbage collector are kept."},
	}
}

func limitFlags() []flag {
	return []flag{
		{name: "request-timeout", kind: "duration", help: "How long a request may take that is not a watch."},
		{name: "min-request-timeout", kind: "int", help: "Seconds that a watch without a timeout lasts at least."},
		{name: "max-requests-inflight", kind: "int", help: "Reads that are served at the same time."},
		{name: "max-mutating-requests-inflight", kind: "int", help: "Writes that are served at the same time."},
		{name: "max-connection-bytes-per-sec", kind: "int", help: "Bytes a second of a connection of a long request."},
		{name: "enable-priority-and-fairness", kind: "bool", help: "Requests wait in fair queues, by priority."},
		{name: "goaway-chance", kind: "float", help: "Share of requests after which an HTTP/2 connection is closed, from 0 to 0.02.", effect: func(o *Options) any { return &o.GoAwayChance }},
		{name: "livez-grace-period", kind: "duration", help: "How long /livez succeeds while the server starts.", effect: func(o *Options) any { return &o.LivezGrace }},
		{name: "shutdown-delay-duration", kind: "duration", help: "How long the server goes on serving after SIGTERM.", effect: func(o *Options) any { return &o.ShutdownDelay }},
		{name: "shutdown-send-retry-after", kind: "bool", help: "Answer requests with Retry-After while the server shuts down.", effect: func(o *Options) any { return &o.ShutdownRetryAfter }},
		{name: "shutdown-watch-termination-grace-period", kind: "duration", help: "How long watches may take to end when the server shuts down.", effect: func(o *Options) any { return &o.ShutdownWatchGrace }},
	}
}
