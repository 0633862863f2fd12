package accounts

import (
	"bytes"
	"context"
	"slices"
	"sync"

	"github.com/keelson-dev/keelson/authn/serviceaccount"
	"github.com/keelson-dev/keelson/runtime"
	"github.com/keelson-dev/keelson/server"
	"github.com/keelson-dev/keelson/server/registry"
	"go.uber.org/zap"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/types"
	apiwatch "k8s.io/apimachinery/pkg/watch"
)

// secrets is the controller of the Secrets of legacy tokens: it fills them, deletes them with their account, and removes their names
// from the account when they are deleted.
type secrets struct {
	issuer   serviceaccount.Issuer
	ca       []byte
	accounts *registry.Typed[*corev1.ServiceAccount]
	secrets  *registry.Typed[*corev1.Secret]
	readers  runtime.Readers
	queue    *work[types.NamespacedName] // of Secrets
	owners   *work[types.NamespacedName] // of accounts that were deleted, or have lost a Secret; every account if the name is ""
	log      *zap.Logger
}

func newSecrets(h *server.Host, issuer serviceaccount.Issuer, ca []byte, log *zap.Logger) (*secrets, error) {
	user := controllerUser("tokens-controller")
	c := &secrets{issuer: issuer, ca: ca, readers: h.Readers(), queue: newWork[types.NamespacedName](), owners: newWork[types.NamespacedName](), log: log}
	var err error
	if c.accounts, err = typed[*corev1.ServiceAccount](h, "serviceaccounts", user); err != nil {
		return nil, err
	}
	c.secrets, err = typed[*corev1.Secret](h, "secrets", user)
	return c, err
}

// first implements controller. Secrets are filled in the background.
func (*secrets) first(context.Context) error { return nil }

// run implements controller.
func (c *secrets) run(ctx context.Context) {
	var running sync.WaitGroup
	running.Go(func() { c.queue.run(ctx, c.work, c.log) })
	running.Go(func() { c.owners.run(ctx, c.compare, c.log) })
	running.Go(func() {
		follow(ctx, c.secrets, registry.ListOptions{Fields: ofTokens()}, c.log, func(e registry.TypedEvent[*corev1.Secret]) {
			if e.Type != apiwatch.Deleted {
				c.queue.add(keyOf(e.Object))
			} else if account := e.Object.Annotations[corev1.ServiceAccountNameKey]; account != "" {
				c.owners.add(types.NamespacedName{Namespace: e.Object.Namespace, Name: account})
			}
		}, func() {})
	})
	running.Go(func() {
		follow(ctx, c.accounts, registry.ListOptions{}, c.log, func(e registry.TypedEvent[*corev1.ServiceAccount]) {
			if e.Type == apiwatch.Deleted { // a Secret without an account is gone already when the account is made
				c.owners.add(types.NamespacedName{Namespace: e.Object.Namespace, Name: e.Object.Name})
			}
		}, func() { c.owners.add(types.NamespacedName{}) })
	})
	running.Wait()
}

// ofTokens selects the Secrets of tokens.
func ofTokens() fields.Selector {
	return fields.OneTermEqualSelector("type", string(corev1.SecretTypeServiceAccountToken))
}

func keyOf(s *corev1.Secret) types.NamespacedName {
	return types.NamespacedName{Namespace: s.Namespace, Name: s.Name}
}

// compare has the controller look at the Secrets of an account, and removes the names of missing Secrets from the account. If the
// name is "", the controller looks at all Secrets of tokens.
func (c *secrets) compare(ctx context.Context, account types.NamespacedName) error {
	ctx, cancel := context.WithTimeout(ctx, attempt)
	defer cancel()
	if err := c.addOf(ctx, account); err != nil || account.Name == "" {
		return err
	}
	return c.forget(ctx, account)
}

// addOf has the controller look at the Secrets of an account, or at all Secrets of tokens if the name is "".
func (c *secrets) addOf(ctx context.Context, account types.NamespacedName) error {
	all, err := runtime.Read[*corev1.Secret](c.readers).List(ctx, runtime.Query{Namespace: account.Namespace, Fields: ofTokens()})
	if err != nil {
		return err
	}
	for _, s := range all.Items {
		if account.Name == "" || s.Annotations[corev1.ServiceAccountNameKey] == account.Name {
			c.queue.add(keyOf(s))
		}
	}
	return nil
}

