package client

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"sync/atomic"
	"time"

	"github.com/keelson-dev/keelson/runtime/internal/outbound"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/watch"
)

const (
	minWatch  = 5 * time.Minute // a watch lasts between this and twice as long
	watchOver = 30 * time.Second
	loadIdle  = 30 * time.Second // the longest time without an event while a watch sends the initial objects
	steady    = 10 * time.Second // a watch that lasted this long has not failed
)

// follower is the state of the goroutine of a reader.
type follower struct {
	*reader
	noInitial bool // the server does not send the objects at the beginning of a watch
	relist    bool
	progress  bool // an event has arrived since the last failure
}

// follow keeps the objects up to date until ctx ends.
func (r *reader) follow(ctx context.Context) {
	f := &follower{reader: r, noInitial: r.of.opts.Pages, relist: true}
	failures := r.of.opts.pauses()
	for ctx.Err() == nil {
		f.progress = false
		begin := time.Now()
		err := f.round(ctx)
		if ctx.Err() != nil {
			return
		}
		if f.progress || time.Since(begin) >= steady {
			failures = r.of.opts.pauses()
		}
		f.judge(err)
		pause := failures.Step()
		if seconds, ok := apierrors.SuggestsClientDelay(err); ok {
			pause = max(pause, min(time.Duration(seconds)*time.Second, r.of.opts.BackoffMax))
		}
		if !errors.Is(err, errEnded) {
			r.of.opts.Hooks.Retry(r.kind, err, pause)
		}
		outbound.Sleep(ctx, pause)
	}
}

// judge applies the error of a round to the objects and to the next round.
func (f *follower) judge(err error) {
	tooMuch := tooMuchError{}
	status := apierrors.APIStatus(nil)
	switch {
	case errors.Is(err, errEnded):
		return
	case meta.IsNoMatchError(err) || errors.As(err, &tooMuch):
		f.relist = true
		f.setSource(nil)
		f.forget(err)
		return
	case apierrors.IsNotFound(err):
		f.relist = true
		f.of.client.ForgetResources(f.sourceNow().resource.GroupVersion())
		f.setSource(nil)
	case apierrors.IsTooManyRequests(err), apierrors.IsServiceUnavailable(err), apierrors.IsUnauthorized(err), apierrors.IsForbidden(err):
	case errors.As(err, &status), errors.Is(err, errContent), errors.Is(err, ErrTooLong):
		f.relist = true
	}
	f.fail(err)
}

// errEnded is the error of a round whose watch the server has ended properly, as it does with every watch at some time.
var errEnded = errors.New("the watch has ended")

// errContent is wrapped by errors about the content that the server sent.
var errContent = errors.New("the events are not usable")

// round finds the resource, lists the objects if necessary, and watches them until the watch ends. It always returns an error.
func (f *follower) round(ctx context.Context) error {
	src, err := f.discover(ctx)
	if err != nil {
		return err
	}
	if f.relist && !f.noInitial {
		w, err := f.loadByWatch(ctx, src)
		if err == nil {
			defer w.Close()
			f.relist = false
			return f.watch(ctx, src, w)
		}
		if !f.noInitial {
			return err
		}
	}
	if f.relist {
		if err := f.list(ctx, src); err != nil {
			return err
		}
		f.relist = false
	}
	from := f.revision()
	o := watchOptions()
	o.ResourceVersion = fmt.Sprint(from)
	w, err := f.open(ctx, src, o)
	if err != nil {
		return err
	}
	defer w.Close()
	// If the storage of the server was replaced, a watch from a revision that it does not have yet would send no events.
	newest, err := f.newest(ctx, src)
	if err != nil {
		return err
	}
	if newest < from {
		f.relist = true
		return fmt.Errorf("%w: the server is at the revision %d and was at %d: its storage was replaced", errContent, newest, from)
	}
	return f.watch(ctx, src, w)
}

func watchOptions() metav1.ListOptions {
	seconds := int64((minWatch + rand.N(minWatch)) / time.Second)
	return metav1.ListOptions{AllowWatchBookmarks: true, TimeoutSeconds: &seconds}
}

// open begins a watch with a deadline soon after the time at which the server should end it.
func (f *follower) open(ctx context.Context, src *source, o metav1.ListOptions) (*watching, error) {
	ctx, cancel := context.WithTimeout(ctx, time.Duration(*o.TimeoutSeconds)*time.Second+watchOver)
	w, err := f.of.client.Watch(ctx, src.target("", ""), o)
	if err != nil {
		cancel()
		return nil, err
	}
	return &watching{w, cancel}, nil
}

