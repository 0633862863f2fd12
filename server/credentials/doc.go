// Package credentials makes what a server needs to be reached by kubectl without any set-up: a certificate
// authority, a serving certificate, and one administrator with a client certificate and a bearer token.
//
//	creds, err := credentials.Open(credentials.Options{Dir: "hello.db.pki", Host: "127.0.0.1"})
//	...
//	listener := tls.NewListener(l, creds.TLSConfig())
//	path, err := creds.WriteKubeconfig("hello.kubeconfig", "https://"+credentials.DialableHost(l.Addr()))
//
// # What is kept
//
// The directory (mode 0700) holds four files (mode 0600). Each is replaced as a whole, so the directory is usable
// at whatever instant the process ends. All is used again by the next Open while it is valid.
//
//   - ca.pem: the authority's certificate and key, valid for ten years. Whoever holds the key can make credentials.
//   - serving.pem: the server's certificate and key, valid for a year, for the listen host, localhost, 127.0.0.1
//     and ::1.
//   - client.pem: the administrator's certificate and key, valid for a year.
//   - token: the administrator's bearer token.
//
// A serving or client certificate that is missing, damaged, expired or within 30 days of it, from another
// authority, or not for this host or user, is issued anew under the same authority: kubeconfigs that were handed
// out go on verifying the server, and their token goes on working. To revoke everything, delete the directory. A
// damaged ca.pem or token is an error, because making a new one would shut out who holds the old credentials; an
// authority that is about to expire is replaced, because it would shut them out anyway.
//
// The serving certificate is issued anew while the server runs, too: see [Bundle.Certificate]. The administrator's certificate is so
// by Open alone; the token beside it in the kubeconfig does not expire. Certificates in files that others write are [FromFiles].
//
// This package checks nobody's credentials; package authn's authenticators do, given ClientCAs and Token.
//
// Certificates follow RFC 5280, the kubeconfig is that of
// https://kubernetes.io/docs/concepts/configuration/organize-cluster-access-kubeconfig/.
package credentials
