package handlers

import (
	"fmt"
	"slices"
	"strings"
	"unicode"
	"unicode/utf8"

	"github.com/keelson-dev/keelson/runtime"
	"github.com/keelson-dev/keelson/runtime/patch"
	"github.com/keelson-dev/keelson/server/registry"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
)

// manageFields makes the endpoint maintain metadata.managedFields, if its objects are stored. An answer that is only computed,
// such as a review, has no managedFields, because no later request can conflict with it.
func (e *endpoint) manageFields(storage any) error {
	if e.Known == nil || e.recordWriter == nil && !e.canUpdate() {
		return nil
	}
	o := patch.FieldManagerOptions{Scheme: e.scheme, Models: e.models, Kind: e.Kind, Subresource: e.sub}
	if resetter, ok := registry.As[registry.FieldResetter](storage); ok {
		o.Reset = resetter.ResetFields
	}
	var err error
	if e.fields, err = patch.NewFieldManager(o); err != nil {
		return fmt.Errorf("handlers: %s: %w", e.Path, err)
	}
	return nil
}

// PatchTypes returns the media types of the patches that the resource or, if sub is not "", its subresource accepts. They are in
// the order in which the answer to an unsupported media type names them. The slice is a copy.
func (r *Resource) PatchTypes(sub string) []string {
	e := r.main
	if sub != "" {
		e = r.subs[sub]
	}
	if e == nil {
		return nil
	}
	return slices.Clone(e.patches)
}

func (e *endpoint) patchTypes() []string {
	if !e.canPatch() {
		return nil
	}
	accepted := []string{string(types.JSONPatchType), string(types.MergePatchType)}
	if e.typed() && !e.custom() {
		accepted = append(accepted, string(types.StrategicMergePatchType))
	}
	if e.fields != nil {
		accepted = append(accepted, string(types.ApplyYAMLPatchType))
	}
	if e.fields != nil && e.forms.HasCBOR() {
		accepted = append(accepted, string(types.ApplyCBORPatchType))
	}
	return accepted
}

// custom reports whether the resource, whose subresource this may be, is of a kind without a Go type.
func (e *endpoint) custom() bool {
	k := e.scheme.Lookup(e.owner)
	return k != nil && k.Untyped()
}

// typed reports whether the kind has a Go struct. The tags of the struct say how lists are merged.
func (e *endpoint) typed() bool { return e.Known != nil && !e.Known.Untyped() }

// track updates the managedFields of obj, which is in the hub version, with the changes from live to obj. live may be nil. If the
// update fails, the entries stay as they were, and the change is made (see tellFields). track returns an error only if the
// request has more entries than are allowed.
func (c *call) track(live, obj runtime.Object, fieldManager string) error {
	if c.fields == nil {
		return nil
	}
	m, err := meta.Accessor(obj)
	if err != nil {
		return nil //nolint:nilerr // an object without metadata has no entries
	}
	if c.fieldless {
		m.SetManagedFields([]metav1.ManagedFieldsEntry{})
		return nil
	}
	c.fieldsErr = c.fields.UpdateShown(live, obj, managerName(fieldManager, c.r.UserAgent()), c.showing(c.ctx))
	return registry.EntriesStatus(c.fieldsErr, c.Kind.GroupKind(), obj)
}

// showing returns a function that converts objects of the hub version to the URL's version, for a call.
func (e *endpoint) showing(ctx *registry.Call) patch.Show {
	return func(obj runtime.Object) (runtime.Object, error) { return e.shown(ctx, obj) }
}

// tellFields calls the hook Untracked if track has failed. It is called after the change is made: a change that is refused has an
// error of its own.
func (c *call) tellFields() {
	if c.fieldsErr != nil && c.hooks.Untracked != nil {
		c.hooks.Untracked(c.ctx.Context, c.fieldsErr)
	}
}

// withoutFields calls change, and calls it again without managedFields if the object was too large with them. change must call
// track.
func (c *call) withoutFields(change func() error) error {
	err := change()
	if c.fields == nil || c.fieldless || !isTooLarge(err) {
		return err
	}
	c.fieldless = true
	return change()
}

// longestManager bounds the name of a manager, in bytes.
const longestManager = 128

// managerName returns the name under which a request manages fields.
func managerName(fieldManager, userAgent string) string {
	if fieldManager != "" {
		return strings.ToValidUTF8(fieldManager, string(utf8.RuneError))
	}
	name, _, _ := strings.Cut(userAgent, "/")
	name = strings.Map(func(r rune) rune {
		if !unicode.IsPrint(r) {
			return -1
		}
		return r
	}, name)
	if len(name) > longestManager {
		end := longestManager
		for !utf8.RuneStart(name[end]) {
			end--
		}
		name = name[:end]
	}
	return name
}
