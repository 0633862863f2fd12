// Package webhook calls what others serve: HTTPS webhooks that are found by a URL or a service and trusted by a bundle of
// certificates, as the clientConfig of a CustomResourceDefinition's conversion says, and that of admission.
//
//	caller := webhook.New(webhook.Options{})
//	defer caller.Close()
//	client, err := caller.Client(webhook.Config{URL: "https://hooks.example.com/convert", CABundle: pem})
//	answer, err := client.Post(ctx, review)
//
// A [Caller] owns all connections. A [Client] owns nothing: it may be made for each use and forgotten, and those of equal
// configurations share what there is. What was not used for ten minutes goes, and so does what was used least recently when there
// is too much of it.
//
// # A call
//
// It is a POST of JSON with the query timeout=30s, by HTTP/1.1, so that calls are spread over those who serve a service, or
// HTTP/2 where the URL is one of this machine. Redirects are not followed. An answer with a code other than 200 to 206 is an error; one with the code 429 or at least 500 and a header Retry-After in seconds is asked for again, ten times at
// most, as long as the deadline allows for it. Everything together, the last byte of the answer included, is done within the
// timeout, or fails.
//
// # Which addresses are connected to, and which errors clients see
//
// Who may define a webhook chooses an address that this server connects to, from inside of its network, and may be anybody who
// may create a CustomResourceDefinition. Three things keep that from being a look around:
//
//   - Redirects are refused, as the aggregator of kube-apiserver refuses those of aggregated servers by default. A webhook, which has
//     to have a certificate that the definition trusts, could otherwise have this server call what has none: plain HTTP, and
//     services of this machine. Options.FollowRedirects allows them, except for those from https to http.
//   - Options.DialFilter sees each address before it is connected to.
//   - The text of an [Error] does not depend on what happened: whether a port is closed, silent, or open, what protocol and what
//     certificate is there, which code was answered and with which body. How long the answer takes still does; a filter is what
//     hides that. Error.Reason says everything, for the log of the server.
//
// An answer costs at most Options.MaxHeader and Options.MaxAnswer bytes and Options.Timeout.
//
// # Reasons
//
// Reasons have the texts that kube-apiserver shows its clients, and so have errors with Options.ShowErrors:
//
//   - *url.Error, where there was no answer: `Post "https://hooks.example.com/convert?timeout=30s": dial tcp ...: connection
//     refused`, or what is wrong with the certificate. It names the webhook.
//   - *apierrors.StatusError, where the answer was no: what a Status in its body says, or `the server could not find the
//     requested resource`, `an error on the server ("...") has prevented the request from succeeding`, and so on by its code.
//     Who wants the webhook named besides uses [Client.String].
//   - others, when the answer could not be read.
//
// # Differences from kube-apiserver
//
//   - Redirects are refused, and what an error says is the same for all that is not an answer of a webhook. kube-apiserver shows all
//     of it. There, who may define webhooks is an administrator; a server of this library may have users who define kinds of
//     their own, and are not to see more of the network than its API.
//   - Answers are bounded: see Options.MaxAnswer and Options.MaxHeader. Of one that is an error, a MiB is read.
//   - A Retry-After that is longer than the deadline allows for is not waited for; the answer is the error.
//   - Who this server is to a webhook comes from Options.Identify, and not from a kubeconfig; where a service is from
//     Options.Resolve, and not from Service objects.
//   - What a reason says of a timeout does not vary.
package webhook
