package admission

import (
	"cmp"
	"errors"
	"slices"
	"sync/atomic"

	"github.com/keelson-dev/keelson/runtime/live"
)

// Live is a chain whose members come and go while requests pass it; each is known by its name. They are asked in the order
// of kube-apiserver, which [Order] lists; a plug-in of another name is asked after those that judge built-in kinds and before
// policies, webhooks and quota, in the order in which it came first. A request takes one [Live.Now]. The zero Live accepts
// everything. All methods may be called concurrently; a Live must not be copied.
type Live struct {
	members live.Members[Plugin]
	chain   atomic.Pointer[made] // of the members
}

// made is a chain and what it was made of.
type made struct {
	of    *[]live.Member[Plugin]
	chain Chain
}

// ErrPlugin is wrapped by the errors of [Plugin.Check].
var ErrPlugin = errors.New("the admission plug-in cannot be called")

// Set adds a plug-in, or replaces the one of its name, in one step for all requests that begin afterwards. The error is that
// of [Plugin.Check].
func (l *Live) Set(p Plugin) error {
	if err := p.Check(); err != nil {
		return err
	}
	l.members.Set(p.Name, p, func(a, b string) int { return cmp.Compare(place(a), place(b)) })
	return nil
}

// Remove takes a plug-in away, and reports whether there was one of that name.
func (l *Live) Remove(name string) bool { return l.members.Remove(name) }

// Names lists the plug-ins, in the order in which they are asked.
func (l *Live) Names() []string { return l.members.Names() }

// Now returns the chain as it is now.
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

// Order lists the plug-ins of kube-apiserver 1.37 in the order in which it asks them, see
// https://kubernetes.io/docs/reference/access-authn-authz/admission-controllers/: those before the plug-ins of other names, and
// those after them. The slices are the caller's own.
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

// place is where a plug-in stands among the others.
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
