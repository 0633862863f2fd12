package server_test

import (
	"bufio"
	"bytes"
	"compress/gzip"
	"crypto/tls"
	"crypto/x509"
	"fmt"
	"io"
	"net/http"
	"strings"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// raw sends bytes over a connection of HTTP/1.1 and reads one response.
func (w *wire) raw(t *testing.T, text string) answer {
	t.Helper()
	plain, err := w.DialContext(t.Context(), "", "")
	if err != nil {
		t.Fatal(err)
	}
	pool := x509.NewCertPool()
	pool.AppendCertsFromPEM(w.CA)
	conn := tls.Client(plain, &tls.Config{RootCAs: pool, ServerName: "localhost", NextProtos: []string{"http/1.1"}})
	defer func() { _ = plain.Close() }()
	sent := make(chan struct{})
	go func() {
		defer close(sent)
		_, _ = io.WriteString(conn, text) // the server may answer before it has read everything
	}()
	method, _, _ := strings.Cut(text, " ")
	resp, err := http.ReadResponse(bufio.NewReader(conn), &http.Request{Method: method})
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = resp.Body.Close() }()
	body, err := io.ReadAll(resp.Body)
	if err != nil {
		t.Fatal(err)
	}
	_ = plain.Close()
	<-sent
	return answer{resp.StatusCode, resp.Header, string(body)}
}

// head is the beginning of a request with the administrator's token.
func (w *wire) head(method, path string, header ...string) string {
	return fmt.Sprintf("%s %s HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\nAuthorization: Bearer %s\r\n%s\r\n", method, path, w.Token, strings.Join(append(header, ""), "\r\n"))
}

// clear reports whether an answer says what is wrong.
func (a answer) clear(t *testing.T) bool {
	t.Helper()
	if a.code < 400 || a.code >= 500 || a.body == "" {
		return false
	}
	if a.header.Get("Content-Type") == "application/json" && strings.Contains(a.body, `"kind":"Status"`) {
		s := a.status(t)
		return s.Message != "" && int(s.Code) == a.code && s.Status == metav1.StatusFailure
	}
	return true
}

