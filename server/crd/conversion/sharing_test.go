package conversion_test

import (
	"context"
	"errors"
	"slices"
	"strings"
	"testing"

	"github.com/keelson-dev/keelson/server/crd/conversion"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
)

// waitFor waits until n wait for a webhook.
func waitFor(t testing.TB, c *counted, n int) {
	t.Helper()
	<-conversion.Waiting(t.Context(), c.Webhook, n)
}

// Callers that want the same object share one call, also if they want other objects too.
func TestShared(t *testing.T) {
	t.Parallel()
	c := newCounted(t, conversion.Options{Memory: -1}, true)
	var asked []chan result
	for _, names := range [][]string{{"a", "b"}, {"b"}, {"b", "c"}, {"c", "a", "b", "c"}, {"a"}} {
		asked = append(asked, c.ask(t, names...))
		waitFor(t, c, len(asked))
	}
	close(c.hold)
	wantNames(t, <-asked[0], "a", "b")
	wantNames(t, <-asked[1], "b")
	wantNames(t, <-asked[2], "b", "c")
	shared := <-asked[3]
	wantNames(t, shared, "c", "a", "b", "c")
	wantNames(t, <-asked[4], "a")
	c.want(t, "a b", "c")
	shared.out[0].SetLabels(map[string]string{"mine": "alone"})
	if got := shared.out[3].GetLabels()["old"]; got != "label" {
		t.Errorf("two results share their labels")
	}
	wantNames(t, <-c.ask(t, "a"), "a")
	c.want(t, "a", "a b", "c") // nothing was remembered
}

// Objects that differ in a label or in the wanted version do not share a call.
func TestNotShared(t *testing.T) {
	t.Parallel()
	c := newCounted(t, conversion.Options{}, false)
	other := thing("a")
	other.SetLabels(map[string]string{"x": "y"})
	for _, in := range []*unstructured.Unstructured{thing("a"), other} {
		out, err := c.Convert(t.Context(), []*unstructured.Unstructured{in}, v1)
		if err != nil || out[0].GetLabels()["x"] != in.GetLabels()["x"] {
			t.Errorf("%v, %v", out, err)
		}
	}
	to := v1
	to.Version = "v3"
	if out, err := c.Convert(t.Context(), things("a"), to); err != nil || out[0].GetAPIVersion() != to.String() {
		t.Errorf("%v, %v", out, err)
	}
	c.want(t, "a", "a", "a")
}

// If one caller leaves, the call continues for the others, and for a later call of the same caller.
func TestLeaver(t *testing.T) {
	t.Parallel()
	c := newCounted(t, conversion.Options{}, true)
	ctx, leave := context.WithCancel(t.Context())
	first := make(chan error, 1)
	go func() {
		_, err := c.Convert(ctx, things("a", "b"), v1)
		first <- err
	}()
	<-c.entered
	second := c.ask(t, "b")
	waitFor(t, c, 2)
	leave()
	if err := <-first; !errors.Is(err, context.Canceled) || !strings.Contains(err.Error(), "the conversion webhook of things."+group) {
		t.Errorf("who left got %v", err)
	}
	close(c.hold)
	wantNames(t, <-second, "b")
	wantNames(t, <-c.ask(t, "a"), "a")
	c.want(t, "a b")
}

// A queued call is dropped when nobody waits for it any more.
func TestLeaverOfQueue(t *testing.T) {
	t.Parallel()
	c := newCounted(t, conversion.Options{MaxCalls: 1}, true)
	first := c.ask(t, "a")
	<-c.entered
	ctx, leave := context.WithCancel(t.Context())
	left := make(chan error, 1)
	go func() {
		_, err := c.Convert(ctx, things("b"), v1)
		left <- err
	}()
	waitFor(t, c, 2)
	if got := conversion.Queued(c.Webhook); got != 1 {
		t.Errorf("%d calls are queued, want 1", got)
	}
	third := c.ask(t, "c")
	waitFor(t, c, 3)
	leave()
	if err := <-left; !errors.Is(err, context.Canceled) {
		t.Errorf("who left got %v", err)
	}
	if got := conversion.Queued(c.Webhook); got != 1 {
		t.Errorf("%d calls are queued after one was given up, want 1", got)
	}
	close(c.hold)
	wantNames(t, <-first, "a")
	wantNames(t, <-third, "c")
	c.want(t, "a", "c")
	wantNames(t, <-c.ask(t, "b"), "b")
	c.want(t, "a", "b", "c")
}

// A caller whose shared call fails because of another caller's object asks again without sharing.
func TestFailureOfOthers(t *testing.T) {
	t.Parallel()
	c := newCounted(t, conversion.Options{}, true)
	c.change = func(answer review) {
		objects := answer.response()["convertedObjects"].([]any)
		if slices.ContainsFunc(objects, func(o any) bool { return o.(map[string]any)["metadata"].(map[string]any)["name"] == "bad" }) {
			answer.response()["result"] = map[string]any{"status": "Failure", "message": "bad is bad"}
		}
	}
	var others []chan result
	first := c.ask(t, "a", "b", "bad")
	<-c.entered
	second := c.ask(t, "b", "a")
	waitFor(t, c, 2)
	for i := range 5 {
		others = append(others, c.ask(t, "b"))
		waitFor(t, c, 3+i)
	}
	third := c.ask(t, "bad")
	waitFor(t, c, 8)
	same := c.ask(t, "bad", "a", "b")
	waitFor(t, c, 9)
	close(c.hold)
	wantStatus(t, (<-first).err, 500, "failed: bad is bad")
	wantNames(t, <-second, "b", "a")
	wantStatus(t, (<-third).err, 500, "failed: bad is bad")
	wantStatus(t, (<-same).err, 500, "failed: bad is bad")
	for _, o := range others {
		wantNames(t, <-o, "b")
	}
	once := 0
	for _, call := range c.seen() {
		if strings.Contains(call, "b") && call != "a b bad" && call != "bad" {
			once++
		}
	}
	if once > 2 { // the call for b, and the call for a and b, in any order
		t.Errorf("calls %q", c.seen())
	}
}

// An invalid object does not affect callers that want only the other objects of the call.
func TestWrongObjectOfOthers(t *testing.T) {
	t.Parallel()
	c := newCounted(t, conversion.Options{}, true)
	c.change = func(answer review) {
		for _, o := range answer.response()["convertedObjects"].([]any) {
			if metadata := o.(map[string]any)["metadata"].(map[string]any); metadata["name"] == "bad" {
				metadata["uid"] = "other"
			}
		}
	}
	first := c.ask(t, "a", "bad")
	<-c.entered
	second := c.ask(t, "a")
	waitFor(t, c, 2)
	close(c.hold)
	wantStatus(t, (<-first).err, 500, "conversion webhook for "+group+"/v2, Kind=Thing returned invalid object: "+
		"must have the same UID: "+uidOf("bad")+" != other")
	wantNames(t, <-second, "a")
	wantStatus(t, (<-c.ask(t, "bad")).err, 500, "returned invalid object: must have the same UID")
	c.want(t, "a bad", "bad") // valid objects are remembered, and the others are requested again
}
