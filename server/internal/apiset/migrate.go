package apiset

import (
	"context"
	"errors"
	"fmt"
	"slices"

	"github.com/keelson-dev/keelson/runtime"
	"github.com/keelson-dev/keelson/storage"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

// Migrate implements server.Server.MigrateStorage.
func (s *Set) Migrate(ctx context.Context, resource schema.GroupResource, opts storage.MigrateOptions) (storage.Migrated, error) {
	of, err := s.storeOf(resource)
	if err != nil {
		return storage.Migrated{}, fmt.Errorf("server: migrate %s: %w", resource, err)
	}
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	over := func() error {
		switch {
		case s.opts.Life.Err() != nil:
			return ErrEnded
		case of.life.Err() != nil:
			return errWithdrawn
		}
		return nil
	}
	defer context.AfterFunc(of.life, func() { cancel(over()) })()
	done, err := storage.Migrate(ctx, whileServed{of.objects, of.life}, opts)
	switch why, cause := over(), context.Cause(ctx); {
	case err == nil && !errors.Is(why, errWithdrawn): // the server may have ended after the migration
		return done, nil
	case why != nil:
		err = why
	case cause != nil:
		err = cause
	}
	return done, fmt.Errorf("server: migrate %s: %w", resource, err)
}

// whileServed is the storage of a resource. It refuses updates after the resource is withdrawn: an update would store objects in
// the version of before.
type whileServed struct {
	storage.Interface
	life context.Context
}

// Update implements storage.Interface.
func (w whileServed) Update(ctx context.Context, key string, o storage.WriteOptions, change storage.ChangeFunc) (storage.Record, error) {
	return w.Interface.Update(ctx, key, o, func(ctx context.Context, current runtime.Object, rec storage.Record) (storage.Outcome, error) {
		if w.life.Err() != nil {
			return storage.Outcome{}, storage.ErrClosed
		}
		return change(ctx, current, rec)
	})
}

// storeOf returns the hub of a resource, which has the storage of its objects.
func (s *Set) storeOf(resource schema.GroupResource) (*served, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.ended {
		return nil, ErrEnded
	}
	i := slices.IndexFunc(s.served, func(r *served) bool { return !r.pending && r.gvr.GroupResource() == resource })
	if i >= 0 { // the hub may be in another group
		hub := s.served[i].hub
		i = slices.IndexFunc(s.served, func(r *served) bool { return !r.pending && r.gvk == hub })
	}
	switch {
	case i < 0:
		return nil, errors.New("the server serves no such resource; want its group and plural, such as widgets.example.com")
	case s.served[i].objects == nil:
		return nil, errors.New("the resource has a Storage of its own, which has to do that itself")
	}
	return s.served[i], nil
}
