package conversion_test

import (
	"fmt"
	"reflect"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/keelson-dev/keelson/server/crd/conversion"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
)

// Converted objects are remembered regardless of their resourceVersion, and the caller may change the result.
func TestRemembered(t *testing.T) {
	t.Parallel()
	c := newCounted(t, conversion.Options{}, false)
	first := <-c.ask(t, "a")
	wantNames(t, first, "a")
	want := first.out[0].DeepCopy()
	for i := range 3 {
		in := thing("a")
		version := fmt.Sprint(40 + i)
		in.SetResourceVersion(version)
		out, err := c.Convert(t.Context(), []*unstructured.Unstructured{in}, v1)
		if err != nil || out[0].GetResourceVersion() != version || in.GetResourceVersion() != version {
			t.Fatalf("%v, %v, want the resourceVersion %s", out, err, version)
		}
		unstructured.RemoveNestedField(out[0].Object, "metadata", "resourceVersion")
		if !reflect.DeepEqual(out[0], want) {
			t.Errorf("%v, want %v", out[0], want)
		}
		out[0].SetLabels(map[string]string{"mine": "alone"})
		out[0].Object["spec"].(map[string]any)["size"] = "changed"
		out[0].Object["metadata"].(map[string]any)["managedFields"].([]any)[0].(map[string]any)["manager"] = "changed"
	}
	wantNames(t, <-c.ask(t, "b", "a"), "b", "a")
	c.want(t, "a", "b")
}

// An update in a version that is not stored converts the stored object, the new object, and the result.
func TestUpdateCosts(t *testing.T) {
	t.Parallel()
	c := newCounted(t, conversion.Options{}, false)
	stored := thing("a")
	stored.SetAPIVersion(v1.String())
	stored.SetResourceVersion("1")
	for range 3 { // a GET, the object before the update, and again when it conflicts
		if _, err := c.Convert(t.Context(), []*unstructured.Unstructured{stored}, v2); err != nil {
			t.Fatal(err)
		}
	}
	changed := thing("a")
	changed.Object["spec"].(map[string]any)["size"] = int64(4)
	for range 2 {
		if _, err := c.Convert(t.Context(), []*unstructured.Unstructured{changed}, v1); err != nil {
			t.Fatal(err)
		}
	}
	written := changed.DeepCopy()
	written.SetAPIVersion(v1.String())
	for _, version := range []string{"", "2", "2"} { // for the answer, and for watches
		written.SetResourceVersion(version)
		if _, err := c.Convert(t.Context(), []*unstructured.Unstructured{written}, v2); err != nil {
			t.Fatal(err)
		}
	}
	c.want(t, "a", "a", "a")
}

func TestMemoryBounds(t *testing.T) {
	t.Parallel()
	size := len(asJSON(t, thing("n000").Object)) + 300
	c := newCounted(t, conversion.Options{Memory: 20 * size, MaxObjects: 1, MaxCalls: 1}, false)
	wantNames(t, <-c.ask(t, named(25)...), named(25)...)
	if bytes, n := conversion.Remembered(c.factory); bytes > 20*size || n < 18 || n > 20 {
		t.Errorf("%d answers of %d bytes are remembered, want about 20 of %d", n, bytes, size)
	}
	wantNames(t, <-c.ask(t, named(25)[15:]...), named(25)[15:]...)
	if got := len(c.seen()); got != 25 {
		t.Errorf("%d calls, want 25: the latest are remembered", got)
	}
	wantNames(t, <-c.ask(t, "n000"), "n000")
	if got := len(c.seen()); got != 26 {
		t.Errorf("%d calls, want 26: the oldest is forgotten", got)
	}
	c.factory.Forget("things." + group)
	if bytes, n := conversion.Remembered(c.factory); bytes != 0 || n != 0 {
		t.Errorf("%d answers of %d bytes are remembered of a definition that is gone", n, bytes)
	}
	for name, o := range map[string]conversion.Options{"old": {Remember: 1}, "long": {Memory: 4 * size}, "none": {Memory: -1}} {
		c := newCounted(t, o, false)
		wantNames(t, <-c.ask(t, "a"), "a")
		wantNames(t, <-c.ask(t, "a"), "a")
		if got := c.seen(); !slices.Equal(got, []string{"a", "a"}) {
			t.Errorf("%s: calls %q, want two", name, got)
		}
	}
}

// Answers that are too old are dropped automatically.
func TestMemoryAge(t *testing.T) {
	t.Parallel()
	c := newCounted(t, conversion.Options{Remember: time.Millisecond}, false)
	wantNames(t, <-c.ask(t, named(100)...), named(100)...)
	for n := 1; n > 0; {
		_, n = conversion.Remembered(c.factory) // fails by the test's timeout
		time.Sleep(time.Millisecond)
	}
}

func TestHooks(t *testing.T) {
	t.Parallel()
	var mu sync.Mutex
	var reported []string
	tell := func(format string, args ...any) {
		mu.Lock()
		defer mu.Unlock()
		reported = append(reported, fmt.Sprintf(format, args...))
	}
	c := newCounted(t, conversion.Options{Hooks: conversion.Hooks{
		Converted: func(c conversion.Conversion) {
			tell("%s %s-%s %v: %d %d %d", c.Definition, c.From, c.To, c.Err != nil, c.Sent, c.Shared, c.Remembered)
		},
		Called: func(c conversion.Call) {
			tell("call %s %d %q %v", c.Definition, c.Objects, c.Failure, c.Err)
		},
	}}, false)
	wantNames(t, <-c.ask(t, "a", "b", "a"), "a", "b", "a")
	wantNames(t, <-c.ask(t, "c", "b", "a"), "c", "b", "a")
	wantNames(t, <-c.ask(t, "a"), "a")
	c.change = func(answer review) { answer.response()["convertedObjects"] = nil }
	wantStatus(t, (<-c.ask(t, "d")).err, 500, "returned 0 objects, expected 1")
	const name = "things.things.w.example.com"
	want := []string{
		`call ` + name + ` 2 "" <nil>`, name + ` v2-v1 false: 2 1 0`,
		`call ` + name + ` 1 "" <nil>`, name + ` v2-v1 false: 1 0 2`,
		name + ` v2-v1 false: 0 0 1`,
		`call ` + name + ` 1 "conversion_webhook_partial_response_failure" conversion webhook for ` + group + `/v2, Kind=Thing returned 0 objects, expected 1`, name + ` v2-v1 true: 1 0 0`,
	}
	mu.Lock()
	defer mu.Unlock()
	if !slices.Equal(reported, want) {
		t.Errorf("told %q, want %q", reported, want)
	}
}

// BenchmarkConvert converts a list of 500 objects of half a KiB: with a call for all of them, and with remembered answers.
func BenchmarkConvert(b *testing.B) {
	for name, o := range map[string]conversion.Options{"called": {Memory: -1}, "remembered": {}} {
		b.Run(name, func(b *testing.B) {
			c := newCounted(b, o, false)
			in := things(named(500)...)
			if _, err := c.Convert(b.Context(), in, v1); err != nil {
				b.Fatal(err)
			}
			b.ReportAllocs()
			for b.Loop() {
				if _, err := c.Convert(b.Context(), in, v1); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}
