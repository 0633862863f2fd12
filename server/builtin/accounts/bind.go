package accounts

import (
	"errors"
	"fmt"

	"github.com/keelson-dev/keelson/authn/serviceaccount"
	"github.com/keelson-dev/keelson/runtime"
	"github.com/keelson-dev/keelson/server/registry"
	authenticationv1 "k8s.io/api/authentication/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

// bind sets the object that a token is bound to.
func bind(call *registry.Call, account *corev1.ServiceAccount, ref *authenticationv1.BoundObjectReference, grant *serviceaccount.Grant) error {
	gvk := schema.FromAPIVersionAndKind(ref.APIVersion, ref.Kind)
	kind := gvk.Kind
	if gvk.Group != "" {
		kind = ""
	}
	var err error
	switch kind {
	case "Secret":
		var secret *corev1.Secret
		if secret, err = find[*corev1.Secret](call, account.Namespace, gvk, ref); err == nil {
			grant.Secret = refTo(secret)
		}
	case "Pod":
		err = bindPod(call, account, gvk, ref, grant)
	case "Node":
		var node *corev1.Node
		if node, err = find[*corev1.Node](call, "", gvk, ref); err == nil {
			grant.Node = refTo(node)
		}
	default:
		err = errKind(gvk)
	}
	return err
}

// bindPod binds a token to a Pod of the account. The token also has the Node of the Pod, for information.
func bindPod(call *registry.Call, account *corev1.ServiceAccount, gvk schema.GroupVersionKind, ref *authenticationv1.BoundObjectReference, grant *serviceaccount.Grant) error {
	pod, err := find[*corev1.Pod](call, account.Namespace, gvk, ref)
	if err != nil {
		return err
	}
	if pod.Spec.ServiceAccountName != account.Name {
		return apierrors.NewBadRequest(fmt.Sprintf("cannot bind token for serviceaccount %q to pod running with different serviceaccount name.", account.Name))
	}
	grant.Pod = refTo(pod)
	if pod.Spec.NodeName == "" {
		return nil
	}
	node, err := runtime.Read[*corev1.Node](call).Get(call, "", pod.Spec.NodeName, runtime.Freshness{})
	switch {
	case apierrors.IsNotFound(err) || errors.Is(err, runtime.ErrNotReady):
		grant.Node = &serviceaccount.Ref{Name: pod.Spec.NodeName}
	case err != nil:
		return err
	default:
		grant.Node = refTo(node)
	}
	return nil
}

// object is one of the Go types of objects that tokens are bound to.
type object interface {
	runtime.Object
	metav1.Object
}

// find returns the object of a reference. A kind that the server does not serve is refused like one that no token is bound to.
func find[T object](call *registry.Call, namespace string, gvk schema.GroupVersionKind, ref *authenticationv1.BoundObjectReference) (T, error) {
	var none T
	if ref.Name == "" {
		return none, apierrors.NewBadRequest("Name parameter required.")
	}
	obj, err := runtime.Read[T](call).Get(call, namespace, ref.Name, runtime.Live())
	switch {
	case errors.Is(err, runtime.ErrNotReady):
		return none, errKind(gvk)
	case err != nil:
		return none, err
	case ref.UID != "" && ref.UID != obj.GetUID():
		return none, apierrors.NewConflict(schema.GroupResource{Group: gvk.Group, Resource: gvk.Kind}, ref.Name,
			fmt.Errorf("the UID in the bound object reference (%s) does not match the UID in record. The object might have been deleted and then recreated", ref.UID))
	}
	return obj, nil
}

// errKind is the answer to a reference to an object of a kind that no token is bound to.
func errKind(gvk schema.GroupVersionKind) error {
	return apierrors.NewBadRequest(fmt.Sprintf("cannot bind token to object of type %s", gvk.String()))
}

func refTo(obj metav1.Object) *serviceaccount.Ref {
	return &serviceaccount.Ref{Name: obj.GetName(), UID: obj.GetUID()}
}
