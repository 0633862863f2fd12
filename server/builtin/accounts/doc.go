// Package accounts provides an extension with service accounts: the identities of programs, and the tokens that prove them.
//
//	err := srv.Install(builtin.New(builtin.Options{}))
//	err = srv.Install(accounts.New(accounts.Options{}))
//	err = srv.Install(rbac.New(rbac.Options{}))       // roles, which say what accounts may do
//	err = srv.Install(reviews.New(reviews.Options{})) // questions of clients: who a token is, and what the user may do
//
// Then the account bot gets a token, with which a client is the user system:serviceaccount:default:bot, and the permissions of the role
// reader:
//
//	kubectl create token bot
//	kubectl create rolebinding bot --role=reader --serviceaccount=default:bot
//
// The account and the role are made before: kubectl create serviceaccount bot, and for example
// kubectl create role reader --verb=get,list --resource=configmaps. See
// https://kubernetes.io/docs/reference/access-authn-authz/service-accounts-admin/.
//
// # Contents
//
//   - The kind ServiceAccount of core v1, and its subresource token, by which clients request tokens (TokenRequest of
//     authentication.k8s.io/v1). A token can be bound to a Secret, and to a Pod or Node if the server serves these kinds with the types
//     of k8s.io/api.
//   - The authenticator of tokens: see package authn/serviceaccount. A token ends with its account and with the object that it is
//     bound to.
//   - The documents /.well-known/openid-configuration and /openid/v1/jwks, by which other programs verify tokens. The default rules and the
//     members of system:masters decide who may read them: see [Authorizer].
//   - Controllers: one makes the account default in every namespace, one publishes the CA of the server as the ConfigMap
//     kube-root-ca.crt in every namespace, and one fills the Secrets of the type kubernetes.io/service-account-token,
//     deletes them with their account, and, when one is deleted, removes the names of Secrets that do not exist from it. The last one cleans
//     up unused tokens, as below.
//   - Metrics of the uses of tokens, with the names of kube-apiserver: serviceaccount_legacy_tokens_total and five others.
//
// # Unused tokens
//
// A use of the token of a Secret is noted in the label kubernetes.io/legacy-token-last-used of the Secret, once a day. The ConfigMap
// kube-apiserver-legacy-service-account-token-tracking in kube-system has the date since which uses are noted. The server makes it, and
// gives it the date of the day if it has none. One that is deleted is made again, at most every 30 minutes.
//
// Once a day the cleaner looks for Secrets that their account lists in its field secrets, as if Kubernetes had made them, and that no pod
// of their namespace uses. If such a Secret is older than a year, its token was not used for a year, and uses have been noted for a
// year, the Secret gets the label kubernetes.io/legacy-token-invalid-since with the date, and its token is refused. After another year
// in which nobody has tried to use the token, the Secret is deleted. To make a token valid again, remove the label. Options.UnusedTokens
// is the time in place of a year. Pods are seen if the server serves them with the type of k8s.io/api.
//
// # Keys
//
// The key that signs is in a file: Options.SigningKeyFile, or service-accounts.pem in the directory Serving.Credentials of the server,
// where it is made if it is missing. Without such a directory the key is in memory, and all tokens end with the server. Servers that share a
// storage need the same keys.
//
// A file may have several private keys: the first one signs, and all of them verify. Files are read again when they change. So a key is
// rotated without a token being refused:
//
//  1. Add the new key at the end of the file, on all servers.
//  2. Move it to the beginning, on all servers.
//  3. Remove the former key when its last token has ended.
//
// # Limits
//
// A token is valid for ten minutes at least and 2^32 seconds at most (Options.MaxExpiration), and has at most 64 KiB, which bounds the
// audiences that can be requested. There are at most 64 keys. A token is remembered for ten seconds (package authn): for that time it is
// accepted after its end.
//
// A pass of the cleaner writes one Secret after another, and reads the Secrets and pods from memory. The first pass is ten minutes after
// the start, and each further one a day after the last. One that could not read is repeated after at most 30 seconds.
//
// # Several servers
//
// The controllers run on every server. They write only what is missing or different, and several of them at once come to the same result.
//
// # Differences from kube-apiserver
//
//   - In Kubernetes the controllers run in kube-controller-manager.
//   - A token is signed by an ECDSA key of the curve P-256 unless a file has another key. In Kubernetes there is no default.
//   - The date of the last use of a legacy token is written after the request, which does not wait for it.
//   - The cleaner of kube-controller-manager makes its first pass when it starts. Here extensions that are installed after this one may
//     serve pods, without which the Secrets that they use would be cleaned up.
//   - The answer to a request for a token has no metadata.managedFields. A method that the subresource token does not have is refused with
//     another message.
//   - A token for a webhook configuration is refused with 400, and an external signer of tokens (--service-account-signing-endpoint) is
//     not supported.
package accounts
