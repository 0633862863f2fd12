// Package abac authorizes requests by a policy file, as the mode ABAC of kube-apiserver does:
// https://kubernetes.io/docs/reference/access-authn-authz/abac/.
//
//	policy, err := abac.ReadFile("/etc/keelson/policy.jsonl")
//	err = host.Authorize("abac", policy)
//
// # The file
//
// Each line is a policy, which allows something. Empty lines, and those that begin with #, are left out.
//
//	{"apiVersion": "abac.authorization.kubernetes.io/v1beta1", "kind": "Policy", "spec": {"user": "ann", "namespace": "*", "apiGroup": "*", "resource": "pods", "readonly": true}}
//
// A policy with a user and a group is for this user as a member of the group. One with neither is for nobody. "*" in either of them
// stands for all members of system:authenticated, whatever the other is. namespace, apiGroup and resource match one value, or all
// with "*"; a cluster-scoped resource has the namespace "", and a subresource is allowed with its resource. nonResourcePath matches one
// path, all with "*", or those that begin with what is before a star at the end. readonly leaves the verbs get, list and watch.
//
// A line without a version is one in an old form, {"user": "ann", "resource": "pods"}, in which everything that is not there is not
// restricted: {} allows everything to everybody who is authenticated. [Policy.Unversioned] reports whether a file has such lines.
//
// # Bounds
//
//	bytes of a file     3 MiB   MaxFile
//	bytes of a line    65,535   MaxLine, as in kube-apiserver
//
// A decision looks at the policies of the user and of the user's groups only.
//
// # Differences from kube-apiserver
//
//   - A file has at most MaxFile bytes, and an error shows at most 4 KiB of a line.
//   - A line in the version __internal, which is that of kube-apiserver's memory, is refused.
//   - A line with several YAML documents is refused. There the first is read.
package abac
