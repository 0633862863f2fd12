// Package server is the house: it wires a scheme, storage, registries, handlers and filters into an HTTP server
// that clients of the Kubernetes API use as if it were kube-apiserver.
//
//	type WidgetSpec struct{ Size int32 `json:"size"` }
//	type WidgetStatus struct{ Ready bool `json:"ready,omitempty"` }
//	type Widget = runtime.Resource[WidgetSpec, WidgetStatus]
//
//	srv, err := server.New(server.Options{
//		Storage: bolt.At("hello.db"),
//		Groups: []server.Group{{
//			Name: "example.com",
//			Versions: []server.Version{{Name: "v1", Resources: []server.Resource{
//				server.Kind("Widget", server.KindOptions[*Widget]{}),
//			}}},
//		}},
//	})
//	...
//	err = srv.Run(ctx)
//
// # The nouns
//
//   - A [Server] is a value: any number of them live in one process and share nothing.
//   - A [Group] has versions, a [Version] has resources. [Kind] serves a Go type from storage with every verb;
//     with [KindOptions].Storage it serves whatever verbs a value of the program's own implements.
//   - An [Extension] adds groups, policy, paths, checks, metrics and background work to a server ([Server.Install]): all of
//     it in one step, policy before routes, or with an error nothing.
//     That of package github.com/keelson-dev/keelson/server/builtin brings what controllers and Helm count on: namespaces,
//     config maps, secrets, leases, events and a garbage collector. Without it a namespace is a name that nobody checks.
//
// # Rules and versions
//
// What holds for every object of a kind is said in struct tags of its Go type, as in
//
//	Color string `json:"color,omitempty" enum:"red,green" default:"red"`
//
// and enforced, published in OpenAPI and explained by kubectl: github.com/keelson-dev/keelson/runtime/constraint has the
// list. What one field's tags cannot say is in [KindOptions].Strategy.
//
// Several versions of a kind are several Go types. The first one listed is the hub, to which [Convert] joins each of the
// others:
//
//	Versions: []server.Version{
//		{Name: "v1", Resources: []server.Resource{server.Kind("Widget", server.KindOptions[*Widget]{})}},
//		{Name: "v1beta1", Resources: []server.Resource{server.Kind("Widget", server.KindOptions[*WidgetV1beta1]{Stored: true})}},
//	},
//	Conversions: []server.Conversion{server.Convert(toV1, fromV1)},
//
// Every version is read, written, watched and applied whichever of them is stored. Clients prefer the most mature one
// (v1 before v1beta1), in whatever order they are listed. To store another version:
//
//  1. Release a program that serves it, and wait until every server of the storage runs that.
//  2. Set [KindOptions].Stored in it, release that, and wait again.
//  3. Call [Server.MigrateStorage], which rewrites what is stored in another version, and look at what Failed.
//  4. Only then may a version be removed from the program: objects stored in it could not be read.
//
// That the conversions lose nothing is shown by a test, with [NewScheme] and package
// github.com/keelson-dev/keelson/runtime/roundtrip.
//
// # A server's life
//
// [New] opens the storage and makes everything ready to serve: from then on [Server.Handler] works, mounted in any
// http.Server. [Server.Run] listens as well, and [Server.Serve] serves a listener of the program's. When its
// context ends, watches are ended cleanly at once, other requests finish, and the storage is closed. A server that
// is not run is ended with [Server.Close].
//
// # Who may do what
//
// Without Policy.Authenticator the users are those of [Serving].Credentials: one administrator, by client certificate or
// bearer token, in the group system:masters. A request without a credential is that of system:anonymous. Without
// Policy.Authorizer system:masters may do everything, everybody may read /healthz, /livez, /readyz and /version, and who
// is authenticated may read discovery and OpenAPI (/api, /apis, /openapi). Impersonation is refused.
//
// Policy is live: it can be added to and changed while the server serves, by the methods of a [Host]:
//
//	Authenticate  an authenticator, asked before that of the options, in kube-apiserver's order
//	Authorize     an authorizer, asked after those there are
//	Admit         admission plug-ins, in kube-apiserver's order
//	Control       another flow controller
//
// RemoveAuthenticator, RemoveAuthorizer and RemovePlugin take members away again. A [Server] has none of these methods:
// [Server.Install] gives the Host to an [Extension], and a program without one of its own writes an [ExtensionFunc]:
//
//	err := srv.Install(server.ExtensionFunc(func(h *server.Host) error {
//		return h.Authorize("example.com/readers", readers)
//	}))
//
// What one Install adds is seen by requests all at once. The Host may be kept, and its methods called at any time. See the
// examples of [Host] and of [Server.Install] (example_test.go).
//
// [Host.Delegate] has a handler answer a whole group version, such as that of a server behind this one, and [Host.NotFound] adds
// functions that are asked before the answer 404. Both get requests that are authorized.
//
// Policy.Authorizer takes the place of the server's own authorizers, system:masters included; Authorize leaves those there
// are in force. Each member has a name, by which it is replaced and removed, and by which /readyz tells that it is not ready.
// Until an authenticator is ready, requests with the credentials that it is for are answered with 401; until an authorizer
// by stored objects is, it abstains, or, if it could deny, it denies with an error; requests that a plug-in handles wait for it
// ten seconds at most; if it is not ready by then, they are refused with 403.
//
// A request is decided by one state of all policy, taken before it is authenticated: who makes it, whose turn it is, its
// authorization, its admission, and whether an update may create. It sees each Install, and each later call of a method
// of the Host, as a whole or not at all. A write that was acknowledged counts for every request that begins afterwards
// on this server.
//
// [Host.Readers] reads the objects of all kinds; a strategy reads another kind by its call:
//
//	airport, err := runtime.Read[*Airport](call).Get(call, "", flight.Spec.To, runtime.Freshness{})
//
// Package github.com/keelson-dev/keelson/server/builtin/rbac serves roles and bindings and decides by them; package
// github.com/keelson-dev/keelson/authz/rbac does so with roles given in Go.
//
// # Memory
//
// What a burst of requests took goes back to the operating system by itself: Go gives back what a collection has found free within
// seconds, collects at least every two minutes, and empties the pools of buffers with two collections. None of these keeps a
// buffer of more than a MiB. examples/hello, which takes 29 MB when it starts, took 441 MB while 64 clients sent it 192 bodies of 2.7
// MB; one second after the last answer it took 122 MB, and 47 MB after two minutes without requests, with 9 MB in use. What stays
// is kept on purpose: the objects of stored kinds, and what [Limits] bounds by CacheWindow and FormBytes.
//
// Where memory is limited, as in a container, set the environment variable GOMEMLIMIT to nine tenths of that: Go collects before
// that is reached, in place of when the memory in use has doubled.
//
// # What will bite
//
//   - A handler mounted elsewhere sees client certificates only if that http.Server asks for them, and clients that
//     stop reading an HTTP/2 connection hold it until that server's HTTP2.WriteByteTimeout. How many connections there are is
//     that server's to bound: see [Server.Handler].
//   - A proxy in front of the server is one address, which may have half of all connections, unless Serving.Proxies names it.
//   - Without Serving.Credentials the certificates and the token are new at every start.
//   - A conversion that loses something loses it with the next write in any version, and nothing says so.
//   - A stored kind that is asked for is kept in memory, whole; [KindOptions].NoCache is for one that is too large.
package server
