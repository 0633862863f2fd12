package accounts

import (
	"context"
	"errors"
	"fmt"
	"reflect"
	"sync/atomic"
	"testing"

	"github.com/keelson-dev/keelson/admission"
	"github.com/keelson-dev/keelson/authn"
	"github.com/keelson-dev/keelson/runtime"
	"github.com/keelson-dev/keelson/server"
	"github.com/keelson-dev/keelson/server/builtin"
	"github.com/keelson-dev/keelson/server/registry"
	"github.com/keelson-dev/keelson/server/servertest"
	"go.uber.org/zap"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
)

// world is a server with the controller of Secrets, which does not run yet.
type world struct {
	*secrets
	host     *server.Host
	accounts *registry.Typed[*corev1.ServiceAccount]
	objects  *registry.Typed[*corev1.Secret]
	account  *corev1.ServiceAccount
}

// newWorld returns a world with an account in the namespace default.
func newWorld(t *testing.T) *world {
	t.Helper()
	w := &world{}
	of := &controllersOf{o: New(Options{}).(extension).o}
	servertest.New(t, builtin.New(builtin.Options{}), New(Options{NoControllers: true}), of, server.ExtensionFunc(func(h *server.Host) (err error) {
		w.host = h
		if w.accounts, err = typed[*corev1.ServiceAccount](h, "serviceaccounts", authn.System()); err != nil {
			return err
		}
		w.objects, err = typed[*corev1.Secret](h, "secrets", authn.System())
		return err
	}))
	for _, c := range of.all {
		if c, ok := c.(*secrets); ok {
			w.secrets = c
		}
	}
	made, err := w.accounts.Create(t.Context(), "default", &corev1.ServiceAccount{ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: "a"}})
	if err != nil {
		t.Fatal(err)
	}
	w.account = made
	return w
}

// start runs the controller until the test ends.
func (w *world) start(t *testing.T) {
	t.Helper()
	done := make(chan struct{})
	ctx, end := context.WithCancel(t.Context())
	go func() {
		defer close(done)
		w.run(ctx)
	}()
	t.Cleanup(func() { end(); <-done })
}

// make makes a Secret that has everything that the controller gives it.
func (w *world) make(t *testing.T, name, account string) {
	t.Helper()
	s := &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: name}, Type: corev1.SecretTypeServiceAccountToken}
	s.Annotations = map[string]string{corev1.ServiceAccountNameKey: account, corev1.ServiceAccountUIDKey: string(w.account.UID)}
	s.Data = map[string][]byte{corev1.ServiceAccountTokenKey: []byte("x"), corev1.ServiceAccountNamespaceKey: []byte("default")}
	if _, err := w.objects.Create(t.Context(), "default", s); err != nil {
		t.Fatal(err)
	}
}

func (w *world) isGone(t *testing.T, name string) bool {
	t.Helper()
	_, err := w.objects.Get(t.Context(), "default", name)
	return apierrors.IsNotFound(err)
}

// failing are Readers that know no kind for a number of times.
type failing struct {
	runtime.Readers
	times *atomic.Int32
}

func (f failing) KindOf(t reflect.Type) (schema.GroupVersionKind, bool) {
	if f.times.Add(-1) >= 0 {
		return schema.GroupVersionKind{}, false
	}
	return f.Readers.KindOf(t)
}

// The Secrets of a deleted account are deleted, also if they cannot be listed when the account is deleted.
func TestSecretsCannotBeListed(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	var times atomic.Int32
	w.readers = failing{w.readers, &times}
	w.make(t, "s", "a")
	w.start(t)
	for _, orphan := range []string{"first", "second"} { // after the second one, the controller has looked at s
		w.make(t, orphan, "none")
		eventually(t, "a Secret of no account stays", func() bool { return w.isGone(t, orphan) })
	}
	times.Store(3)
	if _, _, err := w.accounts.Delete(t.Context(), "default", "a", nil); err != nil {
		t.Fatal(err)
	}
	eventually(t, "the Secret of a deleted account stays", func() bool { return w.isGone(t, "s") })
}

// While accounts cannot be written, the work that waits is bounded by the number of accounts. Then the names of all Secrets that were
// deleted are removed in one change.
func TestAccountsCannotBeWritten(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	const n = 20
	for i := range n {
		w.make(t, fmt.Sprint("s", i), "a")
	}
	_, err := w.secrets.accounts.Change(t.Context(), "default", "a", func(a *corev1.ServiceAccount) error {
		for i := range n {
			a.Secrets = append(a.Secrets, corev1.ObjectReference{Name: fmt.Sprint("s", i)})
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	var refuses atomic.Bool
	refuses.Store(true)
	var tried, written atomic.Int32
	refuser := admission.ValidatorFunc(func(context.Context, *admission.Request) error {
		if tried.Add(1); refuses.Load() {
			return errors.New("refused")
		}
		written.Add(1)
		return nil
	})
	if err := w.host.Admit(admission.Plugin{Name: "refuser", Validator: refuser, Handles: admission.Handles{
		Operations: []admission.Operation{admission.Update}, Resources: []schema.GroupResource{{Resource: "serviceaccounts"}},
	}}); err != nil {
		t.Fatal(err)
	}
	w.start(t)
	for _, orphan := range []string{"first", "second"} { // then the controller follows Secrets
		w.make(t, orphan, "none")
		eventually(t, "a Secret of no account stays", func() bool { return w.isGone(t, orphan) })
	}
	for i := range n {
		if _, _, err := w.objects.Delete(t.Context(), "default", fmt.Sprint("s", i), nil); err != nil {
			t.Fatal(err)
		}
	}
	eventually(t, "the account is not changed", func() bool { return tried.Load() > 2 })
	refuses.Store(false)
	eventually(t, "names of deleted Secrets stay", func() bool {
		a, err := w.accounts.Get(t.Context(), "default", "a")
		return err == nil && len(a.Secrets) == 0
	})
	if got := written.Load(); got != 1 {
		t.Errorf("the account was changed %d times", got)
	}
}

// The write of the date of a use has a time limit.
func TestUseIsWrittenInTime(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.make(t, "s", "a")
	var limited atomic.Bool
	err := w.host.Admit(admission.Plugin{Name: "clock", Validator: admission.ValidatorFunc(func(ctx context.Context, _ *admission.Request) error {
		_, has := ctx.Deadline()
		limited.Store(has)
		return nil
	}), Handles: admission.Handles{Operations: []admission.Operation{admission.Update}, Resources: []schema.GroupResource{{Resource: "secrets"}}}})
	if err != nil {
		t.Fatal(err)
	}
	u, err := newUses(w.host, zap.NewNop())
	if err != nil {
		t.Fatal(err)
	}
	if err := u.write(context.Background(), types.NamespacedName{Namespace: "default", Name: "s"}); err != nil {
		t.Fatal(err)
	}
	if !limited.Load() {
		t.Error("the write has no time limit")
	}
}
