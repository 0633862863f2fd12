package rbac

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/keelson-dev/keelson/authn"
	authzrbac "github.com/keelson-dev/keelson/authz/rbac"
	"github.com/keelson-dev/keelson/authz/rbac/bootstrap"
	"github.com/keelson-dev/keelson/runtime"
	"github.com/keelson-dev/keelson/server"
	"github.com/keelson-dev/keelson/server/internal/background"
	"github.com/keelson-dev/keelson/server/registry"
	"go.uber.org/zap"
	rbacv1 "k8s.io/api/rbac/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
)

// HookName is the name of the hook that makes the roles and bindings of Options.Bootstrap. The server has a health check
// "poststarthook/" and this name.
const HookName = "rbac/bootstrap-roles"

// bootstrapManager is the field manager of the roles and bindings that the hook makes.
const bootstrapManager = "kube-apiserver"

const (
	retryLeast = 50 * time.Millisecond
	retryMost  = 30 * time.Second
	// raceAttempts is how often the hook tries to write one object while others write it.
	raceAttempts = 8
)

// wanted are the roles and bindings of Options.Bootstrap, with their defaults.
type wanted struct {
	clusterRoles        []*rbacv1.ClusterRole
	clusterRoleBindings []*rbacv1.ClusterRoleBinding
	roles               []*rbacv1.Role
	roleBindings        []*rbacv1.RoleBinding
}

// wantedOf returns copies of objects. The error names one that the server would refuse.
func wantedOf(objects []runtime.Object) (*wanted, error) {
	if _, err := authzrbac.Static(objects...); err != nil {
		return nil, fmt.Errorf("Options.Bootstrap: %w", err)
	}
	w := &wanted{}
	for _, obj := range objects {
		own := obj.DeepCopyObject()
		if err := authzrbac.Default(own); err != nil {
			return nil, err
		}
		switch own := own.(type) {
		case *rbacv1.ClusterRole:
			w.clusterRoles = append(w.clusterRoles, own)
		case *rbacv1.ClusterRoleBinding:
			w.clusterRoleBindings = append(w.clusterRoleBindings, own)
		case *rbacv1.Role:
			w.roles = append(w.roles, own)
		case *rbacv1.RoleBinding:
			w.roleBindings = append(w.roleBindings, own)
		}
	}
	return w, nil
}

// startBootstrap adds the hook. When it has ended, the stored roles replace the default rules of the server.
func startBootstrap(h *server.Host, w *wanted, log *zap.Logger) error {
	clusterRoles, err1 := maintain[*rbacv1.ClusterRole](h, "clusterroles")
	clusterRoleBindings, err2 := maintain[*rbacv1.ClusterRoleBinding](h, "clusterrolebindings")
	roles, err3 := maintain[*rbacv1.Role](h, "roles")
	roleBindings, err4 := maintain[*rbacv1.RoleBinding](h, "rolebindings")
	if err := errors.Join(err1, err2, err3, err4); err != nil {
		return err
	}
	once := func(ctx context.Context) error {
		return errors.Join(clusterRoles.all(ctx, w.clusterRoles), clusterRoleBindings.all(ctx, w.clusterRoleBindings), roles.all(ctx, w.roles), roleBindings.all(ctx, w.roleBindings))
	}
	return h.Start(server.Hook{Name: HookName, Run: func(ctx context.Context) error {
		pauses := background.Doubling(retryLeast, retryMost)
		for err := once(ctx); err != nil; err = once(ctx) {
			if ctx.Err() != nil {
				return ctx.Err()
			}
			log.Warn("the first roles and bindings cannot all be made yet", zap.Error(err))
			background.Pause(ctx, pauses.Step())
		}
		return h.ReplaceDefaultRules()
	}})
}

// maintained keeps stored objects of a kind complete.
type maintained[T object] struct {
	resource string
	stored   *registry.Typed[T]
}

func maintain[T object](h *server.Host, resource string) (*maintained[T], error) {
	stored, err := typed[T](h, resource, authn.System(), bootstrapManager)
	return &maintained[T]{resource, stored}, err
}

// typed returns a registry of a kind of this group, for writes as a user and as a field manager.
func typed[T object](h *server.Host, resource string, as *authn.User, manager string) (*registry.Typed[T], error) {
	reg, err := h.Registry(rbacv1.Resource(resource))
	if err != nil {
		return nil, fmt.Errorf("%s: %w", resource, err)
	}
	out, err := registry.For[T](reg, as)
	if err != nil {
		return nil, err
	}
	return out.As(manager)
}

// all writes the objects that are missing or incomplete. Several servers may do it at the same time.
func (m *maintained[T]) all(ctx context.Context, want []T) error {
	if len(want) == 0 {
		return nil
	}
	list, err := m.stored.List(ctx, "", registry.ListOptions{})
	if err != nil {
		return fmt.Errorf("%s: %w", m.resource, err)
	}
	known := make(map[types.NamespacedName]T, len(list))
	for _, obj := range list {
		known[nameOf(obj)] = obj
	}
	for _, w := range want {
		has, ok := known[nameOf(w)]
		if err := m.one(ctx, has, ok, w); err != nil {
			return fmt.Errorf("%s %s: %w", m.resource, nameOf(w), err)
		}
	}
	return nil
}

func nameOf(m metav1.Object) types.NamespacedName {
	return types.NamespacedName{Namespace: m.GetNamespace(), Name: m.GetName()}
}

// one writes an object if that is necessary, again if another write comes between. has is the stored object if exists is true.
func (m *maintained[T]) one(ctx context.Context, has T, exists bool, want T) error {
	for range raceAttempts {
		err := m.write(ctx, has, exists, want)
		if !apierrors.IsConflict(err) && !apierrors.IsAlreadyExists(err) && (!exists || !apierrors.IsNotFound(err)) {
			return err
		}
		has, err = m.stored.Get(ctx, want.GetNamespace(), want.GetName())
		exists = err == nil
		if err != nil && !apierrors.IsNotFound(err) {
			return err
		}
	}
	return errors.New("other clients write it all the time")
}

func (m *maintained[T]) write(ctx context.Context, has T, exists bool, want T) error {
	if exists {
		next, action, err := bootstrap.Reconcile(has, want)
		if err != nil || action == bootstrap.Keep {
			return err
		}
		if action == bootstrap.Update {
			_, err := m.stored.Update(ctx, want.GetNamespace(), next.(T))
			return err
		}
		uid := has.GetUID()
		if _, _, err := m.stored.Delete(ctx, has.GetNamespace(), has.GetName(), &metav1.DeleteOptions{Preconditions: &metav1.Preconditions{UID: &uid}}); err != nil {
			return err
		}
	}
	_, err := m.stored.Create(ctx, want.GetNamespace(), want)
	return err
}
