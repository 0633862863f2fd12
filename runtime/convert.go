package runtime

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"reflect"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	apiruntime "k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

// AddConversion joins a version of a kind to its hub. Spoke and Hub must be registered kinds of one name, Hub the hub.
// Types of two groups make one kind of two: the kind of Spoke's group, all its versions, has its hub in the other group
// from then on, as events.k8s.io has in the core group for Event, and each of its versions needs a conversion to it. That
// comes before other conversions of the kind in Spoke's group, none of whose versions was registered as the hub.
//
// toHub fills out from in and fromHub the reverse; metadata is copied by the scheme before
// the call, kind and apiVersion are set after it. A server-side apply also converts objects that lack what their owners left
// out: an empty field is no error. Both get an input of their own, whose parts out may keep. An
// error makes the one conversion fail, and a panic is turned into such an error.
func AddConversion[SP Pointer[S], HP Pointer[H], S, H any](s *Scheme, toHub func(in SP, out HP) error, fromHub func(in HP, out SP) error) error {
	spoke, hub := s.KindOf(SP(new(S))), s.KindOf(HP(new(H)))
	switch {
	case isUntyped(SP(new(S))) || isUntyped(HP(new(H))):
		return fmt.Errorf("conversion between %v and %v: the versions of a kind without a Go type need none, or one function for all of them: KindOptions.Convert", reflect.TypeFor[S](), reflect.TypeFor[H]())
	case toHub == nil || fromHub == nil:
		return fmt.Errorf("conversion between %v and %v: a function is nil; both directions are needed", reflect.TypeFor[S](), reflect.TypeFor[H]())
	case spoke == nil || hub == nil:
		return fmt.Errorf("conversion between %v and %v: register both types first", reflect.TypeFor[S](), reflect.TypeFor[H]())
	case spoke.GVK.Kind != hub.GVK.Kind:
		return fmt.Errorf("conversion between %s and %s: they are not versions of one kind, which has one name in all", spoke.GVK, hub.GVK)
	case spoke == hub:
		return fmt.Errorf("conversion between %s and itself: a version needs none to itself", hub.GVK)
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if h := s.hubs[hub.GVK.GroupKind()]; h != hub.GVK {
		return fmt.Errorf("conversion between %s and %s: the hub is %s; convert to it, or set Hub when registering", spoke.GVK, hub.GVK, h)
	}
	if s.toHub[spoke.GVK] != nil {
		return fmt.Errorf("conversion between %s and %s: there is one already", spoke.GVK, hub.GVK)
	}
	err := s.checkJoin(spoke, hub)
	if err == nil {
		err = checkRenamed(spoke, hub)
	}
	if err != nil {
		return fmt.Errorf("conversion between %s and %s: %w", spoke.GVK, hub.GVK, err)
	}
	s.hubs[spoke.GVK.GroupKind()] = hub.GVK
	s.toHub[spoke.GVK] = func(in, out Object) error { return toHub(in.(SP), out.(HP)) }
	s.fromHub[spoke.GVK] = func(in, out Object) error { return fromHub(in.(HP), out.(SP)) }
	return nil
}

// checkJoin refuses to join a kind of one group to a hub in another if its own group has a hub already that somebody
// relies on. The caller holds mu.
func (s *Scheme) checkJoin(spoke, hub *Kind) error {
	old := s.hubs[spoke.GVK.GroupKind()]
	if old == hub.GVK {
		return nil
	}
	if s.hasSpokes(old) {
		return fmt.Errorf("versions are joined to the hub %s already; convert each of them to %s instead", old, hub.GVK)
	}
	if s.byGVK[old].isHub {
		return fmt.Errorf("%s was registered as the hub of its group, and a kind has one; remove Hub there", old)
	}
	return nil
}

// hasSpokes reports whether versions are joined to a hub. The caller holds mu.
func (s *Scheme) hasSpokes(hub schema.GroupVersionKind) bool {
	for spoke := range s.toHub {
		if s.hubs[spoke.GroupKind()] == hub {
			return true
		}
	}
	return false
}

// OneKind reports whether two groups and kinds are one kind: the same one, or two that share a hub, which their objects can
// be converted to. Of kinds that are not registered it reports false.
func (s *Scheme) OneKind(a, b schema.GroupKind) bool {
	s.mu.RLock()
	defer s.mu.RUnlock()
	hub, ok := s.hubs[a]
	other, ok2 := s.hubs[b]
	return ok && ok2 && hub == other
}

// Converts reports whether objects of the kind gvk can be converted to the hub and back: it is the hub, or has a
// conversion. It says nothing of single objects, for which a conversion may still fail.
func (s *Scheme) Converts(gvk schema.GroupVersionKind) bool {
	s.mu.RLock()
	defer s.mu.RUnlock()
	k := s.byGVK[gvk]
	return k != nil && (k.untyped || s.hubs[gvk.GroupKind()] == gvk || s.toHub[gvk] != nil)
}

// ToVersion returns obj, an object or a list of a registered kind, in version gv, through the hub. gv is of another group
// only for a kind that is in both. An object
// already in that version, or of a type without versions (Status), is returned as it is, not copied; any other result shares nothing that may be changed
// with obj, and has kind and apiVersion set. The items of a list carry none. A conversion that fails is a
// *ConversionError.
func (s *Scheme) ToVersion(obj Object, gv schema.GroupVersion) (Object, error) {
	return s.ToVersionContext(context.Background(), obj, gv)
}

// ToVersionContext is ToVersion for as long as somebody waits for it: ctx is what [KindOptions].ConvertAll gets.
func (s *Scheme) ToVersionContext(ctx context.Context, obj Object, gv schema.GroupVersion) (Object, error) {
	t := structType(obj)
	k := s.KindOf(obj)
	switch {
	case k == nil:
		if _, unversioned := metaKind(obj); unversioned {
			return obj, nil
		}
		return nil, apiruntime.NewNotRegisteredErrForType(schemeName, reflect.TypeOf(obj))
	case k.GVK.GroupVersion() == gv:
		return obj, nil
	}
	target := s.Lookup(gv.WithKind(k.GVK.Kind))
	if target == nil || !s.OneKind(k.GVK.GroupKind(), target.GVK.GroupKind()) {
		return nil, apiruntime.NewNotRegisteredErrForKind(schemeName, gv.WithKind(k.GVK.Kind))
	}
	if k.untyped {
		return s.untypedToVersion(ctx, obj, k, target)
	}
	if t == k.ListType {
		return s.listToVersion(obj, target)
	}
	return s.objectToVersion(obj, k, target)
}

// ToVersions is ToVersion for many objects of one kind, of which none is a list: as many come back, in their order, or the error
// of one of them. Where [KindOptions].ConvertAll is set, one call of it converts all that are not in version gv, and ctx is what
// it gets.
func (s *Scheme) ToVersions(ctx context.Context, objs []Object, gv schema.GroupVersion) ([]Object, error) {
	out := make([]Object, len(objs))
	var from, to *Kind
	var in []*unstructured.Unstructured
	var places []int
	for i, obj := range objs {
		if u, k := s.convertsAll(obj); k != nil && k.GVK.GroupVersion() != gv {
			if target := s.untypedKind(gv.WithKind(k.GVK.Kind)); target != nil && target.GVK.Group == k.GVK.Group && (to == nil || to == target) {
				from, to = k, target
				in, places = append(in, u.DeepCopy()), append(places, i)
				continue
			}
		}
		var err error
		if out[i], err = s.ToVersionContext(ctx, obj, gv); err != nil {
			return nil, err
		}
	}
	if to == nil {
		return out, nil
	}
	converted, err := s.untypedObjects(ctx, in, from, to)
	if err != nil {
		return nil, err
	}
	for n, i := range places {
		out[i] = converted[n]
	}
	return out, nil
}

// convertsAll returns an object and its kind if that is one whose objects are converted at once.
func (s *Scheme) convertsAll(obj Object) (*unstructured.Unstructured, *Kind) {
	u, ok := obj.(*unstructured.Unstructured)
	if !ok {
		return nil, nil
	}
	k := s.KindOf(u)
	if k == nil || !k.ConvertsAll() {
		return nil, nil
	}
	return u, k
}

func (s *Scheme) objectToVersion(obj Object, from, to *Kind) (Object, error) {
	s.mu.RLock()
	hub := s.byGVK[s.hubs[from.GVK.GroupKind()]]
	toHub, fromHub := s.toHub[from.GVK], s.fromHub[to.GVK]
	s.mu.RUnlock()
	obj = obj.DeepCopyObject() // a conversion may keep parts of what it reads
	if from != hub {
		out, err := convertObject(obj, from, hub, toHub)
		if err != nil {
			return nil, err
		}
		obj = out
	}
	if to != hub {
		return convertObject(obj, hub, to, fromHub)
	}
	return obj, nil
}

// ConversionError says that one object could not be converted. Err is what the conversion returned, or says that it
// panicked or that there is none. Where Err is a Status, which is worded for clients, its text is all there is to say.
type ConversionError struct {
	Kind     schema.GroupKind
	From, To schema.GroupVersion // one of them is the hub's
	Err      error
}

func (e *ConversionError) Error() string {
	var status apierrors.APIStatus
	if errors.As(e.Err, &status) {
		return e.Err.Error()
	}
	return fmt.Sprintf("converting %s from %s to %s: %v", e.Kind, e.From, e.To, e.Err)
}

// Unwrap returns Err.
func (e *ConversionError) Unwrap() error { return e.Err }

// convertObject makes one step, from or to the hub. Its errors are ConversionErrors.
func convertObject(in Object, from, to *Kind, convert convertFunc) (out Object, err error) {
	fail := func(cause error) error {
		return &ConversionError{Kind: to.GVK.GroupKind(), From: from.GVK.GroupVersion(), To: to.GVK.GroupVersion(), Err: cause}
	}
	if convert == nil {
		return nil, fail(errors.New("no conversion is registered; add one with AddConversion"))
	}
	defer func() {
		if p := recover(); p != nil {
			out, err = nil, fail(fmt.Errorf("the conversion panicked: %v", p))
		}
	}()
	out = to.New()
	objectMeta(in).DeepCopyInto(objectMeta(out))
	if err := convert(in, out); err != nil {
		return nil, fail(err)
	}
	out.GetObjectKind().SetGroupVersionKind(to.GVK)
	return out, nil
}

func (s *Scheme) listToVersion(list Object, to *Kind) (Object, error) {
	out := to.NewList()
	if out == nil {
		return nil, apiruntime.NewNotRegisteredErrForKind(schemeName, to.ListGVK)
	}
	from, err := meta.ListAccessor(list)
	if err != nil {
		return nil, err
	}
	dst, err := meta.ListAccessor(out)
	if err != nil {
		return nil, err
	}
	dst.SetResourceVersion(from.GetResourceVersion())
	dst.SetContinue(from.GetContinue())
	dst.SetRemainingItemCount(DeepCopy(from.GetRemainingItemCount()))
	items := reflect.ValueOf(list).Elem().FieldByName("Items")
	converted := reflect.MakeSlice(reflect.ValueOf(out).Elem().FieldByName("Items").Type(), items.Len(), items.Len())
	for i := range items.Len() {
		item, err := s.ToVersion(items.Index(i).Addr().Interface().(Object), to.GVK.GroupVersion())
		if err != nil {
			return nil, err
		}
		item.GetObjectKind().SetGroupVersionKind(schema.GroupVersionKind{})
		converted.Index(i).Set(reflect.ValueOf(item).Elem())
	}
	reflect.ValueOf(out).Elem().FieldByName("Items").Set(converted)
	out.GetObjectKind().SetGroupVersionKind(to.ListGVK)
	return out, nil
}

// objectMeta returns the ObjectMeta of an object of a registered kind, which has a Go type.
func objectMeta(obj Object) *metav1.ObjectMeta {
	return obj.(metav1.ObjectMetaAccessor).GetObjectMeta().(*metav1.ObjectMeta)
}

// ConvertToVersion implements apimachinery's ObjectConvertor. Like ToVersion, but the result is always a copy with
// kind and apiVersion set.
func (s *Scheme) ConvertToVersion(in Object, target apiruntime.GroupVersioner) (Object, error) {
	kinds, unversioned, err := s.ObjectKinds(in)
	if err != nil {
		return nil, err
	}
	if unversioned {
		out := in.DeepCopyObject()
		out.GetObjectKind().SetGroupVersionKind(kinds[0])
		return out, nil
	}
	gvk, ok := target.KindForGroupVersionKinds(kinds)
	if !ok {
		gvk, ok = target.KindForGroupVersionKinds(s.otherGroups(in))
	}
	if !ok {
		return nil, apiruntime.NewNotRegisteredErrForTarget(schemeName, reflect.TypeOf(in), target)
	}
	if gvk == kinds[0] {
		out := in.DeepCopyObject()
		out.GetObjectKind().SetGroupVersionKind(gvk)
		return out, nil
	}
	return s.ToVersion(in, gvk.GroupVersion())
}

// otherGroups returns what an object of a kind that is in several groups, or a list of such objects, is called in the others.
func (s *Scheme) otherGroups(obj Object) []schema.GroupVersionKind {
	k := s.KindOf(obj)
	if k == nil {
		return nil
	}
	var out []schema.GroupVersionKind
	for _, v := range s.Versions(k.GVK.GroupKind()) {
		switch {
		case v.GVK.Group == k.GVK.Group:
		case structType(obj) == k.ListType:
			out = append(out, v.ListGVK)
		default:
			out = append(out, v.GVK)
		}
	}
	return out
}

// Convert implements apimachinery's ObjectConvertor: it fills out, an empty object of another version of the kind
// that in is of, or of the same. context is not used.
func (s *Scheme) Convert(in, out, context any) error {
	src, ok := in.(Object)
	dst, ok2 := out.(Object)
	if !ok || !ok2 {
		return fmt.Errorf("converting (%T) to (%T): only objects can be converted", in, out)
	}
	from, to := s.KindOf(src), s.KindOf(dst)
	if from == nil || to == nil || !s.OneKind(from.GVK.GroupKind(), to.GVK.GroupKind()) {
		return fmt.Errorf("converting (%T) to (%T): unknown conversion", in, out)
	}
	result, err := s.ConvertToVersion(src, to.GVK.GroupVersion())
	if err != nil {
		return err
	}
	if structType(result) != structType(dst) {
		return fmt.Errorf("converting (%T) to (%T): unknown conversion", in, out)
	}
	reflect.ValueOf(dst).Elem().Set(reflect.ValueOf(result).Elem())
	return nil
}

// MayPass reports whether an error of a conversion is that of a server elsewhere, a webhook for one, so that the same conversion may
// succeed the next time: the error is, or wraps, a Status with the code 429 or of the server's fault (5xx).
func MayPass(err error) bool {
	var status apierrors.APIStatus
	if !errors.As(err, &status) {
		return false
	}
	code := status.Status().Code
	return code == http.StatusTooManyRequests || code >= http.StatusInternalServerError
}
