// Package request resolves HTTP requests to a Kubernetes-style API: [Resolve] reads the method, path and query of a request into
// an [Info], which is put in the context. The context also has the request's audit ID, the time when it was received, and the
// warnings for its answer.
//
// The forms of paths are those of https://kubernetes.io/docs/reference/using-api/api-concepts/.
package request
