package handlers

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"unicode"
	"unicode/utf8"

	"github.com/keelson-dev/keelson/runtime"
	"github.com/keelson-dev/keelson/runtime/excerpt"
	"github.com/keelson-dev/keelson/runtime/patch"
	"github.com/keelson-dev/keelson/server/registry"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/validation/field"
)

// manageFields makes the endpoint keep metadata.managedFields, if its objects are stored: there is no next request to a
// review or another answer that is only computed, which could be in conflict with this one.
func (e *endpoint) manageFields(storage any) error {
	if e.Known == nil || e.recordWriter == nil && !e.canUpdate() {
		return nil
	}
	o := patch.FieldManagerOptions{Scheme: e.scheme, Models: e.models, Kind: e.Kind, Subresource: e.sub}
	if resetter, ok := storage.(registry.FieldResetter); ok {
		o.Reset = resetter.ResetFields
	}
	var err error
	if e.fields, err = patch.NewFieldManager(o); err != nil {
		return fmt.Errorf("handlers: %s: %w", e.Path, err)
	}
	return nil
}

// PatchTypes returns the media types of the patches that the resource or, if sub is not "", its subresource accepts, in
// the order in which a refusal of others names them. The slice is the caller's own.
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

// custom reports whether the resource is of a kind without a Go type, whatever a subresource of it is.
func (e *endpoint) custom() bool {
	k := e.scheme.Lookup(e.owner)
	return k != nil && k.Untyped()
}

// typed reports whether the kind has a Go struct, whose tags say how lists are merged.
func (e *endpoint) typed() bool { return e.Known != nil && !e.Known.Untyped() }

// track records in obj, in the hub version, what the request changes in live, which may be nil. A failure is the client's
// to know, and not a reason to refuse the change: the entries then stay as they were. But a request that brings more entries than
// are kept is refused.
func (c *call) track(live, obj runtime.Object, fieldManager string) error {
	if c.fields == nil {
		return nil
	}
	m, err := meta.Accessor(obj)
	if err != nil {
		return nil //nolint:nilerr // it has no entries
	}
	if c.untracked {
		m.SetManagedFields([]metav1.ManagedFieldsEntry{})
		return nil
	}
	c.untold = c.fields.UpdateShown(live, obj, managerName(fieldManager, c.r.UserAgent()), c.showing(c.ctx))
	var tooMany *patch.EntriesError
	if errors.As(c.untold, &tooMany) {
		return excerpt.Invalid(c.Kind.GroupKind(), m.GetName(), field.ErrorList{tooMany.Err})
	}
	return nil
}

// showing makes objects of the hub those of the URL's version, for a call.
func (e *endpoint) showing(ctx *registry.Call) patch.Show {
	return func(obj runtime.Object) (runtime.Object, error) { return e.shown(ctx, obj) }
}

// tellFields warns of what track could not find out, when the change is made: one that is refused has other faults.
func (c *call) tellFields() {
	if c.untold != nil {
		c.ctx.Warn(oneLine(fmt.Sprintf("metadata.managedFields could not be brought up to date: %v", c.untold)))
	}
}

// oneLine is text as a warning can carry it: several errors come in several lines.
func oneLine(text string) string {
	return strings.Join(strings.FieldsFunc(text, func(r rune) bool { return r == ' ' || unicode.IsControl(r) }), " ")
}

// withoutFields makes a change once more, without managedFields, if it was too large with them. change tells by calling
// track.
func (c *call) withoutFields(change func() error) error {
	err := change()
	if c.fields == nil || c.untracked || !isTooLarge(err) {
		return err
	}
	c.untracked = true
	return change()
}

// longestManager bounds the name of a manager, in bytes.
const longestManager = 128

// managerName is the name under which a request manages fields.
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
