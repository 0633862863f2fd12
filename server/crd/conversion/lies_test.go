package conversion_test

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/json"
	"encoding/pem"
	"fmt"
	"io"
	"math/big"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"
)

// review is a ConversionReview as JSON has it.
type review map[string]any

func (r review) request() map[string]any {
	request, _ := r["request"].(map[string]any)
	return request
}

func (r review) objects() []any {
	objects, _ := r.request()["objects"].([]any)
	return objects
}

// answered returns the review with a right response: the objects in the wanted version, otherwise unchanged.
func (r review) answered() review {
	objects := r.objects()
	for i, o := range objects {
		object := o.(map[string]any)
		object["apiVersion"] = r.request()["desiredAPIVersion"]
		objects[i] = object
	}
	return review{"apiVersion": r["apiVersion"], "kind": r["kind"], "response": map[string]any{
		"uid": r.request()["uid"], "result": map[string]any{"status": "Success"}, "convertedObjects": objects,
	}}
}

func (r review) response() map[string]any { return r["response"].(map[string]any) }

func (r review) object(i int) map[string]any {
	return r.response()["convertedObjects"].([]any)[i].(map[string]any)
}

func (r review) metadata() map[string]any { return r.object(0)["metadata"].(map[string]any) }

// lie is one way in which a webhook answers.
type lie struct {
	name string
	// beta says that the webhook supports only v1beta1.
	beta bool
	// change changes the right answer, which is then sent with code 200. It is used if answer is nil.
	change func(answer review)
	// answer, if not nil, writes the answer; the body was read.
	answer func(w http.ResponseWriter, r *http.Request, asked review)
	// trust selects the CABundle of the definition; "" means the right one.
	trust string
	// port, if not nil, returns a port that replaces that of the webhook.
	port func(h *hooks) int
	// path, if not empty, replaces /<name>.
	path string
}

func send(code int, contentType, body string, headers ...string) func(http.ResponseWriter, *http.Request, review) {
	return func(w http.ResponseWriter, _ *http.Request, _ review) {
		if contentType == "none" {
			w.Header()["Content-Type"] = nil
		} else {
			w.Header().Set("Content-Type", contentType)
		}
		for i := 0; i < len(headers); i += 2 {
			w.Header().Set(headers[i], headers[i+1])
		}
		w.WriteHeader(code)
		_, _ = io.WriteString(w, body)
	}
}

func sendJSON(w http.ResponseWriter, answer any) {
	w.Header().Set("Content-Type", "application/json")
	_ = json.NewEncoder(w).Encode(answer)
}

const statusBody = `{"kind":"Status","apiVersion":"v1","metadata":{},"status":"Failure","message":"it is a Status","reason":"Conflict","code":409}`

