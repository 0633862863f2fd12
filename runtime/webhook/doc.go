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
// HTTP/2 where the URL is one of this machine. Redirects are followed as browsers do. An answer with a code other than 200 to
// 206 is an error; one with the code 429 or at least 500 and a header Retry-After in seconds is asked for again, ten times at
// most, as long as the deadline allows for it. Everything together, the last byte of the answer included, is done within the
// timeout, or fails.
//
// # Errors
//
// Errors have the texts that kube-apiserver shows its clients, since those get to see them here, too:
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
//   - Answers are bounded: see Options.MaxAnswer. Of one that is an error, a MiB is read.
//   - A Retry-After that is longer than the deadline allows for is not waited for; the answer is the error.
//   - Who this server is to a webhook comes from Options.Identify, and not from a kubeconfig; where a service is from
//     Options.Resolve, and not from Service objects.
//   - What an error says of a timeout does not vary.
package webhook
