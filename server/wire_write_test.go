package server_test

import (
	"fmt"
	"regexp"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

const widgetKind = `"group":"example.com","kind":"Widget"`

func TestWireCreate(t *testing.T) {
	t.Parallel()
	w := newWire(t)
	t.Run("struct order, dropped status, generation", func(t *testing.T) {
		a := w.ask(t, "POST", widgetList, `{"status":{"ready":true},"spec":{"color":"<&>","size":3},"metadata":{"labels":{"l":"v"},"name":"a","generation":7},"apiVersion":"example.com/v1","kind":"Widget"}`)
		a.want(t, 201)
		a.wantBody(t, `{"kind":"Widget","apiVersion":"example.com/v1","metadata":{"name":"a","namespace":"default","uid":"U","resourceVersion":"N","generation":1,`+
			`"creationTimestamp":"T","labels":{"l":"v"}},"spec":{"size":3,"color":"\u003c\u0026\u003e"},"status":{}}`+"\n")
		if loc := a.header.Get("Location"); loc != "" {
			t.Errorf("Location %q", loc)
		}
		if got := a.header.Get("Content-Type"); got != "application/json" {
			t.Errorf("Content-Type %q", got)
		}
		a.wantHouseHeaders(t)
	})
	t.Run("cluster-scoped, the namespace of the body is dropped", func(t *testing.T) {
		a := w.ask(t, "POST", planetList, `{"metadata":{"name":"mars","namespace":"default"},"spec":{"moons":2}}`)
		a.want(t, 201)
		a.wantBody(t, `{"kind":"Planet","apiVersion":"example.com/v1","metadata":{"name":"mars","uid":"U","resourceVersion":"N","generation":1,"creationTimestamp":"T"},"spec":{"moons":2}}`+"\n")
	})
	t.Run("any namespace of the right form", func(t *testing.T) {
		// This server has no namespaces, so a namespace need not exist.
		for _, ns := range []string{"elsewhere", "0", "a-1", strings.Repeat("n", 63)} {
			if m := w.make(t, "/apis/example.com/v1/namespaces/"+ns+"/widgets", `{"metadata":{"name":"a"}}`); m.Namespace != ns {
				t.Errorf("made in %q, want %q", m.Namespace, ns)
			}
		}
	})
	t.Run("core group without generation", func(t *testing.T) {
		a := w.ask(t, "POST", "/api/v1/namespaces/b/configmaps", `{"metadata":{"name":"a"},"data":{"k":"v"}}`)
		a.want(t, 201)
		a.wantBody(t, `{"kind":"ConfigMap","apiVersion":"v1","metadata":{"name":"a","namespace":"b","uid":"U","resourceVersion":"N","creationTimestamp":"T"},"data":{"k":"v"}}`+"\n")
	})
	t.Run("yaml in, yaml out", func(t *testing.T) {
		a := w.ask(t, "POST", configMapList, "metadata:\n  name: yam\ndata:\n  k: v\n", "Content-Type", "application/yaml", "Accept", "application/yaml")
		a.want(t, 201)
		if !strings.HasPrefix(a.body, "apiVersion: v1\ndata:\n  k: v\nkind: ConfigMap\nmetadata:\n") {
			t.Errorf("%s", a.body)
		}
	})
	t.Run("what only the server sets is replaced", func(t *testing.T) {
		m := w.make(t, widgetList, `{"metadata":{"name":"sys","uid":"1-2-3","creationTimestamp":"2001-01-01T00:00:00Z","selfLink":"/x","deletionTimestamp":"2001-01-01T00:00:00Z","deletionGracePeriodSeconds":3}}`)
		if m.UID == "1-2-3" || m.CreationTimestamp.Year() == 2001 || m.GetSelfLink() != "" || m.DeletionTimestamp != nil || m.DeletionGracePeriodSeconds != nil {
			t.Errorf("%+v", m)
		}
	})
	t.Run("generateName", func(t *testing.T) {
		long := strings.Repeat("p", 70)
		for prefix, want := range map[string]string{
			"x-": `^x-[bcdfghjklmnpqrstvwxz2456789]{5}$`,
			long: `^p{58}[bcdfghjklmnpqrstvwxz2456789]{5}$`,
		} {
			m := w.make(t, widgetList, `{"metadata":{"generateName":"`+prefix+`"}}`)
			if !regexp.MustCompile(want).MatchString(m.Name) || m.GenerateName != prefix {
				t.Errorf("name %q of %q", m.Name, m.GenerateName)
			}
		}
		if m := w.make(t, widgetList, `{"metadata":{"name":"given","generateName":"x-"}}`); m.Name != "given" {
			t.Errorf("name %q", m.Name)
		}
	})
	t.Run("dry run", func(t *testing.T) {
		defer w.unchanged(t)()
		a := w.ask(t, "POST", widgetList+"?dryRun=All", `{"metadata":{"name":"dry"},"spec":{"size":1}}`)
		a.want(t, 201)
		a.wantBody(t, `{"kind":"Widget","apiVersion":"example.com/v1","metadata":{"name":"dry","namespace":"default","uid":"U","generation":1,"creationTimestamp":"T"},"spec":{"size":1},"status":{}}`+"\n")
		w.ask(t, "GET", widgetList+"/dry", "").want(t, 404)
		if m := w.ask(t, "POST", widgetList+"?dryRun=All&dryRun=All", `{"metadata":{"generateName":"x-"}}`).meta(t); len(m.Name) != 7 {
			t.Errorf("name %q", m.Name)
		}
		w.ask(t, "POST", widgetList+"?dryRun=All", `{"metadata":{"name":"a"}}`).want(t, 409)
	})
	t.Run("repeated owners are made one", func(t *testing.T) {
		const owner = `{"apiVersion":"v1","kind":"Pod","name":"p","uid":"u1"}`
		a := w.ask(t, "POST", widgetList, `{"metadata":{"name":"owned","ownerReferences":[`+owner+","+owner+`]}}`)
		a.want(t, 201)
		if m := a.meta(t); len(m.OwnerReferences) != 1 {
			t.Errorf("%v", m.OwnerReferences)
		}
		if got := a.header.Get("Warning"); !strings.HasPrefix(got, `299 - ".metadata.ownerReferences contains duplicate entries; API server dedups`) {
			t.Errorf("Warning %q", got)
		}
	})
}

func TestWireCreateRefused(t *testing.T) {
	t.Parallel()
	w := newWire(t)
	w.make(t, widgetList, `{"metadata":{"name":"a"}}`)
	w.make(t, widgetList, `{"metadata":{"name":"ending","finalizers":["example.com/f"]}}`)
	w.ask(t, "DELETE", widgetList+"/ending", "").want(t, 200)
	invalid := func(name, message, causes string) refusal {
		named := ""
		if name != "" {
			named = `"name":"` + name + `",`
		}
		return refusal{422, "Invalid", fmt.Sprintf("Widget.example.com %q is invalid: %s", name, message), `{` + named + widgetKind + `,"causes":[` + causes + `]}`, ""}
	}
	options := func(kind, message, cause string) refusal {
		return refusal{422, "Invalid", kind + `.meta.k8s.io "" is invalid: ` + message, `{"group":"meta.k8s.io","kind":"` + kind + `","causes":[` + cause + `]}`, ""}
	}
	bad := func(message string) refusal { return refusal{400, "BadRequest", message, "", ""} }
	const post = "POST"
	w.runRefusals(t, map[string]exchange{
		"no name": {post, widgetList, `{}`, nil, invalid("", "metadata.name: Required value: name or generateName is required",
			`{"reason":"FieldValueRequired","message":"Required value: name or generateName is required","field":"metadata.name"}`)},
		"exists": {post, widgetList, `{"metadata":{"name":"a"}}`, nil,
			refusal{409, "AlreadyExists", `widgets.example.com "a" already exists`, `{"name":"a","group":"example.com","kind":"widgets"}`, ""}},
		"exists and is being deleted": {post, widgetList, `{"metadata":{"name":"ending"}}`, nil,
			refusal{409, "AlreadyExists", `object is being deleted: widgets.example.com "ending" already exists`, `{"name":"ending","group":"example.com","kind":"widgets"}`, ""}},
		"resourceVersion":   {post, widgetList, `{"metadata":{"name":"b","resourceVersion":"5"}}`, nil, bad("resourceVersion should not be set on objects to be created")},
		"another namespace": {post, widgetList, `{"metadata":{"name":"b","namespace":"other"}}`, nil, bad("the namespace of the provided object does not match the namespace sent on the request")},
		"another version": {post, widgetList, `{"apiVersion":"example.com/v2","kind":"Widget","metadata":{"name":"b"}}`, nil,
			bad(`Widget in version "v2" cannot be handled as a Widget: no kind "Widget" is registered for version "example.com/v2" in scheme "keelson"`)},
		"another group": {post, configMapList, `{"apiVersion":"apps/v1","kind":"ConfigMap","metadata":{"name":"b"}}`, nil,
			bad(`ConfigMap in version "v1" cannot be handled as a ConfigMap: no kind "ConfigMap" is registered for version "apps/v1" in scheme "keelson"`)},
		"a name in capitals": {post, widgetList, `{"metadata":{"name":"B"}}`, nil, invalid("B",
			`metadata.name: Invalid value: "B": a lowercase RFC 1123 subdomain must consist of lower case alphanumeric characters, '-' or '.', and must start and end with an alphanumeric character (e.g. 'example.com', regex used for validation is '[a-z0-9]([-a-z0-9]*[a-z0-9])?(\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*')`,
			`{"reason":"FieldValueInvalid","message":"Invalid value: \"B\": a lowercase RFC 1123 subdomain must consist of lower case alphanumeric characters, '-' or '.', and must start and end with an alphanumeric character (e.g. 'example.com', regex used for validation is '[a-z0-9]([-a-z0-9]*[a-z0-9])?(\\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*')","field":"metadata.name"}`)},
		"both collector finalizers": {post, widgetList, `{"metadata":{"name":"b","finalizers":["orphan","foregroundDeletion"]}}`, nil, invalid("b",
			`metadata.finalizers: Invalid value: ["orphan","foregroundDeletion"]: finalizer orphan and foregroundDeletion cannot be both set`,
			`{"reason":"FieldValueInvalid","message":"Invalid value: [\"orphan\",\"foregroundDeletion\"]: finalizer orphan and foregroundDeletion cannot be both set","field":"metadata.finalizers"}`)},
		"an owner without uid": {post, widgetList, `{"metadata":{"name":"b","ownerReferences":[{"apiVersion":"v1","kind":"Pod","name":"p","uid":""}]}}`, nil, invalid("b",
			`metadata.ownerReferences[0].uid: Required value: must not be empty`,
			`{"reason":"FieldValueRequired","message":"Required value: must not be empty","field":"metadata.ownerReferences[0].uid"}`)},
		"dryRun of no sense": {post, widgetList + "?dryRun=foo", `{"metadata":{"name":"b"}}`, nil, options("CreateOptions",
			`dryRun: Unsupported value: ["foo"]: supported values: "All"`,
			`{"reason":"FieldValueNotSupported","message":"Unsupported value: [\"foo\"]: supported values: \"All\"","field":"dryRun"}`)},
		"fieldValidation of no sense": {post, widgetList + "?fieldValidation=foo", `{"metadata":{"name":"b"}}`, nil, options("CreateOptions",
			`fieldValidation: Unsupported value: "foo": supported values: "", "Ignore", "Strict", "Warn"`,
			`{"reason":"FieldValueNotSupported","message":"Unsupported value: \"foo\": supported values: \"\", \"Ignore\", \"Strict\", \"Warn\"","field":"fieldValidation"}`)},
		"unknown field, strict": {post, widgetList + "?fieldValidation=Strict", `{"metadata":{"name":"b"},"spec":{"foo":1}}`, nil,
			bad(`Widget in version "v1" cannot be handled as a Widget: strict decoding error: unknown field "spec.foo"`)},
		"two unknown and a duplicate, strict": {post, widgetList + "?fieldValidation=Strict", `{"metadata":{"name":"b","x":1},"spec":{"size":1,"size":2,"foo":1}}`, nil,
			bad(`Widget in version "v1" cannot be handled as a Widget: strict decoding error: unknown field "metadata.x", duplicate field "spec.size", unknown field "spec.foo"`)},
		"a field of another case, strict": {post, widgetList + "?fieldValidation=Strict", `{"metadata":{"name":"b"},"spec":{"Size":1}}`, nil,
			bad(`Widget in version "v1" cannot be handled as a Widget: strict decoding error: unknown field "spec.Size"`)},
		"half a body": {post, widgetList, `{"metadata":{"name":"b"`, nil,
			bad(`the object provided is unrecognized (must be of type Widget): couldn't get version/kind; json parse error: unexpected end of JSON input ({"metadata":{"name":"b")`)},
		"an empty body": {post, widgetList, ``, nil,
			bad(`the object provided is unrecognized (must be of type Widget): couldn't get version/kind; json parse error: unexpected end of JSON input (<empty>)`)},
		"a list": {post, widgetList, `[]`, nil,
			bad(`the object provided is unrecognized (must be of type Widget): couldn't get version/kind; json parse error: json: cannot unmarshal array into Go value of type struct { APIVersion string "json:\"apiVersion,omitempty\""; Kind string "json:\"kind,omitempty\"" } (5b5d)`)},
	})
	t.Run("namespaces of no form", func(t *testing.T) {
		defer w.unchanged(t)()
		for _, ns := range []string{"No_where", "a.b", "-a", strings.Repeat("n", 64)} {
			a := w.ask(t, "POST", "/apis/example.com/v1/namespaces/"+ns+"/widgets", `{"metadata":{"name":"b"}}`)
			a.want(t, 422)
			if s := a.status(t); s.Reason != metav1.StatusReasonInvalid || len(s.Details.Causes) != 1 || s.Details.Causes[0].Field != "metadata.namespace" {
				t.Errorf("%s: %s", ns, a.body)
			}
		}
	})
	t.Run("another kind", func(t *testing.T) {
		defer w.unchanged(t)()
		for list, body := range map[string]string{
			configMapList: `{"kind":"Pod","apiVersion":"v1","metadata":{"name":"b"}}`,
			widgetList:    `{"kind":"Planet","apiVersion":"example.com/v1","metadata":{"name":"b"}}`,
		} {
			a := w.ask(t, "POST", list, body)
			a.want(t, 400)
			if m := a.status(t).Message; !regexp.MustCompile(`^(Pod|Planet) in version "v1" cannot be handled as a (ConfigMap|Widget): `).MatchString(m) {
				t.Errorf("%s", m)
			}
		}
	})
	t.Run("wrong types", func(t *testing.T) {
		defer w.unchanged(t)()
		for _, body := range []string{
			`{"metadata":{"name":"b"},"spec":{"size":"3"}}`, `{"metadata":{"name":"b"},"spec":{"size":3.5}}`, `{"metadata":{"name":"b"},"spec":{"size":99999999999}}`,
			`{"metadata":{"name":"b"},"spec":[]}`, `{"metadata":{"name":"b"},"spec":{"size":{}}}`, `{"metadata":{"name":1}}`, `{"metadata":[]}`, `{"metadata":{"labels":{"a":1},"name":"b"}}`,
			`{"metadata":{"name":"b","creationTimestamp":"yesterday"}}`, `{"metadata":{"name":"b"},"spec":"s"}`, `{"kind":1,"metadata":{"name":"b"}}`,
			`{"apiVersion":"a/b/c","kind":"Widget","metadata":{"name":"b"}}`, `{"metadata":{"name":"b"},"spec":{"weight":1e999}}`, `{"metadata":{"name":"b"},"spec":{"weight":NaN}}`,
		} {
			a := w.ask(t, "POST", widgetList, body)
			if a.code != 400 {
				t.Errorf("%s: %d %s", body, a.code, a.body)
				continue
			}
			if s := a.status(t); s.Reason != metav1.StatusReasonBadRequest || s.Message == "" {
				t.Errorf("%s: %s", body, a.body)
			}
		}
	})
	t.Run("names, labels and annotations of no form", func(t *testing.T) {
		defer w.unchanged(t)()
		for _, m := range []string{
			`{"name":".."}`, `{"name":"a/b"}`, `{"name":"a%b"}`, `{"name":"` + strings.Repeat("n", 254) + `"}`, `{"generateName":"A_"}`, `{"name":"b","labels":{"/":""}}`,
			`{"name":"b","labels":{"a":"` + strings.Repeat("v", 64) + `"}}`, `{"name":"b","annotations":{"k":"` + strings.Repeat("v", 257<<10) + `"}}`,
			`{"name":"b","finalizers":["a b/c"]}`,
			`{"name":"b","ownerReferences":[{"apiVersion":"v1","kind":"P","name":"p","uid":"1","controller":true},{"apiVersion":"v1","kind":"P","name":"q","uid":"2","controller":true}]}`,
			`{"name":"b","ownerReferences":[{"apiVersion":"v1","kind":"Event","name":"p","uid":"1"}]}`,
		} {
			a := w.ask(t, "POST", widgetList, `{"metadata":`+m+`}`)
			if s := a.status(t); a.code != 422 || s.Reason != metav1.StatusReasonInvalid || s.Details == nil || len(s.Details.Causes) == 0 {
				t.Errorf("%.100s: %d %.500s", m, a.code, a.body)
			}
		}
	})
}

func TestWireFieldValidation(t *testing.T) {
	t.Parallel()
	w := newWire(t)
	w.make(t, widgetList, `{"metadata":{"name":"a"}}`)
	const extra = `"spec":{"foo":1,"size":1,"size":2}}`
	warnings := []string{`299 - "unknown field \"spec.foo\""`, `299 - "duplicate field \"spec.size\""`}
	for name, c := range map[string]struct {
		method, path, body string
		code               int
		header             []string
	}{
		"create":      {"POST", widgetList, `{"metadata":{"generateName":"b-"},` + extra, 201, nil},
		"replace":     {"PUT", widgetList + "/a", `{"metadata":{"name":"a"},` + extra, 200, nil},
		"merge patch": {"PATCH", widgetList + "/a", `{` + extra, 200, []string{"Content-Type", mergePatch}},
	} {
		t.Run(name, func(t *testing.T) {
			for query, want := range map[string][]string{"": warnings, "?fieldValidation=Warn": warnings, "?fieldValidation=": warnings, "?fieldValidation=Ignore": nil} {
				a := w.ask(t, c.method, c.path+query, c.body, c.header...)
				a.want(t, c.code)
				got := a.header.Values("Warning")
				if len(got) != len(want) {
					t.Errorf("%s: warnings %q", query, got)
				}
				for _, text := range want {
					if !strings.Contains(strings.Join(got, "\n"), text) {
						t.Errorf("%s: %q lacks %s", query, got, text)
					}
				}
			}
			defer w.unchanged(t)()
			code := 400
			if c.method == "PATCH" {
				code = 422
			}
			a := w.ask(t, c.method, c.path+"?fieldValidation=Strict", c.body, c.header...)
			a.want(t, code)
			if s := a.status(t); code == 422 && (s.Details == nil || len(s.Details.Causes) != 1 || s.Details.Causes[0].Field != "patch" || s.Details.Name != "" || s.Details.Kind != "") {
				t.Errorf("%s", a.body)
			}
		})
	}
}

func TestWireReplace(t *testing.T) {
	t.Parallel()
	w := newWire(t)
	t.Run("no change, no write", func(t *testing.T) {
		a := w.ask(t, "POST", widgetList, `{"metadata":{"name":"same"},"spec":{"size":1}}`)
		check := w.unchanged(t)
		b := w.ask(t, "PUT", widgetList+"/same", a.body)
		b.want(t, 200)
		if a.body != b.body {
			t.Errorf("%s became %s", a.body, b.body)
		}
		w.ask(t, "PUT", widgetList+"/same", `{"metadata":{"name":"same"},"spec":{"size":1}}`).want(t, 200)
		check()
	})
	t.Run("without resourceVersion it overwrites", func(t *testing.T) {
		made := w.make(t, widgetList, `{"metadata":{"name":"over","labels":{"a":"1"}},"spec":{"size":1}}`)
		a := w.ask(t, "PUT", widgetList+"/over", `{"metadata":{"name":"over"},"spec":{"color":"red"}}`)
		a.want(t, 200)
		m := a.meta(t)
		if m.Generation != 2 || m.UID != made.UID || !m.CreationTimestamp.Equal(&made.CreationTimestamp) || len(m.Labels) != 0 {
			t.Errorf("%s", a.body)
		}
		w.make(t, configMapList, `{"metadata":{"name":"over"},"data":{"a":"1"}}`)
		w.ask(t, "PUT", configMapList+"/over", `{"metadata":{"name":"over"},"data":{"a":"2"}}`).want(t, 200)
	})
	t.Run("labels do not count as generation", func(t *testing.T) {
		w.make(t, widgetList, `{"metadata":{"name":"gen"},"spec":{"size":1}}`)
		a := w.ask(t, "PUT", widgetList+"/gen", `{"metadata":{"name":"gen","generation":44,"labels":{"a":"b"}},"spec":{"size":1},"status":{"ready":true}}`)
		a.want(t, 200)
		if m := a.meta(t); m.Generation != 1 || strings.Contains(a.body, "ready") {
			t.Errorf("%s", a.body)
		}
	})
	t.Run("put creates where the kind says so", func(t *testing.T) {
		a := w.ask(t, "PUT", slotList+"/s", `{"metadata":{"name":"s"},"spec":{"holder":"me"}}`)
		a.want(t, 201)
		a.wantBody(t, `{"kind":"Slot","apiVersion":"example.com/v1","metadata":{"name":"s","namespace":"default","uid":"U","resourceVersion":"N","generation":1,"creationTimestamp":"T"},"spec":{"holder":"me"}}`+"\n")
		w.ask(t, "PUT", slotList+"/s", `{"metadata":{"name":"s"},"spec":{"holder":"you"}}`).want(t, 200)
		w.ask(t, "PUT", slotList+"/t", `{"metadata":{"name":"t","uid":"1-2"}}`).want(t, 409)
		w.ask(t, "PUT", slotList+"/t?dryRun=All", `{"metadata":{"name":"t"}}`).want(t, 201)
		w.ask(t, "GET", slotList+"/t", "").want(t, 404)
	})
	t.Run("dry run", func(t *testing.T) {
		made := w.make(t, widgetList, `{"metadata":{"name":"dry"},"spec":{"size":1}}`)
		defer w.unchanged(t)()
		a := w.ask(t, "PUT", widgetList+"/dry?dryRun=All", `{"metadata":{"name":"dry"},"spec":{"size":9}}`)
		a.want(t, 200)
		if m := a.meta(t); m.Generation != 2 || m.ResourceVersion != made.ResourceVersion || !strings.Contains(a.body, `"size":9`) {
			t.Errorf("%s", a.body)
		}
	})
	t.Run("managedFields are kept unless they are reset", func(t *testing.T) {
		const entries = `[{"manager":"m","operation":"Update","apiVersion":"example.com/v1","time":"2020-01-01T00:00:00Z","fieldsType":"FieldsV1","fieldsV1":{"f:spec":{}}}]`
		w.make(t, widgetList, `{"metadata":{"name":"managed","managedFields":`+entries+`}}`)
		a := w.ask(t, "PUT", widgetList+"/managed", `{"metadata":{"name":"managed"},"spec":{"size":1}}`)
		if !strings.Contains(a.body, `"managedFields":`+strings.TrimSuffix(entries, "]")+`,{"manager":"Go-http-client","operation":"Update"`) {
			t.Errorf("%s", a.body)
		}
		a = w.ask(t, "PUT", widgetList+"/managed", `{"metadata":{"name":"managed","managedFields":[{}]},"spec":{"size":1}}`)
		if a.code != 200 || strings.Contains(a.body, "managedFields") {
			t.Errorf("%s", a.body)
		}
	})
}

func TestWireReplaceRefused(t *testing.T) {
	t.Parallel()
	w := newWire(t)
	made := w.make(t, widgetList, `{"metadata":{"name":"a"},"spec":{"size":1}}`)
	w.ask(t, "PUT", widgetList+"/a", `{"metadata":{"name":"a"},"spec":{"size":2}}`).want(t, 200)
	w.make(t, ledgerList, `{"metadata":{"name":"l"}}`)
	const named = `{"name":"a","group":"example.com","kind":"widgets"}`
	bad := func(message string) refusal { return refusal{400, "BadRequest", message, "", ""} }
	w.runRefusals(t, map[string]exchange{
		"a stale version": {"PUT", widgetList + "/a", `{"metadata":{"name":"a","resourceVersion":"` + made.ResourceVersion + `"}}`, nil, refusal{409, "Conflict",
			`Operation cannot be fulfilled on widgets.example.com "a": the object has been modified; please apply your changes to the latest version and try again`, named, ""}},
		"a version of letters": {"PUT", widgetList + "/a", `{"metadata":{"name":"a","resourceVersion":"abc"}}`, nil,
			bad(`invalid resource version "abc": strconv.ParseUint: parsing "abc": invalid syntax`)},
		"another uid": {"PUT", widgetList + "/a", `{"metadata":{"name":"a","uid":"x"}}`, nil, refusal{409, "Conflict",
			`Operation cannot be fulfilled on widgets.example.com "a": StorageError: invalid object, Code: 4, Key: /registry/example.com/widgets/default/a, ResourceVersion: 0, ` +
				`AdditionalErrorMsg: Precondition failed: UID in precondition: x, UID in object meta: ` + string(made.UID), named, ""}},
		"no version where one is required": {"PUT", ledgerList + "/l", `{"metadata":{"name":"l"}}`, nil, refusal{422, "Invalid",
			`ledgers.example.com "l" is invalid: metadata.resourceVersion: Invalid value: 0: must be specified for an update`,
			`{"name":"l","group":"example.com","kind":"ledgers","causes":[{"reason":"FieldValueInvalid","message":"Invalid value: 0: must be specified for an update","field":"metadata.resourceVersion"}]}`, ""}},
		"another name":      {"PUT", widgetList + "/a", `{"metadata":{"name":"b"}}`, nil, bad("the name of the object (b) does not match the name on the URL (a)")},
		"no name":           {"PUT", widgetList + "/a", `{}`, nil, bad("the name of the object (a based on URL) was undeterminable: name must be provided")},
		"another namespace": {"PUT", widgetList + "/a", `{"metadata":{"name":"a","namespace":"other"}}`, nil, bad("the namespace of the provided object does not match the namespace sent on the request")},
		"another version of the API": {"PUT", widgetList + "/a", `{"apiVersion":"example.com/v2","kind":"Widget","metadata":{"name":"a"}}`, nil,
			bad(`Widget in version "v2" cannot be handled as a Widget: no kind "Widget" is registered for version "example.com/v2" in scheme "keelson"`)},
		"dryRun of no sense": {"PUT", widgetList + "/a?dryRun=Some", `{"metadata":{"name":"a"}}`, nil, refusal{422, "Invalid",
			`UpdateOptions.meta.k8s.io "" is invalid: dryRun: Unsupported value: ["Some"]: supported values: "All"`,
			`{"group":"meta.k8s.io","kind":"UpdateOptions","causes":[{"reason":"FieldValueNotSupported","message":"Unsupported value: [\"Some\"]: supported values: \"All\"","field":"dryRun"}]}`, ""}},
	})
	t.Run("fieldManager too long", func(t *testing.T) {
		defer w.unchanged(t)()
		a := w.ask(t, "PUT", widgetList+"/a?fieldManager="+strings.Repeat("m", 129), `{"metadata":{"name":"a"}}`)
		a.want(t, 422)
		if s := a.status(t); s.Details.Causes[0].Field != "fieldManager" {
			t.Errorf("%s", a.body)
		}
	})
	t.Run("to a collection", func(t *testing.T) {
		w.ask(t, "PUT", widgetList, `{"metadata":{"name":"a"}}`).want(t, 405)
		w.ask(t, "PATCH", widgetList, `{}`, "Content-Type", mergePatch).want(t, 405)
	})
}

func TestWirePatch(t *testing.T) {
	t.Parallel()
	w := newWire(t)
	const a = widgetList + "/a"
	w.make(t, widgetList, `{"metadata":{"name":"a","labels":{"x":"1"}},"spec":{"size":1}}`)
	w.make(t, configMapList, `{"metadata":{"name":"c"},"data":{"k":"v","l":"w"}}`)
	ops := strings.Repeat(`{"op":"test","path":"/spec/size","value":1},`, 10000)
	rejected := refusal{422, "Invalid", "the server rejected our request due to an error in our request", `{}`, ""}
	w.runRefusals(t, map[string]exchange{
		"test of another value":  {"PATCH", a, `[{"op":"test","path":"/spec/size","value":9}]`, []string{"Content-Type", jsonPatch}, rejected},
		"removal of what is not": {"PATCH", a, `[{"op":"remove","path":"/spec/none"}]`, []string{"Content-Type", jsonPatch}, rejected},
		"one operation too many": {"PATCH", a, `[` + ops + `{"op":"test","path":"/spec/size","value":1}]`, []string{"Content-Type", jsonPatch}, refusal{413, "RequestEntityTooLarge", "Request entity too large: The allowed maximum operations in a JSON patch is 10000, got 10001", "", ""}},
		"stale resourceVersion":  {"PATCH", a, `{"metadata":{"resourceVersion":"1"}}`, []string{"Content-Type", mergePatch}, refusal{409, "Conflict", `Operation cannot be fulfilled on widgets.example.com "a": the object has been modified; please apply your changes to the latest version and try again`, `{"name":"a","group":"example.com","kind":"widgets"}`, ""}},
		"another name":           {"PATCH", a, `{"metadata":{"name":"b"}}`, []string{"Content-Type", mergePatch}, refusal{400, "BadRequest", "the name of the object (b) does not match the name on the URL (a)", "", ""}},
		"another namespace":      {"PATCH", a, `{"metadata":{"namespace":"b"}}`, []string{"Content-Type", mergePatch}, refusal{400, "BadRequest", "the namespace of the provided object does not match the namespace sent on the request", "", ""}},
		"force":                  {"PATCH", a + "?force=true", `{}`, []string{"Content-Type", mergePatch}, refusal{422, "Invalid", `PatchOptions.meta.k8s.io "" is invalid: force: Forbidden: may not be specified for non-apply patch`, `{"group":"meta.k8s.io","kind":"PatchOptions","causes":[{"reason":"FieldValueForbidden","message":"Forbidden: may not be specified for non-apply patch","field":"force"}]}`, ""}},
		"dryRun of no sense":     {"PATCH", a + "?dryRun=x", `{}`, []string{"Content-Type", mergePatch}, refusal{422, "Invalid", `PatchOptions.meta.k8s.io "" is invalid: dryRun: Unsupported value: ["x"]: supported values: "All"`, `{"group":"meta.k8s.io","kind":"PatchOptions","causes":[{"reason":"FieldValueNotSupported","message":"Unsupported value: [\"x\"]: supported values: \"All\"","field":"dryRun"}]}`, ""}},
		"another uid": {"PATCH", a, `{"metadata":{"uid":"x"}}`, []string{"Content-Type", mergePatch}, refusal{422, "Invalid", `Widget.example.com "a" is invalid: metadata.uid: Invalid value: "x": field is immutable`,
			`{"name":"a","group":"example.com","kind":"Widget","causes":[{"reason":"FieldValueInvalid","message":"Invalid value: \"x\": field is immutable","field":"metadata.uid"}]}`, ""}},
	})
	t.Run("no patch at all", func(t *testing.T) {
		defer w.unchanged(t)()
		for _, c := range []struct{ kind, body string }{
			{jsonPatch, `[{"op":"test"`}, {jsonPatch, `{}`}, {jsonPatch, ``}, {jsonPatch, `null2`}, {jsonPatch, `"x"`}, {jsonPatch, `[1]`},
			{mergePatch, `{`}, {mergePatch, ``}, {mergePatch, `[]`}, {mergePatch, `1`}, {mergePatch, `"a"`}, {mergePatch, "\xff"}, {mergePatch, `{"a":NaN}`},
		} {
			r := w.ask(t, "PATCH", a, c.body, "Content-Type", c.kind)
			if r.code != 400 {
				t.Errorf("%s %q: %d %s", c.kind, c.body, r.code, r.body)
			}
		}
	})
	t.Run("operations that cannot be", func(t *testing.T) {
		defer w.unchanged(t)()
		for _, op := range []string{`{"op":"none","path":"/a"}`, `{"op":"add","path":"spec"}`, `{"op":"move","path":"/spec","from":"/none"}`, `{}`, `{"op":"replace","path":"/none/x","value":1}`, `{"op":"add","path":"/spec/tags/7","value":"x"}`} {
			r := w.ask(t, "PATCH", a, `[`+op+`]`, "Content-Type", jsonPatch)
			if r.code != 422 && r.code != 400 {
				t.Errorf("%s: %d %s", op, r.code, r.body)
			}
		}
	})
	t.Run("a result that is no widget", func(t *testing.T) {
		defer w.unchanged(t)()
		for _, c := range []struct{ kind, body string }{{mergePatch, `{"spec":{"size":"big"}}`}, {mergePatch, `{"spec":[]}`}, {jsonPatch, `[{"op":"replace","path":"/spec","value":7}]`}, {jsonPatch, `[{"op":"replace","path":"","value":[]}]`}} {
			r := w.ask(t, "PATCH", a, c.body, "Content-Type", c.kind)
			r.want(t, 422)
			if s := r.status(t); s.Reason != metav1.StatusReasonInvalid || s.Details == nil || len(s.Details.Causes) != 1 || s.Details.Causes[0].Field != "patch" {
				t.Errorf("%s: %s", c.body, r.body)
			}
		}
	})
	t.Run("malformed json patch in words", func(t *testing.T) {
		r := w.ask(t, "PATCH", a, `[{"op":`, "Content-Type", jsonPatch)
		r.want(t, 400)
		t.Log(r.body)
	})
	t.Run("merge patch", func(t *testing.T) {
		r := w.ask(t, "PATCH", configMapList+"/c", `{"data":{"k":null,"n":"x"}}`, "Content-Type", mergePatch+"; charset=utf-8")
		r.want(t, 200)
		var cm corev1.ConfigMap
		r.into(t, &cm)
		if len(cm.Data) != 2 || cm.Data["l"] != "w" || cm.Data["n"] != "x" {
			t.Errorf("%s", r.body)
		}
	})
	t.Run("generation and status", func(t *testing.T) {
		r := w.ask(t, "PATCH", a, `{"metadata":{"labels":{"y":"2"}},"status":{"ready":true}}`, "Content-Type", mergePatch)
		if m := r.meta(t); m.Generation != 1 || m.Labels["y"] != "2" || strings.Contains(r.body, "ready") {
			t.Errorf("%s", r.body)
		}
		r = w.ask(t, "PATCH", a, `[{"op":"replace","path":"/spec/size","value":5}]`, "Content-Type", jsonPatch)
		if m := r.meta(t); m.Generation != 2 {
			t.Errorf("%s", r.body)
		}
		r = w.ask(t, "PATCH", a+"/status", `{"status":{"ready":true},"spec":{"size":77},"metadata":{"labels":{"z":"3"}}}`, "Content-Type", mergePatch)
		r.want(t, 200)
		if m := r.meta(t); m.Generation != 2 || !strings.Contains(r.body, `"status":{"ready":true}`) || strings.Contains(r.body, `"size":77`) {
			t.Errorf("%s", r.body)
		}
		check := w.unchanged(t)
		w.ask(t, "PATCH", a, `{"spec":{"size":5}}`, "Content-Type", mergePatch).want(t, 200)
		w.ask(t, "PATCH", a, `{}`, "Content-Type", mergePatch).want(t, 200)
		w.ask(t, "PATCH", a, `[]`, "Content-Type", jsonPatch).want(t, 200)
		w.ask(t, "PATCH", a+"?dryRun=All", `{"spec":{"size":6}}`, "Content-Type", mergePatch).want(t, 200)
		check()
	})
	t.Run("10000 operations", func(t *testing.T) {
		w.ask(t, "PATCH", a, `[`+strings.Repeat(`{"op":"test","path":"/spec/size","value":5},`, 9999)+`{"op":"test","path":"/spec/size","value":5}]`, "Content-Type", jsonPatch).want(t, 200)
	})
}

func TestWireStatusAndScale(t *testing.T) {
	t.Parallel()
	w := newWire(t)
	const a = widgetList + "/a"
	w.make(t, widgetList, `{"metadata":{"name":"a","labels":{"l":"1"}},"spec":{"size":1}}`)
	t.Run("put status", func(t *testing.T) {
		r := w.ask(t, "PUT", a+"/status", `{"metadata":{"name":"a","labels":{"other":"x"}},"spec":{"size":9},"status":{"replicas":2,"selector":"a=b"}}`)
		r.want(t, 200)
		r.wantBody(t, `{"kind":"Widget","apiVersion":"example.com/v1","metadata":{"name":"a","namespace":"default","uid":"U","resourceVersion":"N","generation":1,"creationTimestamp":"T",`+
			`"labels":{"l":"1"}},"spec":{"size":1},"status":{"replicas":2,"selector":"a=b"}}`+"\n")
		if got := w.ask(t, "GET", a+"/status", ""); got.body != r.body {
			t.Errorf("GET %s, PUT %s", got.body, r.body)
		}
	})
	t.Run("status refuses", func(t *testing.T) {
		w.ask(t, "PUT", a+"/status", `{"metadata":{"name":"a","resourceVersion":"1"},"status":{}}`).want(t, 409)
		w.ask(t, "PUT", a+"/status", `{"metadata":{"name":"a","uid":"1"},"status":{}}`).want(t, 409)
		w.ask(t, "PUT", widgetList+"/none/status", `{"metadata":{"name":"none"},"status":{}}`).want(t, 404)
		w.ask(t, "GET", widgetList+"/none/status", "").want(t, 404)
		w.ask(t, "DELETE", a+"/status", "").want(t, 405)
		w.ask(t, "GET", planetList+"/none/status", "").want(t, 404)
	})
	t.Run("get scale", func(t *testing.T) {
		r := w.ask(t, "GET", a+"/scale", "")
		r.want(t, 200)
		r.wantBody(t, `{"kind":"Scale","apiVersion":"autoscaling/v1","metadata":{"name":"a","namespace":"default","uid":"U","resourceVersion":"N","creationTimestamp":"T"},"spec":{},"status":{"replicas":2,"selector":"a=b"}}`+"\n")
	})
	t.Run("patch scale", func(t *testing.T) {
		r := w.ask(t, "PATCH", a+"/scale", `{"spec":{"replicas":3}}`, "Content-Type", mergePatch)
		r.want(t, 200)
		r.wantBody(t, `{"kind":"Scale","apiVersion":"autoscaling/v1","metadata":{"name":"a","namespace":"default","uid":"U","resourceVersion":"N","creationTimestamp":"T"},"spec":{"replicas":3},"status":{"replicas":2,"selector":"a=b"}}`+"\n")
		got := w.ask(t, "GET", a, "")
		if m := got.meta(t); m.Generation != 2 || !strings.Contains(got.body, `"replicas":3`) {
			t.Errorf("%s", got.body)
		}
	})
	t.Run("put scale", func(t *testing.T) {
		r := w.ask(t, "PUT", a+"/scale", `{"kind":"Scale","apiVersion":"autoscaling/v1","metadata":{"name":"a","namespace":"default"},"spec":{"replicas":4}}`)
		r.want(t, 200)
		check := w.unchanged(t)
		w.ask(t, "PUT", a+"/scale?dryRun=All", `{"metadata":{"name":"a"},"spec":{"replicas":5}}`).want(t, 200)
		w.ask(t, "PUT", a+"/scale", `{"metadata":{"name":"a","resourceVersion":"1"},"spec":{"replicas":5}}`).want(t, 409)
		w.ask(t, "PUT", a+"/scale", `{"metadata":{"name":"b"},"spec":{"replicas":5}}`).want(t, 400)
		w.ask(t, "PUT", a+"/scale", `{"kind":"Widget","apiVersion":"example.com/v1","metadata":{"name":"a"},"spec":{"replicas":5}}`).want(t, 400)
		w.ask(t, "PUT", widgetList+"/none/scale", `{"metadata":{"name":"none"},"spec":{"replicas":5}}`).want(t, 404)
		w.ask(t, "GET", widgetList+"/none/scale", "").want(t, 404)
		w.ask(t, "POST", a+"/scale", `{}`).want(t, 405)
		check()
	})
	t.Run("negative", func(t *testing.T) {
		defer w.unchanged(t)()
		r := w.ask(t, "PATCH", a+"/scale", `{"spec":{"replicas":-3}}`, "Content-Type", mergePatch)
		r.want(t, 422)
		r.wantRefusal(t, refusal{422, "Invalid", `Scale.autoscaling "a" is invalid: spec.replicas: Invalid value: -3: must be greater than or equal to 0`,
			`{"name":"a","group":"autoscaling","kind":"Scale","causes":[{"reason":"FieldValueInvalid","message":"Invalid value: -3: must be greater than or equal to 0","field":"spec.replicas"}]}`, ""})
	})
}