// work fills a Secret, or deletes it if its account does not exist.
func (c *secrets) work(ctx context.Context, of types.NamespacedName) error {
	ctx, cancel := context.WithTimeout(ctx, attempt)
	defer cancel()
	s, err := c.secrets.Get(ctx, of.Namespace, of.Name)
	switch {
	case apierrors.IsNotFound(err):
		return nil
	case err != nil:
		return err
	case s.DeletionTimestamp != nil || s.Type != corev1.SecretTypeServiceAccountToken || s.Annotations[corev1.ServiceAccountNameKey] == "":
		return nil
	}
	account, err := c.accounts.Get(ctx, s.Namespace, s.Annotations[corev1.ServiceAccountNameKey])
	switch uid := s.Annotations[corev1.ServiceAccountUIDKey]; {
	case apierrors.IsNotFound(err), err == nil && uid != "" && uid != string(account.UID):
		return c.remove(ctx, s)
	case err != nil:
		return err
	}
	if c.isFull(s, account) {
		return nil
	}
	_, err = c.secrets.Change(ctx, s.Namespace, s.Name, func(s *corev1.Secret) error { return c.fill(s, account) })
	if apierrors.IsInvalid(err) { // it is immutable, for one
		c.log.Warn("the Secret of a token cannot be filled", zap.Stringer("secret", of), zap.Error(err))
		return nil
	}
	if apierrors.IsNotFound(err) || apierrors.HasStatusCause(err, corev1.NamespaceTerminatingCause) {
		return nil
	}
	return err
}

// remove deletes a Secret that is still as it was read.
func (c *secrets) remove(ctx context.Context, s *corev1.Secret) error {
	_, _, err := c.secrets.Delete(ctx, s.Namespace, s.Name, &metav1.DeleteOptions{Preconditions: &metav1.Preconditions{UID: &s.UID, ResourceVersion: &s.ResourceVersion}})
	if apierrors.IsNotFound(err) {
		return nil
	}
	return err
}

// forget removes the names of Secrets that do not exist from an account, all in one change.
func (c *secrets) forget(ctx context.Context, of types.NamespacedName) error {
	account, err := runtime.Read[*corev1.ServiceAccount](c.readers).Get(ctx, of.Namespace, of.Name, runtime.Freshness{})
	if apierrors.IsNotFound(err) {
		return nil
	}
	if err != nil {
		return err
	}
	missing := map[string]bool{}
	for _, ref := range account.Secrets {
		if _, err := c.secrets.Get(ctx, of.Namespace, ref.Name); apierrors.IsNotFound(err) {
			missing[ref.Name] = true
		} else if err != nil {
			return err
		}
	}
	if len(missing) == 0 {
		return nil
	}
	_, err = c.accounts.Change(ctx, of.Namespace, of.Name, func(a *corev1.ServiceAccount) error {
		a.Secrets = slices.DeleteFunc(a.Secrets, func(ref corev1.ObjectReference) bool { return missing[ref.Name] })
		return nil
	})
	if apierrors.IsNotFound(err) {
		return nil
	}
	return err
}

// isFull reports whether a Secret has everything that fill gives it.
func (c *secrets) isFull(s *corev1.Secret, account *corev1.ServiceAccount) bool {
	return len(s.Data[corev1.ServiceAccountTokenKey]) > 0 && string(s.Data[corev1.ServiceAccountNamespaceKey]) == s.Namespace &&
		(len(c.ca) == 0 || bytes.Equal(s.Data[corev1.ServiceAccountRootCAKey], c.ca)) && s.Annotations[corev1.ServiceAccountUIDKey] == string(account.UID)
}

// fill gives a Secret its token, namespace and certificates. A token that it has stays.
func (c *secrets) fill(s *corev1.Secret, account *corev1.ServiceAccount) error {
	if s.Data == nil {
		s.Data = map[string][]byte{}
	}
	if len(s.Data[corev1.ServiceAccountTokenKey]) == 0 {
		token, err := c.issuer.IssueLegacy(s.Namespace, serviceaccount.Ref{Name: account.Name, UID: account.UID}, s.Name)
		if err != nil {
			return err
		}
		s.Data[corev1.ServiceAccountTokenKey] = []byte(token)
	}
	s.Data[corev1.ServiceAccountNamespaceKey] = []byte(s.Namespace)
	if len(c.ca) > 0 {
		s.Data[corev1.ServiceAccountRootCAKey] = c.ca
	}
	s.Annotations[corev1.ServiceAccountUIDKey] = string(account.UID)
	return nil
}
