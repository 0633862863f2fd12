package conversion_test

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"strings"
	"testing"

	"github.com/keelson-dev/keelson/flowcontrol"
	"github.com/keelson-dev/keelson/runtime/webhook"
	"github.com/keelson-dev/keelson/server/crd/conversion"
	"github.com/keelson-dev/keelson/server/request"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
)

// withSpec returns the things of names with a spec.
func withSpec(spec map[string]any, names ...string) []*unstructured.Unstructured {
	out := things(names...)
	for _, o := range out {
		o.Object["spec"] = spec
	}
	return out
}

// maps returns a list of n empty maps, which take 64 bytes each.
func maps(n int) []any {
	out := make([]any, n)
	for i := range out {
		out[i] = map[string]any{}
	}
	return out
}

// TestLargeAnswers checks the bounds of answers, by object and in all.
func TestLargeAnswers(t *testing.T) {
	t.Parallel()
	o := conversion.Options{MaxDecodedBytes: 64 << 10, MaxObjectBytes: 64 << 10}
	const began = "conversion webhook for " + group + "/v2, Kind=Thing returned "
	text := func(n int) map[string]any { return map[string]any{"text": strings.Repeat("x", n)} }
	for _, c := range []struct {
		name   string
		o      conversion.Options
		sent   map[string]any
		answer map[string]any // the spec of the second object
		want   string         // "": the conversion succeeds
	}{
		{"a small object", o, nil, map[string]any{"a": maps(300)}, ""},
		{"many values", o, nil, map[string]any{"a": maps(2000)}, began + "too much: the values of the answer to 1110 bytes of objects take too much memory: the limit is "},
		{"a long text", o, nil, text(80 << 10), began + "too much: the answer to 1110 bytes of objects is longer than 69976 bytes"},
		{"one object of many values, for many that were sent", o, map[string]any{"a": maps(4000)}, map[string]any{"a": maps(2000)}, began + "invalid object: the values of the object take too much memory: the limit is 65536 bytes"},
		{"one long object, for long objects that were sent", o, text(40 << 10), text(80 << 10), began + "invalid object: the object is longer than 65536 bytes"},
		{"no bounds", conversion.Options{MaxDecodedBytes: -1, MaxObjectBytes: -1}, nil, map[string]any{"a": maps(200_000), "b": strings.Repeat("x", 4<<20)}, ""},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			h := newCounted(t, c.o, false)
			h.change = func(answer review) {
				for i, o := range answer.response()["convertedObjects"].([]any) {
					o.(map[string]any)["spec"] = map[string]any{}
					if i == 1 {
						o.(map[string]any)["spec"] = c.answer
					}
				}
			}
			out, err := h.Convert(t.Context(), withSpec(c.sent, "a", "b"), v1)
			switch {
			case c.want == "" && (err != nil || len(out) != 2):
				t.Error(out, err)
			case c.want != "" && (err == nil || !strings.HasPrefix(err.Error(), c.want)):
				t.Errorf("error %v, want %s", err, c.want)
			}
		})
	}
}

// TestLargeNoise checks that clients learn nothing of a large answer that is not from a conversion webhook.
func TestLargeNoise(t *testing.T) {
	t.Parallel()
	var logged error
	l := lie{name: "noise", answer: func(w http.ResponseWriter, _ *http.Request, _ review) {
		_, _ = fmt.Fprintf(w, "[%s{}]", strings.Repeat("{},", 2<<20))
	}}
	h := startHooks(t, []lie{l})
	f := newFactory(t, webhook.Options{}, conversion.Options{Hooks: conversion.Hooks{Called: func(c conversion.Call) { logged = c.Err }}})
	_, err := webhookFor(t, f, l, h).Convert(t.Context(), things("a"), v1)
	if err == nil || !strings.Contains(err.Error(), "no usable answer; the log of the server says why") || strings.Contains(err.Error(), "bytes") {
		t.Error(err)
	}
	if logged == nil || !strings.Contains(logged.Error(), "is longer than") {
		t.Errorf("the log has %v", logged)
	}
}

// TestAnswersAreCounted checks that an answer counts in the budget while it is decoded, and the result for the request.
func TestAnswersAreCounted(t *testing.T) {
	t.Parallel()
	budget := flowcontrol.NewBudget("bytes", flowcontrol.Bounds{All: 1 << 20, User: -1, Address: -1})
	h := newCounted(t, conversion.Options{Budget: budget}, false)
	h.change = func(answer review) { answer.object(0)["spec"] = map[string]any{"a": maps(2000)} } // 128 KB
	var held int64
	full := error(nil)
	ctx := request.WithHold(t.Context(), func(bytes int64) error {
		held = bytes
		return full
	})
	convert := func(ctx context.Context, name string) error {
		_, err := h.Convert(ctx, things(name), v1)
		return err
	}
	if err := convert(ctx, "a"); err != nil {
		t.Fatal(err)
	}
	if peak := budget.Peak(); peak < 128_000 || peak > 200_000 || held < 256_000 || held > 300_000 {
		t.Errorf("%d bytes count for the answer, %d for the request", peak, held)
	}
	held = 0
	if err := convert(ctx, "a"); err != nil || held < 256_000 { // remembered
		t.Errorf("%d bytes count for a remembered answer: %v", held, err)
	}
	full = errors.New("full")
	if err := convert(ctx, "a"); !errors.Is(err, full) {
		t.Errorf("error %v of a request that may hold nothing more", err)
	}
	share, err := budget.Count(1 << 20)
	if err != nil {
		t.Fatal(err)
	}
	wantStatus(t, convert(t.Context(), "b"), http.StatusTooManyRequests, "too many bytes in all: the limit is 1048576")
	share.Release()
	if err := convert(t.Context(), "b"); err != nil {
		t.Error(err)
	}
	if left := budget.Held(); left != 0 {
		t.Errorf("%d bytes are held after the last conversion", left)
	}
}
