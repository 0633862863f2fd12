// Package transport provides what is between an http.Server and its connections:
//
//   - [ServeHTTP2] serves HTTP/2 with few large writes.
//   - [Listener] accepts connections that gather answers into few large writes.
//   - [WriteLimit] bounds the time for which a client may block the writes of watches.
//   - [Connections] bounds the number of connections.
//   - [Count] counts the users of a resource that is to be closed.
//
// # Gathering
//
// net/http writes an answer over HTTP/2 in frames of 16 KiB, and crypto/tls writes every record of at most 16 KiB separately.
// Several records in one write cost little more than one, for the kernel and for the client that it wakes. Below TLS a connection
// cannot see whether more records follow, so the handler that writes the answer has to say it:
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
// While a handler holds a [Conn], the Conn keeps bytes that are written until there are enough. After the last handler has
// released it, the next write, such as that of the frame that ends the answer, sends everything. If there is no such write, or
// the client has to read the kept bytes before it allows more, a timer sends them.
package transport
