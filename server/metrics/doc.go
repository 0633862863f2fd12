// Package metrics provides the Prometheus metrics of a server: a [Registry], which serves /metrics, and functions that turn the
// events of the server's parts into metrics. The parts do not depend on this package: they call functions in structs called
// Hooks, or are wrapped.
//
// # Names
//
// A metric that kube-apiserver has, too, has the same name, labels, type and buckets, so that dashboards and alerts work: see
// https://kubernetes.io/docs/reference/instrumentation/metrics/. The names of all others begin with keelson_. Some metrics of
// kube-apiserver are missing because they have no counterpart here: there are no queues of requests, no dispatch of watch events,
// and no capacity of a watch cache in events. A metric that kube-apiserver names after etcd has another name here:
// keelson_storage_request_duration_seconds has the labels and buckets of etcd_request_duration_seconds. Where kube-apiserver has
// the label storage with the value etcd, the value here is backend.
//
// # What is counted
//
//   - apiserver_request_total and related metrics count the requests that a handler has answered: of resources that are served,
//     with a verb that they have, and of the paths that kube-apiserver counts (/healthz, /livez, /readyz, /openapi/v3, and the
//     aggregated documents of /api and /apis). A request that a filter refuses before that is counted in authentication_attempts
//     (401) or authorization_attempts_total (403), or with code 429 if there were too many concurrent requests or watches. A
//     request that a handler refuses, for example because requests already hold too many bytes, is counted with its code like any
//     other answer.
//   - The time of a request begins when the request was received, before authentication.
//   - verb is GET, LIST, WATCH, POST, PUT, PATCH, APPLY, DELETE (also of a collection), CONNECT, or other.
//   - scope is "" for a path, "resource" for one object (also one that is created), and "namespace" or "cluster" for a
//     collection.
//
// # Limits
//
// These metrics show how near a server is to its bounds: keelson_budget_held, keelson_budget_limit and
// keelson_budget_rejected_total for connections, watches and the bytes that requests hold, apiserver_current_inflight_requests,
// keelson_connections_displaced_total, keelson_cache_bytes for the objects of a kind in memory, keelson_form_cache_bytes and
// keelson_form_cache_max_bytes, and keelson_storage_bytes and keelson_storage_limit_bytes for a bolt file.
//
// # Labels
//
// Requests cannot choose the values of labels. Every series belongs to a resource that is, or was, served, or to one of a few
// paths. All other labels have a fixed set of values. So the number of series is bounded by the number of resources that were
// ever served. Only a client that may create CustomResourceDefinitions can add resources: see package crd. Series are made when
// they are first needed, and found again without a lock.
package metrics
