package registry_test

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"

	"github.com/keelson-dev/keelson/server/registry"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
)

// owned describes the managers of an object, as in "boss Update {...}".
func owned(t *testing.T, w *Widget) string {
	t.Helper()
	var out []string
	for _, e := range w.ManagedFields {
		var fields map[string]any
		must(t, json.Unmarshal(e.FieldsV1.GetRawBytes(), &fields))
		text, err := json.Marshal(fields)
		must(t, err)
		out = append(out, strings.TrimSpace(e.Manager+" "+string(e.Operation)+" "+e.Subresource)+" "+string(text))
	}
	return strings.Join(out, "; ")
}

// Writes of a field manager own the fields that they change, and an apply of another one meets a conflict.
func TestTypedManagers(t *testing.T) {
	f := setup(t, nil)
	as := func(manager string) *registry.Typed[*Widget] {
		t.Helper()
		typed, err := f.typed.As(manager)
		must(t, err)
		return typed
	}
	boss, other := as("boss"), as("other")
	w, err := boss.Create(f.ctx, "ns", widget("a", func(w *Widget) { w.Spec.Color = "red" }))
	must(t, err)
	if got, want := owned(t, w), `boss Update {"f:spec":{"f:color":{},"f:size":{}}}`; got != want {
		t.Errorf("after create: %s, want %s", got, want)
	}
	w, err = other.Change(f.ctx, "ns", "a", func(w *Widget) error { w.Spec.Size = 2; return nil })
	must(t, err)
	if got, want := owned(t, w), `boss Update {"f:spec":{"f:color":{}}}; other Update {"f:spec":{"f:size":{}}}`; got != want {
		t.Errorf("after change: %s, want %s", got, want)
	}
	w, err = other.ChangeStatus(f.ctx, "ns", "a", func(w *Widget) error { w.Status.Ready = true; return nil })
	must(t, err)
	if got := owned(t, w); !strings.Contains(got, `other Update status {"f:status":{"f:ready":{}}}`) {
		t.Errorf("after a change of the status: %s", got)
	}
	config := `{"apiVersion":"example.com/v1","kind":"Widget","metadata":{"name":"a"},"spec":{"color":"blue"}}`
	_, err = other.Apply(f.ctx, "ns", []byte(config), false)
	if !apierrors.IsConflict(err) || !strings.Contains(err.Error(), `conflict with "boss" using example.com/v1: .spec.color`) {
		t.Errorf("an apply of another's field: %v", err)
	}
	w, err = other.Apply(f.ctx, "ns", []byte(config), true)
	must(t, err)
	if got := owned(t, w); w.Spec.Color != "blue" || w.Spec.Size != 2 || !strings.Contains(got, `other Apply {"f:spec":{"f:color":{}}}`) || strings.Contains(got, "boss") {
		t.Errorf("after a forced apply: %+v, %s", w.Spec, got)
	}
	// What is applied no more goes away; what there is not is created.
	w, err = other.Apply(f.ctx, "ns", []byte("apiVersion: example.com/v1\nkind: Widget\nmetadata: {name: a}\n"), false)
	must(t, err)
	if w.Spec.Color != "" || w.Spec.Size != 2 {
		t.Errorf("after an apply of nothing: %+v", w.Spec)
	}
	w, err = boss.Apply(f.ctx, "ns", []byte("apiVersion: example.com/v1\nkind: Widget\nmetadata: {name: new}\nspec: {size: 4}\n"), false)
	must(t, err)
	if w.UID == "" || w.Spec.Size != 4 || owned(t, w) != `boss Apply {"f:spec":{"f:size":{}}}` {
		t.Errorf("created by an apply: %+v, %s", w, owned(t, w))
	}
	for config, want := range map[string]string{
		"{": "error decoding patch",
		"apiVersion: example.com/v1\nkind: Widget":                                    "needs metadata.name",
		"apiVersion: example.com/v1\nkind: Gadget\nmetadata: {name: a}":               "Gadget",
		"apiVersion: example.com/v1\nkind: Widget\nmetadata: {name: a}\nspec: {x: 1}": "x",
		"a: 1\na: 2": "already set",
	} {
		if _, err := boss.Apply(f.ctx, "ns", []byte(config), false); !apierrors.IsBadRequest(err) || !strings.Contains(err.Error(), want) {
			t.Errorf("apply %q: %v", config, err)
		}
	}
	if _, err := f.typed.Apply(f.ctx, "ns", []byte(config), false); err == nil || !strings.Contains(err.Error(), "make one with As") {
		t.Errorf("an apply without a manager: %v", err)
	}
	if _, err := f.typed.As(""); err == nil {
		t.Error("a manager without a name is accepted")
	}
}

