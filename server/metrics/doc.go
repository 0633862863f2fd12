// Package metrics is what a server tells Prometheus: a [Registry] of its own, which serves /metrics, and what turns the
// events of the server's parts into counters. The parts know nothing of it: they call functions in structs called
// Hooks, or are wrapped.
//
// # Names
//
// What kube-apiserver has too has its name, labels, type and buckets, so that its dashboards and alerts work: see
// https://kubernetes.io/docs/reference/instrumentation/metrics/. What only this library has begins with keelson_. A
// metric that could not be true here is not there: there are no queues of requests, no dispatch of watch events, no
// capacity of a watch cache in events. Where the words of kube-apiserver are those of etcd, the metric has another name
// (keelson_storage_request_duration_seconds has the labels and buckets of etcd_request_duration_seconds), and where the
// label storage has the value etcd it is backend here.
//
// # What is counted
//
//   - apiserver_request_total and its companions count the requests that a handler has answered: of resources that are
//     served, with a verb that they have, and of the paths that kube-apiserver counts (/healthz, /livez, /readyz,
//     /openapi/v3, and the aggregated documents of /api and /apis). Who is refused before that is in
//     authentication_attempts (401) and authorization_attempts_total (403), or counted with code 429 when there were too
//     many requests at once.
//   - The time of a request begins when it was received, before authentication.
//   - verb is GET, LIST, WATCH, POST, PUT, PATCH, APPLY, DELETE, also of a collection, CONNECT, or other.
//   - An empty scope is that of a path; resource is one object, be it one that is created; namespace and cluster are
//     collections.
//
// # No label is a client's
//
// Every series belongs to a resource that is, or was, served, or to one of a few paths; all other labels have a fixed set
// of values. So requests cannot make series without end, whatever they ask for. Series are made when they are first
// needed and found again without a lock.
package metrics
