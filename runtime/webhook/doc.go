// Package webhook calls HTTPS webhooks, which are configured by a URL or a service and a bundle of CA certificates.
//
// The configuration is that of the clientConfig of a CustomResourceDefinition's conversion and of admission webhooks:
//
//	caller := webhook.New(webhook.Options{})
//	defer caller.Close()
//	client, err := caller.Client(webhook.Config{URL: "https://hooks.example.com/convert", CABundle: pem})
//	answer, err := client.Post(ctx, review)
//
// # Security
//
// A user who may define a webhook chooses an address that this server connects to from inside its network. Anybody who may create
// a CustomResourceDefinition may be such a user. The package prevents such users from exploring the network:
//
//   - Redirects are refused, as the aggregator of kube-apiserver refuses those of aggregated servers by default. A webhook must
//     have a certificate that its definition trusts; a redirect could make this server call plain HTTP servers and services of
//     this machine that have none. [Options].FollowRedirects allows redirects, except from https to http.
//   - [Options].DialFilter is called with each address before the server connects to it.
//   - The text of an [Error] is the same for every failure: it does not show whether a port is closed, filtered or open, or which
//     protocol, certificate, code and body were found. The duration of a call still differs; only a filter hides that.
//     Error.Reason has the details, for the log of the server.
//
// An answer costs at most [Options].MaxHeader and [Options].MaxAnswer bytes and [Options].Timeout.
//
// # Differences from kube-apiserver
//
//   - Redirects are refused, and errors for clients have one text. kube-apiserver shows all details, because only administrators
//     define webhooks there. Users of a server with this library may define kinds of their own, and must not see more of the
//     network than its API.
//   - The size of answers is limited: see Options.MaxAnswer and Options.MaxHeader. At most 1 MiB of an error answer is read.
//   - If Retry-After is longer than the deadline allows, Post does not wait, and the answer is the error.
//   - The server's identity comes from Options.Identify, not from a kubeconfig, and the address of a service from
//     Options.Resolve, not from Service objects.
//   - The reason of a timeout always has the same text.
package webhook
