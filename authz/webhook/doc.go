// Package webhook authorizes requests by a webhook, which gets a SubjectAccessReview and answers with the decision:
// https://kubernetes.io/docs/reference/access-authn-authz/webhook/.
//
//	cfg, err := client.Kubeconfig("/etc/keelson/authorization.kubeconfig", "")
//	hook, err := webhook.New(cfg, webhook.Options{})
//	host.OnClose(hook.Close)
//	err = host.Authorize("webhook", hook)
//
// An answer that is allowed allows, one that is denied denies, and another one is no opinion. An answer that is both denies, with an
// error. If there is no answer, Options.Deny decides. Selectors are sent as requirements, without those that a SubjectAccessReview cannot
// have, such as a > 1. It never has a raw selector.
//
// # How long an answer counts
//
// A request that was allowed is allowed for up to Options.Authorized, and one that was not is refused for up to Options.Unauthorized, by
// default for 5 minutes and 30 seconds. Answers are remembered for equal requests: of one user, with groups, for one object. Those with
// [MaxRemembered] or more bytes of attributes, and errors, are not remembered.
//
// # Bounds
//
// A webhook that hangs costs a request that needs it the time of Options.Timeout and Options.Attempts, at most Options.Time, and others
// nothing. Equal requests share a call. An answer has at most [MaxAnswer] bytes, of which 1 KiB of the reason is used. A redirect to another
// server is refused.
//
//	remembered answers             8192           Options.Entries
//	bytes of all of them         16 MiB           Options.Bytes
//	attempts, time of each      5, 30 s           Options.Attempts, Options.Timeout
//	time of all attempts           60 s           Options.Time
//	bytes of an answer            1 MiB           Options.Client.MaxAnswer
//	bytes of a reason             1 KiB
//
// # Differences from kube-apiserver
//
//   - If the webhook fails, the answer to the user says that there is no usable answer; if Match fails, it has the error of Match. Only
//     Hooks.Failed gets the text of an error that the webhook answered, and the addresses and certificates of the network.
//     kube-apiserver shows them to everybody.
//   - A reason is cut after 1 KiB, and the remembered answers are bounded in bytes.
//   - Equal requests that come at the same time share a call.
//   - All attempts together are bounded by Options.Time.
//   - A condition that fails before another one that is false is not counted as an error: it has no effect. kube-apiserver counts both.
package webhook
