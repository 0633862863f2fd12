package roundtrip

import (
	"errors"
	"fmt"
	"reflect"
	"slices"
	"strings"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
	"github.com/keelson-dev/keelson/runtime"
	"github.com/keelson-dev/keelson/runtime/codec"
	"github.com/keelson-dev/keelson/runtime/internal/jsonfield"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

// checker checks objects. It may be used concurrently.
type checker struct {
	scheme *runtime.Scheme
	opts   Options
	kinds  []*runtime.Kind
	rules  rules // of the types of kinds
}

// problem describes the failed check of an object.
type problem struct {
	gvk  schema.GroupVersionKind
	what string // the same text for the same problem in another object
	how  string // a difference, or an error
}

func (p *problem) Error() string {
	return fmt.Sprintf("%s %s: %s\n%s", p.gvk.GroupVersion(), p.gvk.Kind, p.what, p.how)
}

// check returns the first problem of an object of the kind k, or nil. obj is not changed.
func (c *checker) check(k *runtime.Kind, obj runtime.Object) (p *problem) {
	step := "checking it"
	defer func() {
		if r := recover(); r != nil {
			p = &problem{k.GVK, step + " panics", fmt.Sprint(r)}
		}
	}()
	gvk := k.GVK
	step = "JSON"
	d, err := codec.EncodeDocument(obj, gvk)
	if err != nil {
		return &problem{gvk, "it cannot be encoded as JSON", err.Error()}
	}
	made := k.New() // shares nothing with obj
	if _, err = codec.Unmarshal(d.Bytes(), made, codec.Ignore); err != nil {
		return &problem{gvk, "its JSON cannot be decoded", fmt.Sprintf("%v\n%s", err, d.Bytes())}
	}
	made.GetObjectKind().SetGroupVersionKind(obj.GetObjectKind().GroupVersionKind())
	metadata(made).SetResourceVersion(metadata(obj).GetResourceVersion()) // documents have no resourceVersion
	if d := c.diff(gvk, schema.GroupVersionKind{}, obj, made); d != "" {
		return &problem{gvk, "decoded from its JSON it is another object (-object +decoded)", d}
	}

	step = "DeepCopyObject"
	copied := made.DeepCopyObject()
	if d := c.diff(gvk, schema.GroupVersionKind{}, made, copied); d != "" {
		return &problem{gvk, "its DeepCopyObject is another object (-object +copy)", d}
	}
	scribble(reflect.ValueOf(copied))
	if d := c.diff(gvk, schema.GroupVersionKind{}, obj, made); d != "" {
		return &problem{gvk, "its DeepCopyObject shares memory with it (-object +object after the copy was changed)", d}
	}
	obj = made
	obj.GetObjectKind().SetGroupVersionKind(gvk)

	step = "setting defaults"
	k.SetDefaults(obj)
	again := obj.DeepCopyObject()
	k.SetDefaults(again)
	if d := c.diff(gvk, schema.GroupVersionKind{}, obj, again); d != "" {
		return &problem{gvk, "defaults set a second time change it (-once +twice)", d}
	}

	hub, _ := c.scheme.Hub(gvk.GroupKind())
	if gvk != hub {
		step = "conversion to the hub and back"
		return c.bothWays(k, c.scheme.Lookup(hub), obj)
	}
	for _, v := range c.scheme.Versions(gvk.GroupKind()) {
		if v.GVK == hub {
			continue
		}
		step = "conversion to " + version(v.GVK, gvk) + " and back"
		if p := c.bothWays(k, v, obj); p != nil {
			return p
		}
	}
	return nil
}

// bothWays checks the conversion to another version and back, of obj and of parts of it.
func (c *checker) bothWays(k, through *runtime.Kind, obj runtime.Object) *problem {
	if p := c.trip(k, through, obj); p != nil {
		return p
	}
	return c.partial(k, through, obj)
}

func metadata(obj runtime.Object) metav1.Object {
	return obj.(metav1.ObjectMetaAccessor).GetObjectMeta() // every registered kind has metadata
}

// trip converts obj of the kind k to another version and back. One of the two versions is the hub.
func (c *checker) trip(k, through *runtime.Kind, obj runtime.Object) *problem {
	name, other := version(k.GVK, through.GVK), version(through.GVK, k.GVK)
	way := fmt.Sprintf("%s -> %s", name, other)
	there, p := c.convert(k, through, obj, way)
	if p != nil {
		return p
	}
	through.SetDefaults(there)
	if p := c.sameFields(k, through, obj, there, way); p != nil {
		return p
	}
	way += " -> " + name
	back, p := c.convert(through, k, there, way)
	if p != nil {
		p.gvk = k.GVK
		return p
	}
	if d := c.diff(k.GVK, through.GVK, obj, back); d != "" {
		return &problem{k.GVK, way + " makes another object of it (-before +after)", d}
	}
	return nil
}

// convert converts obj twice, and checks that the conversion changes neither its input nor its earlier results.
func (c *checker) convert(from, to *runtime.Kind, obj runtime.Object, way string) (runtime.Object, *problem) {
	gv := to.GVK.GroupVersion()
	was := obj.DeepCopyObject()
	one, err := c.scheme.ToVersion(obj, gv)
	if err != nil {
		return nil, &problem{from.GVK, way + " fails; if there are no such objects, say in Options.Fill how they are made", err.Error()}
	}
	two, err := c.scheme.ToVersion(obj, gv)
	if err != nil {
		return nil, &problem{from.GVK, way + " fails the second time", err.Error()}
	}
	if d := cmp.Diff(one, two, exact()...); d != "" {
		return nil, &problem{from.GVK, way + " makes another object each time (-first +second)", d}
	}
	kept := one.DeepCopyObject()
	scribble(reflect.ValueOf(two))
	if d := cmp.Diff(kept, one, exact()...); d != "" {
		return nil, &problem{from.GVK, way + ": two results share memory (-first +first after the second was changed)", d}
	}
	if d := cmp.Diff(was, obj, exact()...); d != "" {
		return nil, &problem{from.GVK, way + " changes what it is given, or shares memory with it (-before +after)", d}
	}
	return one, nil
}

// sameFields compares the values of selectable fields of an object in two versions.
func (c *checker) sameFields(k, through *runtime.Kind, obj, there runtime.Object, way string) *problem {
	spoke, hub, ofSpoke, ofHub := k, through, obj, there
	if gvk, _ := c.scheme.Hub(k.GVK.GroupKind()); gvk == k.GVK {
		spoke, hub, ofSpoke, ofHub = through, k, there, obj
	}
	a, err := codec.EncodeDocument(ofSpoke, spoke.GVK)
	if err != nil {
		return &problem{k.GVK, way + " makes what cannot be encoded as JSON", err.Error()}
	}
	b, err := codec.EncodeDocument(ofHub, hub.GVK)
	if err != nil {
		return &problem{k.GVK, way + " makes what cannot be encoded as JSON", err.Error()}
	}
	paths := c.scheme.FieldPaths(k.GVK.GroupKind())[spoke.GVK.GroupVersion().String()]
	for _, field := range hub.Fields {
		path, other := paths[field]
		if !other {
			path = field
		}
		if path == "" || c.tolerated(hub.GVK, spoke.GVK, field) || c.tolerated(spoke.GVK, hub.GVK, path) {
			continue
		}
		if got, want := a.Field(path), b.Field(field); got != want {
			return &problem{k.GVK, fmt.Sprintf("%s: the selectable field %s of %s and %s of %s have different values", way, path, version(spoke.GVK, hub.GVK), field, version(hub.GVK, spoke.GVK)), fmt.Sprintf("%q and %q", got, want)}
		}
	}
	return nil
}

// exact returns options that compare all parts of objects.
func exact() []cmp.Option {
	return []cmp.Option{cmpopts.EquateEmpty(), cmp.Exporter(func(reflect.Type) bool { return true })}
}

// diff returns the difference of two objects of a kind, without tolerated differences. One of the objects may have been converted
// to another version and back.
func (c *checker) diff(gvk, through schema.GroupVersionKind, a, b runtime.Object) string {
	return cmp.Diff(a, b, append(exact(), cmp.FilterPath(func(p cmp.Path) bool {
		return len(c.opts.Tolerate) > 0 && c.tolerated(gvk, through, jsonPath(p))
	}, cmp.Ignore()))...)
}

func (c *checker) tolerated(gvk, through schema.GroupVersionKind, path string) bool {
	for _, t := range c.opts.Tolerate {
		if t.Kind == gvk && (t.Through == "" || isThrough(through, t.Through)) && (path == t.Path || strings.HasPrefix(path, t.Path+".")) {
			return true
		}
	}
	return false
}

// jsonPath returns a path as a dotted path of JSON names.
func jsonPath(p cmp.Path) string {
	var names []string
	for i, step := range p {
		switch s := step.(type) {
		case cmp.StructField:
			t := p.Index(i - 1).Type()
			if name := jsonName(t.Field(s.Index())); name != "" {
				names = append(names, name)
			}
		case cmp.MapIndex:
			names = append(names, fmt.Sprint(s.Key()))
		}
	}
	return strings.Join(names, ".")
}

// jsonName returns the JSON name of a field, or "" if the fields of an embedded struct stand in its place.
func jsonName(f reflect.StructField) string {
	name, _, _ := strings.Cut(f.Tag.Get("json"), ",")
	if name == "" && !f.Anonymous {
		return f.Name
	}
	return name
}

// hasPath reports whether a type may have a field at a path of JSON names.
func hasPath(t reflect.Type, path []string) bool {
	for t.Kind() == reflect.Pointer || t.Kind() == reflect.Slice || t.Kind() == reflect.Array {
		t = t.Elem()
	}
	switch {
	case len(path) == 0:
		return true
	case t.Kind() == reflect.Map:
		return hasPath(t.Elem(), path[1:])
	case t.Kind() != reflect.Struct:
		return t.Kind() == reflect.Interface
	}
	return slices.ContainsFunc(jsonfield.Of(t, nil), func(f jsonfield.Field) bool {
		return f.Name == path[0] && hasPath(f.Go.Type, path[1:])
	})
}

// newChecker returns a checker, or an error if the options are not valid.
func newChecker(s *runtime.Scheme, o Options) (*checker, error) {
	if s == nil {
		return nil, errors.New("a scheme is required")
	}
	c := &checker{scheme: s, opts: o, rules: rules{}}
	groups := o.Kinds
	if groups == nil {
		groups = s.GroupKinds()
	}
	for _, gk := range groups {
		versions := s.Versions(gk)
		if len(versions) == 0 {
			return nil, fmt.Errorf("the kind %s is not in the scheme", gk)
		}
		if versions[0].Untyped() { // then all versions are untyped
			if o.Kinds != nil {
				return nil, fmt.Errorf("the kind %s has no Go type, and such kinds are not checked; leave it out", gk)
			}
			continue
		}
		for _, k := range versions {
			if slices.Contains(c.kinds, k) { // added before, for another group with the same hub
				continue
			}
			if !s.Converts(k.GVK) {
				return nil, fmt.Errorf("nothing converts %s to its hub and back; add a conversion", k.GVK)
			}
			c.kinds = append(c.kinds, k)
			if k.Constraints != nil {
				c.rules.add(k.Type)
			}
		}
	}
	if len(c.kinds) == 0 {
		return nil, errors.New("the scheme has no kinds with a Go type")
	}
	for i, fill := range o.Fill {
		if t := reflect.TypeOf(fill); !isFill(t) {
			return nil, fmt.Errorf("option Fill[%d] is a %v; it must be a func(*T, randfill.Continue)", i, t)
		}
	}
	for _, tolerance := range o.Tolerate {
		k := s.Lookup(tolerance.Kind)
		switch {
		case k == nil:
			return nil, fmt.Errorf("tolerance of %q: the kind %s is not in the scheme", tolerance.Path, tolerance.Kind)
		case tolerance.Reason == "":
			return nil, fmt.Errorf("tolerance of %q in %s: say in Reason why it may differ", tolerance.Path, tolerance.Kind)
		case !hasPath(k.Type, strings.Split(tolerance.Path, ".")):
			return nil, fmt.Errorf("tolerance of %q in %s: %v has no such field; write the dotted path of JSON names, such as \"spec.color\"", tolerance.Path, tolerance.Kind, k.Type)
		case tolerance.Through != "" && !slices.ContainsFunc(s.Versions(k.GVK.GroupKind()), func(v *runtime.Kind) bool { return isThrough(v.GVK, tolerance.Through) }):
			return nil, fmt.Errorf("tolerance of %q in %s: the kind has no version %q", tolerance.Path, tolerance.Kind, tolerance.Through)
		}
	}
	return c, nil
}
