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

// applier applies one configuration (server-side apply) to the current state of the object, or creates the object.
type applier struct {
	*call
	config  map[string]any
	manager string
	force   bool
	unread  error // why the configuration cannot be read; before that the object must exist
	// Both are for the end, if nothing else is wrong.
	strict  error   // the error to return
	repeats []error // keys that the text of the configuration repeats, for warnings
}

// newApplier reads a configuration: CBOR, YAML, or JSON, which is YAML. As in kube-apiserver, most of the errors in YAML are found when
// the object is there, and are in unread.
func (c *call) newApplier(kind types.PatchType, body []byte, opts *metav1.PatchOptions) (*applier, error) {
	a := &applier{call: c, manager: managerName(opts.FieldManager, ""), force: opts.Force != nil && *opts.Force}
	if kind == types.ApplyCBORPatchType {
		return a, a.readCBOR(body)
	}
	// Most bodies are JSON, which is decoded faster as JSON than as YAML. For a body with an error, YAML makes the message.
	problems, err := codec.UnmarshalWithin(body, &a.config, codec.Strict, c.limits())
	switch over := c.beyondLimit(err); {
	case over != nil:
		return nil, over
	case err == nil && len(problems) == 0 && a.config != nil:
		c.recordPatch(body, nil)
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
			return nil, apierrors.NewBadRequest("error encoding patch: " + why) // as kube-apiserver does for a body that is not JSON
		}
		a.unread = apierrors.NewBadRequest("error decoding patch: " + notYAML(err.Error()))
		return a, nil
	}
	c.recordPatch(body, text)
	if _, err := codec.UnmarshalWithin(text, &a.config, codec.Ignore, c.limits()); err != nil {
		if over := c.beyondLimit(err); over != nil {
			return nil, over
		}
		a.unread = apierrors.NewBadRequest(fmt.Sprintf("error decoding patch: error unmarshaling JSON: while decoding JSON: %v", err))
		return a, nil
	}
	if len(problems) > 0 && v == codec.Strict {
		a.strict = apierrors.NewBadRequest("error strict decoding patch: " + notYAML(joined(problems)))
	} else {
		a.repeats = problems
	}
	if a.config == nil { // "null"
		a.config = map[string]any{}
		return a, nil
	}
	return a, c.checkNumbers(text)
}

// readCBOR reads a configuration in CBOR. Duplicate fields are an error for every field validation.
func (a *applier) readCBOR(body []byte) error {
	text, _, err := codec.ToJSONWithin(codec.CBOR(), body, codec.Ignore, a.limits())
	if err == nil {
		a.recordPatch(nil, text)
		_, err = codec.UnmarshalWithin(text, &a.config, codec.Ignore, a.limits())
	}
	if over := a.beyondLimit(err); over != nil {
		return over
	}
	if err != nil {
		if why := cbor.Unmarshal(body, &map[string]any{}); why != nil { // the error for a patch, without a kind
			err = why
		}
		return apierrors.NewBadRequest(fmt.Sprintf("error decoding patch: %v", err))
	}
	if a.config == nil { // null
		a.config = map[string]any{}
	}
	return nil
}

// checkNumbers returns an error if a number in a configuration, given as JSON, would change its value. Only numbers with many
// digits can. Numbers in untyped objects are not checked: they become floating-point numbers in any notation.
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
			return registry.PatchStatus(err)
		}
	}
	return nil
}

// notYAML returns the message for an error in the YAML of a patch, in the words of kube-apiserver.
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

// apply is the registry.ObjectUpdate of an apply. If the configuration has a resourceVersion or uid, the result has it too, and
// the registry compares it.
func (a *applier) apply(ctx *registry.Call, current runtime.Object) (runtime.Object, error) {
	if current == nil {
		if err := a.mayCreate(ctx); err != nil {
			return nil, err
		}
	}
	if a.unread != nil {
		return nil, a.unread
	}
	if current != nil && a.IsConverted() { // an error here is not caused by the configuration
		if _, err := a.shown(ctx, current); err != nil {
			return nil, err
		}
	}
	obj, err := a.fields.ApplyShown(current, apiruntime.DeepCopyJSON(a.config), a.manager, a.force, a.showing(ctx))
	if err != nil {
		return nil, registry.PatchStatus(err)
	}
	if a.strict != nil {
		return nil, a.strict
	}
	a.warnAll(a.repeats)
	if current == nil {
		if err := a.hasNoUID(); err != nil {
			return nil, err
		}
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

// hasNoUID returns an error if a configuration that creates an object has the uid of an existing one.
func (a *applier) hasNoUID() error {
	uid := (&unstructured.Unstructured{Object: a.config}).GetUID()
	if uid == "" {
		return nil
	}
	return apierrors.NewConflict(a.gvr.GroupResource(), a.name,
		fmt.Errorf("uid mismatch: the provided object specified uid %s, and no existing object was found", uid))
}
