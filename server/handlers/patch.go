package handlers

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"strings"

	"github.com/keelson-dev/keelson/runtime"
	"github.com/keelson-dev/keelson/runtime/codec"
	"github.com/keelson-dev/keelson/runtime/patch"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/validation/field"
)

// PatchTypes returns the media types of the patches that are accepted, in the order in which a refusal of others
// names them. The slice is the caller's own.
func PatchTypes() []string {
	return []string{string(types.JSONPatchType), string(types.MergePatchType)}
}

// patcher applies one patch to whatever state the object is in.
type patcher struct {
	*call
	kind       types.PatchType
	text       []byte
	validation codec.Validation
	problems   []error // duplicate fields of the patch itself
}

// patch answers PATCH.
func (c *call) patch() error {
	defer c.limit()()
	f, err := c.negotiate(oneObject)
	if err != nil {
		return err
	}
	p := &patcher{call: c}
	contentType, _, _ := strings.Cut(c.r.Header.Get("Content-Type"), ";")
	switch p.kind = types.PatchType(strings.TrimSpace(contentType)); p.kind {
	case types.JSONPatchType, types.MergePatchType:
	default:
		return codec.UnsupportedMediaType(PatchTypes())
	}
	if p.text, err = c.readBody(); err != nil {
		return err
	}
	opts, err := patchOptions(c.r.URL.Query(), p.kind)
	if err != nil {
		return err
	}
	p.validation = fieldValidation(opts.FieldValidation)
	if err := p.check(); err != nil {
		return err
	}
	return c.change(p.apply, &metav1.UpdateOptions{
		TypeMeta:        optionsKind("UpdateOptions"),
		DryRun:          opts.DryRun,
		FieldManager:    opts.FieldManager,
		FieldValidation: opts.FieldValidation,
	}, f)
}

// check finds the duplicate fields of the patch.
func (p *patcher) check() error {
	if p.validation == codec.Ignore {
		return nil
	}
	var err error
	if p.kind == types.JSONPatchType {
		if !json.Valid(p.text) {
			return apierrors.NewBadRequest("invalid JSON patch")
		}
		var operations []any
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

// apply makes the patched object of the current one. Both are of the hub version; the patch is made for the
// version of the URL. A resourceVersion or uid that the patch brings stays in the result, for the registry to
// compare.
func (p *patcher) apply(_ context.Context, current runtime.Object) (runtime.Object, error) {
	if current == nil {
		return nil, apierrors.NewNotFound(p.gvr.GroupResource(), p.name)
	}
	text, err := p.encode(current)
	if err != nil {
		return nil, err
	}
	if p.kind == types.JSONPatchType {
		text, err = patch.JSONPatch(text, p.text)
	} else {
		text, err = patch.MergePatch(text, p.text)
	}
	if err != nil {
		return nil, patchError(err)
	}
	obj, err := p.decodePatched(text)
	if err != nil {
		return nil, err
	}
	if err := p.matchURL(obj); err != nil {
		return nil, err
	}
	if obj, err = p.inHub(obj); err != nil {
		return nil, invalidPatch(text, err)
	}
	return obj, nil
}

// decodePatched makes the object of a patched text. What is wrong with it is the patch's fault.
func (p *patcher) decodePatched(text []byte) (runtime.Object, error) {
	d, err := codec.Decode(p.scheme, codec.JSON(), text, p.endpoint.kind, p.validation)
	want := p.endpoint.kind
	switch {
	case d.GVK.Kind != "" && d.GVK.Kind != want.Kind:
		return nil, p.decodeError(fmt.Errorf("a patch cannot change the kind"), d.GVK, text)
	case d.GVK.Kind != "" && d.GVK != want:
		return nil, wrongVersion(d.GVK.GroupVersion(), want.GroupVersion())
	case err != nil:
		return nil, invalidPatch(text, err)
	}
	problems := append(p.problems[:len(p.problems):len(p.problems)], d.Problems...)
	if len(problems) > 0 && p.validation == codec.Strict {
		return nil, invalidPatch(text, codec.StrictError(problems))
	}
	p.warnAll(problems)
	return d.Object, nil
}

func invalidPatch(text []byte, err error) error {
	return apierrors.NewInvalid(schema.GroupKind{}, "", field.ErrorList{
		field.Invalid(field.NewPath("patch"), string(text), err.Error()),
	})
}

// patchError words why a patch cannot be applied.
func patchError(err error) error {
	var bad *patch.Error
	if !errors.As(err, &bad) {
		return err
	}
	switch bad.Code {
	case http.StatusRequestEntityTooLarge:
		return apierrors.NewRequestEntityTooLargeError(bad.Message)
	case http.StatusUnprocessableEntity:
		return apierrors.NewGenericServerResponse(bad.Code, "", schema.GroupResource{}, "", bad.Message, 0, false)
	}
	return apierrors.NewBadRequest(bad.Message)
}
