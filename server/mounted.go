package server

import (
	"context"
	"errors"
	"fmt"
	"net/http"
)

// Handler returns the whole server as an http.Handler, with its filter chain, to be mounted in the http.Server of a program. It works
// until the server ends: see Shutdown. It may be mounted at several places at the same time. Install extensions before the first
// call of Handler: from then on a goroutine makes the checks of /readyz until all have passed once, and before that a path that
// is not served is answered with 503 instead of 404.
//
// # Below a path
//
// The handler expects the paths of kube-apiserver, such as /apis. To serve them below a path, strip that path from the requests:
//
//	mux.Handle("/keelson/", http.StripPrefix("/keelson", srv.Handler()))
//
// A chi router does the same by Mount("/keelson", http.StripPrefix("/keelson", srv.Handler())). Requests are authorized by the rest
// of the path. In a kubeconfig the server is then https://host/keelson, and the Host of a rest.Config is the same. The method WriteKubeconfig of
// Credentials writes such a kubeconfig. kubectl and client-go add the path to all their requests. The server does not need the path,
// since no answer has a URL that depends on it: clients take the URLs that /openapi/v3 lists (serverRelativeURL), and the paths in
// OpenAPI documents, relative to the URL of the server. kubectl proxy needs its flag --append-server-path.
//
// # What the http.Server has to do
//
// All bounds of Limits hold, except for those of connections: Connections, HeaderTimeout, IdleTimeout, MaxHeaderBytes, and two
// uses of WriteTimeout, for connections over HTTP/2 whose client reads nothing, and for the end of an answer after its handler.
// Run and Serve set these bounds. With Handler the program has to set them. The options Certificate, Authorities, URL,
// Kubeconfig and Ready of Serving are not used. CloseDelay bounds only the time in which clients read the ends of their watches.
//
//   - Set ReadHeaderTimeout (which also bounds TLS handshakes), IdleTimeout, MaxHeaderBytes, HTTP2.MaxConcurrentStreams and
//     HTTP2.MaxReadFrameSize. Without ReadHeaderTimeout and IdleTimeout a client holds a connection for as long as it likes.
//   - Set HTTP2.WriteByteTimeout: a client that stops reading an HTTP/2 connection holds it until this timeout.
//   - Give the http.Server a listener that bounds the number of connections. The memory for incomplete headers is bounded only by
//     the product of that number and MaxHeaderBytes.
//   - Leave ReadTimeout and WriteTimeout at 0: they would end watches. The handler bounds bodies that are not sent, answers that are
//     not read, and watches.
//   - Leave Protocols nil, or enable HTTP/1 and HTTP/2: kubectl and client-go use HTTP/2 for many watches on one connection, and
//     WebSockets need HTTP/1.
//   - Set TLSConfig. The result of Credentials().TLSConfig() requests client certificates, and has the serving certificate, which
//     is valid for the host of Serving.Listen and the loopback interface. In any other tls.Config set ClientAuth to
//     tls.RequestClientCert. Otherwise clients do not send their certificates, and can authenticate only with tokens. The handler
//     verifies the certificates.
//   - A middleware around the handler must not buffer answers, as http.TimeoutHandler does. If it wraps the http.ResponseWriter, the
//     wrapper needs the method Unwrap that http.ResponseController calls, and has to implement http.Hijacker for WebSockets.
func (s *Server) Handler() http.Handler {
	s.look()
	return s.handler
}

// Shutdown ends a server whose Handler is mounted, as Serve does when its context ends: /readyz fails, the functions of Host.BeforeStop
// are called, and Serving.ShutdownDelay later new requests are refused, watches end cleanly, at once or over Serving.ShutdownWatchGrace,
// and requests that have begun finish, within Limits.RequestTimeout and until ctx ends. Then it closes the server, as Close does. The
// error says that some requests did not finish, or is that of Close.
//
// Call Server.Shutdown before the method Shutdown of the http.Server, which waits for all requests and does not end watches:
//
//	err := errors.Join(srv.Shutdown(ctx), httpServer.Shutdown(ctx))
//
// A server that Run or Serve serves needs no call of Shutdown. Shutdown may be called more than once, and after Close. A second
// call does not wait for Serving.ShutdownDelay.
func (s *Server) Shutdown(ctx context.Context) error {
	unfinished, err := s.finish(ctx, &served{}, false)
	if unfinished != nil {
		unfinished = fmt.Errorf("server: some requests have not finished: %w", unfinished)
	}
	return errors.Join(unfinished, err)
}
