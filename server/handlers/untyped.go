package handlers

import (
	"fmt"
	"slices"

	"github.com/keelson-dev/keelson/runtime/codec"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/validation/field"
)

// untyped reports whether the kind is known and has no Go type.
func (e *endpoint) untyped() bool { return e.known != nil && e.known.Untyped() }

// decodeUntyped makes the object of a body for a kind without a Go type, which must say itself what it is.
func (c *call) decodeUntyped(f codec.Format, body []byte, v codec.Validation) (codec.Decoded, error) {
	d, err := codec.Decode(c.scheme, f, body, c.kind, v)
	switch {
	case err != nil:
		return d, c.decodeError(err, d.GVK, body)
	case len(d.Problems) > 0 && v == codec.Strict:
		return d, c.decodeError(codec.StrictError(d.Problems), d.GVK, body)
	case d.GVK.GroupVersion() != c.kind.GroupVersion():
		return d, wrongVersion(d.GVK.GroupVersion(), c.kind.GroupVersion())
	}
	return d, c.sameKind(d)
}

// sameKind refuses an object that says it is of another kind or version.
func (e *endpoint) sameKind(d codec.Decoded) error {
	if d.GVK == e.kind {
		return nil
	}
	var errs field.ErrorList
	if got, want := d.GVK.GroupVersion().String(), e.version; got != want {
		errs = append(errs, field.Invalid(field.NewPath("apiVersion"), got, fmt.Sprintf("must be %s", want)))
	}
	if got, want := d.GVK.Kind, e.kind.Kind; got != want {
		errs = append(errs, field.Invalid(field.NewPath("kind"), got, fmt.Sprintf("must be %s", want)))
	}
	name := ""
	if m, err := meta.Accessor(d.Object); err == nil {
		name = m.GetName()
	}
	return apierrors.NewInvalid(d.GVK.GroupKind(), name, errs)
}

// untypedFrame is the frame of a list of a kind without a Go type: its members in alphabetical order, as those of its items.
func (a *encoding) untypedFrame(lm metav1.ListMeta) listFrame {
	head := append(appendString([]byte(`{"apiVersion":`), a.version), `,"items":[`...)
	tail := appendString([]byte(`],"kind":`), a.listKind().Kind)
	tail = append(appendUntypedListMeta(append(tail, `,"metadata":`...), lm), "}\n"...)
	return listFrame{head: head, tail: tail, empty: slices.Concat(head, tail)}
}

// appendUntypedListMeta is appendListMeta for a kind without a Go type, of which kube-apiserver always shows a continue.
func appendUntypedListMeta(dst []byte, lm metav1.ListMeta) []byte {
	dst = appendString(append(dst, `{"continue":`...), lm.Continue)
	if lm.RemainingItemCount != nil {
		dst = fmt.Appendf(dst, `,"remainingItemCount":%d`, *lm.RemainingItemCount)
	}
	if lm.ResourceVersion != "" {
		dst = appendString(append(dst, `,"resourceVersion":`...), lm.ResourceVersion)
	}
	return append(dst, '}')
}
