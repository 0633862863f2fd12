// Package kinds provides an extension that serves the kinds of k8s.io/api that kube-apiserver stores.
//
// They are served by their Go types, with the names, scopes, /status and storage keys of kube-apiserver, but without its
// defaults, validation, field selectors and columns.
//
// # What is not served yet
//
// These parts of what kube-apiserver 1.37 serves with --runtime-config=api/all=true are missing:
//
//   - Kinds that are not stored: selfsubjectreviews and tokenreviews of authentication.k8s.io/v1; localsubjectaccessreviews,
//     selfsubjectaccessreviews, selfsubjectrulesreviews and subjectaccessreviews of authorization.k8s.io/v1; bindings and
//     componentstatuses of v1. (server/builtin/reviews serves those of authentication.k8s.io/v1.)
//   - apiservices of apiregistration.k8s.io/v1, whose types are not in k8s.io/api.
//   - Versions whose conversion loses data or needs annotations: horizontalpodautoscalers of autoscaling/v1, and
//     podcertificaterequests of certificates.k8s.io/v1beta1. Both are served in their other version.
//   - All subresources except /status: attach, binding, ephemeralcontainers, eviction, exec, log, portforward, proxy and resize
//     of pods; proxy of nodes and services; scale of deployments, replicasets, statefulsets and
//     replicationcontrollers; approval of certificatesigningrequests. (server/builtin serves namespaces/finalize, and server/builtin/accounts serviceaccounts/token.)
package kinds

import (
	"fmt"

	"github.com/keelson-dev/keelson/runtime"
	"github.com/keelson-dev/keelson/server"
	apiruntime "k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

// Extension returns an extension that serves all kinds, except those that an earlier extension serves in any version.
func Extension() server.Extension {
	return server.ExtensionFunc(func(h *server.Host) error {
		if err := install(h); err != nil {
			return fmt.Errorf("kinds of k8s.io/api: %w", err)
		}
		return nil
	})
}

func install(h *server.Host) error {
	src, err := types()
	if err != nil {
		return err
	}
	served := map[schema.GroupKind]bool{}
	for _, k := range h.Catalogue().Kinds() {
		for _, gvk := range k.Kinds {
			served[gvk.GroupKind()] = true
		}
	}
	var groups []server.Group
	for _, k := range table() {
		if served[schema.GroupKind{Group: k.group, Kind: k.name}] {
			continue
		}
		more, err := k.resources(h.Scheme(), src)
		if err != nil {
			return err
		}
		groups = append(groups, more...)
	}
	return h.Serve(groups...)
}

// resources imports the versions of a kind and returns a group for each of them.
func (k kind) resources(s *runtime.Scheme, src *apiruntime.Scheme) ([]server.Group, error) {
	imported, err := s.ImportFrom(src, k.gvks()...)
	if err != nil {
		return nil, err
	}
	var groups []server.Group
	for i, version := range imported {
		o := server.KindOptions[runtime.Object]{ClusterScoped: k.cluster, ShortNames: k.short, Categories: k.categories}
		if i == 0 {
			o.StoragePath = k.storagePath()
		}
		if !s.Converts(version.GVK) {
			return nil, fmt.Errorf("%s cannot be converted to version %s", version.GVK, k.versions[0])
		}
		groups = append(groups, server.Group{Name: k.group, Versions: []server.Version{{
			Name: version.GVK.Version, Resources: []server.Resource{server.ImportedKind(version, o)},
		}}})
	}
	return groups, nil
}
