package handlers

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"sync"

	"github.com/keelson-dev/keelson/runtime"
	"github.com/keelson-dev/keelson/runtime/codec"
	"github.com/keelson-dev/keelson/runtime/excerpt"
	"github.com/keelson-dev/keelson/server/handlers/internal/wire"
	"github.com/keelson-dev/keelson/server/registry"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	apiruntime "k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/validation/field"
)

// patcher applies one patch to the current state of the object. It is not used for server-side apply.
type patcher struct {
	*call
	kind       types.PatchType
	text       []byte
	manager    string
	validation codec.Validation
	checked    func() error   // check, for the first call; before that the object must exist
	problems   []error        // duplicate fields of the patch text
	changes    map[string]any // a strategic merge patch, which errors show; if nil, they show the patched object
}

// patch answers PATCH.
func (c *call) patch() error {
	defer c.limit()()
	kind, err := c.patchType()
	if err != nil {
		return err
	}
	f, err := c.forms.Negotiate(c.r, wire.OneObject)
	if err != nil {
		return err
	}
	text, err := c.readBody()
	if err != nil {
		return err
	}
	opts, err := patchOptions(c.r.URL.Query(), kind)
	if err != nil {
		return err
	}
	update := &metav1.UpdateOptions{
		TypeMeta:        optionsKind("UpdateOptions"),
		DryRun:          opts.DryRun,
		FieldManager:    opts.FieldManager,
		FieldValidation: opts.FieldValidation,
	}
	c.keepSent()
	c.ctx.Patch = true
	if kind == types.ApplyYAMLPatchType || kind == types.ApplyCBORPatchType {
		a, err := c.newApplier(kind, text, opts)
		if err != nil {
			return err
		}
		c.ctx.CreateOnUpdate = true
		return c.change(a.apply, update, f)
	}
	p := &patcher{call: c, kind: kind, text: text, manager: opts.FieldManager, validation: fieldValidation(opts.FieldValidation)}
	if !json.Valid(text) {
		return apierrors.NewBadRequest("invalid JSON patch")
	}
	c.recordPatch(text, nil)
	p.checked = sync.OnceValue(p.check)
	return c.withoutFields(func() error { return c.change(p.apply, update, f) })
}

// patchType returns the type of a patch, which its Content-Type names.
func (c *call) patchType() (types.PatchType, error) {
	contentType, _, _ := strings.Cut(c.r.Header.Get("Content-Type"), ";")
	kind := strings.TrimSpace(contentType)
	if !slices.Contains(c.patches, kind) {
		return "", codec.UnsupportedMediaType(c.patches)
	}
	return types.PatchType(kind), nil
}

// check validates the text of the patch, and finds its duplicate fields and, in a JSON patch, the unknown fields of operations.
func (p *patcher) check() error {
	if err := p.patchBounds.Check(p.text); err != nil {
		return registry.PatchStatus(err)
	}
	if err := codec.CheckObject(p.text, p.limits()); err != nil {
		return p.beyondLimit(err)
	}
	if p.kind == types.StrategicMergePatchType {
		return p.checkStrategic()
	}
	if p.validation == codec.Ignore {
		return nil
	}
	var err error
	if p.kind == types.JSONPatchType {
		var operations []jsonPatchOp
		p.problems, err = codec.Unmarshal(p.text, &operations, p.validation)
		for i, problem := range p.problems {
			p.problems[i] = fmt.Errorf("json patch %w", problem)
		}
	} else {
		fields := map[string]any{}
		p.problems, err = codec.Unmarshal(p.text, &fields, p.validation)
	}
	if err != nil {
		return apierrors.NewBadRequest(fmt.Sprintf("error decoding patch: %v", err))
	}
	return nil
}

// checkStrategic is check for a strategic merge patch. A kind and an apiVersion in it are left out, because they change nothing. A
// patch of null changes nothing either.
func (p *patcher) checkStrategic() error {
	var err error
	if p.problems, err = codec.Unmarshal(p.text, &p.changes, p.validation); err != nil {
		return apierrors.NewBadRequest(err.Error())
	}
	if p.changes == nil {
		p.text = []byte("{}")
		return nil
	}
	members := map[string]json.RawMessage{}
	if err := json.Unmarshal(p.text, &members); err != nil {
		return apierrors.NewBadRequest(err.Error())
	}
	for _, name := range []string{"apiVersion", "kind"} {
		switch p.changes[name].(type) {
		case nil, string:
			delete(members, name)
		}
	}
	if len(members) < len(p.changes) {
		p.text, err = json.Marshal(members)
	}
	return err
}

