// Package servertest runs a whole server in memory for a test: the handlers, registry, cache and storage of production,
// over connections in memory, in milliseconds and by the hundred.
//
//	srv := servertest.New(t, server.Group{...})
//	resp, err := srv.Client().Get(srv.URL + "/apis/example.com/v1/widgets")
//
// A server ends with its test, which fails if the server leaves a goroutine behind or ends with an error. Servers
// share nothing, so tests that use them may be parallel. [Run] is for who has no test, such as a TestMain.
//
// # What is served
//
// Each argument of [New] adds a part: a server.Group; [Types], the kinds of an existing AddToScheme function, such as those
// of an operator's api package or of k8s.io/api; [Untyped], kinds without Go types; an extension such as builtin.New, which brings
// namespaces, ConfigMaps, Secrets, Leases and Events with their controllers; or any other extension.
//
// An extension too is crd.New, and the CustomResourceDefinitions are there in one more line: from files and folders with
// [InstallCRDs], from an embed.FS with [InstallCRDsFS]. Both wait until what is defined is served.
//
//	srv := servertest.New(t, crd.New(crd.Options{}))
//	servertest.InstallCRDs(t, srv, "config/crd/bases")
//
// # How clients reach it
//
// By its Client, Transport or DialContext; for kubectl and other processes [Server.Listen] opens a port of the loopback
// interface as well. [Server.AddUser] makes others than the administrator known. The module
// server/servertest/clienttest makes a rest.Config for client-go and controller-runtime of it, and has an Environment in the
// shape of controller-runtime's envtest.
//
// # When things go wrong
//
// [Server.Inject] makes requests fail, wait, lose their answer or meet a rival, and watches end or expire, by verb and
// resource. [Server.Record] records requests, which [Recording.Golden] compares with a file.
//
// # Time
//
// In a bubble of testing/synctest a server and its clients live in the bubble's time: an object's TTL, the hour of an event, a
// Lease or the timeout of a watch pass at once, and synctest.Wait returns when the server has nothing left to do. Make the
// server in the bubble, with New or Start and the bubble's t, and its clients too; do not Listen, for a bubble knows nothing of
// the network. Outside of bubbles server.Options.Now sets creation timestamps.
package servertest
