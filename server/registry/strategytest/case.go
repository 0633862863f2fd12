package strategytest

import (
	"cmp"
	"errors"
	"fmt"
	"reflect"
	"slices"

	"github.com/keelson-dev/keelson/authn"
	"github.com/keelson-dev/keelson/runtime"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// Case is one row of a table: a stored object, one request, and the expected result. The objects of a case, except Others, must
// be of one stored kind, in any of its versions. The kind is that of the Go type or, for untyped objects, that of apiVersion and
// kind. Run and Check do not change the objects.
//
// # Objects
//
// Objects are sent and read as JSON, as clients do: a field that JSON leaves out does not exist. An object with neither a name
// nor a generateName gets the name of Old, or else "example". An object without a namespace gets the namespace of Old, or else
// "default", if the kind has namespaces.
//
// A request with the same resourceVersion as Old is for the stored state. A request with another resourceVersion is for an older
// state, and ends with a conflict. A request without a resourceVersion is for any state. If an update needs a resourceVersion
// (Strategy.RequireResourceVersion, and kinds without a Go type), set the same one in Old and Update, such as "1".
//
// A strategy or an admission plug-in that reads other objects, with runtime.Read, finds Others and Old.
//
// # Versions
//
// The request is made in the version of its Go type. Old and Want may each be of another version. So a case can store an object
// in v1, change it in v1beta1, and read it in v1. The warning about a deprecated version comes from package handlers, so it is
// not one of the Warnings.
//
// # Want
//
// Want is compared with the stored object after the request, or with the last state of a deleted object, field by field as in
// JSON. These fields are never compared, because a test cannot know them:
//
//	metadata.uid, resourceVersion, creationTimestamp, managedFields, selfLink
//
// These fields are compared only if Want has them:
//
//	metadata.name, generateName, namespace, generation, deletionGracePeriodSeconds
//	metadata.deletionTimestamp of an object that is Gone
//
// Want gets no defaults: it must have the defaults that are expected. Values that a strategy generates can be listed in Ignore.
// The clock always returns [Now], unless the Options have another one. A failure has a line for each difference:
//
//	the object differs:
//		metadata.labels[example.com/team]: got nothing, want "a"
//		spec.parts[1].size: got 3, want 4
//
// # Errors
//
// A request that is refused as invalid has an error for each field, in the format of kube-apiserver:
//
//	spec.size: Invalid value: 11: spec.size in body should be less than or equal to 10
//
// Any other refusal is one error, with its reason and its message:
//
//	Conflict: Operation cannot be fulfilled on widgets.example.com "example": the object has been modified; ...
//
// An expected text matches an error if it is equal to the error, or to the beginning of the error before a colon and a space.
// "spec.size", "spec.size: Invalid value" and "spec.size: Invalid value: 11" all match the first error. "spec" and "spec.size:
// Inv" do not. "Conflict" matches the second error. Each text must match one error, and each error must be matched by one text:
// two errors about one field need two texts. The order does not matter. Warnings are compared in the same way.
type Case struct {
	// Name is the name of the subtest; it is required.
	Name string

	// Old is the object that is stored before the request. It is stored as it is, with its status, finalizers and
	// deletionTimestamp, and without the kind's rules, as if an earlier release of the program had stored it. It gets defaults,
	// like every object that is read from a storage, and the metadata of every stored object: a uid, a creationTimestamp and
	// generation 1. If Old is nil, no object is stored.
	Old runtime.Object

	// Others are stored in addition, as they are, for strategies and admission that read other objects (see runtime.Read). They
	// may be of any stored kinds of the Groups. Two objects of one kind must have different names or namespaces.
	Others []runtime.Object

	// The request: exactly one of these five fields. A request is made in the version of its object; Scale and Delete are made in
	// the version of Old.

	// Create is the object of a POST. Old must be nil.
	Create runtime.Object
	// Update is the object of a PUT, which replaces Old. If Old is nil, the object does not exist.
	Update runtime.Object
	// Status is the object of a PUT to /status of Old.
	Status runtime.Object
	// Scale is the object of a PUT to /scale of Old.
	Scale *runtime.Scale
	// Delete has the options of a DELETE of Old.
	Delete *metav1.DeleteOptions

	// User is the user of the request, for strategies and admission; nil is admin, of system:masters.
	User *authn.User

	// The expected result. By default, the request must be accepted without a warning.

	// Want is the stored object after the request, or the last state of a deleted object, in any version of the kind. A
	// *runtime.Scale is compared with /scale after the request. If Want is nil, nothing is compared. The comment of Case says
	// which fields are compared.
	Want runtime.Object
	// Ignore has paths of JSON names, such as "spec.token" or "metadata.annotations[example.com/stamp]". The object may differ
	// from Want at and below these paths. If a path leads through a list without the index of an item, it applies to each item.
	Ignore []string
	// Gone says that nothing is stored after the request: the object was deleted, or lost its last finalizer. Otherwise an object
	// must be stored.
	Gone bool
	// Errors are the errors of a request that is refused. Each must occur, and no other. See Case for their format.
	Errors []string
	// Warnings are the texts of the Warning headers. Each must occur, and no other. They are compared as Errors are.
	Warnings []string
}

// mistake returns the error of an invalid case, as far as the kind is not needed to find it, or nil.
func (c *Case) mistake() error {
	requests := 0
	for _, there := range []bool{c.Create != nil, c.Update != nil, c.Status != nil, c.Scale != nil, c.Delete != nil} {
		if there {
			requests++
		}
	}
	for i, obj := range c.Others {
		if v := reflect.ValueOf(obj); !v.IsValid() || v.Kind() == reflect.Pointer && v.IsNil() {
			return fmt.Errorf("item %d of field Others is nil; leave it out, or give it an object", i)
		}
	}
	for field, obj := range map[string]runtime.Object{"Old": c.Old, "Create": c.Create, "Update": c.Update, "Status": c.Status, "Want": c.Want} {
		if v := reflect.ValueOf(obj); v.IsValid() && v.Kind() == reflect.Pointer && v.IsNil() {
			return fmt.Errorf("field %s is a nil %T; leave it out, or give it an object", field, obj)
		}
	}
	switch {
	case c.Name == "":
		return errors.New("it has no Name, which is what a failure is told by")
	case requests != 1:
		return fmt.Errorf("it makes %d requests; want one of Create, Update, Status, Scale and Delete", requests)
	case c.Create != nil && c.Old != nil:
		return errors.New("it has Create and Old; an object is created where there is none, so remove Old, or make it an Update")
	case c.Create == nil && c.Update == nil && c.Old == nil:
		return errors.New("it has no Old, which is the object that Status, Scale and Delete are about")
	case len(c.Errors) > 0 && (c.Want != nil || c.Gone):
		return errors.New("it has Errors, and Want or Gone too; a request that is refused changes nothing, so remove one")
	case c.Gone && (c.Create != nil || c.Scale != nil):
		return errors.New("it has Gone; nothing goes by being created or scaled")
	case c.Want == nil && c.Ignore != nil:
		return errors.New("it has Ignore, but no Want from which something could differ")
	}
	for field, texts := range map[string][]string{"Errors": c.Errors, "Warnings": c.Warnings, "Ignore": c.Ignore} {
		if slices.Contains(texts, "") {
			return fmt.Errorf("it has an empty text in %s, which says nothing", field)
		}
	}
	return c.sameObject()
}

// sameObject returns an error if the request is about another object than Old.
func (c *Case) sameObject() error {
	obj := c.body()
	if c.Old == nil || obj == nil {
		return nil
	}
	old, err := meta.Accessor(c.Old)
	if err != nil {
		return fmt.Errorf("field Old: %w", err)
	}
	m, err := meta.Accessor(obj)
	if err != nil {
		return fmt.Errorf("the object of the request: %w", err)
	}
	if a, b := cmp.Or(old.GetName(), defaultName), m.GetName(); b != "" && a != b {
		return fmt.Errorf("it has an Old of the name %q and a request for %q; they are one object", a, b)
	}
	if a, b := cmp.Or(old.GetNamespace(), defaultNamespace), m.GetNamespace(); b != "" && a != b {
		return fmt.Errorf("it has an Old in the namespace %q and a request in %q; they are one object", a, b)
	}
	return nil
}

// body returns the object of the request, or nil if it has none.
func (c *Case) body() runtime.Object {
	for _, obj := range []runtime.Object{c.Create, c.Update, c.Status} {
		if obj != nil {
			return obj
		}
	}
	if c.Scale != nil {
		return c.Scale
	}
	return nil
}

// version returns the object whose version the request is made in.
func (c *Case) version() runtime.Object {
	if obj := c.body(); obj != nil && c.Scale == nil {
		return obj
	}
	return c.Old
}

// The name and namespace of an object that does not have them.
const (
	defaultName      = "example"
	defaultNamespace = "default"
)
