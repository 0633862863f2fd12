package delegation

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"time"

	"github.com/keelson-dev/keelson/runtime/client"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/apimachinery/pkg/watch"
)

// minWatch is the shortest time of a watch; the longest is twice as long. Then the ConfigMap is read again.
const minWatch = 5 * time.Minute

// steady is the time after which a watch has not failed.
const steady = 10 * time.Second

// follow keeps the state up to date until ctx ends. Whatever the cluster answers, there is a pause before it is asked again.
func (c *Cluster) follow(ctx context.Context) {
	pauses := c.pauses()
	for ctx.Err() == nil {
		begin := time.Now()
		err := c.round(ctx)
		if ctx.Err() != nil {
			return
		}
		if err != nil {
			c.fail(err)
		}
		if time.Since(begin) >= steady {
			pauses = c.pauses()
		}
		select {
		case <-time.After(pauses.Step()):
		case <-ctx.Done():
		}
	}
}

// pauses returns the pauses between rounds.
func (c *Cluster) pauses() *wait.Backoff {
	return &wait.Backoff{Duration: c.opts.Backoff, Factor: 2, Jitter: 0.2, Steps: 30, Cap: 10 * c.opts.Backoff}
}

// fail records that the ConfigMap could not be read.
func (c *Cluster) fail(err error) {
	if s := c.state.Load(); !s.read {
		c.state.Store(&state{err: err})
	}
	if c.opts.Hooks.Failed != nil {
		c.opts.Hooks.Failed(err)
	}
}

// configMap is the part of a ConfigMap that counts.
type configMap struct {
	Metadata metav1.ObjectMeta `json:"metadata"`
	Data     map[string]string `json:"data"`
}

// round reads the ConfigMap, and watches it until the watch ends. The error is nil if the watch has ended as watches do.
func (c *Cluster) round(ctx context.Context) error {
	at := client.Target{Resource: schema.GroupVersionResource{Version: "v1", Resource: "configmaps"}, Namespace: Namespace}
	// The role extension-apiserver-authentication-reader allows lists and watches of only this object.
	options := metav1.ListOptions{FieldSelector: fields.OneTermEqualSelector("metadata.name", Name).String()}
	var list struct {
		Metadata metav1.ListMeta `json:"metadata"`
		Items    []configMap     `json:"items"`
	}
	if err := c.client.List(ctx, at, options, &list); err != nil {
		if apierrors.IsNotFound(err) {
			c.missing()
		}
		return err
	}
	found := false
	for _, one := range list.Items {
		if one.Metadata.Name == Name && one.Metadata.Namespace == Namespace {
			found = true
			c.apply(one.Data)
		}
	}
	if !found {
		c.missing()
	}
	seconds := int64((minWatch + rand.N(minWatch)).Seconds())
	options.ResourceVersion, options.AllowWatchBookmarks, options.TimeoutSeconds = list.Metadata.ResourceVersion, true, &seconds
	within, end := context.WithTimeout(ctx, time.Duration(seconds)*time.Second+c.opts.Backoff) // if the cluster does not end it
	defer end()
	w, err := c.client.Watch(within, at, options)
	if err != nil {
		return err
	}
	defer w.Close()
	if err := c.watch(w); within.Err() == nil || ctx.Err() != nil {
		return err
	}
	return nil
}

// watch applies the events of a watch until it ends.
func (c *Cluster) watch(w *client.Watch) error {
	for {
		e, err := w.Next()
		if errors.Is(err, io.EOF) || apierrors.IsResourceExpired(err) || apierrors.IsGone(err) {
			return nil
		}
		if err != nil {
			return err
		}
		var one configMap
		if err := json.Unmarshal(e.Object, &one); err != nil {
			return fmt.Errorf("an event of the cluster is no ConfigMap: %w", err)
		}
		switch {
		case e.Type == watch.Bookmark || one.Metadata.Name != Name || one.Metadata.Namespace != Namespace:
		case e.Type == watch.Deleted:
			c.missing()
		default:
			c.apply(one.Data)
		}
	}
}

// missing records that there is no ConfigMap.
func (c *Cluster) missing() {
	if s := c.state.Load(); !s.read {
		c.state.Store(&state{read: true})
	}
	if c.opts.Hooks.Failed != nil {
		c.opts.Hooks.Failed(fmt.Errorf("the cluster has no ConfigMap %s/%s: only tokens are authenticated, unless there was one before", Namespace, Name))
	}
}

// apply takes the data of the ConfigMap.
func (c *Cluster) apply(data map[string]string) {
	before := c.state.Load()
	next, err := before.after(data)
	c.state.Store(next)
	if err != nil && c.opts.Hooks.Failed != nil {
		c.opts.Hooks.Failed(fmt.Errorf("the ConfigMap %s/%s of the cluster: %w", Namespace, Name, err))
	}
	changed := next.clients != before.clients || next.proxy != before.proxy
	if changed && c.opts.Hooks.Changed != nil {
		c.opts.Hooks.Changed(next.trust)
	}
}
