// Package request says what an HTTP request to a Kubernetes-style API wants, before anybody acts on it:
// [Resolve] reads method, path and query into an [Info], which travels in the context. The context also carries
// the request's audit ID, when it was received, and the warnings that its answer will show.
//
// The shapes of paths are those of https://kubernetes.io/docs/reference/using-api/api-concepts/.
package request
