package admission

import (
	"cmp"
	"errors"
	"slices"
	"sync/atomic"

	"github.com/keelson-dev/keelson/runtime/live"
)

// Live is a chain whose named plug-ins may be added and removed while it is in use. The plug-ins are called in the order of
// kube-apiserver, which [Order] returns. Plug-ins with other names are called after those for built-in kinds and before policies,
// webhooks and quota, in the order in which the names were first added. Each request uses the Chain that one call of [Live.Now]
// returned. The zero Live accepts every change. All methods may be called concurrently. A Live must not be copied.
type Live struct {
	members live.Members[Plugin]
	chain   atomic.Pointer[made] // made of the members
}

// made is a chain and the members of which it was made.
type made struct {
	of    *[]live.Member[Plugin]
	chain Chain
}

// ErrPlugin is wrapped by the errors of [Plugin.Check].
var ErrPlugin = errors.New("the admission plug-in cannot be called")

// Set adds a plug-in, or replaces the plug-in with its name. The change is atomic for all requests that begin afterwards. The
// error is that of [Plugin.Check].
func (l *Live) Set(p Plugin) error {
	if err := p.Check(); err != nil {
		return err
	}
	l.members.Set(p.Name, p, func(a, b string) int { return cmp.Compare(place(a), place(b)) })
	return nil
}

// Remove removes a plug-in, and reports whether there was a plug-in with this name.
func (l *Live) Remove(name string) bool { return l.members.Remove(name) }

// Names returns the names of the plug-ins, in the order in which they are called.
func (l *Live) Names() []string { return l.members.Names() }

// Now returns the chain of the current plug-ins.
func (l *Live) Now() Chain {
	members := l.members.Now()
	if m := l.chain.Load(); m != nil && m.of == members {
		return m.chain
	}
	chain := make(Chain, 0, len(*members))
	for _, m := range *members {
		chain = append(chain, m.Value)
	}
	l.chain.Store(&made{members, chain})
	return chain
}

// Order returns the plug-ins of kube-apiserver 1.37 in the order in which kube-apiserver calls them: those before the plug-ins
// with other names, and those after them. The caller owns the slices. See
// https://kubernetes.io/docs/reference/access-authn-authz/admission-controllers/.
func Order() (before, after []string) {
	return []string{
			"AlwaysAdmit", "NamespaceAutoProvision", "NamespaceLifecycle", "NamespaceExists", "LimitPodHardAntiAffinityTopology",
			"LimitRanger", "ServiceAccount", "NodeRestriction", "TaintNodesByCondition", "AlwaysPullImages", "ImagePolicyWebhook",
			"PodSecurity", "PodNodeSelector", "Priority", "DefaultTolerationSeconds", "PodTolerationRestriction", "EventRateLimit",
			"ExtendedResourceToleration", "DefaultStorageClass", "StorageObjectInUseProtection", "PodGroupProtection",
			"OwnerReferencesPermissionEnforcement", "PersistentVolumeClaimResize", "RuntimeClass", "CertificateApproval",
			"CertificateSigning", "ClusterTrustBundleAttest", "CertificateSubjectRestriction", "DefaultIngressClass",
			"DenyServiceExternalIPs", "PodTopologyLabels", "NodeDeclaredFeatureValidator",
			"PodResizeValidator",
		}, []string{
			"MutatingAdmissionPolicy", "MutatingAdmissionWebhook", "ValidatingAdmissionPolicy", "ValidatingAdmissionWebhook",
			"ResourceQuota", "AlwaysDeny",
		}
}

// place returns the position of a plug-in.
func place(name string) int {
	before, after := Order()
	if i := slices.Index(before, name); i >= 0 {
		return i
	}
	if i := slices.Index(after, name); i >= 0 {
		return len(before) + 1 + i
	}
	return len(before)
}
