package structural_test

import (
	"bytes"
	"compress/gzip"
	"encoding/json"
	"errors"
	"io"
	"os"
	"reflect"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/keelson-dev/keelson/runtime/structural"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	apiruntime "k8s.io/apimachinery/pkg/runtime"
	apijson "k8s.io/apimachinery/pkg/util/json"
	"k8s.io/apimachinery/pkg/util/validation/field"
)

// golden is a schema with the results of the code of kube-apiserver 1.37. testdata/corpus.jsonl.gz has some hundreds of them, one
// in each line. A program that calls k8s.io/apiextensions-apiserver v0.37.2 made them from the schemas and values of random.
type golden struct {
	Schema   apiextensionsv1.JSONSchemaProps
	Status   bool       // status is a subresource
	Check    [][]string // errors: type, field, value, detail
	Warnings []string
	Objects  []goldenObject

	OldSchema   *apiextensionsv1.JSONSchemaProps // the schema before the update
	CheckUpdate [][]string
	Paths       map[string]string // results of At with brackets, by path
}

type goldenObject struct {
	Value     json.RawMessage
	Conform   []string // the possible errors, which depend on the order of fields; empty if there is none
	Unknown   []string
	Conformed json.RawMessage
	Dropped   json.RawMessage // result if invalid metadata is dropped
	DropError string
	Defaulted json.RawMessage // result of setting defaults after that
	Errors    [][]string
	Lists     [][]string
	Embedded  [][]string

	Old        json.RawMessage
	Update     [][]string
	ListUpdate [][]string
}

// rows returns errors in the form of the corpus.
func rows(errs field.ErrorList) [][]string {
	var all [][]string
	for _, err := range errs {
		value, _ := json.Marshal(err.BadValue)
		if f, ok := err.BadValue.(float64); ok {
			value = asJSON(f)
		}
		switch err.BadValue.(type) {
		case map[string]any, []any:
			value = asJSON(err.BadValue)
		}
		switch {
		case err.Type == field.ErrorTypeRequired, err.Type == field.ErrorTypeForbidden, err.Type == field.ErrorTypeTooLong,
			strings.HasPrefix(err.Detail, "only ["): // kube-apiserver shows an internal type there, whose JSON is different
			value = nil
		}
		all = append(all, []string{string(err.Type), err.Field, string(value), err.Detail})
	}
	slices.SortFunc(all, slices.Compare[[]string])
	return all
}

// asJSON encodes floats so that they are decoded as floats.
func asJSON(v any) []byte {
	switch v := v.(type) {
	case float64:
		text := strconv.FormatFloat(v, 'g', -1, 64)
		if !strings.ContainsAny(text, ".e") {
			text += ".0"
		}
		return []byte(text)
	case map[string]any:
		parts := [][]byte{}
		for _, name := range sortedNames(v) {
			text, _ := json.Marshal(name)
			parts = append(parts, slices.Concat(text, []byte(":"), asJSON(v[name])))
		}
		return slices.Concat([]byte("{"), bytes.Join(parts, []byte(",")), []byte("}"))
	case []any:
		parts := [][]byte{}
		for _, element := range v {
			parts = append(parts, asJSON(element))
		}
		return slices.Concat([]byte("["), bytes.Join(parts, []byte(",")), []byte("]"))
	}
	text, _ := json.Marshal(v)
	return text
}

func sortedNames(v map[string]any) []string {
	var names []string
	for name := range v {
		names = append(names, name)
	}
	slices.Sort(names)
	return names
}

// decode decodes a value as a server does.
func decode(t testing.TB, text []byte) any {
	var v any
	if err := apijson.Unmarshal(text, &v); err != nil {
		t.Fatal(err)
	}
	return v
}

func decodeObject(t testing.TB, text []byte) map[string]any {
	object, ok := decode(t, text).(map[string]any)
	if !ok {
		t.Fatalf("no object: %s", text)
	}
	return object
}

