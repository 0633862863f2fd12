// Package servertest runs a whole server in memory for a test: the handlers, registry, cache and storage of production,
// over an in-memory transport, in milliseconds.
//
//	srv := servertest.New(t, server.Group{...})
//	resp, err := srv.Client().Get(srv.URL + "/apis/example.com/v1/widgets")
//
// A server ends with its test, which fails if the server leaves a goroutine behind or ends with an error. Servers
// share nothing, so tests that use them may be parallel.
package servertest