// watching is a Watch with a deadline.
type watching struct {
	*Watch
	cancel context.CancelFunc
}

func (w *watching) Close() {
	w.Watch.Close()
	w.cancel()
}

// loadByWatch loads the objects from the initial events of a watch, and returns the watch, which goes on. If the server does not
// support that, or does not complete it, loadByWatch sets noInitial.
func (f *follower) loadByWatch(ctx context.Context, src *source) (*watching, error) {
	before := f.revision()
	o := watchOptions()
	initial := true
	o.SendInitialEvents, o.ResourceVersionMatch = &initial, metav1.ResourceVersionMatchNotOlderThan
	w, err := f.open(ctx, src, o)
	if err != nil {
		f.noInitial = apierrors.IsInvalid(err) || apierrors.IsBadRequest(err)
		return nil, err
	}
	var stalled atomic.Bool
	idle := time.AfterFunc(loadIdle, func() { stalled.Store(true); w.Close() })
	defer idle.Stop()
	l := &load{items: map[string]*item{}}
	for {
		revision, err := f.initialEvent(ctx, src, w, l)
		if err != nil {
			w.Close()
			f.noInitial = stalled.Load()
			return nil, err
		}
		if revision > 0 {
			f.replace(src, l, revision, before)
			return w, nil
		}
		idle.Reset(loadIdle)
	}
}

// initialEvent handles one event before the objects are complete. Once they are complete, revision is their revision; before, it
// is 0.
func (f *follower) initialEvent(ctx context.Context, src *source, w *watching, l *load) (revision int64, err error) {
	e, err := w.Next()
	if err != nil {
		if errors.Is(err, io.EOF) {
			err = fmt.Errorf("the watch ended before all objects had come: %w", io.ErrUnexpectedEOF)
		}
		return 0, err
	}
	if e.Type == watch.Bookmark {
		revision, end, err := bookmark(e.Object)
		if err != nil || !end {
			return 0, err
		}
		return revision, nil
	}
	i, err := src.decoder.decode(ctx, e.Object)
	if err != nil {
		return 0, fmt.Errorf("%w: %w", errContent, err)
	}
	if e.Type == watch.Deleted {
		f.mu.Lock()
		defer f.mu.Unlock()
		f.history.remove(l, key(i.meta.GetNamespace(), i.meta.GetName()))
		return 0, nil
	}
	return 0, f.add(l, i)
}

// bookmark returns the revision of a bookmark, and whether the bookmark ends the initial events.
func bookmark(text json.RawMessage) (revision int64, end bool, err error) {
	var mark struct {
		Metadata struct {
			ResourceVersion string            `json:"resourceVersion"`
			Annotations     map[string]string `json:"annotations"`
		} `json:"metadata"`
	}
	if err = json.Unmarshal(text, &mark); err == nil {
		revision, err = parseRevision(mark.Metadata.ResourceVersion)
	}
	if err != nil {
		return 0, false, fmt.Errorf("%w: a bookmark: %w", errContent, err)
	}
	return revision, mark.Metadata.Annotations[metav1.InitialEventsAnnotationKey] == "true", nil
}

// watch applies the events of a watch until it ends.
func (f *follower) watch(ctx context.Context, src *source, w *watching) error {
	f.works()
	for {
		e, err := w.Next()
		if errors.Is(err, io.EOF) {
			return errEnded
		}
		if err != nil {
			return err
		}
		f.progress = true
		if e.Type == watch.Bookmark {
			revision, _, err := bookmark(e.Object)
			if err != nil {
				return err
			}
			f.mu.Lock()
			f.history.progress(revision)
			f.publish(src)
			f.mu.Unlock()
			continue
		}
		i, err := src.decoder.decode(ctx, e.Object)
		if err != nil {
			return fmt.Errorf("%w: %w", errContent, err)
		}
		if err := f.event(src, e.Type, i); err != nil {
			return err
		}
	}
}

// event applies one event.
func (f *follower) event(src *source, t watch.EventType, i *item) error {
	f.mu.Lock()
	defer f.mu.Unlock()
	k, is := key(i.meta.GetNamespace(), i.meta.GetName()), i
	if t == watch.Deleted {
		is = nil
	}
	before := f.history.revision
	changed, err := f.history.event(k, is, i.revision)
	if err != nil {
		return err
	}
	if changed || f.history.revision != before {
		f.publish(src)
	}
	return nil
}
