package accounts

import (
	"context"

	"github.com/keelson-dev/keelson/runtime"
	"github.com/keelson-dev/keelson/server"
	"go.uber.org/zap"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

const (
	rootCAName     = "kube-root-ca.crt" // name of the ConfigMaps
	descriptionKey = "kubernetes.io/description"
	description    = "Contains a CA bundle that can be used to verify the kube-apiserver when using internal endpoints such as the internal service IP or kubernetes.default.svc. No other usage is guaranteed across distributions of Kubernetes clusters."
)

// newRootCAs returns the controller that publishes the certificates of the server in each namespace.
func newRootCAs(h *server.Host, ca []byte, log *zap.Logger) (*perNamespace[*corev1.ConfigMap], error) {
	c, maps, err := newPerNamespace[*corev1.ConfigMap](h, "configmaps", rootCAName, controllerUser("root-ca-cert-publisher"), log)
	if err != nil {
		return nil, err
	}
	readers, text := h.Readers(), string(ca)
	right := func(m *corev1.ConfigMap) bool {
		return len(m.Data) == 1 && m.Data[corev1.ServiceAccountRootCAKey] == text && m.Annotations[descriptionKey] != ""
	}
	set := func(m *corev1.ConfigMap) error {
		m.Data = map[string]string{corev1.ServiceAccountRootCAKey: text}
		if m.Annotations == nil {
			m.Annotations = map[string]string{}
		}
		m.Annotations[descriptionKey] = description
		return nil
	}
	c.ensure = func(ctx context.Context, namespace string) error {
		m, err := runtime.Read[*corev1.ConfigMap](readers).Get(ctx, namespace, rootCAName, runtime.Freshness{})
		switch {
		case err == nil && right(m):
			return nil
		case err == nil:
			_, err = maps.Change(ctx, namespace, rootCAName, set)
		case apierrors.IsNotFound(err):
			made := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Name: rootCAName}}
			_ = set(made) // never fails
			_, err = maps.Create(ctx, namespace, made)
		}
		return err
	}
	return c, nil
}