// corpus calls f with each schema of the corpus.
func corpus(t testing.TB, f func(g *golden)) {
	file, err := os.Open("testdata/corpus.jsonl.gz")
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

// TestCorpus compares all results with those of kube-apiserver.
func TestCorpus(t *testing.T) {
	schemas, objects, tolerated, wrong := 0, 0, 0, 0
	differ := func(what string, g *golden, o *goldenObject, want, got any) {
		if diff := cmp.Diff(want, got); diff != "" {
			wrong++
			text, _ := json.Marshal(g.Schema)
			if o != nil {
				t.Errorf("%s (-theirs +ours): %s\nschema %s\nvalue %s\nold %s", what, diff, text, o.Value, o.Old)
			} else {
				t.Errorf("%s (-theirs +ours): %s\nschema %s", what, diff, text)
			}
		}
		if wrong > 10 {
			t.Fatal("and so on")
		}
	}
	corpus(t, func(g *golden) {
		schemas++
		errs := structural.Check(field.NewPath("schema"), &g.Schema, structural.Options{StatusSubresource: g.Status})
		differ("Check", g, nil, g.Check, rows(errs))
		warnings := structural.Warnings(&g.Schema)
		slices.Sort(warnings)
		differ("Warnings", g, nil, g.Warnings, warnings)
		if g.OldSchema != nil {
			options := structural.Options{StatusSubresource: g.Status, Tolerance: structural.Tolerated(g.OldSchema)}
			if options.Tolerance != (structural.Tolerance{}) {
				tolerated++
			}
			differ("Check of an update", g, nil, g.CheckUpdate, rows(structural.Check(field.NewPath("schema"), &g.Schema, options)))
		}
		s, err := structural.Compile(&g.Schema)
		for path, want := range g.Paths {
			if err != nil {
				continue
			}
			if got := foundAt(s, path); want != "panic" {
				differ("At "+path, g, nil, want, got)
			}
		}
		if err != nil {
			if len(errs) == 0 || len(g.Objects) > 0 {
				t.Errorf("Compile: %v", err)
			}
			return
		}
		for i := range g.Objects {
			objects++
			goldenWalk(t, s, g, &g.Objects[i], differ)
		}
	})
	if schemas < 700 || objects < 2000 || tolerated < 50 {
		t.Errorf("the corpus has only %d schemas, %d objects and %d updates", schemas, objects, tolerated)
	}
}

// foundAt returns the result of At in the form of the corpus, which has "panic" where the code of kube-apiserver panics.
func foundAt(s *structural.Schema, path string) string {
	at, found, err := s.At(path, true)
	switch {
	case err != nil:
		return "error " + err.Error()
	case found == nil:
		return at.String()
	}
	return at.String() + " " + found.Type
}

func goldenWalk(t *testing.T, s *structural.Schema, g *golden, o *goldenObject, differ func(string, *golden, *goldenObject, any, any)) {
	value, old := decodeObject(t, o.Value), decodeObject(t, o.Old)
	untouched := apiruntime.DeepCopyJSON(value)

	differ("Validate", g, o, o.Errors, rows(s.Validate(nil, value)))
	differ("ValidateUpdate", g, o, o.Update, rows(s.ValidateUpdate(nil, value, old)))
	differ("CheckLists", g, o, o.Lists, rows(s.CheckLists(nil, value)))
	differ("CheckListsUpdate", g, o, o.ListUpdate, rows(s.CheckListsUpdate(nil, value, old)))
	differ("ValidateEmbedded", g, o, o.Embedded, rows(s.ValidateEmbedded(nil, value)))
	if !reflect.DeepEqual(value, untouched) {
		t.Error("judging has changed the value")
	}

	strict := apiruntime.DeepCopyJSON(value)
	unknown, err := s.Conform(strict, structural.ConformOptions{Report: 1000})
	switch {
	case len(o.Conform) > 0 && err == nil:
		t.Errorf("Conform: no error, want one of %q; value %s", o.Conform, o.Value)
	case len(o.Conform) > 0 && !slices.Contains(o.Conform, err.Error()):
		t.Errorf("Conform: %q is none of %q; value %s", err, o.Conform, o.Value)
	case len(o.Conform) > 0:
	case err != nil:
		t.Errorf("Conform: %v; value %s", err, o.Value)
	default:
		differ("Conform", g, o, withoutZeroTimes(decode(t, o.Conformed)), any(strict))
		differ("unknown", g, o, o.Unknown, unknown)
	}

	_, err = s.Conform(value, structural.ConformOptions{DropInvalidMetadata: true})
	if o.DropError != "" {
		if err == nil || err.Error() != o.DropError {
			t.Errorf("Conform, dropping: %v, want %s", err, o.DropError)
		}
		return
	}
	if err != nil {
		t.Fatal(err)
	}
	differ("Conform, dropping", g, o, withoutZeroTimes(decode(t, o.Dropped)), any(value))
	s.SetDefaults(value)
	differ("SetDefaults", g, o, withoutZeroTimes(decode(t, o.Defaulted)), any(value))
}

// withoutZeroTimes removes null times from metadata. kube-apiserver encodes zero times as null, and drops them the next time;
// here they are dropped at once.
func withoutZeroTimes(v any) any {
	switch v := v.(type) {
	case map[string]any:
		for name, member := range v {
			if member == nil && (name == "deletionTimestamp" || name == "time") {
				delete(v, name)
			}
			withoutZeroTimes(member)
		}
	case []any:
		for _, element := range v {
			withoutZeroTimes(element)
		}
	}
	return v
}
