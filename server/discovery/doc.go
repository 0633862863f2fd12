// Package discovery serves the discovery documents of a server: its groups, versions and resources.
//
// A [Service] serves them in two forms:
//
//   - the legacy documents: APIGroupList at /apis, APIGroup at /apis/GROUP, APIResourceList at /apis/GROUP/VERSION and /api/v1,
//     and APIVersions at /api, as JSON, YAML or protobuf;
//   - aggregated discovery (KEP-3352): one APIGroupDiscoveryList of apidiscovery.k8s.io/v2 with every resource, at /api and
//     /apis, for clients whose Accept header requests it. It has an ETag, and a client that already has the document gets 304.
//
// [Service.Set] replaces the groups as a whole:
//
//	service := discovery.New(discovery.Options{})
//	service.Set([]discovery.Group{{
//		Name: "example.com",
//		Versions: []discovery.Version{{Name: "v1", Resources: []discovery.Resource{{
//			Plural: "widgets", Singular: "widget", Kind: "Widget", Namespaced: true,
//			Verbs: []string{"get", "list", "watch"},
//		}}}},
//	}})
//
// Groups are shown in the order in which they are given, which is the order in which clients prefer them. Versions are sorted by
// maturity, v2 before v1 before v1beta1, and the first is the preferred version.
//
// If the groups have no core group (the group named ""), /api is answered with 404, in both forms, like by a Kubernetes API
// server without core resources. client-go then finds no core group. An APIVersions without versions in place of the 404 would
// make client-go list a group with neither name nor version.
package discovery
