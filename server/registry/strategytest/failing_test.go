package strategytest_test

import (
	"errors"
	"os"
	"os/exec"
	"reflect"
	"regexp"
	"strings"
	"testing"

	"github.com/keelson-dev/keelson/runtime"
	"github.com/keelson-dev/keelson/server/registry/strategytest"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// failing are cases that fail, with the expected messages.
func failing() []struct {
	Case strategytest.Case
	Says string
} {
	tags := func(b *Boat) {
		b.Labels, b.Spec.Notes = map[string]string{"example.com/a": "b"}, map[string]string{"x": "y"}
	}
	return []struct {
		Case strategytest.Case
		Says string
	}{
		{strategytest.Case{Name: "a field", Old: boat(), Update: boat(long(12)), Want: boat(long(13))}, `
the object differs:
	spec.length: got 12, want 13`},
		{strategytest.Case{Name: "what is there and is not", Old: boat(), Update: boat(tags), Want: boat(port("Kiel"))}, `
the object differs:
	metadata.labels: got {"example.com/a":"b"}, want nothing
	spec.notes: got {"x":"y"}, want nothing
	spec.port: got nothing, want "Kiel"`},
		{strategytest.Case{Name: "a member of a map", Old: boat(tags), Update: boat(tags), Want: boat(tags, func(b *Boat) {
			b.Labels, b.Spec.Notes = map[string]string{"example.com/a": "c"}, map[string]string{"x": "y", "z": ""}
		})}, `
the object differs:
	metadata.labels[example.com/a]: got "b", want "c"
	spec.notes.z: got nothing, want ""`},
		{strategytest.Case{Name: "items", Old: boat(), Update: boat(sails(Sail{Name: "a"}, Sail{Name: "b", Area: 1}, Sail{Name: "c"})),
			Want: boat(sails(Sail{Name: "a"}, Sail{Name: "b", Area: 2}, Sail{Name: "c"}, Sail{Name: "d"}))}, `
the object differs:
	spec.sails[1].area: got 1, want 2
	spec.sails[3]: got nothing, want {"name":"d"}`},
		{strategytest.Case{Name: "an item too many", Old: boat(), Update: boat(sails(Sail{Name: "a"}, Sail{Name: "b"})), Want: boat(sails(Sail{Name: "a"}))}, `
the object differs:
	spec.sails[1]: got {"name":"b"}, want nothing`},
		{strategytest.Case{Name: "the generation that is wanted", Old: boat(), Update: boat(long(12)), Want: boat(long(12), generation(1))}, `
the object differs:
	metadata.generation: got 2, want 1`},
		{strategytest.Case{Name: "the name that is wanted", Old: boat(named("a")), Update: boat(), Want: boat(named("b"))}, `
the object differs:
	metadata.name: got "a", want "b"`},
		{strategytest.Case{Name: "the mark that is wanted", Old: boat(phase("sailing")), Delete: &metav1.DeleteOptions{}, Want: boat(phase("sailing"), dying(29))}, `
the object differs:
	metadata.deletionGracePeriodSeconds: got 30, want 29
	metadata.deletionTimestamp: got "2026-01-01T00:00:30Z", want "2026-01-01T00:00:29Z"`},
		{strategytest.Case{Name: "a mark that is not wanted", Old: boat(phase("sailing")), Delete: &metav1.DeleteOptions{}, Want: boat(phase("sailing"))}, `
the object differs:
	metadata.deletionTimestamp: got "2026-01-01T00:00:30Z", want nothing`},
		{strategytest.Case{Name: "only that is ignored", Create: boat(func(b *Boat) { b.Spec.Rig = "ketch" }), Want: boat(), Ignore: []string{"spec.launched", "spec.own"}}, `
the object differs:
	spec.owner: got "admin", want nothing
	spec.rig: got "ketch", want "sloop"`},
		{strategytest.Case{Name: "a scale", Old: boat(), Scale: &runtime.Scale{Spec: runtime.ScaleSpec{Replicas: 3}}, Want: &runtime.Scale{Spec: runtime.ScaleSpec{Replicas: 4}}}, `
the object differs:
	spec.replicas: got 3, want 4`},
		{strategytest.Case{Name: "a long value", Old: boat(), Update: boat(owner("")), Want: boat(port(strings.Repeat("é", 300)))}, `
the object differs:
	spec.port: got nothing, want "` + strings.Repeat("é", 199) + `...`},

		{strategytest.Case{Name: "refused", Create: boat(long(0), sails()), Want: boat()}, `
errors differ:
	not expected: spec.length: Invalid value: 0: spec.length in body should be greater than or equal to 1`},
		{strategytest.Case{Name: "accepted", Old: boat(), Update: boat(), Errors: []string{"spec.length", "Conflict"}}, `
errors differ:
	missing:      spec.length
	missing:      Conflict`},
		{strategytest.Case{Name: "another error", Create: boat(long(0), sails()), Errors: []string{"spec.length: Required value"}}, `
errors differ:
	missing:      spec.length: Required value
	not expected: spec.length: Invalid value: 0: spec.length in body should be greater than or equal to 1`},
		{strategytest.Case{Name: "the beginning up to no colon", Create: boat(long(0), sails()), Errors: []string{"spec.len"}}, `
errors differ:
	missing:      spec.len
	not expected: spec.length: Invalid value: 0: spec.length in body should be greater than or equal to 1`},
		{strategytest.Case{Name: "one text for two errors", Create: boat(sails(Sail{Name: "a", Area: 101}, Sail{Area: 1})), Errors: []string{"spec.sails[0].area", "spec.sails[0].area"}}, `
errors differ:
	missing:      spec.sails[0].area
	not expected: spec.sails[1].name: Required value`},
		{strategytest.Case{Name: "another reason", Update: boat(), Errors: []string{"Conflict"}}, `
errors differ:
	missing:      Conflict
	not expected: NotFound: boats.example.com "example" not found`},
		{strategytest.Case{Name: "a warning", Create: boat(sails()), Want: boat(sails(), owner("admin")), Ignore: []string{"spec.launched"}}, `
warnings differ:
	not expected: spec.sails: the boat has none`},
		{strategytest.Case{Name: "no warning, and no such object", Old: boat(), Update: boat(), Want: boat(long(2)), Warnings: []string{"mind the gap"}}, `
warnings differ:
	missing:      mind the gap
the object differs:
	spec.length: got 10, want 2`},

		{strategytest.Case{Name: "gone", Old: boat(), Delete: &metav1.DeleteOptions{}}, `
the object is gone; if that is right, say Gone`},
		{strategytest.Case{Name: "not gone", Old: boat(kept("example.com/f")), Delete: &metav1.DeleteOptions{}, Gone: true}, `
the object is still stored, want it gone: it waits for its finalizers ["example.com/f"]`},
		{strategytest.Case{Name: "not gone yet", Old: boat(phase("sailing")), Delete: &metav1.DeleteOptions{}, Gone: true}, `
the object is still stored, want it gone: its grace period is 30 seconds`},
		{strategytest.Case{Name: "not going", Old: boat(), Update: boat(), Gone: true}, `
the object is still stored, want it gone: it is not marked for deletion`},
		{strategytest.Case{Name: "gone as another", Old: boat(), Delete: &metav1.DeleteOptions{}, Gone: true, Want: boat(long(2))}, `
the object differs:
	spec.length: got 10, want 2`},
	}
}

func TestCasesThatDoNotHold(t *testing.T) {
	t.Parallel()
	c, err := strategytest.New(options())
	if err != nil {
		t.Fatal(err)
	}
	for _, f := range failing() {
		t.Run(f.Case.Name, func(t *testing.T) {
			if err := c.Check(f.Case); err == nil || err.Error() != strings.TrimPrefix(f.Says, "\n") {
				t.Errorf("says\n%v\nwant\n%s", err, strings.TrimPrefix(f.Says, "\n"))
			}
		})
	}
}

// Anchor is a kind that is not in the Groups.
type Anchor = runtime.Resource[struct{ Weight int }, struct{}]

// mistaken are invalid cases, with the expected messages.
func mistaken() []struct {
	Case strategytest.Case
	Says string
} {
	var none *Boat
	gone := &metav1.DeleteOptions{}
	scale := &runtime.Scale{}
	return []struct {
		Case strategytest.Case
		Says string
	}{
		{strategytest.Case{Create: boat()}, "it has no Name, which is what a failure is told by"},
		{strategytest.Case{Name: "x"}, "it makes 0 requests; want one of Create, Update, Status, Scale and Delete"},
		{strategytest.Case{Name: "x", Old: boat()}, "it makes 0 requests; want one of Create, Update, Status, Scale and Delete"},
		{strategytest.Case{Name: "x", Old: boat(), Update: boat(), Delete: gone}, "it makes 2 requests; want one of Create, Update, Status, Scale and Delete"},
		{strategytest.Case{Name: "x", Update: none}, "field Update is a nil *runtime.Resource[...]; leave it out, or give it an object"},
		{strategytest.Case{Name: "x", Old: boat(), Create: boat()}, "it has Create and Old; an object is created where there is none, so remove Old, or make it an Update"},
		{strategytest.Case{Name: "x", Status: boat()}, "it has no Old, which is the object that Status, Scale and Delete are about"},
		{strategytest.Case{Name: "x", Scale: scale}, "it has no Old, which is the object that Status, Scale and Delete are about"},
		{strategytest.Case{Name: "x", Delete: gone}, "it has no Old, which is the object that Status, Scale and Delete are about"},
		{strategytest.Case{Name: "x", Create: boat(), Want: boat(), Errors: []string{"a"}}, "it has Errors, and Want or Gone too; a request that is refused changes nothing, so remove one"},
		{strategytest.Case{Name: "x", Old: boat(), Delete: gone, Gone: true, Errors: []string{"a"}}, "it has Errors, and Want or Gone too; a request that is refused changes nothing, so remove one"},
		{strategytest.Case{Name: "x", Create: boat(), Gone: true}, "it has Gone; nothing goes by being created or scaled"},
		{strategytest.Case{Name: "x", Create: boat(), Ignore: []string{"spec"}}, "it has Ignore, but no Want from which something could differ"},
		{strategytest.Case{Name: "x", Create: boat(), Errors: []string{""}}, "it has an empty text in Errors, which says nothing"},
		{strategytest.Case{Name: "x", Old: boat(named("a")), Update: boat(named("b"))}, `it has an Old of the name "a" and a request for "b"; they are one object`},
		{strategytest.Case{Name: "x", Old: boat(), Update: boat(func(b *Boat) { b.Namespace = "b" })}, `it has an Old in the namespace "default" and a request in "b"; they are one object`},
		{strategytest.Case{Name: "x", Create: &Anchor{}}, `the type *runtime.Resource[...], apiVersion and kind "/, Kind=", is no kind of the Groups`},
		{strategytest.Case{Name: "x", Create: &runtime.List[Boat]{}}, `the type *runtime.List[...], apiVersion and kind "/, Kind=", is no kind of the Groups`},
		{strategytest.Case{Name: "x", Create: boat(), Others: []runtime.Object{boat(named("a")), nil}}, "item 1 of field Others is nil; leave it out, or give it an object"},
		{strategytest.Case{Name: "x", Create: boat(), Others: []runtime.Object{none}}, "item 0 of field Others is nil; leave it out, or give it an object"},
		{strategytest.Case{Name: "x", Create: boat(), Others: []runtime.Object{&Anchor{}}}, `item 0 of Others cannot be stored: the type *runtime.Resource[...], apiVersion and kind "/, Kind=", is no kind of the Groups`},
		{strategytest.Case{Name: "x", Create: boat(), Others: []runtime.Object{&Buoy{}, &Buoy{}}}, "item 1 of Others cannot be stored: already exists"},
		{strategytest.Case{Name: "x", Create: boat(), Want: &Buoy{}}, "the request is about a example.com/v1, Kind=Boat, and Want is a example.com/v1, Kind=Buoy; a case is about one object"},
		{strategytest.Case{Name: "x", Old: &Buoy{}, Status: &Buoy{}}, "the kind example.com/v1, Kind=Buoy has no /status"},
		{strategytest.Case{Name: "x", Old: &Buoy{}, Scale: scale}, "the kind example.com/v1, Kind=Buoy has no /scale: see KindOptions.Scale"},
		{strategytest.Case{Name: "x", Old: &BoatV1beta1{}, Delete: gone}, `the object in Old cannot be stored: converting Boat.example.com from example.com/v1beta1 to example.com/v1: spec.size: "" is no length`},
	}
}

func TestCasesThatAreWrong(t *testing.T) {
	t.Parallel()
	c, err := strategytest.New(options())
	if err != nil {
		t.Fatal(err)
	}
	generic := regexp.MustCompile(`(\*runtime\.\w+)\[.*\]`)
	for _, m := range mistaken() {
		err := c.Check(m.Case)
		want := "the case is wrong: " + m.Says
		if err == nil || generic.ReplaceAllString(err.Error(), "$1[...]") != want {
			t.Errorf("says %v\nwant %s", err, want)
		}
	}
}

// tableVariable is the environment variable that makes a test binary run the table of TestTableChild.
const tableVariable = "KEELSON_STRATEGYTEST_TABLE"

func TestTableChild(t *testing.T) {
	if os.Getenv(tableVariable) == "" {
		t.Skip("it is run by TestAFailingTable")
	}
	strategytest.Run(t, options(), []strategytest.Case{
		{Name: "holds", Create: boat()},
		{Name: "does not", Old: boat(), Update: boat(long(12)), Want: boat(long(13))},
		{Name: "is wrong", Old: boat(), Create: boat()},
		{Create: boat()},
		{Name: "holds too", Old: boat(), Delete: &metav1.DeleteOptions{}, Gone: true},
	})
}

// TestAFailingTable: each failing case is reported at its line of the table, and the other cases run.
func TestAFailingTable(t *testing.T) {
	t.Parallel()
	c := exec.Command(os.Args[0], "-test.run=^TestTableChild$", "-test.v")
	c.Env = append(os.Environ(), tableVariable+"=1")
	out, err := c.CombinedOutput()
	var exit *exec.ExitError
	if !errors.As(err, &exit) {
		t.Fatalf("%v\n%s", err, out)
	}
	lines := regexp.MustCompile(`failing_test.go:\d+|\(.*s\)|=== .*\n`)
	got := strings.TrimSpace(lines.ReplaceAllStringFunc(string(out), func(s string) string {
		if strings.HasPrefix(s, "failing_test.go") {
			return "LINE"
		}
		return ""
	}))
	const want = `LINE: the object differs:
        	spec.length: got 12, want 13
    LINE: strategytest: case 2, "is wrong": the case is wrong: it has Create and Old; an object is created where there is none, so remove Old, or make it an Update
    LINE: strategytest: case 3, "": the case is wrong: it has no Name, which is what a failure is told by
--- FAIL: TestTableChild 
    --- PASS: TestTableChild/holds 
    --- FAIL: TestTableChild/does_not 
    --- FAIL: TestTableChild/is_wrong 
    --- FAIL: TestTableChild/case_3 
    --- PASS: TestTableChild/holds_too 
FAIL`
	if got != want {
		t.Errorf("got\n%s\nwant\n%s", got, want)
	}
}

// TestCasesAreNotChanged: a table's objects may be used by several cases.
func TestCasesAreNotChanged(t *testing.T) {
	t.Parallel()
	c, err := strategytest.New(options())
	if err != nil {
		t.Fatal(err)
	}
	cases := passing()
	for i, was := range passing() {
		if err := c.Check(cases[i]); err != nil {
			t.Errorf("%s: %v", was.Name, err)
		}
		if !reflect.DeepEqual(cases[i], was) {
			t.Errorf("%s: it was changed", was.Name)
		}
	}
}