// lies returns the ways of answering for which kube-apiserver's answers were recorded.
func lies() []lie {
	const text, html, jsonType = "text/plain; charset=utf-8", "text/html", "application/json"
	return []lie{
		{name: "right", change: func(review) {}},
		{name: "right-beta", beta: true, change: func(review) {}},
		{name: "failure", change: func(a review) { a.response()["result"] = map[string]any{"status": "Failure", "message": "I will not"} }},
		{name: "failure-silent", change: func(a review) { a.response()["result"] = map[string]any{"status": "Failure"} }},
		{name: "failure-reason", change: func(a review) {
			a.response()["result"] = map[string]any{"status": "Failure", "reason": "Conflict", "code": 409, "message": "conflicting"}
		}},
		{name: "failure-beta", beta: true, change: func(a review) { a.response()["result"] = map[string]any{"status": "Failure", "message": "I will not"} }},
		{name: "status-none", change: func(a review) { a.response()["result"] = map[string]any{} }},
		{name: "status-odd", change: func(a review) { a.response()["result"] = map[string]any{"status": "success"} }},
		{name: "status-message", change: func(a review) { a.response()["result"] = map[string]any{"message": "only a message"} }},
		{name: "response-none", change: func(a review) { delete(a, "response") }},
		{name: "response-none-beta", beta: true, change: func(a review) { delete(a, "response") }},
		{name: "response-null", change: func(a review) { a["response"] = nil }},
		{name: "response-string", change: func(a review) { a["response"] = "x" }},
		{name: "response-case", change: func(a review) { a["Response"] = a["response"]; delete(a, "response") }},
		{name: "uid-wrong", change: func(a review) { a.response()["uid"] = "other" }},
		{name: "uid-none", change: func(a review) { delete(a.response(), "uid") }},
		{name: "uid-wrong-beta", beta: true, change: func(a review) { a.response()["uid"] = "other" }},
		{name: "uid-number", change: func(a review) { a.response()["uid"] = 7 }},
		{name: "review-beta", change: func(a review) { a["apiVersion"] = "apiextensions.k8s.io/v1beta1" }},
		{name: "review-v1-for-beta", beta: true, change: func(a review) { a["apiVersion"] = "apiextensions.k8s.io/v1" }},
		{name: "review-kind", change: func(a review) { a["kind"] = "Other" }},
		{name: "review-crd", change: func(a review) { a["kind"] = "CustomResourceDefinition" }},
		{name: "review-group", change: func(a review) { a["apiVersion"] = "example.com/v1" }},
		{name: "review-untyped", change: func(a review) { delete(a, "apiVersion"); delete(a, "kind") }},
		{name: "review-untyped-beta", beta: true, change: func(a review) { delete(a, "apiVersion"); delete(a, "kind") }},
		{name: "review-kindless", change: func(a review) { delete(a, "kind") }},
		{name: "review-versionless", change: func(a review) { delete(a, "apiVersion") }},
		{name: "review-admission", change: func(a review) { a["apiVersion"], a["kind"] = "admission.k8s.io/v1", "AdmissionReview" }},
		{name: "review-unknown-field", change: func(a review) { a["extra"] = true; a.response()["extra"] = 1 }},
		{name: "objects-none", change: func(a review) { a.response()["convertedObjects"] = []any{} }},
		{name: "objects-null", change: func(a review) { a.response()["convertedObjects"] = nil }},
		{name: "objects-missing", change: func(a review) { delete(a.response(), "convertedObjects") }},
		{name: "objects-object", change: func(a review) { a.response()["convertedObjects"] = map[string]any{} }},
		{name: "objects-many", change: func(a review) { a.response()["convertedObjects"] = []any{a.object(0), a.object(0)} }},
		{name: "object-null", change: func(a review) { a.response()["convertedObjects"] = []any{nil} }},
		{name: "object-string", change: func(a review) { a.response()["convertedObjects"] = []any{"x"} }},
		{name: "object-array", change: func(a review) { a.response()["convertedObjects"] = []any{[]any{}} }},
		{name: "object-empty", change: func(a review) { a.response()["convertedObjects"] = []any{map[string]any{}} }},
		{name: "object-kindless", change: func(a review) { delete(a.object(0), "kind") }},
		{name: "object-versionless", change: func(a review) { delete(a.object(0), "apiVersion") }},
		{name: "object-unconverted", change: func(a review) { a.object(0)["apiVersion"] = "w.example.com/v1" }},
		{name: "object-other-group", change: func(a review) { a.object(0)["apiVersion"] = "v2" }},
		{name: "object-version-number", change: func(a review) { a.object(0)["apiVersion"] = 2 }},
		{name: "object-version-slashes", change: func(a review) { a.object(0)["apiVersion"] = "a/b/c" }},
		{name: "object-kind", change: func(a review) { a.object(0)["kind"] = "Other" }},
		{name: "object-kind-number", change: func(a review) { a.object(0)["kind"] = 3 }},
		{name: "object-list", change: func(a review) { a.object(0)["items"] = []any{} }},
		{name: "object-name", change: func(a review) { a.metadata()["name"] = "b" }},
		{name: "object-nameless", change: func(a review) { delete(a.metadata(), "name") }},
		{name: "object-name-number", change: func(a review) { a.metadata()["name"] = 1 }},
		{name: "object-namespace", change: func(a review) { a.metadata()["namespace"] = "other" }},
		{name: "object-namespaceless", change: func(a review) { delete(a.metadata(), "namespace") }},
		{name: "object-uid", change: func(a review) { a.metadata()["uid"] = "other" }},
		{name: "object-uidless", change: func(a review) { delete(a.metadata(), "uid") }},
		{name: "metadata-none", change: func(a review) { delete(a.object(0), "metadata") }},
		{name: "metadata-string", change: func(a review) { a.object(0)["metadata"] = "x" }},
		{name: "metadata-null", change: func(a review) { a.object(0)["metadata"] = nil }},
		{name: "metadata-more", change: func(a review) {
			m := a.metadata()
			m["finalizers"], m["generation"], m["resourceVersion"], m["extra"] = []any{"x.example.com/y"}, 77, "1", "x"
			delete(m, "creationTimestamp")
		}},
		{name: "labels-new", change: func(a review) { a.metadata()["labels"] = map[string]any{"new": "label"} }},
		{name: "labels-null", change: func(a review) { a.metadata()["labels"] = nil }},
		{name: "labels-string", change: func(a review) { a.metadata()["labels"] = "x" }},
		{name: "labels-array", change: func(a review) { a.metadata()["labels"] = []any{"x"} }},
		{name: "label-number", change: func(a review) { a.metadata()["labels"] = map[string]any{"a": 1} }},
		{name: "label-float", change: func(a review) { a.metadata()["labels"] = map[string]any{"a": 1.5} }},
		{name: "label-null", change: func(a review) { a.metadata()["labels"] = map[string]any{"a": nil} }},
		{name: "label-bad-key", change: func(a review) { a.metadata()["labels"] = map[string]any{"a b": "c"} }},
		{name: "label-bad-value", change: func(a review) { a.metadata()["labels"] = map[string]any{"a": "b c"} }},
		{name: "annotations-new", change: func(a review) { a.metadata()["annotations"] = map[string]any{"new": "one"} }},
		{name: "annotations-string", change: func(a review) { a.metadata()["annotations"] = "x" }},
		{name: "annotation-object", change: func(a review) { a.metadata()["annotations"] = map[string]any{"a": map[string]any{}} }},
		{name: "annotation-bad-key", change: func(a review) { a.metadata()["annotations"] = map[string]any{"a b": "c"} }},
		{name: "annotations-big", change: func(a review) {
			a.metadata()["annotations"] = map[string]any{"a": strings.Repeat("x", 300<<10)}
		}},
		{name: "code-404", answer: send(404, text, "404 page not found\n")},
		{name: "code-404-html", answer: send(404, html, "<html>no</html>")},
		{name: "code-404-json", answer: send(404, jsonType, "{}")},
		{name: "code-500", answer: send(500, text, "boom\n")},
		{name: "code-500-html", answer: send(500, html, "<html>boom</html>")},
		{name: "code-500-empty", answer: send(500, "none", "")},
		{name: "code-500-json", answer: send(500, jsonType, `{"error":"boom"}`)},
		{name: "code-500-long", answer: send(500, text, strings.Repeat("x", 10000))},
		{name: "code-500-status", answer: send(500, jsonType, statusBody)},
		{name: "code-500-status-bare", answer: send(500, jsonType, `{"status":"Failure","message":"a bare Status"}`)},
		{name: "code-500-status-success", answer: send(500, jsonType, `{"kind":"Status","apiVersion":"v1","status":"Success","message":"well"}`)},
		{name: "code-500-status-text", answer: send(500, text, statusBody)},
		{name: "code-500-status-silent", answer: send(500, jsonType, `{"kind":"Status","apiVersion":"v1","status":"Failure"}`)},
		{name: "code-500-status-kind", answer: send(500, jsonType, `{"kind":"Other","apiVersion":"v1","status":"Failure","message":"m"}`)},
		{name: "code-500-status-version", answer: send(500, jsonType, `{"kind":"Status","apiVersion":"v2","status":"Failure","message":"m"}`)},
		{name: "code-500-status-yaml", answer: send(500, jsonType, "kind: Status\napiVersion: v1\nstatus: Failure\nmessage: in YAML\n")},
		{name: "code-500-type", answer: send(500, "a;b;c=", "boom")},
		{name: "code-400", answer: send(400, text, "bad")},
		{name: "code-401", answer: send(401, text, "who")},
		{name: "code-403", answer: send(403, text, "may not")},
		{name: "code-403-json", answer: send(403, jsonType, "may not")},
		{name: "code-405", answer: send(405, text, "no POST")},
		{name: "code-406", answer: send(406, text, "no JSON")},
		{name: "code-406-json", answer: send(406, jsonType, "{}")},
		{name: "code-409", answer: send(409, text, "conflict")},
		{name: "code-413", answer: send(413, text, "too much")},
		{name: "code-415", answer: send(415, text, "what is this")},
		{name: "code-418", answer: send(418, text, "short and stout")},
		{name: "code-422", answer: send(422, text, "unprocessable")},
		{name: "code-429", answer: send(429, text, "busy")},
		{name: "code-429-again", answer: send(429, text, "busy", "Retry-After", "0")},
		{name: "code-429-date", answer: send(429, text, "busy", "Retry-After", "Mon, 02 Jan 2006 15:04:05 GMT")},
		{name: "code-503", answer: send(503, text, "down")},
		{name: "code-503-again", answer: send(503, text, "down", "Retry-After", "0")},
		{name: "code-503-negative", answer: send(503, text, "down", "Retry-After", "-5")},
		{name: "code-504", answer: send(504, text, "late")},
		{name: "code-201", answer: func(w http.ResponseWriter, _ *http.Request, asked review) {
			w.Header().Set("Content-Type", jsonType)
			w.WriteHeader(201)
			_ = json.NewEncoder(w).Encode(asked.answered())
		}},
		{name: "code-207", answer: func(w http.ResponseWriter, _ *http.Request, asked review) {
			w.Header().Set("Content-Type", jsonType)
			w.WriteHeader(207)
			_ = json.NewEncoder(w).Encode(asked.answered())
		}},
		{name: "code-204", answer: func(w http.ResponseWriter, _ *http.Request, _ review) { w.WriteHeader(204) }},
		{name: "code-304", answer: func(w http.ResponseWriter, _ *http.Request, _ review) { w.WriteHeader(304) }},
		{name: "empty", answer: send(200, jsonType, "")},
		{name: "empty-untyped", answer: send(200, "none", "")},
		{name: "garbage", answer: send(200, jsonType, "garbage")},
		{name: "garbage-html", answer: send(200, html, "<html>welcome</html>")},
		{name: "garbage-json", answer: send(200, jsonType, "{}")},
		{name: "garbage-array", answer: send(200, jsonType, "[]")},
		{name: "garbage-null", answer: send(200, jsonType, "null")},
		{name: "garbage-cut", answer: send(200, jsonType, `{"apiVersion":"apiextensions.k8s.io/v1","kind":"ConversionReview","response":{`)},
		{name: "garbage-tail", answer: func(w http.ResponseWriter, _ *http.Request, asked review) {
			sendJSON(w, asked.answered())
			_, _ = io.WriteString(w, "tail")
		}},
		{name: "status-200", answer: send(200, jsonType, statusBody)},
		{name: "type-text", answer: func(w http.ResponseWriter, _ *http.Request, asked review) {
			w.Header().Set("Content-Type", text)
			_ = json.NewEncoder(w).Encode(asked.answered())
		}},
		{name: "type-none", answer: func(w http.ResponseWriter, _ *http.Request, asked review) {
			w.Header()["Content-Type"] = nil
			_ = json.NewEncoder(w).Encode(asked.answered())
		}},
		{name: "type-odd", answer: func(w http.ResponseWriter, _ *http.Request, asked review) {
			w.Header().Set("Content-Type", "a;b;c=")
			_ = json.NewEncoder(w).Encode(asked.answered())
		}},
		{name: "redirect-loop", answer: func(w http.ResponseWriter, r *http.Request, _ review) {
			http.Redirect(w, r, r.URL.Path, http.StatusTemporaryRedirect)
		}},
		{name: "redirect-307", answer: func(w http.ResponseWriter, r *http.Request, _ review) {
			http.Redirect(w, r, "/right", http.StatusTemporaryRedirect)
		}},
		{name: "redirect-302", answer: func(w http.ResponseWriter, r *http.Request, _ review) {
			http.Redirect(w, r, "/code-404", http.StatusFound)
		}},
		{name: "redirect-nowhere", answer: send(302, text, "somewhere")},
		{name: "redirect-file", answer: send(307, text, "", "Location", "file:///etc/passwd")},
		{name: "crash", answer: func(http.ResponseWriter, *http.Request, review) { panic(http.ErrAbortHandler) }},
		{name: "crash-amid", answer: func(w http.ResponseWriter, _ *http.Request, _ review) {
			w.Header().Set("Content-Type", jsonType)
			w.Header().Set("Content-Length", "1000")
			_, _ = io.WriteString(w, `{"apiVersion":`)
			_ = http.NewResponseController(w).Flush()
			panic(http.ErrAbortHandler)
		}},
		{name: "hang", answer: func(_ http.ResponseWriter, r *http.Request, _ review) {
			<-r.Context().Done()
			panic(http.ErrAbortHandler) // a return would write an answer, which a slow client may still read
		}},
		{name: "hang-amid", answer: func(w http.ResponseWriter, r *http.Request, _ review) {
			w.Header().Set("Content-Type", jsonType)
			_, _ = io.WriteString(w, `{"apiVersion":`)
			_ = http.NewResponseController(w).Flush()
			<-r.Context().Done()
		}},
		{name: "http1-hang", path: "hang", port: func(h *hooks) int { return port(h.http1) }, change: func(review) {}},
		{name: "http1-hang-amid", path: "hang-amid", port: func(h *hooks) int { return port(h.http1) }, change: func(review) {}},
		{name: "trust-nobody", trust: "other", change: func(review) {}},
		{name: "trust-system", trust: "system", change: func(review) {}},
		{name: "expired", port: func(h *hooks) int { return port(h.expired) }, change: func(review) {}},
		{name: "misnamed", port: func(h *hooks) int { return port(h.misnamed) }, change: func(review) {}},
		{name: "plain-http", port: func(h *hooks) int { return port(h.plain) }, change: func(review) {}},
		{name: "http1", port: func(h *hooks) int { return port(h.http1) }, change: func(review) {}},
		{name: "http1-crash", path: "crash", port: func(h *hooks) int { return port(h.http1) }, change: func(review) {}},
		{name: "http1-crash-amid", path: "crash-amid", port: func(h *hooks) int { return port(h.http1) }, change: func(review) {}},
		{name: "refused", port: func(h *hooks) int { return h.closed }, change: func(review) {}},
		{name: "path-slash", path: "right/", change: func(review) {}},
		{name: "path-dots", path: "x/../right", change: func(review) {}},
		{name: "path-double", path: "/right//", change: func(review) {}},
		{name: "path-escaped", path: "code%2D404", change: func(review) {}},
	}
}

