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

// follow keeps the state up to date until ctx ends.
func (h *Host) follow(ctx context.Context) {
	pauses := h.pauses()
	for ctx.Err() == nil {
		read, err := h.round(ctx)
		if ctx.Err() != nil {
			return
		}
		if read {
			pauses = h.pauses()
		}
		if err == nil {
			continue // the watch has ended as watches do
		}
		h.fail(err)
		select {
		case <-time.After(pauses.Step()):
		case <-ctx.Done():
		}
	}
}

// pauses returns the pauses between failures.
func (h *Host) pauses() *wait.Backoff {
	return &wait.Backoff{Duration: h.opts.Backoff, Factor: 2, Jitter: 0.2, Steps: 30, Cap: 30 * h.opts.Backoff}
}

// fail records that the ConfigMap could not be read.
func (h *Host) fail(err error) {
	if s := h.state.Load(); !s.read {
		h.state.Store(&state{err: err})
	}
	if h.opts.Hooks.Failed != nil {
		h.opts.Hooks.Failed(err)
	}
}

// configMap is the part of a ConfigMap that counts.
type configMap struct {
	Metadata metav1.ObjectMeta `json:"metadata"`
	Data     map[string]string `json:"data"`
}

// round reads the ConfigMap, and watches it until the watch ends. read is true if it was read.
func (h *Host) round(ctx context.Context) (read bool, err error) {
	at := client.Target{Resource: schema.GroupVersionResource{Version: "v1", Resource: "configmaps"}, Namespace: Namespace}
	// The role extension-apiserver-authentication-reader allows lists and watches of only this object.
	options := metav1.ListOptions{FieldSelector: fields.OneTermEqualSelector("metadata.name", Name).String()}
	var list struct {
		Metadata metav1.ListMeta `json:"metadata"`
		Items    []configMap     `json:"items"`
	}
	if err := h.client.List(ctx, at, options, &list); err != nil {
		return false, err
	}
	found := false
	for _, one := range list.Items {
		if one.Metadata.Name == Name {
			found = true
			h.apply(one.Data)
		}
	}
	if !found {
		h.missing()
	}
	seconds := int64((minWatch + rand.N(minWatch)).Seconds())
	options.ResourceVersion, options.AllowWatchBookmarks, options.TimeoutSeconds = list.Metadata.ResourceVersion, true, &seconds
	within, end := context.WithTimeout(ctx, time.Duration(seconds)*time.Second+h.opts.Backoff) // if the host does not end it
	defer end()
	w, err := h.client.Watch(within, at, options)
	if err != nil {
		return true, err
	}
	defer w.Close()
	err = h.watch(w)
	if within.Err() != nil && ctx.Err() == nil {
		return true, nil
	}
	return true, err
}

// watch applies the events of a watch until it ends.
func (h *Host) watch(w *client.Watch) error {
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
			return fmt.Errorf("an event of the host is no ConfigMap: %w", err)
		}
		switch {
		case e.Type == watch.Bookmark || one.Metadata.Name != Name:
		case e.Type == watch.Deleted:
			h.missing()
		default:
			h.apply(one.Data)
		}
	}
}

// missing records that there is no ConfigMap.
func (h *Host) missing() {
	if s := h.state.Load(); !s.read {
		h.state.Store(&state{read: true})
	}
	if h.opts.Hooks.Failed != nil {
		h.opts.Hooks.Failed(fmt.Errorf("the host has no ConfigMap %s/%s: it authenticates requests neither by certificates nor for others", Namespace, Name))
	}
}

// apply takes the data of the ConfigMap.
func (h *Host) apply(data map[string]string) {
	before := h.state.Load()
	next, err := before.after(data)
	h.state.Store(next)
	if err != nil && h.opts.Hooks.Failed != nil {
		h.opts.Hooks.Failed(fmt.Errorf("the ConfigMap %s/%s of the host: %w", Namespace, Name, err))
	}
	changed := next.clients != before.clients || next.proxy != before.proxy
	if changed && h.opts.Hooks.Changed != nil {
		h.opts.Hooks.Changed(next.trust)
	}
}
