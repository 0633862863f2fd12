package serviceaccount

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/keelson-dev/keelson/authn"
	"github.com/keelson-dev/keelson/runtime"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
)

// objects reads the objects of tokens.
type objects struct{ from runtime.Readers }

// grace is how long after the time of its deletion an object counts.
const grace = time.Minute

var (
	errInvalidated = errors.New("service account token has been invalidated")
	errNameless    = errors.New("the token names no account")
)

// object is one of the Go types of objects that tokens name.
type object interface {
	runtime.Object
	metav1.Object
}

// read returns the object of a name. It is read from memory, and from the store if memory has none that is accepted.
func read[T object](ctx context.Context, from runtime.Readers, namespace, name string, accepted func(T) bool) (T, error) {
	r := runtime.Read[T](from)
	obj, err := r.Get(ctx, namespace, name, runtime.Freshness{})
	if err == nil && accepted(obj) || err != nil && !apierrors.IsNotFound(err) {
		return obj, err
	}
	return r.Get(ctx, namespace, name, runtime.Live())
}

// withUID accepts an object with a uid.
func withUID[T object](uid types.UID) func(T) bool {
	return func(obj T) bool { return obj.GetUID() == uid }
}

// deleted reports whether the time of an object is over.
func deleted(obj metav1.Object, now time.Time) bool {
	at := obj.GetDeletionTimestamp()
	return at != nil && now.After(at.Add(grace))
}

// account returns the account of a token, which has the uid.
func (o objects) account(ctx context.Context, namespace string, of Ref, now time.Time) (*corev1.ServiceAccount, error) {
	if namespace == "" || of.Name == "" {
		return nil, errNameless
	}
	account, err := read(ctx, o.from, namespace, of.Name, withUID[*corev1.ServiceAccount](of.UID))
	switch {
	case err != nil:
		return nil, err
	case deleted(account, now):
		return nil, fmt.Errorf("service account %s/%s has been deleted", namespace, of.Name)
	case account.UID != of.UID:
		return nil, fmt.Errorf("service account UID (%s) does not match claim (%s)", account.UID, of.UID)
	}
	return account, nil
}

// check returns an error unless there is an object that a token is bound to. kind is the name of its kind in the error.
func check[T object](ctx context.Context, o objects, kind, namespace string, of Ref, now time.Time) error {
	if of.Name == "" {
		return errInvalidated
	}
	obj, err := read(ctx, o.from, namespace, of.Name, withUID[T](of.UID))
	switch {
	case apierrors.IsNotFound(err):
		return errInvalidated
	case err != nil:
		return err
	case deleted(obj, now):
		return errInvalidated
	case obj.GetUID() != of.UID:
		return fmt.Errorf("%s UID (%s) does not match service account %s ref claim (%s)", kind, obj.GetUID(), kind, of.UID)
	}
	return nil
}

// responseOf returns the response for an account.
func responseOf(namespace string, account Ref) *authn.Response {
	user := authn.ServiceAccount(namespace, account.Name)
	user.UID = string(account.UID)
	return &authn.Response{User: *user}
}
