package crd_test

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
)

// loadKinds is the number of schemas in TestChangesUnderLoad.
const loadKinds = 8

// loadDefinition returns the i-th form of the definition in TestChangesUnderLoad. Of the fields f0, f1, ... of the spec only the
// i-th is in the schema. The printer column and the short name are named after it, and v2 is served in every second form.
func loadDefinition(i int) *apiextensionsv1.CustomResourceDefinition {
	schema := func() *apiextensionsv1.CustomResourceValidation {
		text := apiextensionsv1.JSONSchemaProps{Type: "string"}
		return &apiextensionsv1.CustomResourceValidation{OpenAPIV3Schema: &apiextensionsv1.JSONSchemaProps{
			Type: "object",
			Properties: map[string]apiextensionsv1.JSONSchemaProps{
				"spec": {Type: "object", Properties: map[string]apiextensionsv1.JSONSchemaProps{
					"name": text, "n": {Type: "integer"}, loadField(i): text,
				}},
			},
		}}
	}
	columns := []apiextensionsv1.CustomResourceColumnDefinition{{Name: "Column " + loadField(i), Type: "string", JSONPath: ".spec." + loadField(i)}}
	return definitionOf("loads", "Load", func(d *apiextensionsv1.CustomResourceDefinition) {
		d.Spec.Names.ShortNames = []string{loadField(i)}
		d.Spec.Names.Categories = []string{"loaded"}
		d.Spec.Versions[0].Schema = schema()
		d.Spec.Versions[0].AdditionalPrinterColumns = columns
		second := d.Spec.Versions[0]
		second.Name, second.Storage, second.Served = "v2", false, i%2 == 0
		second.Schema = schema()
		d.Spec.Versions = append(d.Spec.Versions, second)
	})
}

func loadField(i int) string { return fmt.Sprint("f", i) }

// load is many writers and watchers of Loads.
type load struct {
	*site
	ctx     context.Context
	stop    context.CancelFunc
	work    sync.WaitGroup
	created atomic.Int64
	last    []atomic.Int64 // by watch: the form of the last event
}

func (l *load) fail(format string, args ...any) {
	if l.ctx.Err() == nil {
		l.t.Errorf(format, args...)
		l.stop()
	}
}

// ask sends a request and returns the answer, which the caller must close, or nil after a failure.
func (l *load) ask(method, path, contentType, body string) *http.Response {
	req, err := http.NewRequestWithContext(l.ctx, method, l.srv.URL+path, strings.NewReader(body))
	if err != nil {
		l.fail("%v", err)
		return nil
	}
	if body != "" {
		req.Header.Set("Content-Type", contentType)
	}
	if strings.HasPrefix(contentType, "table") {
		req.Header.Set("Accept", "application/json;as=Table;v=v1;g=meta.k8s.io")
	}
	resp, err := l.c.Do(req)
	if err != nil {
		l.fail("%s %s: %v", method, path, err)
		return nil
	}
	return resp
}

// answer sends a request, reads the whole answer and checks that it has one of the codes.
func (l *load) answer(method, path, contentType, body string, codes ...int) (int, []byte) {
	resp := l.ask(method, path, contentType, body)
	if resp == nil {
		return 0, nil
	}
	defer resp.Body.Close()
	text, err := io.ReadAll(resp.Body)
	if err != nil || !slices.Contains(codes, resp.StatusCode) {
		l.fail("%s %s: %d %s, %v; want one of %v", method, path, resp.StatusCode, text, err, codes)
		return 0, nil
	}
	return resp.StatusCode, text
}

// loadObject is an object with the fields of all forms.
func loadObject(version, name string, n int) string {
	spec := map[string]any{"name": name, "n": n}
	for i := range loadKinds {
		spec[loadField(i)] = name
	}
	text, _ := json.Marshal(map[string]any{
		"apiVersion": "example.com/" + version, "kind": "Load", "metadata": map[string]any{"name": name}, "spec": spec,
	})
	return string(text)
}

// form returns the form of an object, or -1 if its spec has no field of a form. Two forms in one object are an error.
func form(spec map[string]any) (int, error) {
	found := -1
	for i := range loadKinds {
		if _, ok := spec[loadField(i)]; !ok {
			continue
		}
		if found >= 0 {
			return 0, fmt.Errorf("the object has the fields of two schemas: %v", spec)
		}
		found = i
	}
	return found, nil
}

