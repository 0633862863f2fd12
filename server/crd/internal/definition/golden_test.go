package definition_test

import (
	"compress/gzip"
	"encoding/json"
	"errors"
	"io"
	"os"
	"reflect"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/keelson-dev/keelson/runtime/cel/rules"
	"github.com/keelson-dev/keelson/server/crd/internal/definition"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/validation/field"
)

type crd = apiextensionsv1.CustomResourceDefinition

// golden is a definition as a client sends it, the stored one that it replaces if there is any, and the result of the code of
// kube-apiserver 1.37. testdata/corpus.jsonl.gz has more than a thousand of them, one per line, and testdata/rules.jsonl.gz as
// many with rules. A program made them: it generated definitions, most of them with a few errors, and called
// k8s.io/apiextensions-apiserver v0.37.2 for the defaults, the conversion to its internal types, the strategies of its registry
// and their validation, and the conversion back.
type golden struct {
	CRD, Old                 json.RawMessage
	Created, Updated, Status *verdict
}

type verdict struct {
	Result   json.RawMessage // as prepared, if the errors are none
	Errors   [][3]string     // type, field, detail
	Ordered  bool            // the errors are always in this order; otherwise they are sorted here
	Warnings []string        // sorted
	Panic    bool            // kube-apiserver's code panics
	Grown    bool            // whether the generation grows
}

// validatorOf returns the validator of the tests.
func validatorOf(t testing.TB) definition.Validator {
	t.Helper()
	compiler, err := rules.NewCompiler()
	if err != nil {
		t.Fatal(err)
	}
	return definition.NewValidator(compiler)
}

func decode(t testing.TB, text []byte) *crd {
	c := &crd{}
	if err := json.Unmarshal(text, c); err != nil {
		t.Fatal(err)
	}
	c.TypeMeta = metav1.TypeMeta{}
	return c
}

// rows returns errors in the form of the corpus, without those of unsupported features.
func rows(errs field.ErrorList, ordered bool) [][3]string {
	var all [][3]string
	for _, err := range errs {
		if !strings.Contains(err.Detail, "this server does not ") {
			all = append(all, [3]string{string(err.Type), err.Field, err.ErrorBody()})
		}
	}
	if !ordered {
		slices.SortFunc(all, func(a, b [3]string) int { return slices.Compare(a[:], b[:]) })
	}
	return all
}

// corpus calls f for each line of a file of the corpus.
func corpus(t testing.TB, name string, f func(g *golden)) {
	file, err := os.Open("testdata/" + name + ".jsonl.gz")
	if err != nil {
		t.Fatal(err)
	}
	defer file.Close()
	unzipped, err := gzip.NewReader(file)
	if err != nil {
		t.Fatal(err)
	}
	for lines := json.NewDecoder(unzipped); ; {
		var g golden
		if err := lines.Decode(&g); errors.Is(err, io.EOF) {
			return
		} else if err != nil {
			t.Fatal(err)
		}
		f(&g)
	}
}

// TestCorpus checks that the results agree with kube-apiserver.
func TestCorpus(t *testing.T) {
	created, updated, statuses, good, wrong := 0, 0, 0, 0, 0
	validator := validatorOf(t)
	differ := func(what string, g *golden, want, got any) {
		if diff := cmp.Diff(want, got); diff != "" {
			wrong++
			t.Errorf("%s (-theirs +ours): %s\ndefinition %s\nold %s", what, diff, g.CRD, g.Old)
		}
		if wrong > 10 {
			t.Fatal("and so on")
		}
	}
	hold := func(what string, g *golden, v *verdict, c *crd, errs field.ErrorList) {
		if v.Panic {
			if len(errs) == 0 {
				t.Errorf("%s: kube-apiserver panics, and here it is fine: %s", what, g.CRD)
			}
			return
		}
		differ(what+": errors", g, v.Errors, rows(errs, v.Ordered))
		if len(v.Errors) > 0 {
			return
		}
		good++
		definition.Canonicalize(c)
		differ(what+": result", g, decode(t, v.Result), roundTrip(t, c))
	}
	each := func(g *golden) {
		if v := g.Created; v != nil {
			created++
			c := decode(t, g.CRD)
			definition.SetDefaults(c)
			definition.PrepareForCreate(c)
			c.Generation = 1
			hold("create", g, v, c, validator.Validate(t.Context(), c))
			if !v.Panic {
				differ("warnings", g, v.Warnings, slices.Sorted(slices.Values(definition.Warnings(c, nil))))
			}
		}
		if v := g.Updated; v != nil {
			updated++
			c, old := decode(t, g.CRD), decode(t, g.Old)
			definition.SetDefaults(c)
			definition.SetDefaults(old)
			untouched := old.DeepCopy()
			definition.PrepareForUpdate(c, old)
			errs := validator.ValidateUpdate(t.Context(), c, old)
			if !v.Panic {
				differ("warnings of an update", g, v.Warnings, slices.Sorted(slices.Values(definition.Warnings(c, old))))
			}
			definition.Canonicalize(c)
			if !reflect.DeepEqual(old, untouched) {
				t.Errorf("the old one has changed: %s", g.Old)
			}
			if len(v.Errors) == 0 && !v.Panic {
				definition.Canonicalize(old)
				differ("generation", g, v.Grown, !reflect.DeepEqual(roundTrip(t, c).Spec, roundTrip(t, old).Spec))
			}
			c.Generation = decode(t, v.Result).Generation // the registry sets it
			hold("update", g, v, c, errs)
		}
		if v := g.Status; v != nil {
			statuses++
			c, old := decode(t, g.CRD), decode(t, g.Old)
			definition.SetDefaults(c)
			definition.SetDefaults(old)
			definition.PrepareForStatusUpdate(c, old)
			hold("status", g, v, c, definition.ValidateStatusUpdate(c, old))
		}
	}
	corpus(t, "corpus", each)
	if created < 700 || updated < 350 || statuses < 100 || good < 400 {
		t.Errorf("the corpus has only %d creates, %d updates and %d of the status, of which %d are good", created, updated, statuses, good)
	}
	created, updated, good = 0, 0, 0
	corpus(t, "rules", each)
	if created < 350 || updated < 200 || good < 100 {
		t.Errorf("with rules the corpus has only %d creates and %d updates, of which %d are good", created, updated, good)
	}
}

// roundTrip returns a definition as clients decode it.
func roundTrip(t testing.TB, c *crd) *crd {
	text, err := json.Marshal(c)
	if err != nil {
		t.Fatal(err)
	}
	return decode(t, text)
}
