package options

import (
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/keelson-dev/keelson/admission"
)

// plugin is an admission plug-in of kube-apiserver.
type plugin struct {
	name string
	on   bool // enabled by default
}

// plugins returns kube-apiserver's admission plug-ins, in the order in which they run.
func plugins() []plugin {
	before, after := admission.Order()
	on := onByDefault()
	var all []plugin
	for _, name := range append(before, after...) {
		all = append(all, plugin{name, slices.Contains(on, name)})
	}
	return all
}

// onByDefault returns the admission plug-ins that kube-apiserver runs unless they are disabled.
func onByDefault() []string {
	return []string{
		"CertificateApproval", "CertificateSigning", "CertificateSubjectRestriction", "ClusterTrustBundleAttest",
		"DefaultIngressClass", "DefaultStorageClass", "DefaultTolerationSeconds", "LimitRanger",
		"MutatingAdmissionPolicy", "MutatingAdmissionWebhook", "NamespaceLifecycle", "NodeDeclaredFeatureValidator",
		"PersistentVolumeClaimResize", "PodGroupProtection", "PodResizeValidator", "PodSecurity",
		"PodTopologyLabels", "Priority", "ResourceQuota", "RuntimeClass", "ServiceAccount", "StorageObjectInUseProtection",
		"TaintNodesByCondition", "ValidatingAdmissionPolicy", "ValidatingAdmissionWebhook",
	}
}

// checkPlugins sets AdmissionPlugins, and adds plug-ins to WithoutEffect that were enabled and are not available. Plug-ins that
// were disabled and are not available are no error.
func (o *Options) checkPlugins(p Program) error {
	all := plugins()
	known := func(name string) bool {
		return slices.ContainsFunc(all, func(p plugin) bool { return p.name == name })
	}
	var problems []error
	for _, list := range []struct {
		flag  string
		names []string
	}{{"enable", o.enable}, {"disable", o.disable}} {
		for _, name := range list.names {
			if !known(name) {
				problems = append(problems, fmt.Errorf("--%s-admission-plugins: plugin %q is unknown", list.flag, name))
			}
		}
	}
	var missing []string
	for _, plugin := range all {
		enabled, disabled, has := slices.Contains(o.enable, plugin.name), slices.Contains(o.disable, plugin.name), slices.Contains(p.AdmissionPlugins, plugin.name)
		switch {
		case enabled && disabled:
			problems = append(problems, fmt.Errorf("--enable-admission-plugins and --disable-admission-plugins both have %s", plugin.name))
		case enabled && !has:
			missing = append(missing, plugin.name)
		case has && !disabled && (enabled || plugin.on):
			o.AdmissionPlugins = append(o.AdmissionPlugins, plugin.name)
		}
	}
	if missing != nil {
		o.WithoutEffect = append(o.WithoutEffect, "--enable-admission-plugins="+strings.Join(missing, ","))
		slices.Sort(o.WithoutEffect)
	}
	return errors.Join(problems...)
}
