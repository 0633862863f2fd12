package accounts

import (
	"context"
	"reflect"

	"github.com/keelson-dev/keelson/runtime"
	corev1 "k8s.io/api/core/v1"
)

// podSecrets are the Secrets that pods use, by namespace. The pods of a namespace are read once.
type podSecrets struct {
	readers runtime.Readers
	of      map[string]map[string]bool
}

// has reports whether a pod uses a Secret. If the server does not serve pods with the type of k8s.io/api, none does.
func (p podSecrets) has(ctx context.Context, s *corev1.Secret) (bool, error) {
	if _, served := p.readers.KindOf(reflect.TypeFor[corev1.Pod]()); !served {
		return false, nil
	}
	names, known := p.of[s.Namespace]
	if !known {
		pods, err := runtime.Read[*corev1.Pod](p.readers).List(ctx, runtime.Query{Namespace: s.Namespace})
		if err != nil {
			return false, err
		}
		names = map[string]bool{}
		for _, pod := range pods.Items {
			secretsOf(pod, names)
		}
		p.of[s.Namespace] = names
	}
	return names[s.Name], nil
}

// secretsOf adds the names of the Secrets that a pod uses: of its volumes, the environment of its containers, and for its images.
func secretsOf(pod *corev1.Pod, names map[string]bool) {
	for _, ref := range pod.Spec.ImagePullSecrets {
		names[ref.Name] = true
	}
	for i := range pod.Spec.InitContainers {
		secretsOfEnv(pod.Spec.InitContainers[i].EnvFrom, pod.Spec.InitContainers[i].Env, names)
	}
	for i := range pod.Spec.Containers {
		secretsOfEnv(pod.Spec.Containers[i].EnvFrom, pod.Spec.Containers[i].Env, names)
	}
	for i := range pod.Spec.EphemeralContainers {
		secretsOfEnv(pod.Spec.EphemeralContainers[i].EnvFrom, pod.Spec.EphemeralContainers[i].Env, names)
	}
	for i := range pod.Spec.Volumes {
		secretsOfVolume(&pod.Spec.Volumes[i].VolumeSource, names)
	}
}

func secretsOfEnv(from []corev1.EnvFromSource, env []corev1.EnvVar, names map[string]bool) {
	for _, source := range from {
		if source.SecretRef != nil {
			names[source.SecretRef.Name] = true
		}
	}
	for _, v := range env {
		if v.ValueFrom != nil && v.ValueFrom.SecretKeyRef != nil {
			names[v.ValueFrom.SecretKeyRef.Name] = true
		}
	}
}

func secretsOfVolume(v *corev1.VolumeSource, names map[string]bool) {
	local := func(ref *corev1.LocalObjectReference) {
		if ref != nil {
			names[ref.Name] = true
		}
	}
	switch {
	case v.Secret != nil:
		names[v.Secret.SecretName] = true
	case v.Projected != nil:
		for _, source := range v.Projected.Sources {
			if source.Secret != nil {
				names[source.Secret.Name] = true
			}
		}
	case v.AzureFile != nil:
		names[v.AzureFile.SecretName] = true
	case v.CephFS != nil:
		local(v.CephFS.SecretRef)
	case v.Cinder != nil:
		local(v.Cinder.SecretRef)
	case v.CSI != nil:
		local(v.CSI.NodePublishSecretRef)
	case v.FlexVolume != nil:
		local(v.FlexVolume.SecretRef)
	case v.ISCSI != nil:
		local(v.ISCSI.SecretRef)
	case v.RBD != nil:
		local(v.RBD.SecretRef)
	case v.ScaleIO != nil:
		local(v.ScaleIO.SecretRef)
	case v.StorageOS != nil:
		local(v.StorageOS.SecretRef)
	}
}