// hooks are servers of webhooks that answer with lies, selected by path.
type hooks struct {
	good, expired, misnamed, plain, http1 *httptest.Server
	closed                                int // a port that nobody listens on
	bundle, other                         []byte
	seen                                  chan seen // requests; dropped if it is full
}

// seen is a request to a webhook.
type seen struct {
	Method, URL, Proto string
	Header             http.Header
	Body               string
}

func port(s *httptest.Server) int { return s.Listener.Addr().(*net.TCPAddr).Port }

// startHooks starts them.
func startHooks(t testing.TB, all []lie) *hooks {
	t.Helper()
	byName := map[string]lie{}
	for _, l := range all {
		byName[l.name] = l
	}
	h := &hooks{seen: make(chan seen, 4)}
	handler := http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		l, ok := byName[strings.Trim(r.URL.Path, "/")]
		if !ok {
			http.NotFound(w, r)
			return
		}
		body, err := io.ReadAll(r.Body)
		if err != nil {
			panic(http.ErrAbortHandler)
		}
		select {
		case h.seen <- seen{r.Method, r.URL.String(), r.Proto, r.Header, string(body)}:
		default:
		}
		var asked review
		_ = json.Unmarshal(body, &asked)
		if l.answer != nil {
			l.answer(w, r, asked)
			return
		}
		answer := asked.answered()
		l.change(answer)
		sendJSON(w, answer)
	})
	ca := newAuthority(t)
	other := newAuthority(t)
	h.bundle, h.other = ca.pem, other.pem
	start := func(cert *tls.Certificate, http2 bool) *httptest.Server {
		s := httptest.NewUnstartedServer(handler)
		s.EnableHTTP2 = http2
		s.Config.ErrorLog = silentLog()
		if cert == nil {
			s.Start()
		} else {
			s.TLS = &tls.Config{Certificates: []tls.Certificate{*cert}, MinVersion: tls.VersionTLS12}
			s.StartTLS()
		}
		t.Cleanup(s.Close)
		return s
	}
	now := time.Now()
	local := net.IPv4(127, 0, 0, 1)
	good := ca.issue(t, now.Add(time.Hour), []net.IP{local}, "localhost")
	h.good, h.http1 = start(good, true), start(good, false)
	h.expired = start(ca.issue(t, time.Date(2020, 1, 2, 0, 0, 0, 0, time.UTC), []net.IP{local}), true)
	h.misnamed = start(ca.issue(t, now.Add(time.Hour), []net.IP{net.IPv4(10, 1, 2, 3)}, "elsewhere.example.com"), true)
	h.plain = start(nil, false)
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	h.closed = l.Addr().(*net.TCPAddr).Port
	_ = l.Close()
	return h
}

