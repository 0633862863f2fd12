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

// defaultName is the name of the account that every namespace has.
const defaultName = "default"

// newDefaults returns the controller that makes the account default in each namespace.
func newDefaults(h *server.Host, log *zap.Logger) (*perNamespace[*corev1.ServiceAccount], error) {
	c, accounts, err := newPerNamespace[*corev1.ServiceAccount](h, "serviceaccounts", defaultName, controllerUser("service-account-controller"), log)
	if err != nil {
		return nil, err
	}
	readers := h.Readers()
	c.ensure = func(ctx context.Context, namespace string) error {
		_, err := runtime.Read[*corev1.ServiceAccount](readers).Get(ctx, namespace, defaultName, runtime.Freshness{})
		if !apierrors.IsNotFound(err) {
			return err
		}
		_, err = accounts.Create(ctx, namespace, &corev1.ServiceAccount{ObjectMeta: metav1.ObjectMeta{Name: defaultName}})
		return err
	}
	return c, nil
}
