// Package transport is what lies between an http.Server and its connections: HTTP/2 in few large writes ([ServeHTTP2]), answers
// that are gathered into few large writes ([Listener]), the time that a client may block the writes of watches ([WriteLimit]), how many
// connections there are ([Connections]), and the count of those who are inside something that is to end ([Count]).
//
// # Gathering
//
// net/http writes an answer over HTTP/2 in frames of 16 KiB, and crypto/tls writes every record of at most 16 KiB by
// itself. For the kernel, and for the client that it wakes, several of them at once cost little more than one. Below TLS
// nobody can tell whether more is to come, so whoever makes the answer says so:
//
//	ln := transport.NewListener(tcp, 30*time.Second)
//	hs := &http.Server{ConnContext: transport.ConnContext, ...}
//	go hs.ServeTLS(ln, "", "")
//
//	held := transport.ConnOf(r.Context()) // in a handler
//	held.Hold()
//	defer held.Release()
//	w.Write(much)
//
// While somebody holds a [Conn] it keeps what is written until there is enough of it. After the last has released it the
// next write, such as that of the frame that ends the answer, sends all. When there is none, or the client first has to
// read what is kept before it allows more, a timer sends it.
package transport
