package rbac

import (
	"context"
	"errors"
	"fmt"

	"github.com/keelson-dev/keelson/runtime"
	rbacv1 "k8s.io/api/rbac/v1"
)

// kind is one of the four kinds, with its reader.
type kind struct {
	name    string
	objects interface {
		Changed() runtime.LastChange
		Ready(ctx context.Context) error
	}
	// changes reads the changes after a revision.
	changes func(ctx context.Context, since int64, at runtime.Freshness) (delta, error)
}

// revision returns the revision of the state that a read returns.
func (k *kind) revision(ctx context.Context, at runtime.Freshness) (int64, error) {
	got, err := k.changes(ctx, 0, at)
	if err != nil {
		return 0, fmt.Errorf("%s: %w", k.name, err)
	}
	return got.revision, nil
}

// delta has the changes of a kind. apply is nil if nothing has changed.
type delta struct {
	revision   int64
	apply      func(e *edit)
	unreadable error // names the objects that apply leaves out because they cannot be decoded; nil if there are none
}

// kindsOf returns the four kinds. The readers look the kinds up by name, so that the kinds may be served later.
func kindsOf(from runtime.Readers) [4]kind {
	return [4]kind{
		roles("ClusterRole", from, func(r *rbacv1.ClusterRole) []rbacv1.PolicyRule { return r.Rules }),
		roles("Role", from, func(r *rbacv1.Role) []rbacv1.PolicyRule { return r.Rules }),
		bindings("ClusterRoleBinding", from, clusterBinding),
		bindings("RoleBinding", from, roleBinding),
	}
}

func clusterBinding(b *rbacv1.ClusterRoleBinding) *binding {
	return &binding{name: b.Name, role: b.RoleRef, subjects: b.Subjects}
}

func roleBinding(b *rbacv1.RoleBinding) *binding {
	return &binding{namespace: b.Namespace, name: b.Name, role: b.RoleRef, subjects: b.Subjects}
}

// roles returns a kind of roles.
func roles[T runtime.Object](name string, from runtime.Readers, rules func(T) []rbacv1.PolicyRule) kind {
	return kindOf(name, from,
		func(e *edit) { e.dropRoles(name == "Role") },
		func(e *edit, c *runtime.Change[T]) { e.setRole(c.Namespace, c.Name, rules(c.Object)) },
		(*edit).dropRole)
}

// bindings returns a kind of bindings.
func bindings[T runtime.Object](name string, from runtime.Readers, make func(T) *binding) kind {
	return kindOf(name, from,
		func(e *edit) { e.dropBindings(name == "RoleBinding") },
		func(e *edit, c *runtime.Change[T]) { e.setBinding(make(c.Object)) },
		(*edit).dropBinding)
}

func kindOf[T runtime.Object](name string, from runtime.Readers,
	dropAll func(*edit), set func(*edit, *runtime.Change[T]), drop func(e *edit, namespace, name string),
) kind {
	objects := runtime.TypedReader[T](runtime.ReadKind(from, rbacv1.SchemeGroupVersion.WithKind(name)))
	changes := func(ctx context.Context, since int64, at runtime.Freshness) (delta, error) {
		got, err := objects.Changes(ctx, since, at)
		var unreadable error
		if errors.Is(err, runtime.ErrUnreadable) {
			unreadable, err = err, nil
		}
		if err != nil || !got.Reset && len(got.All) == 0 {
			return delta{revision: got.Revision, unreadable: unreadable}, err
		}
		apply := func(e *edit) {
			if got.Reset {
				dropAll(e)
			}
			for i := range got.All {
				if c := &got.All[i]; c.Deleted {
					drop(e, c.Namespace, c.Name)
				} else {
					set(e, c)
				}
			}
		}
		return delta{got.Revision, apply, unreadable}, nil
	}
	return kind{name, objects, changes}
}
