package controller

import (
	"crypto/sha256"
	"encoding/json"
	"errors"
	"fmt"

	"github.com/keelson-dev/keelson/server"
	"github.com/keelson-dev/keelson/server/crd/internal/definition"
	"go.uber.org/zap"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
)

// served describes what is served for a definition, and the parts of the definition that it was made from.
type served struct {
	resource schema.GroupResource
	uid      types.UID
	spec     specDigest
	names    apiextensionsv1.CustomResourceDefinitionNames
	closing  bool // whether discovery shows only the closingVerbs
}

// specDigest is the hash of a spec. Specs are not kept for comparison, because they take about ten times the memory of their
// JSON.
type specDigest [sha256.Size]byte

func digestOf(crd *apiextensionsv1.CustomResourceDefinition) specDigest {
	h := sha256.New()
	_ = json.NewEncoder(h).Encode(&crd.Spec) // a hash does not fail, and a decoded spec can be encoded
	return specDigest(h.Sum(nil))
}

// is reports whether this is what a definition defines now.
func (s *served) is(k *known) bool {
	return s != nil && s.uid == k.crd.UID && sameNames(s.names, k.crd.Status.AcceptedNames) && s.spec == k.spec
}

// change is the new state of what is served for one definition.
type change struct {
	of    *known
	next  *served
	group server.Group
}

// serve updates what the server serves for the definitions in work, if their status says that they are served. Unchanged APIs are
// not touched. The changed ones are replaced together, or one by one if that fails.
func (c *Controller) serve(work []*known) {
	var changes []change
	for _, k := range work {
		if !hasOwnPlural(k.crd) {
			continue
		}
		if !c.isToServe(k) {
			c.withdraw(k)
			continue
		}
		if definition.IsTrue(k.crd, apiextensionsv1.NonStructuralSchema) && !k.crd.Spec.PreserveUnknownFields {
			if k.served != nil {
				c.withdraw(k)
			}
			c.refuse(k, "its schema is not structural, and spec.preserveUnknownFields is not set")
			continue
		}
		if k.served.is(k) || c.waits(k) {
			continue
		}
		if why := c.isTaken(k.crd); why != "" {
			c.refuse(k, why)
			continue
		}
		crd, err := c.whole(k)
		if err != nil {
			k.failed = true
			c.log.Warn("a definition cannot be read yet", zap.String("name", k.crd.Name), zap.Error(err))
			continue
		}
		group, err := c.group(crd)
		if err != nil {
			c.refuse(k, err.Error())
			continue
		}
		changes = append(changes, change{of: k, group: group, next: &served{
			resource: schema.GroupResource{Group: k.crd.Spec.Group, Resource: k.crd.Status.AcceptedNames.Plural},
			uid:      k.crd.UID, spec: k.spec, names: k.crd.Status.AcceptedNames,
		}})
	}
	if err := c.replace(changes...); err != nil {
		for _, one := range changes {
			err := err
			if len(changes) > 1 {
				err = c.replace(one)
			}
			if err != nil {
				c.refuse(one.of, err.Error())
			}
		}
	}
	for _, k := range work {
		c.closeTerminating(k)
	}
}

// isToServe reports whether a definition must be served according to its status. After a conflict, a definition that was never
// established may lack some names.
func (c *Controller) isToServe(k *known) bool {
	names := k.crd.Status.AcceptedNames
	return definition.IsServed(k.crd) && names.Plural != "" && names.Singular != "" && names.Kind != "" && names.ListKind != ""
}

// hasOwnPlural reports whether the accepted plural, if there is one, is that in the name of the definition. Only a client can write
// another one to the status. It is corrected with the names (see name); until then what is served stays, because the other plural may
// be that of another definition.
func hasOwnPlural(crd *apiextensionsv1.CustomResourceDefinition) bool {
	plural := crd.Status.AcceptedNames.Plural
	return plural == "" || plural == crd.Spec.Names.Plural
}

// waits reports whether a definition has the same kind as a definition that is leaving. It is processed again when that one is
// withdrawn.
func (c *Controller) waits(k *known) bool {
	for other := range c.leaving {
		if other.served.resource.Group == k.crd.Spec.Group && other.served.names.Kind == k.crd.Status.AcceptedNames.Kind {
			return true
		}
	}
	return false
}

