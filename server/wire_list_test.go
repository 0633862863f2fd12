package server_test

import (
	"context"
	"encoding/base64"
	"fmt"
	"maps"
	"net/url"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/keelson-dev/keelson/server"
	"github.com/keelson-dev/keelson/storage"
	"github.com/keelson-dev/keelson/storage/memory"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// gears is a list of widgets with the fields that tests check.
type gears struct {
	metav1.TypeMeta `json:",inline"`
	metav1.ListMeta `json:"metadata"`
	Items           []gear `json:"items"`
}

func (g gears) names() string {
	var out []string
	for _, item := range g.Items {
		out = append(out, item.Name)
	}
	return strings.Join(out, " ")
}

func (w *wire) list(t *testing.T, path string) (g gears) {
	t.Helper()
	a := w.ask(t, "GET", path, "")
	a.want(t, 200)
	a.into(t, &g)
	return g
}

func TestWireList(t *testing.T) {
	t.Parallel()
	w := newWire(t)
	t.Run("empty", func(t *testing.T) {
		for _, path := range []string{widgetList, allWidgets, "/apis/example.com/v1/namespaces/nowhere/widgets"} {
			if a := w.ask(t, "GET", path, ""); a.code != 200 || !strings.HasPrefix(a.body, `{"kind":"WidgetList","apiVersion":"example.com/v1","metadata":{"resourceVersion":"`) || !strings.HasSuffix(a.body, "\"},\"items\":[]}\n") {
				t.Errorf("%s: %d %s", path, a.code, a.body)
			}
		}
	})
	for i, name := range []string{"l3", "l1", "l5", "l2", "l4"} {
		w.make(t, widgetList, fmt.Sprintf(`{"metadata":{"name":%q,"labels":{"n":"%d","app":"x"}}}`, name, i))
	}
	w.make(t, "/apis/example.com/v1/namespaces/other/widgets", `{"metadata":{"name":"l1","labels":{"app":"y"}}}`)
	w.make(t, "/apis/example.com/v1/namespaces/default-2/widgets", `{"metadata":{"name":"l1"}}`)
	t.Run("items carry neither kind nor apiVersion", func(t *testing.T) {
		a := w.ask(t, "GET", widgetList+"?limit=9&labelSelector=n=1", "")
		a.want(t, 200)
		a.wantBody(t, `{"kind":"WidgetList","apiVersion":"example.com/v1","metadata":{"resourceVersion":"N"},"items":[{"metadata":{"name":"l1","namespace":"default","uid":"U","resourceVersion":"N","generation":1,"creationTimestamp":"T","labels":{"app":"x","n":"1"}},"spec":{},"status":{}}]}`+"\n")
	})
	t.Run("order is that of the keys", func(t *testing.T) {
		if got := w.list(t, widgetList).names(); got != "l1 l2 l3 l4 l5" {
			t.Errorf("%s", got)
		}
		var spaces []string
		for _, item := range w.list(t, allWidgets).Items {
			spaces = append(spaces, item.Namespace)
		}
		if got := strings.Join(slices.Compact(spaces), " "); got != "default-2 default other" {
			t.Errorf("%s", got)
		}
	})
	t.Run("pages", func(t *testing.T) {
		first := w.list(t, widgetList+"?limit=2")
		if first.names() != "l1 l2" || first.Continue == "" || first.RemainingItemCount == nil || *first.RemainingItemCount != 3 {
			t.Errorf("first %+v", first.ListMeta)
		}
		text, err := base64.RawURLEncoding.DecodeString(first.Continue)
		if want := fmt.Sprintf(`{"v":"meta.k8s.io/v1","rv":%s,"start":"l2\u0000"}`, first.ResourceVersion); err != nil || string(text) != want {
			t.Errorf("token %s %v, want %s", text, err, want)
		}
		w.make(t, widgetList, `{"metadata":{"name":"l6"}}`)
		second := w.list(t, widgetList+"?limit=2&continue="+first.Continue)
		if second.names() != "l3 l4" || second.ResourceVersion != first.ResourceVersion || second.RemainingItemCount == nil || *second.RemainingItemCount != 1 {
			t.Errorf("second %+v %s", second.ListMeta, second.names())
		}
		last := w.list(t, widgetList+"?limit=2&continue="+second.Continue)
		if last.names() != "l5" || last.Continue != "" || last.RemainingItemCount != nil || last.ResourceVersion != first.ResourceVersion {
			t.Errorf("last %+v %s", last.ListMeta, last.names())
		}
		if rest := w.list(t, widgetList+"?continue="+first.Continue+"&resourceVersion=0"); rest.names() != "l3 l4 l5" {
			t.Errorf("rest %s", rest.names())
		}
		w.ask(t, "DELETE", widgetList+"/l6", "").want(t, 200)
		if all := w.list(t, widgetList+"?limit=0"); all.names() != "l1 l2 l3 l4 l5" || all.Continue != "" {
			t.Errorf("limit=0: %+v", all.ListMeta)
		}
		if all := w.list(t, widgetList+"?limit=500"); all.names() != "l1 l2 l3 l4 l5" || all.Continue != "" || all.RemainingItemCount != nil {
			t.Errorf("limit=500: %+v", all.ListMeta)
		}
	})
	t.Run("no remainingItemCount with a selector", func(t *testing.T) {
		page := w.list(t, widgetList+"?limit=1&labelSelector=app%3Dx")
		if page.RemainingItemCount != nil || page.Continue == "" || page.names() != "l1" {
			t.Errorf("%+v", page.ListMeta)
		}
		page = w.list(t, widgetList+"?limit=1&labelSelector=n%3D4")
		if page.names() != "l4" {
			t.Errorf("%+v %s", page.ListMeta, page.names())
		}
	})
	t.Run("limit is nothing with resourceVersion 0", func(t *testing.T) {
		if page := w.list(t, widgetList+"?limit=2&resourceVersion=0"); page.names() != "l1 l2 l3 l4 l5" || page.Continue != "" {
			t.Errorf("%+v %s", page.ListMeta, page.names())
		}
	})
	t.Run("selectors", func(t *testing.T) {
		for _, c := range []struct{ query, want string }{
			{"labelSelector=n", "l1 l2 l3 l4 l5"}, {"labelSelector=!n", ""}, {"labelSelector=n+in+(1,4)", "l1 l4"}, {"labelSelector=n+notin+(1,4)", "l2 l3 l5"},
			{"labelSelector=n>2", "l2 l4"}, {"labelSelector=n<1", "l3"}, {"labelSelector=n==1,app=x", "l1"}, {"labelSelector=n!=1", "l2 l3 l4 l5"}, {"labelSelector=", "l1 l2 l3 l4 l5"},
			{"fieldSelector=metadata.name=l2", "l2"}, {"fieldSelector=metadata.name==l2", "l2"}, {"fieldSelector=metadata.name!=l2", "l1 l3 l4 l5"}, {"fieldSelector=metadata.name=none", ""},
			{"fieldSelector=metadata.namespace=default", "l1 l2 l3 l4 l5"}, {"fieldSelector=metadata.namespace=other", ""}, {"fieldSelector=metadata.name=l1,metadata.name=l2", ""},
			{"fieldSelector=metadata.name=l2&labelSelector=n=9", ""}, {"fieldSelector=metadata.name=..", ""}, {"fieldSelector=metadata.name=a/b", ""}, {"fieldSelector=", "l1 l2 l3 l4 l5"},
		} {
			query := url.Values{}
			for part := range strings.SplitSeq(c.query, "&") {
				name, value, _ := strings.Cut(part, "=")
				query.Set(name, strings.ReplaceAll(value, "+", " "))
			}
			if got := w.list(t, widgetList+"?"+query.Encode()).names(); got != c.want {
				t.Errorf("%s: %q, want %q", c.query, got, c.want)
			}
		}
		if got := w.list(t, allWidgets+"?fieldSelector=metadata.name%3Dl1").names(); got != "l1 l1 l1" {
			t.Errorf("everywhere: %s", got)
		}
		if got := w.list(t, allWidgets+"?fieldSelector=metadata.namespace%3Dother"); got.names() != "l1" || got.Items[0].Namespace != "other" {
			t.Errorf("namespace other: %s", got.names())
		}
	})
	t.Run("by name it is still a list", func(t *testing.T) {
		if list := w.list(t, widgetList+"?fieldSelector=metadata.name%3Dl1"); list.Kind != "WidgetList" || list.ResourceVersion != w.version(t) {
			t.Errorf("%+v %+v", list.TypeMeta, list.ListMeta)
		}
	})
	t.Run("yaml", func(t *testing.T) {
		a := w.ask(t, "GET", widgetList+"?limit=1", "", "Accept", "application/yaml")
		if a.code != 200 || !strings.HasPrefix(a.body, "apiVersion: example.com/v1\nitems:\n- metadata:\n") {
			t.Errorf("%s", a.body)
		}
	})
}

func TestWireListAtAVersion(t *testing.T) {
	t.Parallel()
	w := newWire(t)
	made := w.make(t, widgetList, `{"metadata":{"name":"a"},"spec":{"size":1}}`)
	w.make(t, widgetList, `{"metadata":{"name":"b"}}`)
	w.ask(t, "PUT", widgetList+"/a", `{"metadata":{"name":"a"},"spec":{"size":2}}`).want(t, 200)
	now, then := w.version(t), made.ResourceVersion
	for _, c := range []struct{ query, names, version string }{
		{"?resourceVersion=0", "a b", now}, {"?resourceVersion=" + then, "a b", now}, {"?resourceVersion=" + then + "&resourceVersionMatch=NotOlderThan", "a b", now},
		{"?resourceVersion=" + then + "&resourceVersionMatch=Exact", "a", then}, {"?limit=5&resourceVersion=" + then, "a", then},
		{"?limit=1&resourceVersion=" + then + "&resourceVersionMatch=NotOlderThan", "a", now}, {"?resourceVersion=0&resourceVersionMatch=NotOlderThan", "a b", now},
		{"?resourceVersion=" + now + "&resourceVersionMatch=Exact", "a b", now},
	} {
		list := w.list(t, widgetList+c.query)
		if list.names() != c.names || list.ResourceVersion != c.version {
			t.Errorf("%s: %q at %s, want %q at %s", c.query, list.names(), list.ResourceVersion, c.names, c.version)
		}
	}
	for _, query := range []string{"", "?resourceVersion=0", "?resourceVersion=" + then, "?resourceVersion=" + now} {
		if a := w.ask(t, "GET", widgetList+"/a"+query, ""); a.code != 200 || !strings.Contains(a.body, `"size":2`) {
			t.Errorf("GET a%s: %d %s", query, a.code, a.body)
		}
	}
	t.Run("in the future", func(t *testing.T) {
		future := refusal{504, "Timeout", "Timeout: Too large resource version: 99999, current: " + now,
			`{"causes":[{"reason":"ResourceVersionTooLarge","message":"Too large resource version"}],"retryAfterSeconds":1}`, "Retry-After: 1"}
		for name, path := range map[string]string{
			"exact": widgetList + "?resourceVersion=99999&resourceVersionMatch=Exact",
			"list":  widgetList + "?resourceVersion=99999", "get": widgetList + "/a?resourceVersion=99999",
		} {
			t.Run(name, func(t *testing.T) {
				t.Parallel()
				w.ask(t, "GET", path, "").wantRefusal(t, future)
			})
		}
	})
}

// short opens a backend that forgets all changes but the newest, as caches do.
func short(o *server.Options) {
	o.Limits.CacheWindow = time.Nanosecond
	o.Storage = func(context.Context) (storage.Backend, error) {
		return memory.New(memory.Options{Window: time.Nanosecond, WindowBytes: 1}), nil
	}
}

func TestWireListExpired(t *testing.T) {
	t.Parallel()
	w := newWire(t, short)
	for _, name := range []string{"a", "b", "c", "d"} {
		w.make(t, widgetList, `{"metadata":{"name":"`+name+`"}}`)
	}
	first := w.list(t, widgetList+"?limit=2")
	for range 5 {
		w.make(t, widgetList, `{"metadata":{"generateName":"x-"}}`)
	}
	w.version(t) // a cache has the state that was listed last
	a := w.ask(t, "GET", widgetList+"?limit=2&continue="+first.Continue, "")
	a.want(t, 410)
	s := a.status(t)
	if s.Reason != metav1.StatusReasonExpired || s.ListMeta.Continue == "" {
		t.Fatalf("%s", a.body)
	}
	t.Log(s.Message)
	text, err := base64.RawURLEncoding.DecodeString(s.ListMeta.Continue)
	if want := `{"v":"meta.k8s.io/v1","rv":-1,"start":"b\u0000"}`; err != nil || string(text) != want {
		t.Errorf("token %s, want %s", text, want)
	}
	rest := w.list(t, widgetList+"?limit=2&continue="+s.ListMeta.Continue)
	if rest.names() != "c d" || rest.ResourceVersion != w.version(t) {
		t.Errorf("rest %q at %s", rest.names(), rest.ResourceVersion)
	}
	a = w.ask(t, "GET", widgetList+"?resourceVersionMatch=Exact&resourceVersion="+first.ResourceVersion, "")
	a.want(t, 410)
	if s := a.status(t); s.Reason != metav1.StatusReasonExpired || s.Message != "The resourceVersion for the provided list is too old." {
		t.Errorf("%s", a.body)
	}
}

func TestWireListRefused(t *testing.T) {
	t.Parallel()
	w := newWire(t)
	w.make(t, widgetList, `{"metadata":{"name":"a"}}`)
	w.make(t, widgetList, `{"metadata":{"name":"b"}}`)
	token := w.list(t, widgetList+"?limit=1").Continue
	bad := func(message string) refusal { return refusal{400, "BadRequest", message, "", ""} }
	get := func(query string, want refusal) exchange {
		return exchange{"GET", widgetList + "?" + query, "", nil, want}
	}
	rows := map[string]exchange{
		"limit of letters":          get("limit=abc", bad(`strconv.ParseInt: parsing "abc": invalid syntax`)),
		"timeoutSeconds of letters": get("timeoutSeconds=abc", bad(`strconv.ParseInt: parsing "abc": invalid syntax`)),
		"field selector of no form": get("fieldSelector=foo", bad(`invalid selector: 'foo'; can't understand 'foo'`)),
		"label selector, no form":   get("labelSelector=a+in", bad(`unable to parse requirement: found '' expected: '('`)),
		"unknown field":             get("fieldSelector=spec.none%3Dbar", bad(`"spec.none" is not a known field selector: only "metadata.name", "metadata.namespace"`)),
		"unknown field, core":       {"GET", configMapList + "?fieldSelector=spec.foo%3Dbar", "", nil, bad(`"spec.foo" is not a known field selector: only "metadata.name", "metadata.namespace"`)},
		"continue and a version":    get("continue="+token+"&resourceVersion=1", bad("specifying resource version is not allowed when using continue")),
		"version of letters":        get("resourceVersion=abc", bad(`invalid resource version: resourceVersion: Invalid value: "abc": strconv.ParseUint: parsing "abc": invalid syntax`)),
		"negative version":          get("resourceVersion=-1", bad(`invalid resource version: resourceVersion: Invalid value: "-1": strconv.ParseUint: parsing "-1": invalid syntax`)),
		"get at a version of letters": {"GET", widgetList + "/a?resourceVersion=abc", "", nil,
			bad(`invalid resource version: resourceVersion: Invalid value: "abc": strconv.ParseUint: parsing "abc": invalid syntax`)},
	}
	w.runRefusals(t, rows)
	t.Run("continue tokens of no form", func(t *testing.T) {
		encode := func(s string) string { return base64.RawURLEncoding.EncodeToString([]byte(s)) }
		for _, token := range []string{
			"garbage", "!!", "%00", encode("{}"), encode("[]"), encode(`{"v":"meta.k8s.io/v1","rv":0,"start":"a"}`), encode(`{"v":"meta.k8s.io/v2","rv":1,"start":"a"}`),
			encode(`{"v":"meta.k8s.io/v1","rv":1}`), encode(`{"v":"meta.k8s.io/v1","rv":1,"start":"../x"}`), encode(`{"v":"meta.k8s.io/v1","rv":1,"start":"../../configmaps/"}`),
			encode(`{"v":"meta.k8s.io/v1","rv":"1","start":"a"}`), encode(`{"v":"meta.k8s.io/v1","rv":-2,"start":"a"}`), encode(`{"v":"meta.k8s.io/v1","rv":99999999999999999999,"start":"a"}`),
			strings.Repeat("A", 8000),
		} {
			a := w.ask(t, "GET", widgetList+"?continue="+url.QueryEscape(token), "")
			if a.code != 400 {
				t.Errorf("%.60q: %d %s", token, a.code, a.body)
				continue
			}
			if s := a.status(t); s.Reason != metav1.StatusReasonBadRequest || !strings.Contains(s.Message, "continue") {
				t.Errorf("%.60q: %s", token, a.body)
			}
		}
	})
	t.Run("options that make no sense", func(t *testing.T) {
		for query, field := range map[string]string{
			"resourceVersionMatch=Exact":                                                         "resourceVersionMatch",
			"resourceVersionMatch=Exact&resourceVersion=0":                                       "resourceVersionMatch",
			"resourceVersionMatch=NotOlderThan":                                                  "resourceVersionMatch",
			"resourceVersionMatch=Newest&resourceVersion=1":                                      "resourceVersionMatch",
			"resourceVersionMatch=Exact&resourceVersion=1&continue=" + token:                     "resourceVersionMatch",
			"sendInitialEvents=true":                                                             "sendInitialEvents",
			"watch=1&sendInitialEvents=true":                                                     "resourceVersionMatch",
			"watch=1&resourceVersionMatch=NotOlderThan&resourceVersion=1":                        "resourceVersionMatch",
			"watch=1&sendInitialEvents=true&resourceVersionMatch=Exact":                          "resourceVersionMatch",
			"watch=1&sendInitialEvents=true&resourceVersionMatch=NotOlderThan&continue=" + token: "resourceVersionMatch",
		} {
			a := w.ask(t, "GET", widgetList+"?"+query, "")
			a.want(t, 422)
			s := a.status(t)
			if s.Reason != metav1.StatusReasonInvalid || s.Details.Kind != "ListOptions" || s.Details.Group != "meta.k8s.io" || s.Details.Causes[0].Field != field {
				t.Errorf("%s: %s", query, a.body)
			}
		}
	})
	t.Run("selectors of no form", func(t *testing.T) {
		for _, query := range []string{"labelSelector=" + url.QueryEscape("a=b=c"), "labelSelector=" + url.QueryEscape("a in (b"), "labelSelector=%2C%2C", "labelSelector=" + url.QueryEscape("a>b"),
			"labelSelector=" + url.QueryEscape("-a=b"), "labelSelector=%ff", "fieldSelector=" + url.QueryEscape(`metadata.name=a\x`), "fieldSelector=a,b",
			"labelSelector=" + strings.Repeat("a", 64), "shardSelector=x"} {
			for _, verb := range []string{"", "&watch=1&timeoutSeconds=1"} {
				a := w.ask(t, "GET", widgetList+"?"+query+verb, "")
				if a.code != 400 || a.status(t).Reason != metav1.StatusReasonBadRequest {
					t.Errorf("%s%s: %d %s", query, verb, a.code, a.body)
				}
			}
		}
	})
}

func TestWireTables(t *testing.T) {
	t.Parallel()
	w := newWire(t, func(o *server.Options) { o.Now = func() time.Time { return time.Now().Add(-80 * time.Second) } })
	w.make(t, widgetList, `{"metadata":{"name":"a"},"spec":{"size":1}}`)
	w.make(t, widgetList, `{"metadata":{"name":"b"}}`)
	const accept = "application/json;as=Table;v=v1;g=meta.k8s.io,application/json;as=Table;v=v1beta1;g=meta.k8s.io,application/json"
	docs := metav1.ObjectMeta{}.SwaggerDoc()
	quote := func(s string) string { b, _ := jsonText(s); return b }
	columns := `"columnDefinitions":[{"name":"Name","type":"string","format":"name","description":` + quote(docs["name"]) + `,"priority":0},{"name":"Age","type":"date","format":"","description":` + quote(docs["creationTimestamp"]) + `,"priority":0}]`
	seconds := regexp.MustCompile(`"[89]\ds"`)
	age := func(s string) string { return seconds.ReplaceAllString(s, `"80s"`) }
	row := func(name, kind string) string {
		return `{"cells":["` + name + `","80s"],"object":{"kind":"PartialObjectMetadata","apiVersion":"meta.k8s.io/` + kind + `","metadata":{"name":"` + name + `","namespace":"default","uid":"U","resourceVersion":"N","generation":1,"creationTimestamp":"T"}}}`
	}
	check := func(name string, a answer, want string) {
		t.Helper()
		a.want(t, 200)
		if got := age(scrub(a.body)); got != want+"\n" {
			t.Errorf("%s:\n%swant\n%s", name, got, want)
		}
		if got := a.header.Get("Content-Type"); got != "application/json" {
			t.Errorf("%s: Content-Type %q", name, got)
		}
	}
	head := `{"kind":"Table","apiVersion":"meta.k8s.io/v1","metadata":{"resourceVersion":"N"},` + columns + `,"rows":[`
	check("list", w.ask(t, "GET", widgetList, "", "Accept", accept), head+row("a", "v1")+","+row("b", "v1")+"]}")
	check("one", w.ask(t, "GET", widgetList+"/a", "", "Accept", accept), head+row("a", "v1")+"]}")
	check("v1beta1", w.ask(t, "GET", widgetList+"/a", "", "Accept", "application/json;as=Table;v=v1beta1;g=meta.k8s.io"), strings.Replace(head, "meta.k8s.io/v1", "meta.k8s.io/v1beta1", 1)+row("a", "v1beta1")+"]}")
	check("empty", w.ask(t, "GET", planetList, "", "Accept", accept), head+"]}")
	check("no object", w.ask(t, "GET", widgetList+"/a?includeObject=None", "", "Accept", accept), head+`{"cells":["a","80s"],"object":null}]}`)
	check("whole object", w.ask(t, "GET", widgetList+"/a?includeObject=Object", "", "Accept", accept), head+
		`{"cells":["a","80s"],"object":{"kind":"Widget","apiVersion":"example.com/v1","metadata":{"name":"a","namespace":"default","uid":"U","resourceVersion":"N","generation":1,"creationTimestamp":"T"},"spec":{"size":1},"status":{}}}]}`)
	const partial = "application/json;as=PartialObjectMetadata;v=v1;g=meta.k8s.io"
	meta := `{"kind":"PartialObjectMetadata","apiVersion":"meta.k8s.io/v1","metadata":{"name":"a","namespace":"default","uid":"U","resourceVersion":"N","generation":1,"creationTimestamp":"T"}}`
	check("metadata", w.ask(t, "GET", widgetList+"/a", "", "Accept", partial), meta)
	check("metadata of a list", w.ask(t, "GET", widgetList+"?fieldSelector=metadata.name%3Da", "", "Accept", strings.Replace(partial, "Metadata;", "MetadataList;", 1)),
		`{"kind":"PartialObjectMetadataList","apiVersion":"meta.k8s.io/v1","metadata":{"resourceVersion":"N"},"items":[`+meta+`]}`)
	t.Run("errors stay a Status", func(t *testing.T) {
		w.ask(t, "GET", widgetList+"/none", "", "Accept", accept).wantRefusal(t, refusal{404, "NotFound", `widgets.example.com "none" not found`, noSuchWidget, ""})
	})
	t.Run("writes answer in the form too", func(t *testing.T) {
		a := w.ask(t, "POST", widgetList, `{"metadata":{"name":"c"}}`, "Accept", accept)
		if a.code != 201 || !strings.HasPrefix(a.body, `{"kind":"Table",`) {
			t.Errorf("%d %s", a.code, a.body)
		}
		a = w.ask(t, "PATCH", widgetList+"/c", `{"spec":{"size":3}}`, "Accept", partial, "Content-Type", mergePatch)
		if a.code != 200 || !strings.HasPrefix(a.body, `{"kind":"PartialObjectMetadata",`) {
			t.Errorf("%d %s", a.code, a.body)
		}
		a = w.ask(t, "DELETE", widgetList+"/c", "", "Accept", accept)
		if a.code != 200 || !strings.HasPrefix(a.body, `{"kind":"Status",`) {
			t.Errorf("%d %s", a.code, a.body)
		}
	})
	t.Run("pages", func(t *testing.T) {
		a := w.ask(t, "GET", widgetList+"?limit=1", "", "Accept", accept)
		var table metav1.Table
		a.into(t, &table)
		if table.Continue == "" || *table.RemainingItemCount != 1 || len(table.Rows) != 1 {
			t.Errorf("%s", a.body)
		}
	})
}

func TestWireCompression(t *testing.T) {
	t.Parallel()
	w := newWire(t)
	w.make(t, widgetList, `{"metadata":{"name":"small"}}`)
	w.make(t, configMapList, `{"metadata":{"name":"large"},"data":{"k":"`+strings.Repeat("x", 200<<10)+`"}}`)
	for _, c := range slices.Sorted(maps.Keys(map[string]bool{widgetList: true, widgetList + "/small": true, configMapList: true, configMapList + "/large": true})) {
		a := w.ask(t, "GET", c, "", "Accept-Encoding", "gzip")
		a.want(t, 200)
		large := strings.HasPrefix(c, configMapList)
		if got := a.header.Get("Content-Encoding") == "gzip"; got != large {
			t.Errorf("%s: Content-Encoding %q", c, a.header.Get("Content-Encoding"))
		}
		if got := slices.Contains(a.header.Values("Vary"), "Accept-Encoding"); got != large {
			t.Errorf("%s: Vary %q", c, a.header.Values("Vary"))
		}
		plain := w.ask(t, "GET", c, "", "Accept-Encoding", "identity")
		if plain.header.Get("Content-Encoding") != "" || len(plain.body) < len(a.body) {
			t.Errorf("%s: %v", c, plain.header)
		}
	}
}
