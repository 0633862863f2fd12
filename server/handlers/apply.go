package handlers

import (
	"bytes"
	"fmt"
	"strings"

	"github.com/keelson-dev/keelson/runtime"
	"github.com/keelson-dev/keelson/runtime/codec"
	"github.com/keelson-dev/keelson/runtime/patch"
	"github.com/keelson-dev/keelson/server/registry"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	apiruntime "k8s.io/apimachinery/pkg/runtime"
	cbor "k8s.io/apimachinery/pkg/runtime/serializer/cbor/direct"
	"k8s.io/apimachinery/pkg/types"
)

// applier merges one applied configuration into whatever state the object is in, or creates the object.
type applier struct {
	*call
	config  map[string]any
	manager string
	force   bool
	strict  error // what to answer when all else is well
}

// newApplier reads a configuration: CBOR, YAML, or JSON, which is YAML.
func (c *call) newApplier(kind types.PatchType, body []byte, opts *metav1.PatchOptions) (*applier, error) {
	a := &applier{call: c, manager: managerName(opts.FieldManager, ""), force: opts.Force != nil && *opts.Force}
	if kind == types.ApplyCBORPatchType {
		return a, a.readCBOR(body)
	}
	// Most bodies are JSON, which is read much faster as that. What is wrong with any is said in the words for YAML.
	problems, err := codec.UnmarshalWithin(body, &a.config, codec.Strict, c.limits())
	switch over := c.beyondLimit(err); {
	case over != nil:
		return nil, over
	case err == nil && len(problems) == 0 && a.config != nil:
		return a, c.checkNumbers(body)
	}
	a.config = map[string]any{}
	v := fieldValidation(opts.FieldValidation)
	text, problems, err := codec.ToJSONWithin(codec.YAML(), body, v, c.limits())
	if over := c.beyondLimit(err); over != nil {
		return nil, over
	}
	if err != nil {
		if why := err.Error(); !bytes.HasPrefix(bytes.TrimSpace(body), []byte("{")) && strings.HasPrefix(why, "yaml: ") {
			return nil, apierrors.NewBadRequest("error encoding patch: " + why) // as kube-apiserver says of all but JSON
		}
		return nil, apierrors.NewBadRequest("error decoding patch: " + notYAML(err.Error()))
	}
	if _, err := codec.UnmarshalWithin(text, &a.config, codec.Ignore, c.limits()); err != nil {
		if over := c.beyondLimit(err); over != nil {
			return nil, over
		}
		return nil, apierrors.NewBadRequest(fmt.Sprintf("error decoding patch: error unmarshaling JSON: while decoding JSON: %v", err))
	}
	if len(problems) > 0 && v == codec.Strict {
		a.strict = apierrors.NewBadRequest("error strict decoding patch: " + notYAML(joined(problems)))
	} else {
		c.warnAll(problems)
	}
	if a.config == nil { // "null"
		a.config = map[string]any{}
		return a, nil
	}
	return a, c.checkNumbers(text)
}

// readCBOR reads a configuration in CBOR. It has no fields twice: those are an error, whatever the validation.
func (a *applier) readCBOR(body []byte) error {
	text, _, err := codec.ToJSONWithin(codec.CBOR(), body, codec.Ignore, a.limits())
	if err == nil {
		_, err = codec.UnmarshalWithin(text, &a.config, codec.Ignore, a.limits())
	}
	if over := a.beyondLimit(err); over != nil {
		return over
	}
	if err != nil {
		if why := cbor.Unmarshal(body, &map[string]any{}); why != nil { // worded for a patch, of which no kind was looked for
			err = why
		}
		return apierrors.NewBadRequest(fmt.Sprintf("error decoding patch: %v", err))
	}
	if a.config == nil { // null
		a.config = map[string]any{}
	}
	return nil
}

// checkNumbers refuses a configuration, as JSON, with a number that would become another one. Only long ones can. In
// untyped objects they are floating-point numbers, whichever way they are written.
func (c *call) checkNumbers(text []byte) error {
	if c.Untyped() {
		return nil
	}
	const longest = 18 // digits that an int64 always holds
	digits := 0
	for _, b := range text {
		if b < '0' || b > '9' {
			digits = 0
		} else if digits++; digits > longest {
			_, err := patch.Configuration(text)
			return patchError(err)
		}
	}
	return nil
}

// notYAML words what is wrong with the YAML of a patch as kube-apiserver does.
func notYAML(why string) string {
	const what = "error converting YAML to JSON: "
	return what + strings.TrimPrefix(why, what)
}

func joined(problems []error) string {
	texts := make([]string, len(problems))
	for i, p := range problems {
		texts[i] = p.Error()
	}
	return strings.Join(texts, ", ")
}

// apply is the registry.ObjectUpdate of an apply. A resourceVersion or uid in the configuration stays in the result, for
// the registry to compare.
func (a *applier) apply(ctx *registry.Call, current runtime.Object) (runtime.Object, error) {
	if current == nil {
		if err := a.mayBegin(ctx); err != nil {
			return nil, err
		}
	}
	if current != nil && a.IsConverted() { // what cannot be shown is no fault of the configuration's
		if _, err := a.shown(ctx, current); err != nil {
			return nil, err
		}
	}
	obj, err := a.fields.ApplyShown(current, apiruntime.DeepCopyJSON(a.config), a.manager, a.force, a.showing(ctx))
	if err != nil {
		return nil, patchError(err)
	}
	if a.strict != nil {
		return nil, a.strict
	}
	if err := a.matchURL(obj); err != nil {
		return nil, err
	}
	if a.differs() {
		obj, err = a.inHub(ctx, obj)
	} else {
		_, err = a.shown(ctx, obj)
	}
	if err != nil {
		if why := statusIn(err); why != nil {
			return nil, why
		}
		return nil, apierrors.NewBadRequest(err.Error())
	}
	return obj, a.sameUID(current, obj)
}

// mayBegin refuses to create an object that the configuration knows to exist, or for a user who may not.
func (a *applier) mayBegin(ctx *registry.Call) error {
	if uid := (&unstructured.Unstructured{Object: a.config}).GetUID(); uid != "" {
		return apierrors.NewConflict(a.gvr.GroupResource(), a.name,
			fmt.Errorf("uid mismatch: the provided object specified uid %s, and no existing object was found", uid))
	}
	return a.mayCreate(ctx)
}
