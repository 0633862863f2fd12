package controller

import (
	"fmt"
	"math/rand/v2"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/keelson-dev/keelson/server/crd/internal/definition"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// newNames returns a controller with only the fields for definitions.
func newNames() *Controller {
	return &Controller{known: map[string]*known{}, leaving: map[*known]bool{}, namesakes: map[string]*namesakes{}, others: map[string]*used{}}
}

// someNames returns names from a small set, so that many definitions want the same.
func someNames(r *rand.Rand, n int) apiextensionsv1.CustomResourceDefinitionNames {
	one := func(prefix string) string { return fmt.Sprint(prefix, r.IntN(n)) }
	names := apiextensionsv1.CustomResourceDefinitionNames{Plural: one("name"), Singular: one("name"), Kind: one("Kind"), ListKind: one("Kind")}
	for range r.IntN(3) {
		names.ShortNames = append(names.ShortNames, one("name"))
	}
	return names
}

// takenOfAll computes the result of taken from all definitions instead of the index.
func takenOfAll(c *Controller, k *known) *definition.Taken {
	taken := &definition.Taken{}
	if u := c.others[k.crd.Spec.Group]; u != nil {
		for name := range u.names {
			taken.AddResource(true, name)
		}
		for name := range u.kindNames {
			taken.AddKind(true, name)
		}
	}
	for _, other := range c.known {
		if other != k && other.crd != nil && other.crd.Spec.Group == k.crd.Spec.Group {
			first := definition.IsTrue(other.crd, apiextensionsv1.Established) || rank(other) < rank(k)
			taken.Add(other.crd.Status.AcceptedNames, first)
		}
	}
	return taken
}

// TestNamesakes adds, changes, accepts, establishes and removes definitions at random. taken must return what takenOfAll returns,
// and nothing may be left of removed definitions.
func TestNamesakes(t *testing.T) {
	t.Parallel()
	for seed := range uint64(20) {
		r := rand.New(rand.NewPCG(seed, 1))
		c := newNames()
		c.others["g1"] = &used{names: map[string]bool{"name1": true}, kindNames: map[string]bool{"Kind2": true}}
		revision := int64(0)
		for step := range 400 {
			name := fmt.Sprint("d", r.IntN(12))
			revision++
			crd := &apiextensionsv1.CustomResourceDefinition{}
			if k := c.known[name]; k != nil {
				crd = k.crd.DeepCopy()
			} else {
				crd.Name, crd.Spec.Group, crd.Spec.Names = name, fmt.Sprint("g", r.IntN(2)), someNames(r, 6)
			}
			switch k := c.known[name]; {
			case k != nil && r.IntN(5) == 0:
				c.exit(k)
				delete(c.known, name)
				continue
			case k != nil && r.IntN(3) == 0:
				crd.Spec.Names = someNames(r, 6)
			case k != nil && r.IntN(4) == 0: // as another server that did not have the others would do
				definition.AcceptNames(crd, &definition.Taken{}, metav1.Now())
			case k != nil:
				now := metav1.Now()
				few, all := crd.DeepCopy(), crd.DeepCopy()
				few2 := definition.AcceptNames(few, c.taken(k), now)
				all2 := definition.AcceptNames(all, takenOfAll(c, k), now)
				if diff := cmp.Diff(all, few); diff != "" || few2 != all2 {
					t.Fatalf("seed %d, step %d: by all definitions (-), by those of the names (+):\n%s", seed, step, diff)
				}
				crd = few
				if definition.IsTrue(crd, apiextensionsv1.NamesAccepted) && r.IntN(2) == 0 {
					definition.SetEstablished(crd, now)
				}
			}
			c.update(crd, revision)
		}
		for _, k := range c.known {
			c.exit(k)
		}
		if len(c.namesakes) != 0 {
			t.Fatalf("seed %d: all definitions are gone, and of %d groups something is left", seed, len(c.namesakes))
		}
	}
}

// TestOneOfAThousand checks that a new or removed definition makes only those dirty that want its names or that wait, and no
// others of its group.
func TestOneOfAThousand(t *testing.T) {
	t.Parallel()
	c := newNames()
	accept := func(i int, plural string) {
		d := &apiextensionsv1.CustomResourceDefinition{}
		d.Name, d.Spec.Group = fmt.Sprintf("names%d.example.com", i), "example.com"
		d.Spec.Names = apiextensionsv1.CustomResourceDefinitionNames{Plural: plural, Singular: plural + "s", Kind: plural + "K", ListKind: plural + "L"}
		c.update(d, int64(2*i+1))
		k, now := c.known[d.Name], metav1.Now()
		d = d.DeepCopy()
		definition.AcceptNames(d, c.taken(k), now)
		c.update(d, int64(2*i+2))
	}
	for i := range 1000 {
		accept(i, fmt.Sprint("name", i))
	}
	dirty := func() (names []string) {
		for name, k := range c.known {
			if k.dirty {
				names = append(names, name)
			}
			k.dirty = false
		}
		return names
	}
	dirty()
	accept(1000, "name1000")
	if names := dirty(); len(names) != 1 {
		t.Errorf("one that has its own names concerns %v", names)
	}
	accept(1001, "name7") // which must wait
	if names := dirty(); len(names) != 1 {
		t.Errorf("one that does not get its names concerns %v", names)
	}
	c.known["names5.example.com"].refused = "something"
	accept(1002, "name1002")
	if names := dirty(); len(names) != 3 { // itself, the waiting one, and the one that is not served
		t.Errorf("while others wait, one that has its own names concerns %v", names)
	}
	gone := c.known["names7.example.com"]
	c.exit(gone)
	c.lookFor("example.com", gone.crd.Status.AcceptedNames)
	if !c.known["names1001.example.com"].dirty || c.known["names8.example.com"].dirty {
		t.Error("when names become free, who waits for them is not looked at, or who does not is")
	}
}
