package strategytest

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"reflect"
	"time"

	"github.com/keelson-dev/keelson/authn"
	"github.com/keelson-dev/keelson/runtime"
	"github.com/keelson-dev/keelson/runtime/codec"
	"github.com/keelson-dev/keelson/server"
	"github.com/keelson-dev/keelson/server/registry"
	"github.com/keelson-dev/keelson/server/request"
	"github.com/keelson-dev/keelson/storage"
	"github.com/keelson-dev/keelson/storage/memory"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	metav1validation "k8s.io/apimachinery/pkg/apis/meta/v1/validation"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
)

// trial is one running case.
type trial struct {
	Case
	scheme *runtime.Scheme

	kinds   *server.Registries
	kind    *runtime.Kind // in the version of the request
	backend *memory.Backend
	stored  *server.StoredKind
	warned  *request.Warnings
	call    *registry.Call
	name    string // of the object; "" until an object with a generateName is created

	storedVersion string // the resourceVersion that Old was stored with
}

// begin stores Old and Others and prepares the request. It returns an error if the case is invalid.
func (t *trial) begin(ctx context.Context) error {
	var err error
	if t.kind, err = t.kindOf(t.version()); err != nil {
		return err
	}
	for field, obj := range map[string]runtime.Object{"Old": t.Old, "Want": t.Want} {
		if _, isScale := obj.(*runtime.Scale); obj == nil || field == "Want" && isScale {
			continue
		}
		if k, err := t.kindOf(obj); err != nil {
			return err
		} else if !t.scheme.OneKind(k.GVK.GroupKind(), t.kind.GVK.GroupKind()) {
			return fmt.Errorf("the request is about a %s, and %s is a %s; a case is about one object", t.kind.GVK, field, k.GVK)
		}
	}
	t.backend = memory.New(memory.Options{})
	if t.stored, err = t.kinds.Open(t.backend, t.kind.GVK); err != nil {
		return err
	}
	if _, scaleWanted := t.Want.(*runtime.Scale); (scaleWanted || t.Scale != nil) && t.stored.Scale == nil {
		return fmt.Errorf("the kind %s has no /scale: see KindOptions.Scale", t.kind.GVK)
	}
	if t.Status != nil && t.stored.Status == nil {
		return fmt.Errorf("the kind %s has no /status", t.kind.GVK)
	}
	return t.place(ctx)
}

// end releases what begin has opened.
func (t *trial) end() error {
	if t.backend == nil {
		return nil
	}
	return t.backend.Close()
}

// place determines the name and namespace of the object, makes the call of the request, and stores Others and Old.
func (t *trial) place(ctx context.Context) error {
	t.name = defaultName
	namespace := defaultNamespace
	for _, obj := range []runtime.Object{t.Old, t.body()} {
		if obj == nil {
			continue
		}
		m, err := meta.Accessor(obj)
		if err != nil {
			return err
		}
		if t.name = cmp.Or(m.GetName(), t.name); t.Create != nil && m.GetName() == "" && m.GetGenerateName() != "" {
			t.name = ""
		}
		namespace = cmp.Or(m.GetNamespace(), namespace)
	}
	if !t.stored.Registry.Namespaced() {
		namespace = ""
	}
	t.warned = &request.Warnings{}
	user := t.User
	if user == nil {
		user = &authn.User{Name: "admin", Groups: []string{"system:masters", authn.AuthenticatedAll}}
	}
	t.call = registry.NewCall(ctx, user, namespace)
	t.describe(t.call)
	t.call.OnWarning = t.warned.Add
	if err := t.storeOthers(); err != nil || t.Old == nil {
		return err
	}
	rec, err := t.store(t.Old, t.stored, t.name, namespace, 0)
	if err != nil {
		return fmt.Errorf("the object in Old cannot be stored: %w", err)
	}
	t.storedVersion = fmt.Sprint(rec.Revision)
	return nil
}

// storeOthers stores the Others.
func (t *trial) storeOthers() error {
	for i, obj := range t.Others {
		if err := t.storeOther(obj, i+1); err != nil {
			return fmt.Errorf("item %d of Others cannot be stored: %w", i, err)
		}
	}
	return nil
}

