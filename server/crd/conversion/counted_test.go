package conversion_test

import (
	"errors"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/keelson-dev/keelson/runtime/webhook"
	"github.com/keelson-dev/keelson/server/crd/conversion"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
)

// counted is a webhook that records its calls, and answers when hold allows it.
type counted struct {
	*conversion.Webhook
	factory *conversion.Factory
	entered chan struct{} // receives a value for each call before it is answered
	hold    chan struct{} // nil, or each call receives a value before it answers; may be closed
	change  func(answer review)

	mu      sync.Mutex // guards all below
	calls   []string   // the names of the objects in each call
	running int
	peak    int
}

// newCounted starts a webhook. held says whether calls wait for hold.
func newCounted(t testing.TB, o conversion.Options, held bool) *counted {
	t.Helper()
	c := &counted{entered: make(chan struct{}, 10000)}
	if held {
		c.hold = make(chan struct{})
	}
	l := lie{name: "counted", answer: c.answer}
	h := startHooks(t, []lie{l})
	c.factory = newFactory(t, webhook.Options{}, o)
	c.Webhook = webhookFor(t, c.factory, l, h)
	return c
}

func (c *counted) answer(w http.ResponseWriter, r *http.Request, asked review) {
	var names []string
	for _, o := range asked.objects() {
		names = append(names, o.(map[string]any)["metadata"].(map[string]any)["name"].(string))
	}
	c.mu.Lock()
	c.calls = append(c.calls, strings.Join(names, " "))
	c.running++
	c.peak = max(c.peak, c.running)
	c.mu.Unlock()
	defer func() {
		c.mu.Lock()
		c.running--
		c.mu.Unlock()
	}()
	c.entered <- struct{}{}
	if c.hold != nil {
		select {
		case <-c.hold:
		case <-r.Context().Done():
			return
		}
	}
	answer := asked.answered()
	if c.change != nil {
		c.change(answer)
	}
	sendJSON(w, answer)
}

// seen returns the names in the calls so far, sorted.
func (c *counted) seen() []string {
	c.mu.Lock()
	defer c.mu.Unlock()
	return slices.Sorted(slices.Values(c.calls))
}

func (c *counted) want(t testing.TB, calls ...string) {
	t.Helper()
	if got := c.seen(); !slices.Equal(got, calls) {
		t.Errorf("calls %q, want %q", got, calls)
	}
}

// things are objects of these names.
func things(names ...string) []*unstructured.Unstructured {
	var out []*unstructured.Unstructured
	for _, name := range names {
		out = append(out, thing(name))
	}
	return out
}

func named(n int) []string {
	var out []string
	for i := range n {
		out = append(out, fmt.Sprintf("n%03d", i))
	}
	return out
}

// result is the result of one call of Convert.
type result struct {
	out []*unstructured.Unstructured
	err error
}

// ask calls Convert in a goroutine.
func (c *counted) ask(t testing.TB, names ...string) chan result {
	t.Helper()
	done := make(chan result, 1)
	go func() {
		out, err := c.Convert(t.Context(), things(names...), v1)
		done <- result{out, err}
	}()
	return done
}

// wantNames checks that the converted objects have these names in this order.
func wantNames(t testing.TB, r result, names ...string) {
	t.Helper()
	if r.err != nil {
		t.Error(r.err)
		return
	}
	var got []string
	for _, o := range r.out {
		if o.GetAPIVersion() != v1.String() {
			t.Errorf("%s is of version %s", o.GetName(), o.GetAPIVersion())
		}
		got = append(got, o.GetName())
	}
	if !slices.Equal(got, names) {
		t.Errorf("objects %q, want %q", got, names)
	}
}

// wantStatus checks that an error is a StatusError with a code and a text.
func wantStatus(t testing.TB, err error, code int32, text string) {
	t.Helper()
	var s apierrors.APIStatus
	if !errors.As(err, &s) || s.Status().Code != code || !strings.Contains(err.Error(), text) {
		t.Errorf("error %v, want code %d and %q", err, code, text)
	}
}
