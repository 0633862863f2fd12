package admission_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/keelson-dev/keelson/admission"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

// notes returns a plug-in that records its name when it is called.
func notes(asked *[]string, name string, h admission.Handles) admission.Plugin {
	note := func(context.Context, *admission.Request) error {
		*asked = append(*asked, name)
		return nil
	}
	return admission.Plugin{Name: name, Handles: h, Mutator: admission.MutatorFunc(note), Validator: admission.ValidatorFunc(note)}
}

func request(op admission.Operation, group, resource, sub string) *admission.Request {
	return &admission.Request{Operation: op, Resource: schema.GroupVersionResource{Group: group, Version: "v1", Resource: resource}, Subresource: sub}
}

func TestHandles(t *testing.T) {
	pods := schema.GroupResource{Resource: "pods"}
	for _, tc := range []struct {
		name string
		h    admission.Handles
		r    *admission.Request
		want bool
	}{
		{"everything", admission.Handles{}, request(admission.Connect, "g", "x", "y"), true},
		{"an operation", admission.Handles{Operations: []admission.Operation{admission.Create}}, request(admission.Create, "", "pods", ""), true},
		{"another operation", admission.Handles{Operations: []admission.Operation{admission.Create}}, request(admission.Update, "", "pods", ""), false},
		{"no operation", admission.Handles{Operations: []admission.Operation{}}, request(admission.Update, "", "pods", ""), false},
		{"a resource", admission.Handles{Resources: []schema.GroupResource{pods}}, request(admission.Create, "", "pods", ""), true},
		{"with its subresources", admission.Handles{Resources: []schema.GroupResource{pods}}, request(admission.Create, "", "pods", "eviction"), true},
		{"of another group", admission.Handles{Resources: []schema.GroupResource{pods}}, request(admission.Create, "metrics.k8s.io", "pods", ""), false},
		{"a subresource", admission.Handles{Resources: []schema.GroupResource{{Resource: "pods/eviction"}}}, request(admission.Create, "", "pods", "eviction"), true},
		{"the resource of it", admission.Handles{Resources: []schema.GroupResource{{Resource: "pods/eviction"}}}, request(admission.Create, "", "pods", ""), false},
		{"another subresource", admission.Handles{Resources: []schema.GroupResource{{Resource: "pods/eviction"}}}, request(admission.Create, "", "pods", "binding"), false},
	} {
		var asked []string
		chain := admission.Chain{notes(&asked, "p", tc.h)}
		if err := errors.Join(chain.Mutate(t.Context(), tc.r), chain.Validate(t.Context(), tc.r)); err != nil {
			t.Error(err)
		}
		if got := len(asked) == 2; got != tc.want || chain.Mutates(tc.r) != tc.want || chain.Validates(tc.r) != tc.want {
			t.Errorf("%s: asked %q, want %t", tc.name, asked, tc.want)
		}
	}
}

func TestLiveKeepsTheOrderOfKubernetes(t *testing.T) {
	var asked []string
	live := &admission.Live{}
	for _, name := range []string{"ResourceQuota", "own", "ValidatingAdmissionWebhook", "NamespaceLifecycle", "another", "LimitRanger", "MutatingAdmissionPolicy"} {
		if err := live.Set(notes(&asked, name, admission.Handles{})); err != nil {
			t.Fatal(err)
		}
	}
	before := live.Now()
	if err := before.Mutate(t.Context(), request(admission.Create, "", "pods", "")); err != nil {
		t.Fatal(err)
	}
	const want = "NamespaceLifecycle LimitRanger own another MutatingAdmissionPolicy ValidatingAdmissionWebhook ResourceQuota"
	if got := strings.Join(asked, " "); got != want {
		t.Errorf("asked %s\nwant  %s", got, want)
	}
	if again := live.Now(); &again[0] != &before[0] {
		t.Error("nothing has changed, but the chain is another")
	}
	if !live.Remove("own") || live.Remove("own") || slices.Contains(live.Names(), "own") || len(before) != 7 || len(live.Now()) != 6 {
		t.Errorf("after Remove: %q, and what was taken before has %d", live.Names(), len(before))
	}
	for _, wrong := range []admission.Plugin{
		{}, {Name: "x"}, {Validator: before[0].Validator},
		{Name: "x", Validator: before[0].Validator, Handles: admission.Handles{Operations: []admission.Operation{"create"}}},
		{Name: "x", Validator: before[0].Validator, Handles: admission.Handles{Resources: []schema.GroupResource{{Resource: "Flight"}}}},
	} {
		if err := live.Set(wrong); !errors.Is(err, admission.ErrPlugin) {
			t.Errorf("%+v was taken: %v", wrong, err)
		}
	}
}

// TestObjectsAreCopiedForWhoLooks checks that plug-ins share one copy, and that nothing is copied if no plug-in uses the object.
func TestObjectsAreCopiedForWhoLooks(t *testing.T) {
	obj, old := &corev1.Pod{}, &corev1.Pod{}
	r := request(admission.Update, "", "pods", "")
	r.Show(obj, old, false)
	if r.Object() != obj || r.Old() != old {
		t.Error("mutators are shown something else")
	}
	r.Show(obj, old, true)
	if got := r.Object(); got == obj || r.Object() != got {
		t.Error("validators share no copy")
	}
	if got := r.Old(); got == old || r.Old() != got {
		t.Error("validators share no copy of the old object")
	}
	if n := testing.AllocsPerRun(10, func() { r.Show(obj, old, true) }); n > 0 {
		t.Errorf("without a look it costs %v allocations", n)
	}
	r.Show(nil, nil, true)
	if r.Object() != nil || r.Old() != nil {
		t.Error("there is an object where there is none")
	}
}

func TestUndo(t *testing.T) {
	var undone []string
	r := request(admission.Create, "", "pods", "")
	charge := func(name string) { r.OnFailure(func(context.Context) { undone = append(undone, name) }) }
	charge("a")
	kept := r.Charges()
	charge("b")
	charge("c")
	r.Undo(t.Context(), kept)
	charge("d")
	r.Undo(t.Context(), kept)
	if got := fmt.Sprint(undone); got != "[c b d]" {
		t.Errorf("undone %s", got)
	}
	r.Undo(t.Context(), 0)
	r.Undo(t.Context(), 0)
	if got := fmt.Sprint(undone); got != "[c b d a]" {
		t.Errorf("undone %s", got)
	}
}

// TestReinvocation checks that mutators that ask for it are called once more, and not more often.
func TestReinvocation(t *testing.T) {
	var asked []string
	mutator := func(name string, again bool) admission.Plugin {
		return admission.Plugin{Name: name, Mutator: admission.MutatorFunc(func(_ context.Context, r *admission.Request) error {
			asked = append(asked, fmt.Sprint(name, r.Reinvocation))
			if again {
				r.Reinvoke()
			}
			return nil
		})}
	}
	for again, want := range map[bool]string{true: "[afalse bfalse atrue btrue]", false: "[afalse bfalse]"} {
		r := request(admission.Create, "", "pods", "")
		for range 2 { // an update is retried with the same request
			asked = nil
			chain := admission.Chain{mutator("a", false), mutator("b", again)}
			if err := chain.Mutate(t.Context(), r); err != nil {
				t.Fatal(err)
			}
			if got := fmt.Sprint(asked); got != want || r.Reinvocation {
				t.Errorf("asked %s, want %s", got, want)
			}
		}
	}
}