func (t *trial) storeOther(obj runtime.Object, number int) error {
	k, err := t.kindOf(obj)
	if err != nil {
		return err
	}
	stored := t.stored
	if k != t.kind {
		if stored, err = t.kinds.Open(t.backend, k.GVK); err != nil {
			return err
		}
	}
	m, err := meta.Accessor(obj)
	if err != nil {
		return err
	}
	namespace := ""
	if stored.Registry.Namespaced() {
		namespace = cmp.Or(m.GetNamespace(), defaultNamespace)
	}
	_, err = t.store(obj, stored, cmp.Or(m.GetName(), defaultName), namespace, number)
	return err
}

// describe sets the attributes of a call for the request of the case.
func (t *trial) describe(c *registry.Call) {
	gvk := t.kind.GVK
	c.Verb, c.APIGroup, c.APIVersion = "update", gvk.Group, gvk.Version
	c.Resource, c.Name = t.stored.Registry.Resource().Resource, t.name
	switch {
	case t.Create != nil:
		c.Verb, c.Name = "create", ""
	case t.Delete != nil:
		c.Verb = "delete"
	case t.Status != nil:
		c.Subresource = "status"
	case t.Scale != nil:
		c.Subresource = "scale"
	}
}

// store stores an object without the rules of its kind. number makes the uid of an object without one unique.
func (t *trial) store(obj runtime.Object, to *server.StoredKind, name, namespace string, number int) (storage.Record, error) {
	k, err := t.kindOf(obj)
	if err != nil {
		return storage.Record{}, err
	}
	if obj, err = t.received(obj, k); err != nil {
		return storage.Record{}, err
	}
	if obj, err = t.inHub(obj, k, to); err != nil {
		return storage.Record{}, err
	}
	m, err := meta.Accessor(obj)
	if err != nil {
		return storage.Record{}, err
	}
	m.SetName(name)
	m.SetNamespace(namespace)
	m.SetUID(cmp.Or(m.GetUID(), types.UID(fmt.Sprintf("7b1d3a5e-0c52-4f4e-9d5b-%012x", 0x6e2f80a1c437+number))))
	m.SetGeneration(cmp.Or(m.GetGeneration(), 1))
	if created := m.GetCreationTimestamp(); created.IsZero() {
		m.SetCreationTimestamp(metav1.NewTime(Now()))
	}
	key := name
	if namespace != "" {
		key = namespace + "/" + name
	}
	return to.Objects.Create(t.call, key, obj, storage.WriteOptions{})
}

// kindOf returns the kind of an object. It must be a kind of the Groups.
func (t *trial) kindOf(obj runtime.Object) (*runtime.Kind, error) {
	k := t.scheme.KindOf(obj)
	if k == nil { // an object without a Go type of its own
		k = t.scheme.Lookup(obj.GetObjectKind().GroupVersionKind())
	}
	if k == nil || reflect.TypeOf(obj) != reflect.PointerTo(k.Type) {
		return nil, fmt.Errorf("the type %T, apiVersion and kind %q, is no kind of the Groups", obj, obj.GetObjectKind().GroupVersionKind())
	}
	return k, nil
}

// received returns an object of a request as a server decodes it: from JSON, and with the defaults of its version.
func (t *trial) received(obj runtime.Object, k *runtime.Kind) (runtime.Object, error) {
	text, err := encoded(obj, k.GVK)
	if err != nil {
		return nil, err
	}
	read, err := codec.Decode(t.scheme, codec.JSON(), text, k.GVK, codec.Strict)
	if err == nil && len(read.Problems) > 0 {
		err = codec.StrictError(read.Problems)
	}
	return read.Object, err
}

// encoded returns an object as JSON, with its kind.
func encoded(obj runtime.Object, gvk schema.GroupVersionKind) ([]byte, error) {
	obj = obj.DeepCopyObject()
	obj.GetObjectKind().SetGroupVersionKind(gvk)
	return codec.Encode(obj)
}

