package apiset

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"
	"time"

	"github.com/keelson-dev/keelson/storage"
	"github.com/keelson-dev/keelson/storage/cacher"
	"go.uber.org/zap"
)

const (
	closeTimeout     = 2 * time.Second // time for which closeCaches waits
	maxReportedStale = 10              // number of caches that the readiness check names
)

// cached returns the storage for the registry of r: a cache over store, or store itself if the kind has NoCache.
func (s Stores) cached(r *served, store storage.Interface) (storage.Interface, error) {
	if r.NoCache {
		return store, nil
	}
	logger := s.Logger.With(zap.Stringer("resource", r.gvr.GroupResource()))
	hooks := s.Metrics.Cache(r.gvr.GroupResource())
	count := hooks.Void
	hooks.Void = func(why error) {
		count(why)
		logger.Warn("the cache is made anew and its watches end", zap.Error(why))
	}
	var err error
	r.cache, err = cacher.New(store, cacher.Options{
		Namespaced:  r.Namespaced,
		IndexFields: r.IndexFields,
		IndexLabels: r.IndexLabels,
		Window:      s.CacheWindow,
		FillWait:    s.CacheWait,
		Forms:       s.Forms,
		Hooks:       hooks,
	})
	return r.cache, err
}

// closeCaches closes the caches of resources and waits for them, at most for closeTimeout. A storage that ignores its context may
// end only when it is closed, which comes later.
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

// CachesReady returns an error that names the caches that are not up to date, with the reasons. A cache that is not in use yet,
// or is being filled, does not count: kinds are added and replaced while others are served.
func (s *Set) CachesReady(ctx context.Context) error {
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
	if len(stale) > maxReportedStale {
		stale = append(stale[:maxReportedStale], fmt.Sprintf("and %d others", len(stale)-maxReportedStale))
	}
	if stale == nil {
		return nil
	}
	return errors.New(strings.Join(stale, "; "))
}
