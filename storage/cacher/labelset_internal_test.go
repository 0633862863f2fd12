package cacher

import (
	"encoding/json"
	"maps"
	"slices"
	"strings"
	"testing"

	"github.com/keelson-dev/keelson/runtime/codec"
	"github.com/keelson-dev/keelson/storage"
	"k8s.io/apimachinery/pkg/labels"
)

// A labelSet gives the same results as a map of the same labels, for any form of their JSON.
func TestLabelSet(t *testing.T) {
	asked := []string{"", "a", "b", "app", "ap", "appx", "p", `a":"b`, `a"`, `"`, "{", "}", ",", `\`, "ü", "<", "none"}
	for _, text := range append([]string{
		`{}`, `{"a":1}`, `{"a":{"b":"c"}}`, `{"a":"b" ,"b":"c"}`, `{"a":"b","b":null}`, `{"a": "b"}`,
	}, jsonOf(t,
		labels.Set{"a": "b"}, labels.Set{"a": ""}, labels.Set{"": "a"}, labels.Set{"app": "x", "b": "a"},
		labels.Set{"a": `"`, "b": "c"}, labels.Set{`a":"b`: "c"}, labels.Set{"a": `b","app":"c`}, labels.Set{`\`: `\"`},
		labels.Set{"a": "}", "b": "{"}, labels.Set{"a": ",", ":": ":"}, labels.Set{"ü": "ü", "<": ">"},
	)...) {
		d, err := codec.ParseDocument([]byte(`{"kind":"K","apiVersion":"v1","metadata":{"name":"n","labels":` + text + `}}`))
		if err != nil {
			t.Fatalf("%s: %v", text, err)
		}
		want := d.Labels()
		var all entries
		got := all.set(storage.Record{Body: d})
		each := labels.Set{}
		got.Each(func(label, value string) bool {
			each[label] = value
			return true
		})
		if !maps.Equal(each, want) {
			t.Errorf("%s: Each yields %v, want %v", text, each, want)
		}
		got.Each(func(string, string) bool {
			each[""] += "."
			return false
		})
		if got := each[""]; got != want[""]+strings.Repeat(".", min(len(want), 1)) {
			t.Errorf("%s: Each goes on when it is to end: %s", text, got)
		}
		for _, label := range slices.Concat(asked, slices.Collect(maps.Keys(want))) {
			value, ok := got.Lookup(label)
			if wantValue, wantOK := want[label]; value != wantValue || ok != wantOK {
				t.Errorf("%s: %q is %q, %t; want %q, %t", text, label, value, ok, wantValue, wantOK)
			}
			if got.Has(label) != ok || got.Get(label) != value {
				t.Errorf("%s: Has, Get and Lookup of %q do not agree", text, label)
			}
		}
	}
}

func jsonOf(t *testing.T, sets ...labels.Set) (texts []string) {
	for _, s := range sets {
		text, err := json.Marshal(s)
		if err != nil {
			t.Fatal(err)
		}
		texts = append(texts, string(text))
	}
	return texts
}

// Records with the same labels share a set for as long as one of them exists.
func TestLabelSetsAreShared(t *testing.T) {
	made := func(m *entries, metadata string) *entry {
		d, err := codec.ParseDocument([]byte(`{"kind":"K","apiVersion":"v1","metadata":` + metadata + `}`))
		if err != nil {
			t.Fatal(err)
		}
		return m.entry(storage.Entry{Record: storage.Record{Key: "n", Revision: 1, Body: d}})
	}
	var all entries
	a, b := made(&all, `{"name":"a","labels":{"x":"1"}}`), made(&all, `{"name":"b","labels":{"x":"1"}}`)
	none := made(&all, `{"name":"c"}`)
	if a.set() != b.set() || a.set() == none.set() || a.Labels.Get("x") != "1" || none.Labels.Has("x") {
		t.Errorf("the sets are %+v, %+v, %+v", a.set(), b.set(), none.set())
	}
	for i, e := range []*entry{a, none, b} {
		if len(all.sets) != []int{2, 2, 1}[i] {
			t.Errorf("%d sets before entry %d is released", len(all.sets), i)
		}
		all.release(e)
	}
	if len(all.sets) != 0 {
		t.Errorf("%d sets are left", len(all.sets))
	}
}
