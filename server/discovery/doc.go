// Package discovery tells clients which groups, versions and resources a server has.
//
// A [Service] answers two dialects of the same facts:
//
//   - the legacy documents: APIGroupList at /apis, APIGroup at /apis/GROUP, APIResourceList at
//     /apis/GROUP/VERSION and /api/v1, and APIVersions at /api, as JSON or YAML;
//   - aggregated discovery (KEP-3352): one APIGroupDiscoveryList of apidiscovery.k8s.io/v2 with every resource,
//     at /api and /apis, for clients whose Accept header asks for it. It carries an ETag, and a client that has
//     it already gets 304.
//
// What is served is a value, replaced as a whole:
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
// # What will bite
//
//   - Groups are shown in the order given: it is the order in which clients prefer them. Versions are not; they
//     are sorted by maturity, v2 before v1 before v1beta1, and the first is the preferred one.
//   - A server without the core group (the group named "") answers 404 at /api, in both dialects. That is what a
//     Kubernetes API server without core resources does, client-go takes it for "no such group", and the legacy
//     alternative, an APIVersions without versions, makes client-go list a group with neither name nor version.
package discovery
