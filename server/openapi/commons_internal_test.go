package openapi

import (
	"bytes"
	"runtime"
	"testing"

	"github.com/keelson-dev/keelson/server/internal/gzipparts"
	apischema "k8s.io/apimachinery/pkg/runtime/schema"
)

// Sections that several groups have in common are stored once, and only as long as a group has them.
func TestCommonDefinitionsAreHeldOnce(t *testing.T) {
	o, c := New(Options{}).opts, &commons{}
	shareOf := func(group string, verbs ...string) *share {
		gvk := apischema.GroupVersionKind{Group: group, Version: "v1", Kind: "Thing"}
		s := newShare(o, c, new(gzipparts.Compressor), groupVersionParts(o, GroupVersion{Group: group, Version: "v1", Resources: []Resource{{Plural: "things", Kind: gvk, Verbs: verbs}}}))
		if s == nil || len(s.definitions) != 2 || len(s.definitions[1].pieces) == 0 {
			t.Fatalf("the share of %s is %+v", group, s)
		}
		return s
	}
	func() {
		a, b, other := shareOf("a.example.com", "delete"), shareOf("b.example.com", "delete"), shareOf("c.example.com", "get")
		if a.definitions[1].section != b.definitions[1].section || a.definitions[1].section == other.definitions[1].section {
			t.Error("sections are not shared by those that have the same definitions, or by others")
		}
		if n := len(c.sections); n != 2 {
			t.Errorf("%d sections are held, want 2", n)
		}
		for _, form := range []block{a.definitions[1].json, a.definitions[1].protobuf} {
			if text, err := form.text(); err != nil || bytes.Contains(text, []byte(extensionKinds)) {
				t.Errorf("what is common names the kinds of one: %v", err)
			}
		}
		runtime.KeepAlive([]*share{a, b, other})
	}()
	for range 3 {
		runtime.GC()
	}
	last := shareOf("d.example.com", "list")
	if n := len(c.sections); n != 1 {
		t.Errorf("%d sections are held after all shares but one have gone", n)
	}
	runtime.KeepAlive(last)
}
