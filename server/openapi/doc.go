// Package openapi serves OpenAPI documents that describe the API of a server.
//
// A [Service] makes the documents from a description of the groups, versions and resources of the server, and serves them at
// these paths:
//
//   - /openapi/v3 is the list of documents: one for each group version (apis/example.com/v1), one for each group
//     (apis/example.com), and one each for apis, api and version.
//   - /openapi/v3/NAME is a document of OpenAPI 3.0.
//   - /openapi/v2 is one document of OpenAPI 2.0 for all resources.
//
// For example:
//
//	service := openapi.New(openapi.Options{Title: "widgets", Version: "v1.0.0"})
//	service.Set([]openapi.GroupVersion{{Group: "example.com", Version: "v1", Resources: []openapi.Resource{{
//		Plural: "widgets", Kind: gvk, Namespaced: true, Type: reflect.TypeFor[Widget](),
//		Verbs: []string{"get", "list", "watch", "patch"}, PatchTypes: []string{"application/merge-patch+json"},
//	}}}})
//
// # Requirements of clients
//
// kubectl finds the schemas for explain, apply and diff by their x-kubernetes-group-version-kind. It assumes that the server
// validates fields if the PATCH operation of a kind has the parameter fieldValidation. So the description of a resource must have
// exactly the verbs and patch types that the server serves.
//
// [Resource] lists how the documents differ from those of kube-apiserver.
//
// The schemas come from package runtime/schema. The form and the names of operations are those of
// https://kubernetes.io/docs/concepts/overview/kubernetes-api/#openapi-interface-definition.
package openapi
