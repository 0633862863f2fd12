package weight

import (
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"go.yaml.in/yaml/v3"
	oldyaml "sigs.k8s.io/yaml"
)

// nodesOf returns the number of nodes in a document.
func nodesOf(n *yaml.Node) int {
	count := 1
	for _, c := range n.Content {
		count += nodesOf(c)
	}
	return count
}

func hasAlias(n *yaml.Node) bool {
	return n.Kind == yaml.AliasNode || slices.ContainsFunc(n.Content, hasAlias)
}

// countedNodes returns the number of nodes that the weight of a YAML text includes at least.
func countedNodes(t testing.TB, body []byte) int {
	t.Helper()
	s := scanYAML(body, Limit{})
	for s.token() == nil {
	}
	return (none-s.left)/yamlNode + 1 // the document node
}

var yamlTexts = []string{
	"a: 1\nb:\n  c: [1, 2, {d: e}]\n  f: |\n    x: [\n    - {\n  g: 'it''s'\n", "- a\n- - b\n  - c\n-\n- ? x\n  : y\n", "[a: b, c: d, :, ? e]",
	"{a, b: , ? c : d}", "a: >2-\n    x: y\n   z: [1,\n  b: c\n", "a: \"x\n  y\\\"\n  z\"\nb: x\n  y: z\n", "%YAML 1.1\n---\na: &x [1]\nb: *x\n...\n",
	"a: |\n\n\n   x\n  y: z\nb: c", "a:\n- b\n- c: d\n  e: f\ng: h #: [\ni: j#[k", "[a, b]: c\n{d: e}: f\n", "? |\n  a\n: - b\n", "a: !!str b\nc: !<x> d", "\ufeffa: b",
	"a: b\x85c: d\u2028e: f", "'a': \"b\"\n\"c\": 'd'\n", "a\n b\n c: d", "- |\n a: [\n- >\n b: {\n", "a: -\n", "a: - b", "x: [\n1,\n#[[[\n2]\n", "a:\n    b:\n        c\n    d: e\nf: g",
}

// The weight of a text includes all its nodes.
func TestYAMLCountsAllNodes(t *testing.T) {
	t.Parallel()
	for _, text := range yamlTexts {
		var doc yaml.Node
		if err := yaml.Unmarshal([]byte(text), &doc); err != nil {
			continue
		}
		if got, want := countedNodes(t, []byte(text)), nodesOf(&doc); got < want || got > 3*want+3 {
			t.Errorf("%q: counted %d nodes, has %d", text, got, want)
		}
	}
}

// The same for texts that are combined from pieces of YAML.
func TestYAMLCountsAllNodesOfAnyText(t *testing.T) {
	t.Parallel()
	pieces := []string{
		"a", "b: ", ": ", ":", "- ", "-", "? ", "?", "[", "]", "{", "}", ", ", ",", "\n", "\n ", "\n  ", "\n    ", "|", "|\n", ">-\n  ", "|2\n", "|+1\n", "'", "\"", "''", "\\",
		"\\\"", "#", " #", " ", "\t", "&a ", "*a ", "!t ", "!<a,b> ", "!!str ", "---\n", "...\n", "%YAML 1.1\n", "\r\n", "\u0085", "\u2028", "ä", "1", "x y", "a: 1\n", "- - ", "<<: ",
	}
	random := rand.New(rand.NewPCG(1, 2)) //nolint:gosec // texts that are the same each time
	rounds := 20_000
	if testing.Short() {
		rounds /= 10
	}
	valid := 0
	for range rounds {
		var b strings.Builder
		for range 1 + random.IntN(14) {
			b.WriteString(pieces[random.IntN(len(pieces))])
		}
		text := b.String()
		var doc yaml.Node
		var v any
		if yaml.Unmarshal([]byte(text), &doc) != nil || oldyaml.Unmarshal([]byte(text), &v) != nil {
			continue
		}
		valid++
		if got, want := countedNodes(t, []byte(text)), nodesOf(&doc); got < want {
			t.Fatalf("%q: counted %d nodes, has %d", text, got, want)
		}
		if hasAlias(&doc) && !Aliases([]byte(text)) {
			t.Fatalf("%q: has an alias", text)
		}
	}
	if valid < rounds/100 {
		t.Errorf("%d of %d texts are YAML", valid, rounds)
	}
}

func FuzzYAML(f *testing.F) {
	for _, text := range yamlTexts {
		f.Add([]byte(text))
	}
	f.Fuzz(func(t *testing.T, body []byte) {
		var doc yaml.Node
		var v any
		if yaml.Unmarshal(body, &doc) != nil || oldyaml.Unmarshal(body, &v) != nil {
			return
		}
		if got, want := countedNodes(t, body), nodesOf(&doc); got < want {
			t.Errorf("%q: counted %d nodes, has %d", body, got, want)
		}
	})
}
