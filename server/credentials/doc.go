// Package credentials provides the credentials with which kubectl reaches a server without any set-up: a certificate authority, a
// serving certificate, and one administrator with a client certificate and a bearer token.
//
//	creds, err := credentials.Open(credentials.Options{Dir: "hello.db.pki", Host: "127.0.0.1"})
//	...
//	listener := tls.NewListener(l, creds.TLSConfig())
//	path, err := creds.WriteKubeconfig("hello.kubeconfig", "https://"+credentials.DialableHost(l.Addr()))
//
// This package does not authenticate clients. The authenticators of package authn do that, with the ClientCAs and the Token of a
// [Bundle].
//
// # Files
//
// The directory (mode 0700) has these files (mode 0600). Each file is replaced as a whole, so that the directory is usable even if
// the process ends during a write. The next Open uses the files that are still valid. If other users of the machine have
// permissions for the directory or a file in it, Open removes these permissions.
//
//   - ca.pem: the authority's certificate and key, valid for ten years. Everybody who has the key can make credentials, also
//     those of an administrator.
//   - serving.pem: the server's certificate and key, valid for a year, for the listen host, localhost, 127.0.0.1 and ::1.
//   - client.pem: the administrator's certificate and key, valid for a year.
//   - token: the administrator's bearer token.
//   - service-accounts.pem: the keys that sign the tokens of service accounts, if a program has such: see [SigningKeyFile].
//
// # Renewal
//
// Open issues a new serving or client certificate, from the same authority, if the old one is missing or damaged, has expired or
// expires within 30 days, is from another authority, or is not for this host or user. Kubeconfigs that were written before still
// verify the server, and their token is still valid. To revoke all credentials, delete the directory.
//
// A damaged ca.pem or token is an error, because a new one would lock out all clients with the old credentials. An authority that
// expires soon is replaced, because its clients would soon be locked out anyway.
//
// The serving certificate is also issued anew while the server runs: see [Bundle.Certificate]. The administrator's certificate is
// issued anew only by Open, but the token in the kubeconfig does not expire. [FromFiles] reads certificates from files that other
// programs write.
//
// Certificates follow RFC 5280, and the kubeconfig follows
// https://kubernetes.io/docs/concepts/configuration/organize-cluster-access-kubeconfig/.
package credentials
