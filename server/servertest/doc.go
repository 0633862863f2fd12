// Package servertest runs a whole server in memory for a test. The server has the handlers, registry and cache of production,
// connections in memory, and by default a storage in memory. A server starts in milliseconds, and hundreds of them may run at
// once.
//
//	srv := servertest.New(t, server.Group{...})
//	resp, err := srv.Client().Get(srv.URL + "/apis/example.com/v1/widgets")
//
// A server ends with its test. The test fails if the server leaves a goroutine behind or ends with an error. Servers share
// nothing, so tests that use them may be parallel. [Run] starts a server without a test, for example in TestMain.
//
// # What is served
//
// Each argument of [New] adds a part: a server.Group; [Types], the kinds of an existing AddToScheme function, such as those of an
// operator's api package or of k8s.io/api; [Untyped], kinds without Go types; or any other extension, such as builtin.New, which
// adds namespaces, ConfigMaps, Secrets, Leases and Events with their controllers.
//
// With the extension crd.New, one more line installs CustomResourceDefinitions: [InstallCRDs] from files and folders, and
// [InstallCRDsFS] from an embed.FS. Both wait until the definitions are served.
//
//	srv := servertest.New(t, crd.New(crd.Options{}))
//	servertest.InstallCRDs(t, srv, "config/crd/bases")
//
// # Clients
//
// Clients reach the server by its methods Client, Transport and DialContext. [Server.Listen] also opens a port of the loopback
// interface for kubectl and other processes. [Server.AddUser] adds users besides the administrator. The module
// server/servertest/clienttest makes a rest.Config for client-go and controller-runtime, and has an Environment with the API of
// controller-runtime's envtest.
//
// # Faults and recordings
//
// [Server.Inject] makes requests fail, wait, lose their answer or conflict with another writer, and makes watches end or expire,
// by verb and resource. [Server.Record] records requests; [Recording.Golden] compares them with a file.
//
// # Time
//
// In a bubble of testing/synctest a server and its clients use the time of the bubble: the TTL of an object, the hour for which
// an event is kept, the duration of a Lease or the timeout of a watch passes without waiting, and synctest.Wait returns when the
// server has nothing left to do. Make the server and its clients in the bubble, with New or Start and the bubble's t. Do not call
// Listen: a bubble does not support the network. Outside of bubbles, server.Options.Now sets creation timestamps.
package servertest
