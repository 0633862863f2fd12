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
// that is reached, in place of when the memory in use has doubled. Where address space is limited (RLIMIT_DATA), set it to little
// more than half: there the tables of the runtime count, 70 MiB, and memory that was given back.
//
// # Limits
//
// What clients send, or do not send or read, costs a bounded amount of memory, time and connections. The memory is GOMEMLIMIT, where
// that is set. An option that is a number means its default with 0. A negative one is no bound, but an error for a time,
// Limits.MaxHeaderBytes and bolt.Options.Quota.
//
//	Requests
//	  time of a request that is not a watch                  60 s                                           Limits.RequestTimeout                       504 Timeout
//	  time of a watch without timeoutSeconds                 30 to 60 min                                   Limits.MinWatchTimeout                      the end of the stream
//	  requests at a time: reads, writes                      400, 200                                       Limits.MaxReadsInFlight, MaxWritesInFlight  429
//	  watches and other requests that last: in all, by user  10,000 or one for 128 KiB of memory, half      Limits.Watches                              429
//	  bytes held by requests: in all, by user                a sixth of the memory, else 512 MiB; half      Limits.Bytes                                429
//	  requirements of a selector                             400, with 4,000 values and 100 KiB             Limits.MaxSelectorRequirements              400
//	  length of an Audit-ID                                  256 bytes                                      -                                           400
//	  WebSockets and writes of other origins' web pages      none                                           Serving.AllowOrigin                         403
//	Connections
//	  connections: in all, from one address                  10,000 or one for 128 KiB of memory, half      Limits.Connections, Serving.Proxies         closed, an idle one first
//	  TLS handshake, header of a request over HTTP/1.1       32 s                                           Limits.HeaderTimeout                        closed
//	  connection without a request                           90 s                                           Limits.IdleTimeout                          closed
//	  header of a request                                    1 MiB, 10,000 fields                           Limits.MaxHeaderBytes                       431
//	  headers not whole, of all connections                  8 MiB or 1/320 of the memory                   -                                           closed, the largest first
//	  rest of a body that nobody reads                       1 s                                            -                                           closed after the answer
//	  streams of an HTTP/2 connection, a frame               100, 64 KiB                                    -                                           an error of HTTP/2
//	  time that a client does not read                       30 s                                           Limits.WriteTimeout                         the stream or connection ends
//	Bodies and objects
//	  body of a request                                      3 MiB                                          Limits.MaxBodyBytes                         413
//	  memory of the values in a body                         8 MiB                                          Limits.MaxDecodedBytes                      413
//	  defaults that a body without a Go type gets            half of that                                   Limits.MaxDecodedBytes                      413
//	  items of a list or map in metadata                     10,000                                         Limits.MaxMetadataItems                     422
//	  encoded object                                         1.5 MiB                                        Limits.MaxObjectBytes                       413
//	  operations of a JSON patch, items it moves aside       10,000, 100,000,000                            Limits.Patches                              413
//	  values of a patch, with its document                   100,000, 300,000                               Limits.Patches                              413
//	  items merged by a strategic merge patch                3,000                                          Limits.Patches                              413
//	  values of wrong types in what is applied               1,000                                          -                                           400
//	  paths of all fields of what is merged                  16 MiB                                         -                                           413 for apply, else a warning
//	  values times managers in other versions                100,000                                        -                                           413 for apply, else a warning
//	  managers of an object's fields                         1,000                                          -                                           422
//	  fields managed one by one                              about 10,000 in a map, 30,000 in all           -                                           413 for apply, else a warning
//	  values of a row that columns come across (CRDs)        65,536                                         crd.Options.Rows                            the cell is cut: ...
//	  a cell, all cells of a row (CRDs)                      16 KiB, 128 KiB                                crd.Options.Rows                            the cell is cut: ...
//	Answers
//	  message of a Status                                    32 KiB                                         -                                           cut, and says so
//	  causes of a Status                                     256, 48 KiB                                    -                                           the last tells how many more
//	  text that is quoted: a name, any other                 1 KiB, 4 KiB                                   -                                           cut, and says so
//	Storage
//	  a kind's changes in memory                             5 min, a quarter of its objects, 8 to 128 MiB  Limits.CacheWindow                          410 for a watch that is behind
//	  encodings of objects that are kept for later requests  64 MiB, at most a sixteenth of the memory      Limits.FormBytes                            nothing
//	  wait for a cache that is being filled                  3 s                                            Limits.CacheWait                            429, Retry-After 1 to 30 s
//	  what is read at a time of a list that no cache has     1 MiB                                          -                                           nothing
//	  size of a bolt file                                    the disk but for 64 MiB or a sixteenth (Linux) bolt.Options.Quota                          507 for what makes it grow
//	Webhooks
//	  answer: header, body, time                             64 KiB, 16 MiB, 30 s                           webhook.Options                             500
//	  redirects                                              none                                           webhook.Options.FollowRedirects             500
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
