package clienttest_test

import (
	"bytes"
	"fmt"
	"math/rand/v2"
	"reflect"
	"slices"
	"strings"
	"testing"

	"github.com/keelson-dev/keelson/runtime/jsonpath"
	apijson "k8s.io/apimachinery/pkg/util/json"
	clientpath "k8s.io/client-go/util/jsonpath"
)

// pathObject is the object for the paths of the tests. An object in it that a wildcard reaches has no two members whose order
// matters, because the order of client-go is random.
const pathObject = `{"apiVersion": "example.com/v1", "kind": "Widget", "metadata": {"name": "a", "labels": {"app.kubernetes.io/name": "x"}},
	"spec": {"size": 3, "ratio": 0.5, "large": 12345678901234567890, "on": true, "off": false, "text": "häß", "empty": "", "none": null, "b'c": 1,
		"list": [1, 2, 3, 4], "floats": [1.0, 2.5], "mixed": [1, "a", null, true, 2.5, {"x": 1}, [5]], "nothing": [], "object": {},
		"parts": [{"name": "p", "size": 1, "tags": ["a", "b"]}, {"name": "q", "size": 2, "other": {"size": 9}}, {"size": null}],
		"<&>": "a<b"},
	"status": {"conditions": [{"type": "Ready", "status": "True", "n": 1}, {"type": "Synced (all)", "status": "False", "n": 2, "on": true}]}}`

// theirPath returns the result of client-go for a path as kube-apiserver uses it: the printed values that the first action finds.
func theirPath(path string, object any) (found []string, parses bool, err error) {
	defer func() {
		if p := recover(); p != nil {
			err = fmt.Errorf("panic: %v", p)
		}
	}()
	p := clientpath.New("column")
	if err := p.Parse("{" + path + "}"); err != nil {
		return nil, false, err
	}
	p.AllowMissingKeys(true)
	results, err := p.FindResults(object)
	if err != nil || len(results) == 0 {
		return nil, true, err
	}
	for _, v := range results[0] {
		var out bytes.Buffer
		value := v.Interface()
		if err := p.PrintResults(&out, []reflect.Value{reflect.ValueOf(value)}); err != nil {
			return nil, true, err
		}
		found = append(found, fmt.Sprintf("%T %s", value, out.String()))
	}
	return found, true, nil
}

func ourPath(path string, object any) (found []string, parses bool, err error) {
	p, err := jsonpath.Parse(path)
	if err != nil {
		return nil, false, err
	}
	values, err := p.Find(object)
	if err != nil {
		return nil, true, err
	}
	for _, v := range values {
		text, err := jsonpath.Text(v)
		if err != nil {
			return nil, true, err
		}
		found = append(found, fmt.Sprintf("%T %s", v, text))
	}
	return found, true, nil
}

// comparePaths reports whether both implementations found something, and fails if the results differ. If client-go's result
// depends on the random order of members, one of its results must be the same.
func comparePaths(t *testing.T, path string, object any) bool {
	t.Helper()
	ours, weParse, ourErr := ourPath(path, object)
	slices.Sort(ours)
	var difference string
	for range 300 {
		theirs, theyParse, theirErr := theirPath(path, object)
		slices.Sort(theirs)
		switch {
		case theyParse != weParse:
			t.Errorf("%q: parses there %v (%v), here %v (%v)", path, theyParse, theirErr, weParse, ourErr)
			return false
		case loops(path) || ourErr != nil && strings.Contains(ourErr.Error(), "comes across more than"):
			return false
		case (theirErr != nil) == (ourErr != nil) && slices.Equal(theirs, ours):
			return len(ours) > 0
		}
		difference = fmt.Sprintf("%q: found there %q, %v; here %q, %v", path, theirs, theirErr, ours, ourErr)
		if !strings.Contains(path, "*") && !strings.Contains(path, "..") {
			break
		}
	}
	t.Error(difference)
	return false
}

// loops reports whether a path has keywords that are not supported.
func loops(path string) bool { return strings.Contains(path, "range") || strings.Contains(path, "end") }

func decodePathObject(t testing.TB, text []byte) any {
	t.Helper()
	var object map[string]any
	if err := apijson.Unmarshal(text, &object); err != nil {
		t.Skip()
	}
	return object
}

// Columns of custom resources, with any path, show the same as in kube-apiserver.
func TestJSONPathOfColumns(t *testing.T) {
	t.Parallel()
	object := decodePathObject(t, []byte(pathObject))
	found := 0
	for _, path := range pathCorpus() {
		if comparePaths(t, path, object) {
			found++
		}
	}
	if found < 60 {
		t.Errorf("only %d paths of the corpus lead anywhere", found)
	}
	found = 0
	r := rand.New(rand.NewPCG(1, 2))
	for range 30_000 {
		if comparePaths(t, randomPath(r), object) {
			found++
		}
		if t.Failed() {
			return
		}
	}
	if found < 2000 {
		t.Errorf("only %d random paths lead anywhere", found)
	}
}

func FuzzJSONPathOfColumns(f *testing.F) {
	for _, path := range pathCorpus() {
		f.Add(path, []byte(pathObject))
	}
	f.Fuzz(func(t *testing.T, path string, text []byte) {
		if strings.Count(path, "..") > 2 || len(path) > 200 || len(text) > 2000 {
			return
		}
		comparePaths(t, path, decodePathObject(t, text))
	})
}

func pathCorpus() []string {
	return []string{
		".spec.size", ".spec.ratio", ".spec.large", ".spec.on", ".spec.text", ".spec.empty", ".spec.none", ".spec.list", ".spec.object", ".spec.missing",
		".spec.size.more", ".metadata.creationTimestamp", ".", "..", "...", "....", "", " .spec.size ", ".spec.size .spec", ".spec .size", "spec.size",
		"@.spec.size", "$.spec.size", "$", "@", ".metadata.labels.app\\.kubernetes\\.io/name", ".metadata.labels['app\\.kubernetes\\.io/name']",
		".metadata.labels['app.kubernetes.io/name']", "['spec']['size']", ".spec['size']", ".spec.['size']", ".spec['size','ratio']", ".spec['size', 'ratio']",
		".spec[\"size\"]", ".spec['b'c']", ".spec.b'c", ".spec['list'][0]", ".spec['a b']", ".spec.<&>", ".spec['<&>']", ".spec",
		".spec.list[0]", ".spec.list[-1]", ".spec.list[4]", ".spec.list[-5]", ".spec.list[]", ".spec.list[*]", ".spec.list[:]", ".spec.list[1:]", ".spec.list[:2]",
		".spec.list[0:4:2]", ".spec.list[::2]", ".spec.list[::0]", ".spec.list[::-1]", ".spec.list[2:1]", ".spec.list[2:2]", ".spec.list[0:9]", ".spec.list[-2:]",
		".spec.list[:-1]", ".spec.list[-1:0]", ".spec.list[0,2]", ".spec.list[0,2,9]", ".spec.list[x]", ".spec.list[1", ".spec.list[-]", ".spec.list[1:2:3:4]",
		".spec.list[9223372036854775807]", ".spec.list[99999999999999999999]", ".spec.list[-9223372036854775808]", ".spec.nothing[0]", ".spec.nothing[*]",
		".spec.nothing[0:0]", ".spec.none[0]", ".spec.text[0]", ".spec.text[*]", ".spec.text.*", ".spec.size[0]", ".spec.list.*", ".spec.object.*",
		".spec.parts[*].name", ".spec.parts[*].size", ".spec.parts[*].tags[*]", ".spec.parts[*].tags[0]", ".spec.parts[0].*", ".spec.mixed[*]", ".spec.mixed[*].x",
		".spec.parts[*]['name','size']", "..size", "..name", "..tags[0]", "..tags[1]", ".spec..size", ".spec.mixed..", "..[0]", "..*", ".spec..['size']",
		".status.conditions[?(@.type==\"Ready\")].status", ".status.conditions[?(@.type=='Ready')].status", ".status.conditions[?(@.type==\"Synced (all)\")].status",
		".status.conditions[?(.type==\"Ready\")].status", ".status.conditions[?(@['type']=='Ready')].status", ".status.conditions[?(@.type!='Ready')].n",
		".status.conditions[?(@.n>1)].type", ".status.conditions[?(@.n>=1)].type", ".status.conditions[?(@.n<2)].type", ".status.conditions[?(@.n<=2)].type",
		".status.conditions[?(@.n==1.0)].type", ".status.conditions[?(@.n=='1')].type", ".status.conditions[?(@.on)].type", ".status.conditions[?(@.on==true)].type",
		".status.conditions[?(@.on!=false)].type", ".status.conditions[?(@.on>false)].type", ".status.conditions[?(@.n<>1)].type", ".status.conditions[?(@.n=1)].type",
		".status.conditions[?(@.type==\"Ready\"].status", ".status.conditions[?(@.type==\"Ready)].status", ".status.conditions[?()]", ".status.conditions[?(==1)]",
		".status.conditions[?(@.n==)]", ".status.conditions[?(@.n=)]", ".status.conditions[?(1==@.n)].type", ".status.conditions[?(@.type==@.status)]",
		".status.conditions[?(@.type>\"Re\")].type", ".status.conditions[?(@.type==\"a\\\"b\")]", ".status.conditions[?(@.n==+1)].type", ".status.conditions[?(@.n==-1)].type",
		".status.conditions[?(@.missing==1)]", ".status.conditions[?(@==1)]", ".status.conditions[0][?(@.n==1)]", ".spec.list[?(@>2)]", ".spec.list[?(@>2.5)]",
		".spec.floats[?(@>1.5)]", ".spec.mixed[?(@==1)]", ".spec.parts[?(@.tags[0])].name", ".spec.parts[?(@.tags[5])].name", ".spec.parts[?(@.size==1)].name",
		".spec.parts[?(@.tags[0]==\"a\")].name", ".spec.parts[?(@.tags[*]==\"a\")].name", ".spec.parts[?(@.*)]", ".spec.none[?(@.a)]", ".spec.size[?(@.a)]",
		".spec.parts[?(@.name==\"p\")].tags[?(@==\"b\")]", ".spec.parts[?(@..size==9)].name", "[?(@.a)]",
		".spec.size}", ".spec.size}x", ".spec.size}{.spec.missing", ".spec.size}{.spec.list[9]", ".spec.size}{.spec.list[", ".spec.size}{}", "}", "{", ".a{b", ".a}{",
		".spec.size 5", ".spec.size 5.5", ".spec.size true", ".spec.size false", ".spec.size 'x'", ".spec.size \"x\\ty\"", ".spec.size '\\x41\\u00e9'", ".spec.size 'a\"b'",
		".spec.size \"a'b\"", ".spec.size '\\'", ".spec.size '\\q'", ".spec.size 'x", ".spec.missing 'x'", ".spec.list[*] 'x'", ".spec.missing 5", ".spec.list[*] 5", ".spec.size +5", ".spec.size 1.2.3", ".spec.size word", ".spec.size\t5", ".spec\n", "\\", ".\\",
		".spec.size\\", ".spec.si\\ze", ".spec,size", ".spec]", ".spec[?(@.a", ".spec.list[0][0]", ".spec.mixed[6][0]", ".spec.mixed[5].x", ".ſ", "ä", "٣", ".spec.list[٣]", "*", ".*.size",
		".spec.list[ 0 ]", ".spec.list[0 , 1]", ".spec.list['0']", ".spec.parts['name']", ".spec.parts.name",
	}
}

// randomPath returns a random path; many of them find something.
func randomPath(r *rand.Rand) string {
	one := func(of ...string) string { return of[r.IntN(len(of))] }
	name := func() string {
		return one("spec", "status", "metadata", "size", "list", "parts", "conditions", "name", "type", "n", "tags", "mixed", "text", "none", "x", "other", "object")
	}
	number := func() string { return one("0", "1", "2", "-1", "-2", "3", "7", "", "1.0") }
	var path strings.Builder
	if r.IntN(2) == 0 {
		path.WriteString(one(".spec", ".status.conditions", ".spec.parts", ".spec.list", ".spec.mixed", ".status", ".spec.parts[*]"))
	}
	descents := 0
	for range 1 + r.IntN(4) {
		switch r.IntN(11) {
		case 0, 1, 2:
			path.WriteString("." + name())
		case 3:
			path.WriteString("['" + name() + "']")
		case 4:
			path.WriteString("[" + number() + "]")
		case 5:
			path.WriteString("[" + number() + ":" + number() + one("", ":"+number()) + "]")
		case 6:
			path.WriteString(one(".*", "[*]"))
		case 7:
			if descents++; descents < 2 {
				path.WriteString(".." + one(name(), "", "*"))
			}
		case 8:
			path.WriteString("[" + one("'"+name()+"'", number()) + one(",", ", ") + one("'"+name()+"'", number()) + "]")
		case 9:
			left := one("@", "@."+name(), "@."+name()+"["+number()+"]", "."+name(), "@['"+name()+"']", "@.*")
			path.WriteString("[?(" + left + one("", one("==", "!=", "<", "<=", ">", ">=", "<>", "=")+one("1", "2", "'Ready'", "\"a\"", "true", "2.5", "@."+name())) + ")]")
		case 10:
			path.WriteString(one(" ", "@", "$", "}", "{", "'", "\\", ")", "]", "[", "?", "1", "true", "word", ".", "..", "\t", ","))
		}
	}
	return path.String()
}
