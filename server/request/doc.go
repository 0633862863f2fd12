// Package request resolves HTTP requests to a Kubernetes-style API: [Resolve] reads the method, path and query of a request into
// an [Info], which filters put in the context of the request. The context also has the audit ID of the request, the time when it
// was received, the warnings for its answer, and other [Values].
//
// The forms of paths are those of https://kubernetes.io/docs/reference/using-api/api-concepts/. A path of the old forms watch, proxy
// and redirect that names no resource is a mistake of the client (400). kube-apiserver answers it with 500.
package request