// sameForm checks that all objects of one answer or watch have the same form. seen is -1 before the first one.
func sameForm(seen *int, spec map[string]any) error {
	f, err := form(spec)
	switch {
	case err != nil || f < 0:
		return err
	case *seen >= 0 && *seen != f:
		return fmt.Errorf("one object is of the schema %d, another of %d", *seen, f)
	}
	*seen = f
	return nil
}

const loadsPath = "/apis/example.com/v1/namespaces/default/loads"

// write creates objects, and changes them in all ways.
func (l *load) write(w int) {
	for i := 0; i < 100000 && l.ctx.Err() == nil; i++ {
		name := fmt.Sprintf("load-%d-%d", w, i)
		seen := -1
		check := func(text []byte) {
			var obj struct {
				Spec map[string]any `json:"spec"`
			}
			if text == nil {
				return
			}
			err := json.Unmarshal(text, &obj)
			if err == nil {
				err = sameForm(&seen, obj.Spec)
			}
			if err == nil && obj.Spec["name"] != name {
				err = fmt.Errorf("the name is lost: %s", text)
			}
			if err != nil {
				l.fail("%s: %v", name, err)
			}
			seen = -1 // the next answer may have another form
		}
		code, text := l.answer("POST", loadsPath, "application/json", loadObject("v1", name, 0), 201)
		check(text)
		if code == 201 {
			l.created.Add(1)
		}
		_, text = l.answer("PATCH", loadsPath+"/"+name, "application/merge-patch+json", `{"spec":{"n":1}}`, 200)
		check(text)
		_, text = l.answer("PATCH", loadsPath+"/"+name+"?fieldManager=m&force=true", "application/apply-patch+yaml",
			`{"apiVersion":"example.com/v1","kind":"Load","metadata":{"name":"`+name+`"},"spec":{"n":2}}`, 200)
		check(text)
		_, text = l.answer("PATCH", strings.Replace(loadsPath, "/v1/", "/v2/", 1)+"/"+name, "application/json-patch+json", `[{"op":"replace","path":"/spec/n","value":3}]`, 200, 404)
		if text != nil && !strings.HasPrefix(string(text), "404") {
			check(text)
		}
	}
}

// list reads lists, and tables whose rows and columns must have the same form.
func (l *load) list() {
	for range 100000 {
		if l.ctx.Err() != nil {
			return
		}
		_, text := l.answer("GET", loadsPath+"?limit=50", "", "", 200)
		var objects struct {
			Items []struct {
				Spec map[string]any `json:"spec"`
			} `json:"items"`
		}
		if text != nil {
			seen, err := -1, json.Unmarshal(text, &objects)
			for i := 0; err == nil && i < len(objects.Items); i++ {
				err = sameForm(&seen, objects.Items[i].Spec)
			}
			if err != nil {
				l.fail("list: %v", err)
			}
		}
		_, text = l.answer("GET", loadsPath+"?limit=5&includeObject=Object", "table", "{}", 200)
		var table struct {
			ColumnDefinitions []struct {
				Name string `json:"name"`
			} `json:"columnDefinitions"`
		}
		if text != nil {
			if err := json.Unmarshal(text, &table); err != nil || len(table.ColumnDefinitions) != 2 || !strings.HasPrefix(table.ColumnDefinitions[1].Name, "Column f") {
				l.fail("table: %v %s", err, text)
			}
		}
	}
}

// follow lists and watches like an informer, and starts again when the watch has ended.
func (l *load) follow(w int) {
	for range 100000 {
		if l.ctx.Err() != nil {
			return
		}
		resp := l.ask("GET", loadsPath+"?watch=true&sendInitialEvents=true&resourceVersionMatch=NotOlderThan&allowWatchBookmarks=true", "", "")
		if resp == nil {
			return
		}
		seen := -1
		lines := bufio.NewScanner(resp.Body)
		lines.Buffer(nil, 1<<20)
		for lines.Scan() {
			var event struct {
				Type   string `json:"type"`
				Object struct {
					Spec map[string]any `json:"spec"`
				} `json:"object"`
			}
			err := json.Unmarshal(lines.Bytes(), &event)
			if err == nil && event.Type == "ERROR" {
				err = errors.New("an error came")
			}
			if err == nil {
				err = sameForm(&seen, event.Object.Spec)
			}
			if err != nil {
				l.fail("watch: %v in %s", err, lines.Text())
				break
			}
			l.last[w].Store(int64(seen))
		}
		_ = resp.Body.Close()
	}
}

