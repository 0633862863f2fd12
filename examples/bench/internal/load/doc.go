// Package load is the client side of the bench: clients with connections of their own, loops that many clients run
// at once, and streams of events that are read and timed.
//
// All of it is net/http over HTTP/2 and TLS, the same for every server. Bodies are read and thrown away: nothing is
// decoded while something is measured, since the clients share the processors with the server.
package load
