package e2e_test

import (
	"testing"

	appsv1 "k8s.io/api/apps/v1"
	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	networkingv1 "k8s.io/api/networking/v1"
	apiruntime "k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/managedfields"
	"k8s.io/client-go/applyconfigurations"

	keelsonserver "github.com/keelson-dev/keelson/server"
	"github.com/keelson-dev/keelson/server/registry"
	"github.com/keelson-dev/keelson/server/servertest/writemodel"
)

// Writes of objects of k8s.io/api have the results that the schema in client-go defines, which is that of kube-apiserver.
func TestWritesMergeByTheSchemaOfClientGo(t *testing.T) {
	t.Parallel()
	writemodel.Run(t, writemodel.Options{
		Objects: 3,
		Types: func(scheme *apiruntime.Scheme) (managedfields.TypeConverter, error) {
			return applyconfigurations.NewTypeConverter(scheme), nil
		},
		Kinds: []writemodel.Kind{
			writemodel.Of(appsv1.SchemeGroupVersion.WithKind("Deployment"), keelsonserver.KindOptions[*appsv1.Deployment]{}),
			writemodel.Of(appsv1.SchemeGroupVersion.WithKind("StatefulSet"), keelsonserver.KindOptions[*appsv1.StatefulSet]{
				Scale: &registry.Scale{SpecReplicas: ".spec.replicas", StatusReplicas: ".status.replicas"},
			}),
			writemodel.Of(corev1.SchemeGroupVersion.WithKind("Pod"), keelsonserver.KindOptions[*corev1.Pod]{}),
			writemodel.Of(corev1.SchemeGroupVersion.WithKind("Service"), keelsonserver.KindOptions[*corev1.Service]{}),
			writemodel.Of(corev1.SchemeGroupVersion.WithKind("ConfigMap"), keelsonserver.KindOptions[*corev1.ConfigMap]{
				Strategy: registry.Strategy[*corev1.ConfigMap]{NoGeneration: true},
			}),
			writemodel.Of(corev1.SchemeGroupVersion.WithKind("Secret"), keelsonserver.KindOptions[*corev1.Secret]{}),
			writemodel.Of(corev1.SchemeGroupVersion.WithKind("ServiceAccount"), keelsonserver.KindOptions[*corev1.ServiceAccount]{}),
			writemodel.Of(batchv1.SchemeGroupVersion.WithKind("CronJob"), keelsonserver.KindOptions[*batchv1.CronJob]{}),
			writemodel.Of(networkingv1.SchemeGroupVersion.WithKind("Ingress"), keelsonserver.KindOptions[*networkingv1.Ingress]{}),
			writemodel.Of(networkingv1.SchemeGroupVersion.WithKind("NetworkPolicy"), keelsonserver.KindOptions[*networkingv1.NetworkPolicy]{}),
		},
	})
}