// TestChangesUnderLoad changes the schema, the columns, the names and the versions of a definition while objects are written,
// listed and watched. All objects of one answer or watch must have the same schema. Only requests to versions that are not served
// may fail. No watch and no object may be lost.
func TestChangesUnderLoad(t *testing.T) {
	t.Parallel()
	l := &load{site: newSite(t, nil), last: make([]atomic.Int64, 3)}
	l.establish(loadDefinition(0))
	l.ctx, l.stop = context.WithCancel(t.Context())
	defer l.work.Wait()
	defer l.stop()
	other := definitionOf("others", "Other")
	l.establish(other)
	req, err := http.NewRequestWithContext(t.Context(), "GET", l.srv.URL+"/apis/example.com/v1/others?watch=true", nil)
	if err != nil {
		t.Fatal(err)
	}
	others, err := l.c.Do(req)
	if err != nil {
		t.Fatal(err)
	}
	defer others.Body.Close()
	for w := range 2 {
		l.work.Go(func() { l.write(w) })
	}
	l.work.Go(l.list)
	for w := range l.last {
		l.work.Go(func() { l.follow(w) })
	}
	for i := 1; i < loadKinds && l.ctx.Err() == nil; i++ {
		l.changeTo(i)
		for seen := l.created.Load(); l.created.Load() < seen+20 && l.ctx.Err() == nil; {
			l.do("GET", "/apis/example.com/v1", "", nil)
		}
		eventually(t, func() bool {
			late := false
			for w := range l.last {
				late = late || l.last[w].Load() != int64(i)
			}
			return !late || l.ctx.Err() != nil
		}, func() string { return fmt.Sprintf("all watches see the schema %d", i) })
	}
	failed := l.ctx.Err() != nil
	l.stop()
	l.work.Wait()
	if failed {
		return
	}
	var list struct {
		Items []any `json:"items"`
	}
	if l.do("GET", loadsPath, "", &list); int64(len(list.Items)) < l.created.Load() {
		t.Errorf("%d objects are left of %d", len(list.Items), l.created.Load())
	}
	l.want(201, "POST", "/apis/example.com/v1/namespaces/default/others", object("Other", "o"))
	if line, err := bufio.NewReader(others.Body).ReadString('\n'); err != nil || !strings.Contains(line, `"ADDED"`) {
		t.Errorf("the watch of another kind of the group was disturbed: %v %s", err, line)
	}
}

// changeTo changes the definition to another form, and waits until that is served.
func (l *load) changeTo(i int) {
	for range 100 {
		now := l.get("loads.example.com")
		now.Spec = loadDefinition(i).Spec
		var answer string
		code := l.do("PUT", crdsPath+"/loads.example.com", text(l.t, now), &answer)
		if code == http.StatusOK {
			break
		}
		if code != http.StatusConflict {
			l.fail("change to %d: %d %s", i, code, answer)
			return
		}
	}
	eventually(l.t, func() bool {
		var body string
		l.do("POST", loadsPath+"?dryRun=All", loadObject("v1", fmt.Sprint("try-", i), 0), &body)
		return strings.Contains(body, `"`+loadField(i)+`":`) || l.ctx.Err() != nil
	}, func() string { return fmt.Sprintf("form %d is served", i) })
}

// TestManyInstances deletes a definition with ten thousand objects. All of them are deleted, and the next definition of that name
// has none.
func TestManyInstances(t *testing.T) {
	t.Parallel()
	const writers, each = 8, 1250
	count := writers * each
	if testing.Short() {
		count /= 10
	}
	s := newSite(t, nil)
	s.establish(definitionOf("manies", "Many"))
	var work sync.WaitGroup
	for w := range writers {
		work.Go(func() {
			for i := range count / writers {
				var answer string
				if code := s.do("POST", "/apis/example.com/v1/namespaces/ns-"+fmt.Sprint(i%7)+"/manies", object("Many", fmt.Sprintf("m-%d-%d", w, i)), &answer); code != 201 {
					t.Errorf("create: %d %s", code, answer)
					return
				}
			}
		})
	}
	work.Wait()
	s.want(200, "DELETE", crdsPath+"/manies.example.com", "")
	s.awaitGone("manies.example.com")
	s.establish(definitionOf("manies", "Many"))
	var list struct {
		Items []any `json:"items"`
	}
	if s.do("GET", "/apis/example.com/v1/manies", "", &list); len(list.Items) != 0 {
		t.Errorf("%d objects are there from before", len(list.Items))
	}
}
