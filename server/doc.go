// Package server provides servers that speak the Kubernetes API, so that clients can use them as if they were kube-apiserver. It
// combines a scheme, storage, registries, handlers and filters into an HTTP server.
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
// A [Group] has versions, and a [Version] has resources. [Kind] describes the resource of a Go type, or of a kind without a Go
// type. [New] makes a [Server]. [Server.Run] serves it until a context ends. [Server.Install] adds an [Extension] at any time.
// [ListenAndServe] does all that for a program that is one server.
//
// # Further documentation
//
//   - [KindOptions]: the rules, defaults, columns, subresources and selectable fields of a kind. Rules that hold for every object
//     are struct tags: see package github.com/keelson-dev/keelson/runtime/constraint.
//   - [Version]: kinds with several versions. [Server.MigrateStorage]: how to change the version that is stored.
//   - [Policy]: authentication, authorization and admission, and what each user may do by default.
//   - [Host]: how to change the policy, and add groups and paths, while the server serves.
//   - [Limits]: the memory that a server takes, and how to set GOMEMLIMIT.
//   - [Typed]: how the program itself reads, writes and watches objects. [Server.Loopback]: the same with clients of client-go and
//     controller-runtime.
//   - [Types]: how to serve the types of an existing api package. [Computed] and [Action]: kinds and subresources whose objects
//     are not stored.
//   - [Server.Handler]: how to serve beside other routes of a program, or below a path.
//   - Package github.com/keelson-dev/keelson/server/builtin: an extension with what controllers and Helm need, such as namespaces,
//     config maps, secrets, leases, events and a garbage collector. Without it the server does not check that a namespace exists.
//   - Packages server/builtin/rbac and server/crd: extensions with roles and bindings, and with CustomResourceDefinitions.
//   - Package server/builtin/accounts: an extension with service accounts, the identities of programs, and their tokens.
//   - Package authn and its webhook, bootstrap, jwt, serviceaccount and delegation: who sends a request, by certificates, tokens,
//     passwords and proxies. Package authz/impersonation: who may act as whom. [Policy]: its example has the users of a proxy and of a
//     token webhook, and a CA file that changes.
//   - Package authz, whose comment says what to install for roles in Go, in a file or stored, and for policies of other forms: what
//     users may do. Package server/builtin/reviews: an extension for kubectl auth can-i and whoami, for the reviews of other servers,
//     and to learn why a user may do something.
//   - [Serving] (its field Filters), [InsertAfter]: filters of your own, and where one that traces requests belongs.
//   - Package server/audit: what is recorded of requests. [Host.Start]: functions that run when a server starts. [Host.Follow]:
//     configuration files that are read again when they change.
//   - Package server/servertest: a whole server in a test. Package server/registry/strategytest: tests of the rules of a kind.
//
// # Paths
//
// Besides /api and /apis a server has the paths /openapi/v2 and /openapi/v3, /version, /healthz, /livez and /readyz (see
// [Check]), /metrics and /metrics/slis (see package server/metrics), and those of [Host.Handle]. The path / lists all of them. By
// default everybody may read /version, /healthz, /livez and /readyz (not the paths of single checks), authenticated users may
// also read discovery and OpenAPI, and only members of system:masters may do anything else, such as read /metrics.
//
// # In production
//
//   - Set Serving.Listen, Serving.Credentials and a Storage on a disk. The zero Options keeps everything in memory.
//   - A file of package storage/bolt is for one server. Back it up with Snapshot of its Backend, and bring a backup back with
//     bolt.Restore. Several servers share an etcd cluster (package storage/etcd). Their clients trust all of them if they have
//     certificates of one authority: see Serving.Certificate, Serving.Authorities and Serving.URL.
//   - Set GOMEMLIMIT (see [Limits]), bolt.Options.Quota if the disk has other files, and Serving.Proxies behind a proxy.
//   - Record who changes what with Policy.Audit: see package audit.
//   - Let load balancers notice the end of a server with Serving.ShutdownDelay and ShutdownRetryAfter, and let
//     the clients of watches go one after the other with Serving.ShutdownWatchGrace.
//   - Set Observe.Logger, have /metrics scraped, and probe /livez and /readyz.
//
// # Limits
//
// The memory, time and connections that clients can take are bounded. In this table "the memory" is GOMEMLIMIT; if that
// environment variable is not set, a part of the memory is no bound. "In all" means all clients together, and "by user" each
// user. A bound for each user or address has no effect if it is above the bound in all. For an option that is a number, 0 means
// the default and a negative number means no bound. A negative time, Limits.MaxHeaderBytes, bolt.Options.Quota or number of
// Policy.TokenCache is an error. The last column has the status code of the answer, or the effect, when a bound is reached. Where
// [Server.Handler] is mounted in the http.Server of a program, the bounds marked * are those of that http.Server.
//
//	Requests
//	  time of a request that is not a watch                  60 s                                           Limits.RequestTimeout                       504 Timeout
//	  time of a watch without timeoutSeconds                 30 to 60 min                                   Limits.MinWatchTimeout                      the end of the stream
//	  concurrent requests: reads, writes                     400, 200                                       Limits.MaxReadsInFlight, MaxWritesInFlight  429
//	  watches and streams: in all, by user                   10,000, at most 1 per 128 KiB of memory; half  Limits.Watches                              429
//	  bytes held by requests: in all, by user                a sixth of the memory, else 512 MiB; half      Limits.Bytes                                429
//	  requirements of a selector                             400, with 4,000 values and 100 KiB             Limits.MaxSelectorRequirements              400
//	  length of an Audit-ID                                  256 bytes                                      -                                           400
//	  WebSockets and writes of other origins' web pages      none                                           Serving.AllowOrigin                         403
//	Connections
//	  connections: in all, from one address *                10,000, at most 1 per 128 KiB of memory; half  Limits.Connections, Serving.Proxies         closed, an idle one first
//	  TLS handshake, header of a request over HTTP/1.1 *     32 s                                           Limits.HeaderTimeout                        closed
//	  connection without a request *                         90 s                                           Limits.IdleTimeout                          closed
//	  header of a request                                    1 MiB *, 10,000 fields                         Limits.MaxHeaderBytes                       431, or closed (HTTP/2)
//	  headers above 16 KiB, until the request ends           count as bytes held by requests                Limits.Bytes                                429
//	  incomplete headers of all connections together *       8 MiB or 1/320 of the memory                   -                                           closed, the largest first
//	  rest of a body that the handler did not read           1 s                                            -                                           closed after the answer
//	  streams of an HTTP/2 connection, a frame *             100, 64 KiB                                    -                                           an error of HTTP/2
//	  time in which the client of a watch reads nothing      30 s                                           Limits.WriteTimeout                         the watch ends
//	  time in which a connection of HTTP/2 reads nothing *   30 s                                           Limits.WriteTimeout                         closed
//	  time to read any other answer                          60 s                                           Limits.RequestTimeout                       the answer is cut off
//	  time to read the end of an answer after its handler *  30 s                                           Limits.WriteTimeout                         the answer is cut off
//	Bodies and objects
//	  body of a request                                      3 MiB                                          Limits.MaxBodyBytes                         413
//	  memory of the values in a body                         8 MiB                                          Limits.MaxDecodedBytes                      413
//	  defaults added to an object without a Go type          half of the above                              Limits.MaxDecodedBytes                      413
//	  items of each list or map in metadata                  10,000                                         Limits.MaxMetadataItems                     422
//	  encoded object                                         1.5 MiB                                        Limits.MaxObjectBytes                       413
//	  operations of a JSON patch, array items that it moves  10,000, 100,000,000                            Limits.Patches                              413
//	  values of a patch, with its document                   100,000, 300,000                               Limits.Patches                              413
//	  items merged by a strategic merge patch                3,000                                          Limits.Patches                              413
//	  values of wrong types in an applied object             1,000                                          -                                           400
//	  paths of all fields of a merged object                 16 MiB                                         -                                           413 for apply, else a line in the log
//	  values of an object x managers of other versions       100,000                                        -                                           413 for apply, else a line in the log
//	  managers of an object's fields                         1,000                                          -                                           422
//	  fields managed one by one                              about 10,000 in a map, 30,000 in all           -                                           413 for apply, else a line in the log
//	  values or 64 bytes of texts read for a row (CRDs)      65,536                                         crd.Options.Rows                            the cell is cut: ...
//	  a cell, all cells of a row (CRDs)                      16 KiB, 128 KiB                                crd.Options.Rows                            the cell is cut: ...
//	  CEL rules of a definition, their text (CRDs)           1,000, 64 KiB less 60 bytes for each rule      -                                           422
//	Answers
//	  message of a Status                                    32 KiB                                         -                                           cut, with a note
//	  causes of a Status                                     256, 48 KiB                                    -                                           the last has the number of the rest
//	  quoted text: a name, any other                         1 KiB, 4 KiB                                   -                                           cut, with a note
//	Storage
//	  a kind's objects in memory                             those of the storage                           KindOptions.NoCache, bolt.Options.Quota     507 for writes beyond a quota
//	  a kind's changes in memory                             5 min, a quarter of its objects, 8 to 128 MiB  Limits.CacheWindow                          410 for a watch that is too far behind
//	  encodings of objects kept for later requests           64 MiB, at most a sixteenth of the memory      Limits.FormBytes                            nothing
//	  wait for a cache that is being filled                  3 s                                            Limits.CacheWait                            429, Retry-After 1 to 30 s
//	  part of a list read at a time without a cache          1 MiB                                          -                                           nothing
//	  objects converted at once for a field selector         500, about 1 MiB                               -                                           nothing
//	  size of a bolt file                                    all of the disk except 64 MiB or less (Linux)  bolt.Options.Quota                          507 for writes that make it grow
//	Users
//	  groups and values of an impersonated user              1,000                                          -                                           400
//	  remembered tokens, the users of all of them            32,768, 32 MiB                                 Policy.TokenCache                           the token is checked again
//	  time to check a token                                  30 s                                           Policy.TokenCache                           401
//	  remembered certificates of clients, all that they sent 4,096, 16 MiB                                  -                                           the certificate is verified again
//	  certificates that a client sends, of one subject       8, 2                                           -                                           401
//	  remembered answers of a token webhook                  32,768, 32 MiB, 2 min                          webhook.Options (package authn/webhook)     the webhook is asked again
//	  token webhook: answer, attempts, time of an attempt    1 MiB, 5, 10 s                                 webhook.Options (package authn/webhook)     401
//	  answer of the cluster to an extension server           4 MiB                                          delegation.Options                          what was known stays in use
//	  a token file, a password file                          16 MiB; 3 MiB if followed                      ConfigFile.MaxBytes                         an error
//	  token of a service account                             64 KiB                                         serviceaccount.Options (package authn/...)  401; a request for it 422
//	  rules of a role that is written, compared with others  4,000,000 parts x (rules of the user / 64)     -                                           403
//	  permissions that a refused role or binding names       5,000                                          -                                           and more
//	  missing roles in the reason of a refusal               100                                            rbac.Options.Authorizer (MaxMissing)        and more
//	  a file of roles: size, roles and bindings              3 MiB, 10,000                                  rbac.FileOptions.MaxBytes, -                an error
//	  time for which a token is requested                    10 min to 2^32 s                               accounts.Options                            422; shortened with the option
//	  time that a token in a Secret may be unused            365 days; again until the Secret is deleted    accounts.Options.UnusedTokens               401; nothing
//	  keys of service accounts, a file with keys             64, 3 MiB                                      -                                           an error
//	  RSA key of an issuer of OpenID Connect                 8,192 bits                                     jwt.Limits (package authn/jwt)              the key is skipped
//	  connections to a host of such an issuer                16                                             jwt.Limits (package authn/jwt)              further requests wait
//	Permissions
//	  remembered answers of an authorization webhook         8192, 16 MiB, 5 min or 30 s                    webhook.Options (package authz/webhook)     the webhook is asked again
//	  authorization webhook: answer, attempts, all of them   1 MiB, 5, 60 s                                 webhook.Options (package authz/webhook)     500, or the next authorizer decides
//	  reason of an authorization webhook                     1 KiB                                          -                                           cut: ...
//	  match conditions of a webhook, their cost              64, 10,000,000                                 -                                           an error; the failure policy decides
//	  authorizers of a configuration, its file               128, 3 MiB                                     -                                           an error
//	  policy file of ABAC, a line                            3 MiB, 65,535 bytes                            -                                           an error
//	  explanation of a review, its nearest grants            4 KiB, 5                                       -                                           left out
//	  bindings, roles and rules examined for them            200,000                                        -                                           some grants may be missed
//	  rules of a SelfSubjectRulesReview, their texts         10,000, 8 MiB                                  -                                           incomplete is true
//	  permissions and groups in a refusal to grant them      32 KiB, 100                                    -                                           and more
//	  grants of an answer who may do something               1,000                                          -                                           incomplete is true
//	  error of an authorizer in a review                     1 KiB                                          -                                           cut
//	Audit
//	  text of a policy                                       1 MiB                                          -                                           an error
//	  user agent, addresses of proxies in an event           1 KiB, 32                                      -                                           cut; the nearest are kept
//	  events that wait in a batch                            10,000, 64 MiB                                 audit.BatchOptions                          lost, and counted
//	  an event, the events of a delivery                     100 KiB, 10 MiB                                audit.TruncateOptions                       without objects, or lost; divided
//	  a log file, its age, the number of former ones         100 MiB, 366 days, 100                         logfile.Options                             a new file; deleted
//	  attempts to send events, time of an attempt            5, 30 s                                        webhook.Options                             lost, and counted
//	  functions before the stop                              60 s                                           Limits.RequestTimeout                       their context ends
//	Webhooks
//	  answer: header, body, time                             64 KiB, 16 MiB, 30 s                           webhook.Options                             500
//	  redirects                                              none                                           webhook.Options.FollowRedirects             500
//	  memory of the values in a converted object             8 MiB; in all 8 MiB more than what was sent    conversion.Options.MaxDecodedBytes          500
//	  converted object                                       3 MiB; in all 3 MiB + 4 times the sent bytes   conversion.Options.MaxObjectBytes           500
//	  calls at the same time, of one definition              16                                             conversion.Options.MaxCalls                 further calls wait
//	  conversions that wait, of one definition               400                                            conversion.Options.MaxWaiting               429
//	  remembered answers, of all definitions                 32 MiB, a minute                               conversion.Options.Memory, Remember         nothing
package server
