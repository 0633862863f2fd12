package conversion_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/keelson-dev/keelson/runtime/webhook"
	"github.com/keelson-dev/keelson/server/crd/conversion"
	"go.uber.org/goleak"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
)

func TestMaxCalls(t *testing.T) {
	t.Parallel()
	c := newCounted(t, conversion.Options{MaxCalls: 3}, true)
	var asked []chan result
	for i, name := range named(20) {
		asked = append(asked, c.ask(t, name))
		waitFor(t, c, i+1)
	}
	for range 3 {
		<-c.entered
	}
	if got := conversion.Queued(c.Webhook); got != 17 {
		t.Errorf("%d calls wait for their turn, want 17", got)
	}
	for range 17 {
		c.hold <- struct{}{}
		<-c.entered
	}
	close(c.hold)
	for i, name := range named(20) {
		wantNames(t, <-asked[i], name)
	}
	if c.peak != 3 || len(c.seen()) != 20 {
		t.Errorf("%d calls, %d at once, want 20, 3", len(c.seen()), c.peak)
	}
}

func TestMaxWaiting(t *testing.T) {
	t.Parallel()
	c := newCounted(t, conversion.Options{MaxWaiting: 3}, true)
	wantNames(t, func() result { out, err := c.Convert(t.Context(), nil, v1); return result{out, err} }())
	var asked []chan result
	for i, name := range []string{"a", "b", "b"} {
		asked = append(asked, c.ask(t, name))
		waitFor(t, c, i+1)
	}
	for _, name := range []string{"c", "a"} { // also during a conversion
		wantStatus(t, (<-c.ask(t, name)).err, 429, "too many requests wait for the conversion webhook of things."+group+", please try again later")
	}
	if got := conversion.Flights(c.Webhook); got != 2 {
		t.Errorf("%d objects are under way, want 2", got)
	}
	close(c.hold)
	for i, name := range []string{"a", "b", "b"} {
		wantNames(t, <-asked[i], name)
	}
	wantNames(t, <-c.ask(t, "c"), "c")
	c.want(t, "a", "b", "c")
}

// A long list is divided into calls; a single object is sent whatever its length is.
func TestBatches(t *testing.T) {
	t.Parallel()
	c := newCounted(t, conversion.Options{MaxObjects: 4}, false)
	wantNames(t, <-c.ask(t, named(10)...), named(10)...)
	c.want(t, "n000 n001 n002 n003", "n004 n005 n006 n007", "n008 n009")
	c = newCounted(t, conversion.Options{MaxBytes: 3000}, false)
	in := things("a", "b", "c", "long", "d")
	in[3].SetAnnotations(map[string]string{"a": strings.Repeat("x", 10000)})
	out, err := c.Convert(t.Context(), in, v1)
	wantNames(t, result{out, err}, "a", "b", "c", "long", "d")
	calls := c.seen()
	if !slices.Contains(calls, "long") || len(calls) < 3 {
		t.Errorf("calls %q", calls)
	}
}

// Two states of one object, and objects without a uid, are never sent in one call: nobody would notice if the answer exchanged
// them.
func TestObjectsThatCannotBeToldApart(t *testing.T) {
	t.Parallel()
	c := newCounted(t, conversion.Options{MaxCalls: 1}, false)
	in := things("a", "b", "a", "c", "x", "y", "d", "b")
	in[2].SetGeneration(2)
	in[4].SetUID("")
	in[5].SetUID("")
	in[7].SetGeneration(2)
	out, err := c.Convert(t.Context(), in, v1)
	wantNames(t, result{out, err}, "a", "b", "a", "c", "x", "y", "d", "b")
	c.want(t, "a b", "a c", "d b", "x", "y")
}

// What need not be converted is not sent.
func TestNothingToDo(t *testing.T) {
	t.Parallel()
	c := newCounted(t, conversion.Options{}, false)
	in := things("a", "b")
	in[1].SetAPIVersion(v1.String())
	bare := thing("")
	delete(bare.Object, "metadata")
	delete(bare.Object, "spec")
	in = append(in, bare)
	out, err := c.Convert(t.Context(), in, v1)
	if err != nil || out[1] != in[1] || out[0] == in[0] || out[2].GetAPIVersion() != v1.String() || len(out[2].Object) != 2 ||
		bare.GetAPIVersion() != v2.String() {
		t.Errorf("%v, %v", out, err)
	}
	c.want(t, "a")
}

