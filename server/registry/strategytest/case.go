package strategytest

import (
	"cmp"
	"errors"
	"fmt"
	"reflect"
	"slices"

	"github.com/keelson-dev/keelson/authn"
	"github.com/keelson-dev/keelson/runtime"
	autoscalingv1 "k8s.io/api/autoscaling/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// Case is one row of a table: what is stored, one request, and what becomes of it. Objects but Others are of any version of one
// stored kind, known by their Go type, or by apiVersion and kind where they have none. They are not changed.
type Case struct {
	// Name is that of the subtest; it is required.
	Name string

	// Old is what is stored before the request: just as it is, with its status, finalizers and deletionTimestamp, and
	// whatever the kind's rules say of it now, as if an earlier release of the program had stored it. It gets defaults, as
	// all that is read from a storage does, and the metadata that every stored object has: a uid, a creationTimestamp,
	// generation 1. nil is nothing.
	Old runtime.Object

	// Others are stored besides, just as they are, for strategies and admission that read other objects (see runtime.Read): of
	// any stored kinds of the Groups. Two of one kind have different names or namespaces.
	Others []runtime.Object

	// The request: one of these five. A request is made in the version of its object; Scale and Delete are made in the
	// version of Old.

	// Create is POSTed. There is no Old.
	Create runtime.Object
	// Update is PUT in the place of Old; without Old, in the place of nothing.
	Update runtime.Object
	// Status is PUT to /status of Old.
	Status runtime.Object
	// Scale is PUT to /scale of Old.
	Scale *autoscalingv1.Scale
	// Delete DELETEs Old.
	Delete *metav1.DeleteOptions

	// User is who makes the request, for strategies and admission that look at that; nil is admin, of system:masters.
	User *authn.User

	// What becomes of it. A case that says nothing here wants the request to be accepted, without a warning.

	// Want is what is stored afterwards, or of what is gone, what it was last; in whatever version of the kind the case
	// wants to see it. An *autoscalingv1.Scale is what /scale shows afterwards. See the package documentation for what is
	// compared. nil is whatever it becomes.
	Want runtime.Object
	// Ignore are paths of JSON names, such as "spec.token" or "metadata.annotations[example.com/stamp]", at and below which
	// the object may differ from Want: for what no test can know. They go through the items of a list without a name of
	// its own.
	Ignore []string
	// Gone says that nothing is stored afterwards: the object was deleted, or lost the last finalizer that kept it.
	// Without it there is an object afterwards.
	Gone bool
	// Errors are those by which the request is refused; each has to come, and no other. See the package documentation for
	// how they are written.
	Errors []string
	// Warnings are the texts of the Warning headers; each has to come, and no other. They are compared as Errors are.
	Warnings []string
}

// mistake says what is wrong with the case itself, as far as that can be seen without its kind; nil: nothing.
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

// sameObject refuses a request that is about another object than Old.
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

// body is the object of the request; nil: it has none of the kind.
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

// version is the object whose version the request is made in.
func (c *Case) version() runtime.Object {
	if obj := c.body(); obj != nil && c.Scale == nil {
		return obj
	}
	return c.Old
}

// Where an object is that does not say so itself.
const (
	defaultName      = "example"
	defaultNamespace = "default"
)