// inHub converts an object of kind k to the hub, which registries use, and checks that it can be converted back to k.
func (t *trial) inHub(obj runtime.Object, k *runtime.Kind, of *server.StoredKind) (runtime.Object, error) {
	hub, err := t.scheme.ToVersion(obj, of.Registry.Kind().GroupVersion())
	if err != nil {
		return nil, err
	}
	_, err = t.scheme.ToVersion(hub, k.GVK.GroupVersion())
	return hub, err
}

// answer is the result of a request.
type answer struct {
	err  error
	last storage.Record // the object of the answer; zero for a Scale
}

// ask makes the request.
func (t *trial) ask() answer {
	switch {
	case t.Delete != nil:
		return t.delete()
	case t.Scale != nil:
		return t.scale()
	}
	obj, err := t.received(t.body(), t.kind)
	if err == nil {
		obj, err = t.inHub(obj, t.kind, t.stored)
	}
	if err != nil { // the error of package handlers
		return answer{err: apierrors.NewBadRequest(fmt.Sprintf("%s in version %q cannot be handled as a %s: %v", t.kind.GVK.Kind, t.kind.GVK.Version, t.kind.GVK.Kind, err))}
	}
	m, err := meta.Accessor(obj)
	if err != nil {
		return answer{err: err}
	}
	m.SetName(t.name)
	m.SetNamespace(t.call.Namespace)
	m.SetResourceVersion(t.meant(m.GetResourceVersion()))
	if t.Create != nil {
		rec, err := t.stored.Registry.CreateRecord(t.call, obj, &metav1.CreateOptions{})
		return answer{err, rec}
	}
	var to registry.RecordUpdater = t.stored.Registry
	if t.Status != nil {
		to = t.stored.Status
	}
	put := func(*registry.Call, runtime.Object) (runtime.Object, error) { return obj.DeepCopyObject(), nil }
	rec, _, err := to.UpdateRecord(t.call, t.name, put, &metav1.UpdateOptions{})
	return answer{err, rec}
}

func (t *trial) delete() answer {
	opts := t.Delete.DeepCopy()
	if errs := metav1validation.ValidateDeleteOptions(opts); len(errs) > 0 {
		return answer{err: apierrors.NewInvalid(schema.GroupKind{Group: metav1.GroupName, Kind: "DeleteOptions"}, "", errs)}
	}
	if p := opts.Preconditions; p != nil && p.ResourceVersion != nil {
		*p.ResourceVersion = t.meant(*p.ResourceVersion)
	}
	rec, _, err := t.stored.Registry.DeleteRecord(t.call, t.name, opts)
	return answer{err, rec}
}

func (t *trial) scale() answer {
	put := func(*registry.Call, runtime.Object) (runtime.Object, error) {
		s := runtime.DeepCopy(t.Scale)
		s.Name, s.Namespace = t.name, t.call.Namespace
		s.ResourceVersion = t.meant(s.ResourceVersion)
		return s, nil
	}
	_, _, err := t.stored.Scale.Update(t.call, t.name, put, &metav1.UpdateOptions{})
	return answer{err: err}
}

// meant returns the stored resourceVersion for that of Old. For any other resourceVersion of a case, it returns one that is not
// the stored one.
func (t *trial) meant(version string) string {
	if version == "" || t.Old == nil {
		return version
	}
	m, err := meta.Accessor(t.Old)
	switch {
	case err == nil && version == m.GetResourceVersion():
		return t.storedVersion
	case version == t.storedVersion:
		return "1" // a revision before Old was stored
	}
	return version
}

// errGone says that no object is stored.
var errGone = errors.New("nothing is stored")

// now returns the stored object, in the hub version.
func (t *trial) now(last storage.Record) (runtime.Object, error) {
	name := t.name
	if name == "" {
		name = last.Body.Field("metadata.name")
	}
	rec, err := t.stored.Registry.GetRecord(t.call, name, storage.Read{})
	if apierrors.IsNotFound(err) {
		return nil, errGone
	}
	if err != nil {
		return nil, err
	}
	return t.stored.Registry.Decode(rec)
}

// Now returns the time of all requests of a table, unless the Options have a clock: midnight of 1 January 2026, UTC. Creation and
// deletion timestamps have that time.
func Now() time.Time { return time.Date(2026, time.January, 1, 0, 0, 0, 0, time.UTC) }