// isTaken returns a message if a name of a definition is used here by something else, and "" if not. For example, the program may
// now serve a kind that was defined before. The objects of that kind do not belong to the definition.
func (c *Controller) isTaken(crd *apiextensionsv1.CustomResourceDefinition) string {
	c.freshen()
	u, names := c.others[crd.Spec.Group], crd.Status.AcceptedNames
	switch {
	case u == nil:
	case u.resources[names.Plural]:
		return fmt.Sprintf("the resource %s is served otherwise", schema.GroupResource{Group: crd.Spec.Group, Resource: names.Plural})
	case u.kinds[names.Kind]:
		return fmt.Sprintf("the kind %s is served otherwise", schema.GroupKind{Group: crd.Spec.Group, Kind: names.Kind})
	}
	return ""
}

// group returns what a definition defines.
func (c *Controller) group(crd *apiextensionsv1.CustomResourceDefinition) (g server.Group, err error) {
	defer c.definitions.Panics.Caught(&err)
	return c.groups.Of(crd)
}

// replace serves all changes, or none of them if it returns an error.
func (c *Controller) replace(changes ...change) error {
	if len(changes) == 0 {
		return nil
	}
	var gone []schema.GroupResource
	var groups []server.Group
	for _, one := range changes {
		gone, groups = append(gone, one.next.resource), append(groups, one.group)
		c.cleanup.Gate.Guard(one.next.resource, definition.IsTerminating(one.of.crd))
	}
	if err := c.host.Replace(gone, groups...); err != nil {
		for _, one := range changes {
			if one.of.served == nil {
				c.cleanup.Gate.Forget(one.next.resource)
			}
		}
		return err
	}
	for _, one := range changes {
		one.of.served, one.of.refused = one.next, ""
	}
	return nil
}

// refuse logs once that a definition cannot be served in its current state. Its last valid state is still served. It is tried
// again when the definition or the names in others change.
func (c *Controller) refuse(k *known, why string) {
	if k.refused == why {
		return
	}
	k.refused = why
	c.log.Error("a definition cannot be served", zap.String("name", k.crd.Name), zap.String("reason", why))
}

// closingVerbs returns the verbs that discovery shows for objects whose definition is being deleted.
func closingVerbs() []string { return []string{"delete", "deletecollection", "get", "list", "watch"} }

// closeTerminating refuses creates of objects whose definition is being deleted, and updates the verbs in discovery.
func (c *Controller) closeTerminating(k *known) {
	if k.served == nil {
		return
	}
	closing := definition.IsTerminating(k.crd)
	c.cleanup.Gate.Guard(k.served.resource, closing)
	if closing == k.served.closing {
		return
	}
	var verbs []string
	if closing {
		verbs = closingVerbs()
	}
	if err := c.host.ShowVerbs(k.served.resource, verbs...); err != nil {
		c.log.Error("discovery cannot show that a definition is being deleted", zap.String("name", k.crd.Name), zap.Error(err))
		return
	}
	k.served.closing = closing
}

// withdraw stops serving what a definition defined.
func (c *Controller) withdraw(k *known) {
	k.refused = ""
	if k.served == nil {
		return
	}
	if err := c.host.Withdraw(k.served.resource); err != nil {
		c.log.Error("what a definition defined cannot be withdrawn", zap.String("resource", k.served.resource.String()), zap.Error(err))
	}
	c.cleanup.Gate.Withdraw(k.served.resource)
	c.groups.Forget(k.served.resource.String())
	k.served = nil
}

// whole returns a definition with its schemas. If the stored definition differs from k it returns an error: the watch will report
// the change.
func (c *Controller) whole(k *known) (*apiextensionsv1.CustomResourceDefinition, error) {
	if !k.slim {
		return k.crd, nil
	}
	crd, err := c.definitions.Get(c.life, k.crd.Name)
	if err != nil {
		return nil, err
	}
	if crd.UID != k.crd.UID || digestOf(crd) != k.spec {
		return nil, errors.New("the definition has changed meanwhile")
	}
	crd.Status = k.crd.Status
	return crd, nil
}