// The webhook of a definition remains the same while its conversion does, and does not use answers of another one.
func TestDefinitions(t *testing.T) {
	t.Parallel()
	all := lies()
	h := startHooks(t, all)
	f := newFactory(t, webhook.Options{}, conversion.Options{})
	right, new := all[0], all[slices.IndexFunc(all, func(l lie) bool { return l.name == "labels-new" })]
	w := webhookFor(t, f, right, h)
	if again := webhookFor(t, f, right, h); again != w {
		t.Error("an equal definition has another webhook")
	}
	label := func(w *conversion.Webhook) string {
		t.Helper()
		out, err := w.Convert(t.Context(), things("a"), v1)
		if err != nil {
			t.Fatal(err)
		}
		return fmt.Sprint(out[0].GetLabels())
	}
	if got := label(w); got != "map[old:label]" {
		t.Errorf("labels %s", got)
	}
	changed := webhookFor(t, f, new, h)
	if changed == w || label(changed) != "map[new:label]" || label(w) != "map[old:label]" {
		t.Error("the webhooks of two definitions are the same")
	}
	f.Forget("things." + group)
	if back := webhookFor(t, f, new, h); back == changed {
		t.Error("a definition that was forgotten is remembered")
	}
	f.Forget("unheard.of")
	crd := &apiextensionsv1.CustomResourceDefinition{}
	if _, err := f.Webhook(crd); err == nil {
		t.Error("a definition without a webhook has one")
	}
	service := &apiextensionsv1.ServiceReference{Namespace: "a", Name: "b"}
	crd.Spec.Conversion = &apiextensionsv1.CustomResourceConversion{
		Strategy: apiextensionsv1.WebhookConverter, Webhook: &apiextensionsv1.WebhookConversion{
			ClientConfig: &apiextensionsv1.WebhookClientConfig{Service: service, CABundle: []byte(" \n")}, ConversionReviewVersions: []string{"v7"},
		},
	}
	w, err := f.Webhook(crd) // a bundle of spaces counts as none
	if err != nil || !strings.Contains(w.String(), "(the service b.a.svc:443)") {
		t.Fatal(w, err)
	}
	_, err = w.Convert(t.Context(), things("a"), v1)
	wantStatus(t, err, 500, "no supported conversion review versions")
	crd.Spec.Conversion.Webhook.ClientConfig.CABundle = []byte("nonsense")
	if _, err := f.Webhook(crd); err == nil || !strings.Contains(err.Error(), "unable to load root certificates") {
		t.Error(err)
	}
}

// After Close no call is in flight and no goroutine is left.
func TestClose(t *testing.T) {
	l := lie{name: "counted"}
	c := &counted{entered: make(chan struct{}, 10), hold: make(chan struct{})}
	l.answer = c.answer
	h := startHooks(t, []lie{l})
	leaks := goleak.IgnoreCurrent()
	caller := webhook.New(webhook.Options{Timeout: 24 * time.Hour})
	var calls atomic.Int64
	f := conversion.New(caller, conversion.Options{MaxCalls: 1, Hooks: conversion.Hooks{
		Called: func(conversion.Call) {
			time.Sleep(20 * time.Millisecond) // Close waits for this
			calls.Add(1)
		},
	}})
	c.Webhook = webhookFor(t, f, l, h)
	go func() { c.hold <- struct{}{} }()
	wantNames(t, <-c.ask(t, "remembered"), "remembered")
	asked := []chan result{c.ask(t, "a")}
	<-c.entered
	<-c.entered
	asked = append(asked, c.ask(t, "a"), c.ask(t, "queued"))
	waitFor(t, c, 3)
	f.Close()
	if got := calls.Load(); got != 2 {
		t.Errorf("%d calls have ended when Close returns, want 2", got)
	}
	for _, a := range asked {
		wantStatus(t, (<-a).err, 503, "the server is shutting down")
	}
	for _, name := range []string{"new", "remembered"} {
		wantStatus(t, (<-c.ask(t, name)).err, 503, "the server is shutting down")
	}
	if _, err := f.Webhook(&apiextensionsv1.CustomResourceDefinition{}); err == nil {
		t.Error("a factory that is closed makes webhooks")
	}
	f.Close() // again
	caller.Close()
	h.good.CloseClientConnections()
	goleak.VerifyNone(t, leaks)
	c.want(t, "a", "remembered")
}

// A call to a webhook that hangs ends at its timeout. Callers of its Convert, and those of other definitions, wait no longer than
// they want.
func TestHanging(t *testing.T) {
	t.Parallel()
	all := lies()
	h := startHooks(t, all)
	f := newFactory(t, webhook.Options{Timeout: 24 * time.Hour}, conversion.Options{MaxCalls: 2})
	hang := webhookFor(t, f, all[slices.IndexFunc(all, func(l lie) bool { return l.name == "hang" })], h)
	ctx, leave := context.WithCancel(t.Context())
	left := make(chan error)
	for _, name := range named(10) {
		go func() {
			_, err := hang.Convert(ctx, things(name), v1)
			left <- err
		}()
	}
	<-conversion.Waiting(t.Context(), hang, 10)
	right := webhookFor(t, f, all[0], h)
	out, err := right.Convert(t.Context(), things("a"), v1)
	wantNames(t, result{out, err}, "a")
	leave()
	for range 10 {
		if err := <-left; !errors.Is(err, context.Canceled) {
			t.Error(err)
		}
	}
	if got := conversion.Queued(hang); got != 0 {
		t.Errorf("%d calls wait for their turn", got)
	}
}

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }
