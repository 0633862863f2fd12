package conversion

import (
	"encoding/json"
	"fmt"
	"reflect"
	"strings"
	"testing"
	"time"
	"unicode/utf8"

	"github.com/keelson-dev/keelson/runtime/webhook"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

// judged passes an answer to a call for two objects.
func judged(t testing.TB, r *reviews, version string, answer []byte) (in []*unstructured.Unstructured, c *call, failure Failure) {
	t.Helper()
	c = &call{to: schema.GroupVersion{Group: "g.example.com", Version: "v2"}}
	for _, text := range []string{
		`{"apiVersion":"g.example.com/v1","kind":"Thing","metadata":{"name":"a","uid":"u","labels":{"x":"y"},"finalizers":["f"]},"spec":{"n":1}}`,
		`{"apiVersion":"g.example.com/v1","kind":"Thing","metadata":{"name":"b","namespace":"n","annotations":{"x":"y"}}}`,
	} {
		u := &unstructured.Unstructured{}
		if err := u.UnmarshalJSON([]byte(text)); err != nil {
			t.Fatal(err)
		}
		sent, err := sentForm(u)
		if err != nil {
			t.Fatal(err)
		}
		in = append(in, u)
		c.items = append(c.items, &item{sent: sent, original: originalOf(u)})
	}
	reject := func(reason error) *webhook.Error {
		return &webhook.Error{URL: "https://hooks.example.com", Reason: reason}
	}
	if p := r.judge(version, "u1", c, answer, reject); p != nil {
		failure = p.failure
	}
	return in, c, failure
}

// FuzzAnswer passes any answers of webhooks. Each object must be valid or have a problem with a text, and the original objects
// must not change.
func FuzzAnswer(f *testing.F) {
	const right = `{"apiVersion":"apiextensions.k8s.io/v1","kind":"ConversionReview","response":{"uid":"u1","result":{"status":"Success"},"convertedObjects":[` +
		`{"apiVersion":"g.example.com/v2","kind":"Thing","metadata":{"name":"a","uid":"u","labels":{"new":"l"},"finalizers":null},"spec":{"n":2}},` +
		`{"apiVersion":"g.example.com/v2","kind":"Thing","metadata":{"name":"b","namespace":"n"}}]}}`
	for _, answer := range []string{
		right, "", "{}", "null", "[]", "x", strings.ReplaceAll(right, `"u"`, `7`), strings.ReplaceAll(right, `{"new":"l"}`, `{"a b":"c"}`),
		strings.ReplaceAll(right, `{"new":"l"}`, `{"a":null}`), strings.ReplaceAll(right, "v2", "v1"), strings.ReplaceAll(right, `"b"`, `"c"`),
		strings.ReplaceAll(right, `"Success"`, `"Failure","message":"\ud800"`), strings.ReplaceAll(right, `{"n":2}`, strings.Repeat(`{"a":`, 50)+"1"+strings.Repeat("}", 50)),
		"apiVersion: apiextensions.k8s.io/v1\nkind: ConversionReview\nresponse: {uid: u1}\n",
	} {
		f.Add(answer, true)
		f.Add(strings.ReplaceAll(answer, "io/v1", "io/v1beta1"), false)
	}
	r, err := newReviews()
	if err != nil {
		f.Fatal(err)
	}
	f.Fuzz(func(t *testing.T, answer string, v1 bool) {
		version := "v1beta1"
		if v1 {
			version = "v1"
		}
		in, c, failure := judged(t, r, version, []byte(answer))
		want, _, _ := judged(t, r, version, nil)
		if !reflect.DeepEqual(in, want) {
			t.Errorf("what was sent is %v, and was %v", in, want)
		}
		problems := 0
		for n, i := range c.items {
			if i.problem != nil {
				problems++
				if text := i.problem.error().Error(); len(text) > maxText+100 || text == "" || i.out != nil || i.converted != nil {
					t.Errorf("problem %q, with %v", text, i.out)
				}
				continue
			}
			if i.out == nil || len(i.converted) == 0 {
				t.Fatalf("neither a problem nor an object")
			}
			if i.out.GetName() != in[n].GetName() || i.out.GetUID() != in[n].GetUID() || i.out.GetKind() != "Thing" || i.out.GetAPIVersion() != "g.example.com/v2" ||
				!reflect.DeepEqual(i.out.GetFinalizers(), in[n].GetFinalizers()) {
				t.Errorf("converted %v, was %v", i.out, in[n])
			}
			again, p := restored(originalOf(in[n]), i.converted, c.to)
			if p != nil || !reflect.DeepEqual(again, i.out) {
				t.Errorf("who shares it gets %v, %v, not %v", again, p, i.out)
			}
			if _, err := json.Marshal(i.out.Object); err != nil {
				t.Error(err)
			}
		}
		if (failure == "") != (problems == 0) {
			t.Errorf("%d problems, and the failure %q", problems, failure)
		}
	})
}

// Texts of a webhook are cut between characters, and answers in YAML have a maximum length.
func TestLongTexts(t *testing.T) {
	t.Parallel()
	r, err := newReviews()
	if err != nil {
		t.Fatal(err)
	}
	for _, tail := range []string{"", "x", "xx"} {
		_, c, failure := judged(t, r, "v1beta1", fmt.Appendf(nil, `{"response":{"result":{"message":"%s%s"}}}`, tail, strings.Repeat("€", 100000)))
		text := c.items[0].problem.text
		if failure != MalformedResponse || len(text) > maxText+30 || !utf8.ValidString(text) || !strings.HasSuffix(text, " bytes more)") {
			t.Errorf("%s: a text of %d bytes that ends with %q", failure, len(text), text[len(text)-20:])
		}
	}
	_, c, failure := judged(t, r, "v1", []byte(strings.Repeat("- a\n", maxYAML/4+1)))
	if got := c.items[0].problem.forLog().Error(); failure != CallFailure || got != "the answer is not JSON" {
		t.Errorf("%s: %s", failure, got)
	}
}

// A call that has waited for too long is not made any more.
func TestMaxQueued(t *testing.T) {
	t.Parallel()
	f := New(nil, Options{})
	t.Cleanup(f.Close)
	w := &Webhook{factory: f, name: "things.example.com", flights: map[itemKey]*item{}}
	i := &item{}
	w.flights[i.key] = i
	c := &call{items: []*item{i}, queued: time.Now().Add(-2 * maxQueued), done: make(chan struct{})}
	w.do(c) // would panic if it called the webhook
	<-c.done
	if i.problem == nil || i.problem.err == nil || !strings.Contains(i.problem.err.Error(), "try again later") || len(w.flights) != 0 {
		t.Errorf("problem %+v", i.problem)
	}
}

// An answer with many surplus objects is not decoded.
func TestCrowd(t *testing.T) {
	t.Parallel()
	r, err := newReviews()
	if err != nil {
		t.Fatal(err)
	}
	many := func(n int) []byte {
		objects := strings.TrimSuffix(strings.Repeat("0,", n), ",")
		return fmt.Appendf(nil, `{"response":{"x":"[,\\\"]","result":{"a":[1,2,3]},"convertedObjects":[%s],"y":[]}}`, objects)
	}
	for _, n := range []int{1, 2, 500, maxCrowd + 3, 1 << 20} {
		if got := crowd(many(n)); got != n {
			t.Errorf("%d objects, want %d", got, n)
		}
		_, c, failure := judged(t, r, "v1beta1", many(n))
		if refused := failure == PartialResponse; refused != (n > maxCrowd+2) {
			t.Errorf("%d objects: %s", n, c.items[0].problem.text)
		}
	}
	for text, want := range map[string]int{"": 0, "]]]]": 0, "[[[": 0, `{"a":{"b":[{"x":[1,2,3]},[4,5],"\\",","]}}`: 4, `{"a":{"b":{"c":1,"d":2}}}`: 0} {
		if got := crowd([]byte(text)); got != want {
			t.Errorf("%s: %d, want %d", text, got, want)
		}
	}
}

// Invalid labels and annotations may remain, but not change.
func TestInvalidLabelsStay(t *testing.T) {
	t.Parallel()
	in := &unstructured.Unstructured{Object: map[string]any{"apiVersion": "g.example.com/v1", "kind": "Thing", "metadata": map[string]any{
		"name": "a", "labels": map[string]any{"a b": "c d"}, "annotations": map[string]any{"a b": "c"},
	}}}
	to := schema.GroupVersion{Group: "g.example.com", Version: "v2"}
	for metadata, want := range map[string]string{
		`{"name":"a","labels":{"a b":"c d"},"annotations":{"a b":"c"}}`: "",
		`{"name":"a","labels":{"a b":"d d"},"annotations":{"a b":"c"}}`: "metadata.labels: Invalid value",
		`{"name":"a","labels":{"a b":"c d"},"annotations":{"a b":"d"}}`: "metadata.annotation: Invalid value",
		`{"name":"a","labels":{"a b":"c d","e":"f"}}`:                   "metadata.labels: Invalid value",
		`{"name":"a"}`: "",
	} {
		_, p := restored(originalOf(in), fmt.Appendf(nil, `{"apiVersion":"g.example.com/v2","kind":"Thing","metadata":%s}`, metadata), to)
		if p == nil && want != "" || p != nil && (want == "" || !strings.Contains(p.text, want)) {
			t.Errorf("%s: %+v, want %q", metadata, p, want)
		}
	}
}

// An answer that is too old is not used, even if it is still stored.
func TestTooOld(t *testing.T) {
	t.Parallel()
	m := newMemory(1<<20, time.Hour)
	t.Cleanup(m.close)
	m.put(memoryKey{}, []byte("{}"))
	if got := m.get(memoryKey{}); string(got) != "{}" {
		t.Errorf("remembered %q", got)
	}
	memorizedIn(m.order.Front()).until = time.Now()
	if got := m.get(memoryKey{}); got != nil {
		t.Errorf("remembered %q", got)
	}
}
