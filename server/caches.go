package server

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/keelson-dev/keelson/storage"
	"github.com/keelson-dev/keelson/storage/cacher"
	"go.uber.org/zap"
	"k8s.io/apimachinery/pkg/util/validation"
)

const (
	closeTimeout = probeTimeout // how long caches are waited for
	maxToldStale = 10           // caches that the readiness check names
)

func (r *Resource) hasCacheOptions() bool {
	return r.noCache || r.indexFields != nil || r.indexLabels != nil
}

// checkIndexes refuses indexes that nothing could use.
func (r *Resource) checkIndexes() error {
	if r.noCache && (r.indexFields != nil || r.indexLabels != nil) {
		return errors.New("NoCache is set, so IndexFields and IndexLabels mean nothing; remove them")
	}
	for i, name := range r.indexFields {
		switch {
		case name != "metadata.name" && name != "metadata.namespace" && !slices.Contains(r.selectable, name):
			return fmt.Errorf("IndexFields: %q cannot be selected by; add it to SelectableFields, or remove it here", name)
		case slices.Contains(r.indexFields[:i], name):
			return fmt.Errorf("IndexFields: %q comes twice; remove one", name)
		}
	}
	for i, name := range r.indexLabels {
		switch {
		case len(validation.IsQualifiedName(name)) > 0:
			return fmt.Errorf("IndexLabels: %q is no key of a label, such as app or example.com/team", name)
		case slices.Contains(r.indexLabels[:i], name):
			return fmt.Errorf("IndexLabels: %q comes twice; remove one", name)
		}
	}
	return nil
}

// cached returns what the registry of r stores in: a cache over store, unless the kind is to have none.
func (s *Server) cached(r *served, store storage.Interface) (storage.Interface, error) {
	if r.noCache {
		return store, nil
	}
	logger := s.opts.Observe.Logger.With(zap.Stringer("resource", r.gvr.GroupResource()))
	hooks := s.metrics.Cache(r.gvr.GroupResource())
	count := hooks.Void
	hooks.Void = func(why error) {
		count(why)
		logger.Warn("the cache is made anew and its watches end", zap.Error(why))
	}
	var err error
	r.cache, err = cacher.New(store, cacher.Options{
		Namespaced:  r.namespaced,
		IndexFields: r.indexFields,
		IndexLabels: r.indexLabels,
		Window:      s.opts.Limits.CacheWindow,
		Forms:       s.forms,
		Hooks:       hooks,
	})
	return r.cache, err
}

// closeCaches closes the caches of what was served and waits for them. A storage that ignores its context is waited for
// no longer than closeTimeout: closing it is what may still release it.
func closeCaches(list []*served) {
	var closing sync.WaitGroup
	for _, r := range list {
		if r.cache != nil {
			closing.Go(r.cache.Close)
		}
	}
	closed := make(chan struct{})
	go func() {
		defer close(closed)
		closing.Wait()
	}()
	timeout := time.NewTimer(closeTimeout)
	defer timeout.Stop()
	select {
	case <-closed:
	case <-timeout.C:
	}
}

// cachesReady says which caches are not fresh, and why. One that is not in use yet, or is just being filled, does not count:
// kinds come, and are replaced, while others are served.
func (s *Server) cachesReady(ctx context.Context) error {
	s.mu.Lock()
	all := s.served
	s.mu.Unlock()
	var stale []string
	for _, r := range all {
		if r.cache == nil {
			continue
		}
		if err := r.cache.Ready(ctx); err != nil && !errors.Is(err, cacher.ErrFilling) && r.life.Err() == nil {
			stale = append(stale, fmt.Sprintf("%s: %v", r.gvr.GroupResource(), err))
		}
	}
	if len(stale) > maxToldStale {
		stale = append(stale[:maxToldStale], fmt.Sprintf("and %d others", len(stale)-maxToldStale))
	}
	if stale == nil {
		return nil
	}
	return errors.New(strings.Join(stale, "; "))
}
