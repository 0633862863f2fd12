package runtime

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"reflect"
	"regexp"
	"strings"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	apiruntime "k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

// AddConversion joins a version of a kind, the spoke, to its hub. S and H must be the Go types of registered kinds with one name,
// and H must be the type of the hub. If the two are the wrong way round, or H is not the type of the hub, the error names both types
// and the hub.
//
// toHub converts in to out, and fromHub does the reverse. The Scheme copies the metadata before the call, and sets kind and
// apiVersion after it. A server-side apply also converts incomplete objects, which have only the fields of one field manager, so
// an empty field must not be an error. Each function gets a copy as its input, and out may keep parts of it. An error makes this
// one conversion fail, and a panic is turned into such an error.
//
// A spoke may lack fields of the hub. These are lost when a client writes in that version, unless the conversion keeps them in an
// annotation: see package conversion.
//
// A kind may be in two groups under one name, as Event is in the core group and in events.k8s.io. If S and H are of two groups,
// the whole kind in the group of S gets its hub in the group of H, and each of its versions needs a conversion to that hub. The
// first of these calls must come before any other conversion of the kind in the group of S, and none of its versions there may be
// registered with [KindOptions].Hub.
func AddConversion[SP Pointer[S], HP Pointer[H], S, H any](s *Scheme, toHub func(in SP, out HP) error, fromHub func(in HP, out SP) error) error {
	spoke, hub := s.KindOf(SP(new(S))), s.KindOf(HP(new(H)))
	between := func(cause string, a ...any) error {
		return fmt.Errorf("conversion between %s and %s: %w", typeInError(reflect.TypeFor[S](), spoke), typeInError(reflect.TypeFor[H](), hub), fmt.Errorf(cause, a...))
	}
	switch {
	case isUntyped(SP(new(S))) || isUntyped(HP(new(H))):
		return between("the versions of a kind without a Go type need none, or one function for all of them: KindOptions.Convert")
	case toHub == nil || fromHub == nil:
		return between("a function is nil; both directions are needed")
	case spoke == nil:
		return between("register both types first: %s is not registered", typeName(reflect.TypeFor[S]()))
	case hub == nil:
		return between("register both types first: %s is not registered", typeName(reflect.TypeFor[H]()))
	case spoke.GVK.Kind != hub.GVK.Kind:
		return between("they are not versions of one kind, which has one name in all")
	case spoke == hub:
		return between("a version needs none to itself; the first function converts another version to the hub")
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	switch h := s.hubs[hub.GVK.GroupKind()]; {
	case h == hub.GVK:
	case h == spoke.GVK:
		return between("the two functions are the wrong way round: the hub is %s; the first function must convert %s to %s, and the second the reverse",
			h, typeName(hub.Type), typeName(spoke.Type))
	default:
		return between("the hub is %s; convert to it, whose Go type is %s, or set Hub when registering", h, typeName(s.byGVK[h].Type))
	}
	if s.toHub[spoke.GVK] != nil {
		return between("there is one already")
	}
	err := s.checkJoin(spoke, hub)
	if err == nil {
		err = checkRenamed(spoke, hub)
	}
	if err != nil {
		return between("%w", err)
	}
	s.hubs[spoke.GVK.GroupKind()] = hub.GVK
	s.toHub[spoke.GVK] = func(in, out Object) error { return toHub(in.(SP), out.(HP)) }
	s.fromHub[spoke.GVK] = func(in, out Object) error { return fromHub(in.(HP), out.(SP)) }
	return nil
}

// typeInError returns the text for a Go type and its kind in an error. k is nil if the type is not registered.
func typeInError(t reflect.Type, k *Kind) string {
	if k == nil || k.untyped {
		return typeName(t)
	}
	return fmt.Sprintf("%s (%s)", k.GVK, typeName(t))
}

// typeName returns the name of a Go type for errors. Structs without a name, such as type arguments of a [Resource], are shown as
// struct{...}, and import paths as the last of their elements.
func typeName(t reflect.Type) string {
	name := regexp.MustCompile(`[^\[\],*]*/`).ReplaceAllString(t.String(), "")
	inner := regexp.MustCompile(`struct \{[^{}]+\}`) // a struct that contains no other
	for inner.MatchString(name) {
		name = inner.ReplaceAllString(name, "struct(...)")
	}
	return strings.NewReplacer("struct(...)", "struct{...}", "struct {}", "struct{}").Replace(name)
}

// checkJoin returns an error if the spoke would be joined to a hub of another group, and its own group has a hub already that was
// registered as one or has conversions. The caller holds mu.
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

// OneKind reports whether two groups and kinds name one kind: they are equal, or share a hub to which objects of both can be
// converted. It returns false for kinds that are not registered.
func (s *Scheme) OneKind(a, b schema.GroupKind) bool {
	s.mu.RLock()
	defer s.mu.RUnlock()
	hub, ok := s.hubs[a]
	other, ok2 := s.hubs[b]
	return ok && ok2 && hub == other
}

// Converts reports whether objects of the kind gvk can be converted to the hub and back: gvk is the hub, or it has a conversion.
// A conversion of a single object may still fail.
func (s *Scheme) Converts(gvk schema.GroupVersionKind) bool {
	s.mu.RLock()
	defer s.mu.RUnlock()
	k := s.byGVK[gvk]
	return k != nil && (k.untyped || s.hubs[gvk.GroupKind()] == gvk || s.toHub[gvk] != nil)
}

// ToVersion returns obj, an object or a list of a registered kind, in version gv, converted through the hub. gv may be of another
// group only if the kind is in both groups. If obj is already in that version, or is of a type without versions (Status),
// ToVersion returns obj itself, not a copy. Any other result shares nothing with obj that may be changed, and has kind and
// apiVersion set. The items of a list have neither, unless the kind has no Go type. If a conversion fails, the error is a
// *ConversionError.
func (s *Scheme) ToVersion(obj Object, gv schema.GroupVersion) (Object, error) {
	return s.ToVersionContext(context.Background(), obj, gv)
}

// ToVersionContext is ToVersion with a context, which is passed to [KindOptions].ConvertAll.
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

// ToVersions is ToVersion for many objects of one kind, none of which is a list. It returns as many objects, in the same order,
// or the error of one of them. If [KindOptions].ConvertAll is set, one call of it, with ctx, converts all objects that are not in
// version gv.
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

// convertsAll returns obj and its kind if many objects of that kind are converted at once; otherwise it returns nil.
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

// ConversionError is returned if one object could not be converted.
type ConversionError struct {
	Kind     schema.GroupKind    // the kind of the object
	From, To schema.GroupVersion // the versions; one of them is the hub
	// Err is the error of the conversion function, or says that the function panicked or that no function is registered. If Err
	// is a Status, its message is written for clients, and Error returns it without a prefix.
	Err error
}

// Error implements error.
func (e *ConversionError) Error() string {
	var status apierrors.APIStatus
	if errors.As(e.Err, &status) {
		return e.Err.Error()
	}
	return fmt.Sprintf("converting %s from %s to %s: %v", e.Kind, e.From, e.To, e.Err)
}

// Unwrap returns Err.
func (e *ConversionError) Unwrap() error { return e.Err }

// convertObject converts from or to the hub. Its errors are ConversionErrors.
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

// ConvertToVersion implements apimachinery's ObjectConvertor. It is like ToVersion, but the result is always a copy with kind and
// apiVersion set.
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

// otherGroups returns the kinds that obj has in the other groups of its kind; obj may be an object or a list.
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

// Convert implements apimachinery's ObjectConvertor. It converts in to the version of out, and stores the result in out. out must
// be an empty object of the same kind, in any version. context is not used.
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

// MayPass reports whether err is the error of a conversion that failed because of another server, such as a webhook, and that may
// succeed the next time. Such an error is, or wraps, a Status with the code 429 or 5xx.
func MayPass(err error) bool {
	var status apierrors.APIStatus
	if !errors.As(err, &status) {
		return false
	}
	code := status.Status().Code
	return code == http.StatusTooManyRequests || code >= http.StatusInternalServerError
}