func TestWireOddPaths(t *testing.T) {
	t.Parallel()
	w := newWire(t)
	w.make(t, widgetList, `{"metadata":{"name":"a"}}`)
	w.make(t, planetList, `{"metadata":{"name":"mars"}}`)
	long := strings.Repeat("x", 100<<10)
	defer w.unchanged(t)()
	for _, c := range []struct {
		method, path string
		codes        []int
	}{
		{"GET", widgetList + "/", []int{200}}, {"GET", widgetList + "/a/", []int{200}}, {"GET", widgetList + "//a", []int{404, 400}}, {"GET", "//apis/example.com/v1/widgets", []int{200, 404, 400}},
		{"GET", "/apis//example.com/v1/widgets", []int{404}}, {"GET", "/apis/example.com/v1/namespaces//widgets", []int{200}}, {"GET", "/apis/example.com/v1/namespaces/default/", []int{404}},
		{"GET", widgetList + "/a%2Fb", []int{400}}, {"GET", widgetList + "/a%2fstatus", []int{400}}, {"GET", "/apis%2Fexample.com/v1/widgets", []int{400, 404}}, {"GET", "/apis/example.com/v1/widgets%2Fa", []int{400, 404}},
		{"GET", widgetList + "/%2e%2e", []int{400}}, {"GET", widgetList + "/..", []int{400}}, {"GET", widgetList + "/.", []int{400}}, {"GET", widgetList + "/%25", []int{400}}, {"GET", widgetList + "/a%00", []int{400, 404}},
		{"GET", widgetList + "/%ff%fe", []int{400, 404}}, {"GET", "/apis/example.com/v1/namespaces/%ff/widgets", []int{200, 400, 404}}, {"GET", "/apis/example.com/v1/namespaces/..%2Fx/widgets", []int{400}},
		{"GET", "/apis/example.com/v1/namespaces/../widgets", []int{400}}, {"GET", widgetList + "/" + long, []int{400, 404}}, {"GET", "/" + long, []int{404}}, {"GET", widgetList + "?" + long, []int{200}}, {"GET", widgetList + "?labelSelector=" + long, []int{400}},
		{"GET", widgetList + "/a/status/more", []int{404}}, {"GET", widgetList + "/a/b/c/d/e/f", []int{404}}, {"GET", "/apis/example.com/v1/widgets/a", []int{404}}, {"GET", "/apis/example.com/v1/namespaces/x/planets", []int{404}},
		{"GET", "/apis/example.com/v1/namespaces/x/planets/mars", []int{404}}, {"GET", planetList + "/mars/status", []int{404}}, {"GET", "/apis/example.com/v1/watch", []int{400, 404}}, {"GET", "/apis/example.com/v1/proxy/namespaces/default/widgets/a", []int{404}},
		{"DELETE", "/apis/example.com/v1/proxy/namespaces/default/widgets/a", []int{404}}, {"PUT", "/apis/example.com/v1/proxy/namespaces/default/widgets/a", []int{404}}, {"OPTIONS", widgetList, []int{405}}, {"OPTIONS", widgetList + "/a", []int{405}}, {"TRACE", widgetList, []int{405}}, {"BREW", widgetList + "/a", []int{405}}, {"POST", widgetList + "/a", []int{405}}, {"CONNECT", widgetList, []int{405, 400, 404}},
		{"HEAD", widgetList + "/a", []int{405}}, {"HEAD", "/version", []int{405}}, {"HEAD", "/", []int{200}}, {"HEAD", "/apis", []int{200}}, {"HEAD", "/openapi/v3", []int{200}}, {"HEAD", "/readyz", []int{200}}, {"PUT", planetList, []int{405}},
		{"get", widgetList, []int{405}}, {"GET", widgetList + "/a?%zz", []int{200, 400}}, {"GET", widgetList + "?watch=%zz&timeoutSeconds=1", []int{200, 400}}, {"GET", widgetList + "?limit=%zz", []int{200, 400}}, {"GET", widgetList + "?;", []int{200, 400}},
		{"GET", widgetList + "?timeoutSeconds=-5&watch=1", []int{200, 400}}, {"GET", widgetList + "?limit=-1", []int{200}}, {"GET", widgetList + "?limit=9223372036854775807", []int{200}}, {"GET", widgetList + "?limit=9223372036854775808", []int{400}},
		{"GET", widgetList + "?resourceVersion=9223372036854775807&timeout=10ms", []int{504}}, {"GET", widgetList + "?resourceVersion=18446744073709551615&timeout=10ms", []int{504}}, {"GET", widgetList + "?resourceVersion=18446744073709551616", []int{400}},
		{"GET", "/api/v1/namespaces/default/widgets", []int{404}}, {"GET", "/api", []int{200}}, {"GET", "/API", []int{404}}, {"GET", "/apis/EXAMPLE.com/v1/widgets", []int{404}}, {"GET", "/apis/example.com/v1/Widgets", []int{404}},
		{"GET", "*", []int{400, 404, 405}}, {"OPTIONS", "*", []int{400, 403, 404, 405, 200}},
	} {
		name := c.method + " " + c.path
		if len(name) > 120 {
			name = name[:120]
		}
		t.Run(strings.ReplaceAll(name, "/", "|"), func(t *testing.T) {
			a := w.raw(t, w.head(c.method, c.path))
			ok := false
			for _, code := range c.codes {
				ok = ok || a.code == code
			}
			if !ok {
				t.Errorf("code %d, want one of %d: %.500s", a.code, c.codes, a.body)
			}
			if a.code >= 400 && a.code != 504 && c.method != "HEAD" && !a.clear(t) {
				t.Errorf("%d %v %.500q", a.code, a.header, a.body)
			}
		})
	}
}

