// Package load is the client side of the bench: clients with connections of their own, loops of many concurrent clients, and
// streams of events that are read and timed.
//
// It uses net/http over HTTP/2 and TLS, in the same way for every server. Bodies are read and dropped without decoding during
// measurements, because the clients share the processors with the server.
package load
