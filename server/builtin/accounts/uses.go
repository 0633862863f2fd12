package accounts

import (
	"context"
	"time"

	"github.com/keelson-dev/keelson/authn"
	"github.com/keelson-dev/keelson/authn/serviceaccount"
	"github.com/keelson-dev/keelson/server"
	"github.com/keelson-dev/keelson/server/registry"
	"go.uber.org/zap"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/types"
)

// uses writes the date of the last use of legacy tokens to their Secrets.
type uses struct {
	secrets *registry.Typed[*corev1.Secret]
	queue   *work[types.NamespacedName]
	log     *zap.Logger
}

// newUses returns uses that write in the background.
func newUses(h *server.Host, log *zap.Logger) (*uses, error) {
	secrets, err := typed[*corev1.Secret](h, "secrets", authn.System())
	if err != nil {
		return nil, err
	}
	u := &uses{secrets, newWork[types.NamespacedName](), log}
	h.Go(func(ctx context.Context) { u.queue.run(ctx, u.write, log) })
	return u, nil
}

// today returns the date of a use.
func today() string { return time.Now().UTC().Format(time.DateOnly) }

// note has the date written, unless the Secret has it. It does not block.
func (u *uses) note(s *corev1.Secret) {
	if s.Labels[serviceaccount.LastUsedLabel] != today() {
		u.queue.add(types.NamespacedName{Namespace: s.Namespace, Name: s.Name})
	}
}

// write writes the date.
func (u *uses) write(ctx context.Context, of types.NamespacedName) error {
	ctx, cancel := context.WithTimeout(ctx, attempt)
	defer cancel()
	_, err := u.secrets.Change(ctx, of.Namespace, of.Name, func(s *corev1.Secret) error {
		if s.Labels == nil {
			s.Labels = map[string]string{}
		}
		s.Labels[serviceaccount.LastUsedLabel] = today()
		return nil
	})
	if apierrors.IsNotFound(err) || apierrors.IsInvalid(err) {
		return nil // the Secret is gone, or cannot be changed
	}
	return err
}