// jsonPatchOp is an operation of a JSON patch. Errors of its decoding show its name, which is that of kube-apiserver.
type jsonPatchOp struct {
	Op    string `json:"op"`
	From  string `json:"from"`
	Path  string `json:"path"`
	Value any    `json:"value"`
}

// apply returns the result of applying the patch to the current object. Both objects are of the hub version; the patch is applied
// in the version of the URL. If the patch sets a resourceVersion or uid, the result has it too, and the registry compares it.
func (p *patcher) apply(ctx *registry.Call, current runtime.Object) (runtime.Object, error) {
	if current == nil {
		return nil, apierrors.NewNotFound(p.gvr.GroupResource(), p.name)
	}
	if err := p.checked(); err != nil {
		return nil, err
	}
	shown, err := p.shown(ctx, current)
	if err != nil {
		return nil, err
	}
	was, err := p.Encode(ctx, shown)
	if err != nil {
		return nil, err
	}
	text, err := p.patchBounds.Patch(ctx, p.kind, was, p.text, p.Known.Type)
	if err != nil {
		return nil, registry.PatchStatus(err)
	}
	obj, err := p.decodePatched(text, was)
	if err != nil {
		return nil, err
	}
	if err := p.matchURL(obj); err != nil {
		return nil, err
	}
	if p.unfit != nil {
		return nil, p.unfit
	}
	if obj, err = p.inHub(ctx, obj); err != nil {
		return nil, p.invalid(text, err)
	}
	if err := p.track(current, obj, p.manager); err != nil {
		return nil, err
	}
	return obj, p.sameUID(current, obj)
}

// decodePatched decodes the text of a patched object. An error in it is an error of the patch. An object that is beyond the
// limits before the patch can still be patched if it does not become longer. Otherwise its finalizers could never be removed.
func (p *patcher) decodePatched(text, was []byte) (runtime.Object, error) {
	d, err := codec.DecodeWithin(p.scheme, codec.JSON(), text, p.Kind, p.validation, p.limits())
	if isBeyondLimit(err) && len(text) <= len(was) {
		if _, why := codec.DecodeWithin(p.scheme, codec.JSON(), was, p.Kind, codec.Ignore, p.limits()); isBeyondLimit(why) {
			d, err = codec.Decode(p.scheme, codec.JSON(), text, p.Kind, p.validation)
		}
	}
	switch {
	case err != nil:
	case p.Untyped():
		p.judgeKind(d)
	case d.GVK != p.Kind:
		err = fmt.Errorf("unable to decode %s into %T", d.GVK, p.Known.New())
	}
	if err != nil {
		return nil, p.invalid(text, err)
	}
	problems := append(p.problems[:len(p.problems):len(p.problems)], d.Problems...)
	if len(problems) > 0 && p.validation == codec.Strict {
		return nil, p.invalid(text, codec.StrictError(problems))
	}
	p.warnAll(problems)
	return d.Object, nil
}

// invalid returns the error for a patch whose result is not a valid object of the kind. If it quotes the result, the members are in
// the order of their names; in kube-apiserver those that the patch does not change are in the order of the fields of the Go type. A
// strategic merge patch is quoted as it was sent; kube-apiserver quotes it without the directives and the nulls that it has applied. If
// the items of a $retainKeys are objects, or a JSON patch removes the object, kube-apiserver breaks the connection.
func (p *patcher) invalid(text []byte, err error) error {
	if why := statusIn(err); why != nil {
		return why
	}
	if over := p.beyondLimit(err); over != nil {
		return over
	}
	if p.kind == types.StrategicMergePatchType {
		err = p.misfit(text, err)
	}
	shown := excerpt.OfBytes(text, excerpt.Text)
	switch {
	case p.changes == nil:
	case len(p.text) > excerpt.Text: // the beginning of the patch as it was sent: printing the whole map would take too much memory
		shown = excerpt.OfBytes(p.text, excerpt.Text)
	default:
		shown = fmt.Sprintf("%+v", p.changes)
	}
	return excerpt.Invalid(schema.GroupKind{}, "", field.ErrorList{field.Invalid(field.NewPath("patch"), shown, err.Error())})
}

// misfit returns why an object, which is the result of a strategic merge patch, is not one of the Go type, in the words of
// kube-apiserver: it does not decode text, but converts a map. If the map can be converted, misfit returns err.
func (p *patcher) misfit(text []byte, err error) error {
	object := map[string]any{}
	if _, bad := codec.Unmarshal(text, &object, codec.Ignore); bad != nil {
		return err
	}
	if why := apiruntime.DefaultUnstructuredConverter.FromUnstructured(object, p.Known.New()); why != nil {
		return why
	}
	return err
}