func TestWireOddHeadersAndBodies(t *testing.T) {
	t.Parallel()
	w := newWire(t)
	w.make(t, widgetList, `{"metadata":{"name":"a"}}`)
	var zipped bytes.Buffer
	z := gzip.NewWriter(&zipped)
	_, _ = z.Write([]byte(`{"metadata":{"name":"zip"}}`))
	_ = z.Close()
	chunked := func(body string) string { return w.head("POST", widgetList, "Transfer-Encoding: chunked") + body }
	deep := func(n int) string { return strings.Repeat("[", n) }
	defer w.unchanged(t)()
	for name, c := range map[string]struct {
		text string
		code int
	}{
		"garbage for chunks":          {chunked("zz\r\n{}\r\n0\r\n\r\n"), 400},
		"a chunk too short":           {chunked("5\r\n{}\r\n0\r\n\r\n"), 400},
		"a chunk of endless size":     {chunked("ffffffffffffffffff\r\n{}\r\n"), 400},
		"chunks over the limit":       {chunked("400000\r\n" + strings.Repeat(" ", 4<<20) + "\r\n0\r\n\r\n"), 413},
		"two lengths":                 {w.head("POST", widgetList, "Content-Length: 2", "Content-Length: 3") + "{}", 400},
		"negative length":             {w.head("POST", widgetList, "Content-Length: -1") + "{}", 400},
		"a length far over the limit": {w.head("POST", widgetList, "Content-Length: 99999999999") + "{}", 413},
		"too large a header":          {w.head("GET", widgetList, "X-Large: "+strings.Repeat("x", 2<<20)), 431},
		"a header of no form":         {w.head("GET", widgetList, "no colon"), 400},
		"no host":                     {"GET / HTTP/1.1\r\n\r\n", 400},
		"another protocol":            {"GET / HTTQ/9\r\n\r\n", 400},
	} {
		t.Run(name, func(t *testing.T) {
			a := w.raw(t, c.text)
			if a.code != c.code || !a.clear(t) {
				t.Errorf("%d, want %d: %v %.300q", a.code, c.code, a.header, a.body)
			}
		})
	}
	t.Run("many headers", func(t *testing.T) {
		var lines []string
		for i := range 2000 {
			lines = append(lines, fmt.Sprintf("X-H-%d: %d", i, i))
		}
		if a := w.raw(t, w.head("GET", widgetList+"/a", lines...)); a.code != 200 {
			t.Errorf("%d %s", a.code, a.body)
		}
	})
	for name, c := range map[string]struct {
		body   string
		header []string
		codes  []int
	}{
		"gzip said, gzip sent":      {zipped.String(), []string{"Content-Encoding", "gzip"}, []int{400, 415}},
		"gzip said, JSON sent":      {`{"metadata":{}}`, []string{"Content-Encoding", "gzip"}, []int{400, 415, 422}},
		"an encoding nobody knows":  {`{"metadata":{}}`, []string{"Content-Encoding", "br"}, []int{400, 415, 422}},
		"gzip without a word":       {zipped.String(), nil, []int{400}},
		"latin 1":                   {"{\"metadata\":{\"name\":\"b\",\"annotations\":{\"a\":\"\xe9\"}},\"kind\":\"\xe9\"}", nil, []int{400}},
		"not UTF-8":                 {"\xff\xfe{}", nil, []int{400}},
		"null":                      {"null", nil, []int{400, 422}},
		"a string":                  {`"x"`, nil, []int{400}},
		"a number":                  {"1", nil, []int{400}},
		"true":                      {"true", nil, []int{400}},
		"blanks":                    {"  \n", nil, []int{400}},
		"two objects":               {`{"metadata":{"name":"b"}}{"metadata":{"name":"c"}}`, nil, []int{400}},
		"more behind":               {`{"metadata":{"name":"b"}} x`, nil, []int{400}},
		"deep arrays":               {`{"metadata":{"name":"b"},"spec":{"tags":` + deep(100000) + strings.Repeat("]", 100000) + `}}`, nil, []int{400}},
		"deep and open":             {deep(100000), nil, []int{400}},
		"deep objects":              {strings.Repeat(`{"a":`, 100000) + "1" + strings.Repeat("}", 100000), nil, []int{400}},
		"deep unknown field":        {`{"metadata":{},"x":` + deep(100000) + strings.Repeat("]", 100000) + `}`, nil, []int{400, 422}},
		"deep yaml, flow":           {deep(100000), []string{"Content-Type", "application/yaml"}, []int{400}},
		"deep yaml, closed":         {"x: " + deep(100000) + strings.Repeat("]", 100000), []string{"Content-Type", "application/yaml"}, []int{400}},
		"deep yaml, block":          {strings.Repeat("- ", 100000) + "x", []string{"Content-Type", "application/yaml"}, []int{400}},
		"deep yaml, maps":           {strings.Repeat("{a: ", 100000), []string{"Content-Type", "application/yaml"}, []int{400}},
		"a yaml bomb":               {"a: &a [x,x,x,x,x,x,x,x,x]\nb: &b [*a,*a,*a,*a,*a,*a,*a,*a,*a]\nc: &c [*b,*b,*b,*b,*b,*b,*b,*b,*b]\nd: &d [*c,*c,*c,*c,*c,*c,*c,*c,*c]\ne: &e [*d,*d,*d,*d,*d,*d,*d,*d,*d]\nf: &f [*e,*e,*e,*e,*e,*e,*e,*e,*e]\ng: &g [*f,*f,*f,*f,*f,*f,*f,*f,*f]\nh: [*g,*g,*g,*g,*g,*g,*g,*g,*g]\n", []string{"Content-Type", "application/yaml"}, []int{400}},
		"yaml that names itself":    {"a: &a [*a]\n", []string{"Content-Type", "application/yaml"}, []int{400, 422}},
		"yaml of two documents":     {"metadata: {name: b}\n---\nmetadata: {name: c}\n", []string{"Content-Type", "application/yaml"}, []int{400}},
		"yaml tabs":                 {"\tx: 1", []string{"Content-Type", "application/yaml"}, []int{400}},
		"yaml not UTF-8":            {"x: \xff\xff", []string{"Content-Type", "application/yaml"}, []int{400}},
		"empty yaml":                {"", []string{"Content-Type", "application/yaml"}, []int{400, 422}},
		"a content type of no form": {`{}`, []string{"Content-Type", "application/json;;;="}, []int{415}},
		"a huge number":             {`{"metadata":{"name":"b","generation":` + strings.Repeat("9", 400) + `}}`, nil, []int{400}},
		"a huge exponent":           {`{"metadata":{"name":"b"},"spec":{"size":1e400}}`, nil, []int{400}},
		"a size of an exponent":     {`{"metadata":{},"spec":{"size":1e2}}`, nil, []int{400, 422}},
		"infinity":                  {`{"metadata":{"name":"b"},"spec":{"weight":Infinity}}`, nil, []int{400}},
		"yaml infinity":             {"metadata: {name: b}\nspec: {weight: .inf}\n", []string{"Content-Type", "application/yaml"}, []int{400}},
		"null everywhere":           {`{"kind":null,"apiVersion":null,"metadata":null,"spec":null,"status":null}`, nil, []int{422}},
		"duplicate metadata":        {`{"metadata":{"name":"b"},"metadata":{"name":""}}`, nil, []int{422}},
		"kind twice":                {`{"kind":"Widget","kind":"Planet","metadata":{"name":"b"}}`, nil, []int{400}},
		"cycle of a string":         {`{"metadata":{"name":"` + "\\ud800" + `"}}`, nil, []int{400, 422}},
	} {
		t.Run(name, func(t *testing.T) {
			for _, method := range []string{"POST", "PUT"} {
				path := widgetList
				if method == "PUT" {
					path += "/a"
				}
				a := w.ask(t, method, path, c.body, c.header...)
				ok := false
				for _, code := range c.codes {
					ok = ok || a.code == code || method == "PUT" && code == 422 && a.code == 400
				}
				if !ok || !a.clear(t) || len(a.body) > 20000 {
					t.Errorf("%s: %d, want one of %d; %d bytes: %.400q", method, a.code, c.codes, len(a.body), a.body)
				}
			}
			for _, kind := range []string{jsonPatch, mergePatch} {
				if len(c.header) > 0 {
					continue
				}
				if a := w.ask(t, "PATCH", widgetList+"/a?dryRun=All", c.body, "Content-Type", kind); a.code >= 500 {
					t.Errorf("PATCH %s: %d %.400q", kind, a.code, a.body)
				}
			}
			if a := w.ask(t, "DELETE", widgetList+"/none", c.body, c.header...); a.code >= 500 {
				t.Errorf("DELETE: %d %.400q", a.code, a.body)
			}
		})
	}
}
