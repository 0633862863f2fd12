// Package config authorizes requests by the authorizers of an AuthorizationConfiguration, the file of --authorization-config of
// kube-apiserver: https://kubernetes.io/docs/reference/access-authn-authz/authorization/#using-configuration-file-for-authorization.
//
//	file, err := config.NewFile(config.Options{Authorizers: map[string]authz.Authorizer{config.RBAC: roles}}) // of the server's extension
//	host.OnClose(file.Close)
//	err = host.Authorize("config", authz.Plain{Authorizer: file}) // after authz.Masters
//	err = host.Follow(server.ConfigFile{Name: "authorization", Path: path, Use: file.Use})
//
// The authorizers are asked in the order of the file, as in authz.Union: the first that allows or denies decides, and a reason without a
// verdict is shown after the name of its authorizer. Webhooks are made here, those of the types AlwaysAllow and AlwaysDeny too. The
// program gives those of other types; a type that it does not give is an error. Members of system:masters need an authorizer before: it is
// no part of the file.
//
// A file that asks a webhook about all users but one, and then the program's roles:
//
//	apiVersion: apiserver.config.k8s.io/v1
//	kind: AuthorizationConfiguration
//	authorizers:
//	- type: Webhook
//	  name: hook
//	  webhook:
//	    subjectAccessReviewVersion: v1
//	    matchConditionSubjectAccessReviewVersion: v1
//	    matchConditions: [{expression: "request.user != 'system:admin'"}]
//	    timeout: 3s
//	    failurePolicy: Deny
//	    connectionInfo: {type: KubeConfigFile, kubeConfigFile: /etc/keelson/webhook.kubeconfig}
//	- type: RBAC
//	  name: rbac
//
// # When the file changes
//
// A changed file is used as a whole, or not at all: then the authorizers from before stay in use. Each request uses those of one version of
// the file, if it uses what [File.Pin] returns, as a server does. The types ABAC, Node and RBAC must stay those of the first file; webhooks,
// and the order, may change. The webhooks of a changed file are new, and remember nothing. Those from before stay open for Options.Grace, for
// the requests that have begun, and then deny all that is asked. kubeconfigs are read with the file.
//
// # Bounds
//
//	bytes of a file                       3 MiB   MaxFile
//	authorizers                             128   MaxAuthorizers
//	match conditions of a webhook            64   condition.Max
//	timeout of a webhook                   30 s
//	time for which a replaced webhook stays open   2 min   Options.Grace
//
// # Differences from kube-apiserver
//
//   - The type Node is not available yet.
//   - A file has at most MaxAuthorizers authorizers and MaxFile bytes. A YAML file with several documents is refused; there the first is used.
//   - An error about the type of a value names v1 also for a file in a beta version.
//   - A changed file with a webhook of the type InClusterConfig is used, or refused if the program is in no pod. There the server crashes.
//   - A kubeconfig that cannot be used is an error with other words; see package runtime/client.
package config
