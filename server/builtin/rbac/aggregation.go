package rbac

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"sync"
	"time"

	"github.com/keelson-dev/keelson/authn"
	authzrbac "github.com/keelson-dev/keelson/authz/rbac"
	"github.com/keelson-dev/keelson/server"
	"github.com/keelson-dev/keelson/server/internal/background"
	"github.com/keelson-dev/keelson/server/registry"
	"go.uber.org/zap"
	rbacv1 "k8s.io/api/rbac/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	apiwatch "k8s.io/apimachinery/pkg/watch"
)

// aggregationName is the name of the controller: that of its service account, and of its field manager.
const aggregationName = "clusterrole-aggregation-controller"

// aggregationHook is the name of the hook that starts the controller.
const aggregationHook = "start-" + aggregationName

// aggregation is the controller that sets the rules of ClusterRoles with an aggregationRule.
type aggregation struct {
	roles *registry.Typed[*rbacv1.ClusterRole]
	log   *zap.Logger
	wake  chan struct{} // capacity 1; has a value if roles have changed

	mu    sync.Mutex // guards known
	known map[string]*rbacv1.ClusterRole
}

// startAggregation adds the hook that starts the controller, after other hooks. The server is ready when the controller has worked
// once on the roles that exist.
func startAggregation(h *server.Host, after []string, log *zap.Logger) error {
	roles, err := typed[*rbacv1.ClusterRole](h, "clusterroles", authn.ServiceAccount(metav1.NamespaceSystem, aggregationName), aggregationName)
	if err != nil {
		return err
	}
	c := &aggregation{roles: roles, log: log, wake: make(chan struct{}, 1)}
	return h.Start(server.Hook{Name: aggregationHook, After: after, Run: func(ctx context.Context) error {
		if err := c.first(ctx); err != nil && ctx.Err() == nil {
			log.Warn("roles could not all be aggregated yet", zap.Error(err))
		}
		h.Go(c.follow)
		h.Go(c.run)
		return nil
	}})
}

// first works once on all roles.
func (c *aggregation) first(ctx context.Context) error {
	list, err := c.roles.List(ctx, "", registry.ListOptions{})
	if err != nil {
		return err
	}
	return c.work(ctx, list)
}

// follow keeps known up to date, until ctx ends.
func (c *aggregation) follow(ctx context.Context) {
	pauses := background.Doubling(retryLeast, retryMost)
	for ctx.Err() == nil {
		fresh := map[string]*rbacv1.ClusterRole{} // replaces known when it is complete: some roles may be gone
		for e, err := range c.roles.Watch(ctx, "", registry.ListOptions{}) {
			switch {
			case err != nil:
				c.log.Debug("the watch of the controller of aggregated roles begins again", zap.Error(err))
			case e.Type == apiwatch.Bookmark:
				pauses = background.Doubling(retryLeast, retryMost)
				if fresh != nil {
					c.replace(fresh)
					fresh = nil
				}
			case fresh != nil:
				fresh[e.Object.Name] = e.Object
			default:
				c.change(e)
			}
		}
		background.Pause(ctx, pauses.Step())
	}
}

func (c *aggregation) replace(all map[string]*rbacv1.ClusterRole) {
	c.mu.Lock()
	c.known = all
	c.mu.Unlock()
	c.look()
}

func (c *aggregation) change(e registry.TypedEvent[*rbacv1.ClusterRole]) {
	c.mu.Lock()
	if e.Type == apiwatch.Deleted {
		delete(c.known, e.Object.Name)
	} else {
		c.known[e.Object.Name] = e.Object
	}
	c.mu.Unlock()
	c.look()
}

// look makes run work. It does not block.
func (c *aggregation) look() {
	select {
	case c.wake <- struct{}{}:
	default:
	}
}

// run works when roles have changed, and again after a failure, until ctx ends.
func (c *aggregation) run(ctx context.Context) {
	pauses := background.Doubling(retryLeast, retryMost)
	panics := background.NewPanics(c.log, "the controller of aggregated roles panicked")
	for {
		var retry <-chan time.Time
		if err := c.guarded(ctx, panics); err != nil && ctx.Err() == nil {
			c.log.Debug("the aggregation of roles is tried again", zap.Error(err))
			retry = time.After(pauses.Step())
		} else {
			pauses = background.Doubling(retryLeast, retryMost)
		}
		select {
		case <-c.wake:
		case <-retry:
		case <-ctx.Done():
			return
		}
	}
}

func (c *aggregation) guarded(ctx context.Context, panics *background.Panics) (err error) {
	defer panics.Caught(&err) // a plug-in of the program may panic
	c.mu.Lock()
	all := make([]*rbacv1.ClusterRole, 0, len(c.known))
	for _, r := range c.known {
		all = append(all, r)
	}
	c.mu.Unlock()
	return c.work(ctx, all)
}

// work sets the rules of the roles with an aggregationRule, if they are not as they should be.
func (c *aggregation) work(ctx context.Context, all []*rbacv1.ClusterRole) error {
	var failed []error
	for _, r := range all {
		if r.AggregationRule == nil || r.DeletionTimestamp != nil {
			continue
		}
		rules, err := authzrbac.Aggregate(r, all)
		if err != nil { // a selector that is stored and not valid: an update of the role brings it here again
			c.log.Warn("a role cannot be aggregated", zap.String("clusterrole", r.Name), zap.Error(err))
			continue
		}
		if equality.Semantic.DeepEqual(rules, r.Rules) {
			continue
		}
		if err := c.apply(ctx, r, rules); err != nil {
			failed = append(failed, fmt.Errorf("%s: %w", r.Name, err))
		}
	}
	return errors.Join(failed...)
}

// apply sets the rules of a role. The uid keeps the role from being made again if it was deleted.
func (c *aggregation) apply(ctx context.Context, r *rbacv1.ClusterRole, rules []rbacv1.PolicyRule) error {
	config, err := json.Marshal(map[string]any{
		"apiVersion": rbacv1.SchemeGroupVersion.String(), "kind": "ClusterRole",
		"metadata": map[string]any{"name": r.Name, "uid": r.UID}, "rules": append([]rbacv1.PolicyRule{}, rules...),
	})
	if err != nil {
		return err
	}
	_, err = c.roles.Apply(ctx, "", config, true)
	if apierrors.IsConflict(err) || apierrors.IsNotFound(err) { // it is gone, or another one: an event comes
		return nil
	}
	return err
}