// An update as a manager owns what differs from the stored object, and others keep theirs.
func TestTypedManagerOfUpdates(t *testing.T) {
	f := setup(t, nil)
	boss, err := f.typed.As("boss")
	must(t, err)
	f.create("unmanaged") // and so it stays until it is applied
	w, err := boss.Update(f.ctx, "ns", widget("unmanaged", func(w *Widget) { w.Spec.Color = "red" }))
	must(t, err)
	if got := owned(t, w); got != "" {
		t.Errorf("an object without managers: %s", got)
	}
	other, err := f.typed.As("other")
	must(t, err)
	_, err = other.Create(f.ctx, "ns", widget("a"))
	must(t, err)
	w, err = boss.Update(f.ctx, "ns", widget("a", func(w *Widget) { w.Spec.Size = 1; w.Spec.Color = "red" }))
	must(t, err)
	if got := owned(t, w); !strings.Contains(got, `boss Update {"f:spec":{"f:color":{}}}`) {
		t.Errorf("after an update: %s", got)
	}
	w.Status.Ready, w.ManagedFields = true, []metav1.ManagedFieldsEntry{}
	w, err = boss.UpdateStatus(f.ctx, "ns", w)
	must(t, err)
	if got := owned(t, w); !strings.Contains(got, `"f:color"`) || !strings.Contains(got, `boss Update status {"f:status":{"f:ready":{}}}`) {
		t.Errorf("after an update of the status: %s", got)
	}
}

func TestTypedPatch(t *testing.T) {
	f := setup(t, nil)
	boss, err := f.typed.As("boss")
	must(t, err)
	_, err = boss.Create(f.ctx, "ns", widget("a", func(w *Widget) { w.Spec.Tags = []string{"x"} }))
	must(t, err)
	for _, c := range []struct {
		kind        types.PatchType
		patch, want string // want begins with ! for an error
	}{
		{types.MergePatchType, `{"spec":{"color":"red"},"status":{"ready":true}}`, "red [x] 1 false"},
		{types.JSONPatchType, `[{"op":"add","path":"/spec/tags/-","value":"y"}]`, "red [x y] 1 false"},
		{types.StrategicMergePatchType, `{"spec":{"size":3}}`, "red [x y] 3 false"},
		{types.MergePatchType, `{"spec":{"colour":"red"}}`, `!unknown field "spec.colour"`},
		{types.MergePatchType, `{"kind":"Gadget"}`, "!Gadget"},
		{types.JSONPatchType, `[{"op":"test","path":"/spec/size","value":7}]`, "!the server rejected our request due to an error in our request"},
		{types.MergePatchType, `{`, "!"},
		{types.ApplyYAMLPatchType, `{}`, "!there is no patch type"},
	} {
		w, err := boss.Patch(f.ctx, "ns", "a", c.kind, []byte(c.patch))
		if why, is := strings.CutPrefix(c.want, "!"); is {
			if err == nil || apierrors.IsInternalError(err) || !strings.Contains(err.Error(), why) {
				t.Errorf("%s: %v, want %q", c.patch, err, why)
			}
			continue
		}
		must(t, err)
		got := fmt.Sprint(w.Spec.Color, " ", w.Spec.Tags, " ", w.Spec.Size, " ", w.Status.Ready)
		if got != c.want {
			t.Errorf("%s: %s, want %s", c.patch, got, c.want)
		}
	}
	if w := f.get("a"); owned(t, w) != `boss Update {"f:spec":{"f:color":{},"f:size":{},"f:tags":{}}}` {
		t.Errorf("the patches own nothing: %s", owned(t, w))
	}
	if _, err := boss.Patch(f.ctx, "ns", "none", types.MergePatchType, []byte(`{}`)); !apierrors.IsNotFound(err) {
		t.Errorf("an object that is not there: %v", err)
	}
}