// url returns the URL of the webhook with a lie.
func (h *hooks) url(l lie) string {
	p, path := port(h.good), l.path
	if l.port != nil {
		p = l.port(h)
	}
	if path == "" {
		path = l.name
	}
	return fmt.Sprintf("https://127.0.0.1:%d/%s", p, path)
}

// trusted returns the CABundle for a lie.
func (h *hooks) trusted(l lie) []byte {
	switch l.trust {
	case "other":
		return h.other
	case "system":
		return nil
	}
	return h.bundle
}

// authority issues certificates.
type authority struct {
	key  *ecdsa.PrivateKey
	cert *x509.Certificate
	pem  []byte
}

func newAuthority(t testing.TB) *authority {
	t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	template := &x509.Certificate{
		SerialNumber: big.NewInt(time.Now().UnixNano()), Subject: pkix.Name{CommonName: "webhooks"}, IsCA: true, BasicConstraintsValid: true,
		NotBefore: time.Date(2019, 1, 1, 0, 0, 0, 0, time.UTC), NotAfter: time.Now().Add(time.Hour), KeyUsage: x509.KeyUsageCertSign,
	}
	der, err := x509.CreateCertificate(rand.Reader, template, template, &key.PublicKey, key)
	if err != nil {
		t.Fatal(err)
	}
	cert, err := x509.ParseCertificate(der)
	if err != nil {
		t.Fatal(err)
	}
	return &authority{key: key, cert: cert, pem: pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: der})}
}

func (a *authority) issue(t testing.TB, until time.Time, ips []net.IP, names ...string) *tls.Certificate {
	t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	template := &x509.Certificate{
		SerialNumber: big.NewInt(time.Now().UnixNano()), Subject: pkix.Name{CommonName: "hook"}, IPAddresses: ips, DNSNames: names,
		NotBefore: time.Date(2020, 1, 1, 0, 0, 0, 0, time.UTC), NotAfter: until,
		KeyUsage: x509.KeyUsageDigitalSignature, ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth},
	}
	der, err := x509.CreateCertificate(rand.Reader, template, a.cert, &key.PublicKey, a.key)
	if err != nil {
		t.Fatal(err)
	}
	return &tls.Certificate{Certificate: [][]byte{der}, PrivateKey: key}
}
