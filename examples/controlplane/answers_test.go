package main

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"flag"
	"fmt"
	"io"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"unicode/utf8"

	gocmp "github.com/google/go-cmp/cmp"
)

// The files testdata/authorization/MODES.json have the answers of kube-apiserver 1.37.1 to the requests below. Record one by
//
//	KEELSON_WIRE_SERVER=https://127.0.0.1:6443 go test ./examples/controlplane -run 'TestAnswersOfKubernetes/MODES$' -update
//
// with a new kube-apiserver that was started with --authorization-mode=MODES and --token-auth-file=testdata/users.csv.
var updateAnswers = flag.Bool("update", false, "record the answers of KEELSON_WIRE_SERVER in testdata/authorization")

// policyObjects are the objects that the administrator creates before the requests: "path body".
const policyObjects = `
/api/v1/namespaces {"metadata":{"name":"team"}}
/apis/apiextensions.k8s.io/v1/customresourcedefinitions {"metadata":{"name":"things.example.com"},"spec":{"group":"example.com","scope":"Namespaced","names":{"plural":"things","kind":"Thing"},"versions":[{"name":"v1","served":true,"storage":true,"schema":{"openAPIV3Schema":{"type":"object","x-kubernetes-preserve-unknown-fields":true}}}]}}
/api/v1/namespaces/team/configmaps {"metadata":{"name":"one"}}
/apis/rbac.authorization.k8s.io/v1/clusterroles {"metadata":{"name":"team-pods"},"rules":[{"verbs":["get","list"],"apiGroups":[""],"resources":["pods"]}]}
/apis/rbac.authorization.k8s.io/v1/namespaces/team/rolebindings {"metadata":{"name":"qa"},"roleRef":{"apiGroup":"rbac.authorization.k8s.io","kind":"ClusterRole","name":"team-pods"},"subjects":[{"apiGroup":"rbac.authorization.k8s.io","kind":"Group","name":"qa"}]}
/apis/rbac.authorization.k8s.io/v1/namespaces/team/roles {"metadata":{"name":"one"},"rules":[{"verbs":["get","list","watch","create","delete"],"apiGroups":[""],"resources":["configmaps"],"resourceNames":["one"]}]}
/apis/rbac.authorization.k8s.io/v1/namespaces/team/rolebindings {"metadata":{"name":"one"},"roleRef":{"apiGroup":"rbac.authorization.k8s.io","kind":"Role","name":"one"},"subjects":[{"apiGroup":"rbac.authorization.k8s.io","kind":"User","name":"named"}]}
/apis/rbac.authorization.k8s.io/v1/namespaces/team/rolebindings {"metadata":{"name":"robot"},"roleRef":{"apiGroup":"rbac.authorization.k8s.io","kind":"Role","name":"one"},"subjects":[{"kind":"ServiceAccount","name":"robot","namespace":"team"}]}
/apis/rbac.authorization.k8s.io/v1/clusterroles {"metadata":{"name":"urls"},"rules":[{"verbs":["get"],"nonResourceURLs":["/custom","/below/*"]}]}
/apis/rbac.authorization.k8s.io/v1/clusterrolebindings {"metadata":{"name":"urls"},"roleRef":{"apiGroup":"rbac.authorization.k8s.io","kind":"ClusterRole","name":"urls"},"subjects":[{"apiGroup":"rbac.authorization.k8s.io","kind":"User","name":"named"}]}
/apis/rbac.authorization.k8s.io/v1/clusterrolebindings {"metadata":{"name":"lost"},"roleRef":{"apiGroup":"rbac.authorization.k8s.io","kind":"ClusterRole","name":"gone"},"subjects":[{"apiGroup":"rbac.authorization.k8s.io","kind":"User","name":"lost"}]}
/apis/rbac.authorization.k8s.io/v1/namespaces/team/rolebindings {"metadata":{"name":"lost"},"roleRef":{"apiGroup":"rbac.authorization.k8s.io","kind":"Role","name":"gone"},"subjects":[{"apiGroup":"rbac.authorization.k8s.io","kind":"User","name":"lost"}]}
`

// modeRequests are sent to servers of all modes: "user method path".
const modeRequests = `
admin GET /api/v1/nodes
alice GET /api/v1/nodes
named GET /api/v1/nodes
lost GET /api/v1/nodes
nobody GET /api/v1/nodes
alice GET /api/v1/namespaces/team/pods
lost GET /api/v1/namespaces/team/pods
nobody GET /api/v1/namespaces/team/pods
named GET /api/v1/namespaces/team/configmaps/one
named GET /custom
admin GET /custom
alice GET /custom
lost GET /custom
nobody GET /custom
alice GET /apis
nobody GET /apis
admin GET /readyz
alice GET /readyz
nobody GET /readyz
nobody GET /version
wrong GET /readyz
`

// rbacRequests are sent only to servers with roles and bindings: "user method path [Accept]".
const rbacRequests = `
alice GET /api/v1/pods
alice GET /api/v1/pods?watch=true
alice GET /api/v1/pods?watch=1&fieldSelector=metadata.name%3Da
alice GET /api/v1/watch/pods
alice GET /api/v1/watch/namespaces/default/pods/a
alice GET /api/v1/namespaces/default/pods
alice GET /api/v1/namespaces/default/pods/a
alice HEAD /api/v1/namespaces/default/pods/a
alice HEAD /api/v1/namespaces/default/pods
alice POST /api/v1/namespaces/default/pods
alice POST /api/v1/namespaces/team/pods
alice POST /api/v1/namespaces/team/pods/a
alice PUT /api/v1/namespaces/team/pods/a
alice PATCH /api/v1/namespaces/team/pods/a
alice DELETE /api/v1/namespaces/team/pods/a
alice DELETE /api/v1/namespaces/team/pods
alice OPTIONS /api/v1/namespaces/team/pods/a
alice GET /api/v1/namespaces/team/pods/a
alice GET /api/v1/namespaces/team/pods/a/log
alice GET /api/v1/namespaces/team/pods/a/status
alice POST /api/v1/namespaces/team/pods/a/exec
alice GET /api/v1/namespaces/team/pods/a/exec?command=ls
alice POST /api/v1/namespaces/team/pods/a/binding
alice POST /api/v1/namespaces/team/pods/a/eviction
alice GET /api/v1/namespaces/team/pods/a/proxy/b/c
alice GET /api/v1/namespaces/team/services/https:a:80/proxy/b?c=d
alice GET /api/v1/namespaces
alice GET /api/v1/namespaces/team
alice DELETE /api/v1/namespaces/team
alice PUT /api/v1/namespaces/team/status
alice PUT /api/v1/namespaces/team/finalize
alice GET /api/v1/nodes/a
alice GET /api/v1/nodes/a/proxy/logs
alice GET /apis/apps/v1/namespaces/team/deployments
alice GET /apis/apps/v1/namespaces/team/deployments/web/scale
alice PUT /apis/apps/v1/namespaces/team/deployments/web/scale
alice PATCH /apis/apps/v1/namespaces/team/deployments/web/status
alice GET /apis/apps/v1/deployments?watch=true
alice GET /apis/apps/v1/widgets
alice POST /apis/rbac.authorization.k8s.io/v1/clusterroles
alice GET /apis/rbac.authorization.k8s.io/v1/namespaces/team/rolebindings/qa
alice DELETE /apis/rbac.authorization.k8s.io/v1/clusterrolebindings
alice GET /apis/apiextensions.k8s.io/v1/customresourcedefinitions
alice GET /apis/example.com/v1/namespaces/team/things
alice POST /apis/example.com/v1/namespaces/team/things
alice PATCH /apis/example.com/v1/namespaces/team/things/a
alice GET /apis/example.com/v1/things/a
alice GET /apis/example.com/v9/namespaces/team/things
alice GET /apis/unknown.example.com/v1/namespaces/team/gadgets
alice DELETE /apis/unknown.example.com/v1/gadgets
alice GET /apis/unknown.example.com/v1
alice GET /apis/unknown.example.com
alice GET /api/v1/namespaces/team/pods/a%22b
alice GET /api/v1/namespaces/team/secrets/%3Cscript%3E&a=b
alice GET /api/v1/namespaces/a%20b/secrets
alice GET /api/v1/namespaces/team/secrets/a%2Fb
alice GET /
alice GET /metrics
alice POST /healthz
alice POST /apis
alice GET /logs/
alice GET /%3Cscript%3Ealert(1)%3C/script%3E
alice GET /api/v1/namespaces/team/secrets application/yaml
alice GET /api/v1/namespaces/team/secrets application/json;as=Table;v=v1;g=meta.k8s.io,application/json
alice GET /api/v1/namespaces/team/secrets application/vnd.kubernetes.protobuf,application/json
alice GET /api/v1/namespaces/team/secrets text/html
alice GET /api/v1/namespaces/team/secrets?watch=true application/yaml
alice GET /custom application/yaml
named GET /api/v1/namespaces/team/configmaps
named GET /api/v1/namespaces/team/configmaps?fieldSelector=metadata.name%3Done
named GET /api/v1/namespaces/team/configmaps?fieldSelector=metadata.name%3Dtwo
named GET /api/v1/namespaces/team/configmaps/two
named GET /api/v1/namespaces/default/configmaps/one
named POST /api/v1/namespaces/team/configmaps
named DELETE /api/v1/namespaces/team/configmaps
named PATCH /api/v1/namespaces/team/configmaps/one
named GET /custom/
named GET /below/a/b
named POST /custom
lost DELETE /api/v1/namespaces/team/pods/a
lost GET /api/v1/namespaces/default/pods
lost GET /apis/example.com/v1/namespaces/team/things
nobody GET /api
nobody GET /openapi/v2
nobody GET /openapi/v3
nobody GET /metrics
nobody GET /apis/apps/v1
nobody GET /api/v1/namespaces/team/pods/a/log
nobody POST /apis/apps/v1/namespaces/team/deployments
nobody DELETE /apis/example.com/v1/namespaces/team/things
nobody GET /readyz/ping
alice GET /readyz/ping
nobody GET /version/
alice GET /version
alice GET /openapi/v3
alice GET /swagger.json
alice GET /debug/pprof/
alice GET /.well-known/openid-configuration
alice GET /api/v1/nodes?pretty=true
alice GET /api/v1/nodes?pretty=0
alice GET /custom?pretty=1
alice GET /api/v1/nodes application/cbor,application/json
alice GET /api/v1/nodes application/json;stream=watch
alice GET /apis/apps/v1/namespaces/team
alice GET /apis/apps/v1/namespaces/team/deployments/web/a/b
alice GET /api/v1/namespaces/team/
alice GET /api/v1/namespaces/team/secrets/
alice GET /api/v1//secrets
alice GET //api/v1/secrets
alice GET /api/v1/../v1/secrets
alice GET /api/v1/./secrets
alice GET /api/v2/secrets
alice GET /api/v1/proxy/nodes/a
alice GET /api/v1/redirect/nodes/a
alice GET /api/v1/watch/nodes/a
alice GET /api/v1/watch/namespaces/team/secrets
alice GET /api/v1/watch
alice DELETE /api/v1/watch/nodes/a
alice GET /api/v1/secrets?watch=false
alice GET /api/v1/secrets?watch=foo
alice GET /api/v1/secrets?watch
alice GET /api/v1/secrets?watch=true&watch=false
alice GET /api/v1/secrets?fieldSelector=bad%3D%3D%3D
alice GET /api/v1/namespaces/team/secrets?fieldSelector=metadata.name%3Da,metadata.namespace%3Dteam
alice GET /api/v1/namespaces/team/secrets?fieldSelector=metadata.name!%3Da
alice GET /api/v1/namespaces/team/secrets?fieldSelector=metadata.name%3D%3Da&limit=bad
alice DELETE /api/v1/namespaces/team/secrets?fieldSelector=metadata.name%3Da
alice TRACE /api/v1/namespaces/team/secrets
alice PROPFIND /api/v1/namespaces/team/secrets/a
alice PROPFIND /custom
alice PUT /api/v1/namespaces/team/serviceaccounts/a/token
alice POST /apis/authorization.k8s.io/v1/subjectaccessreviews
alice GET /api/v1/namespaces/team/pods/a/b/c
alice GET /api/v1/namespaces//secrets
alice GET /healthz/
alice GET /version/x
alice GET /openapi
alice GET /apisx
alice GET /APIS
nobody GET /livez/
nobody GET /livez?verbose
nobody GET /version/
nobody HEAD /custom
posing GET /apis
posing GET /custom
posing GET /api/v1/nodes
outside GET /apis
outside GET /api/v1/namespaces/team/pods
outside GET /api/v1/nodes
odd GET /apis
odd GET /custom
odd GET /api/v1/nodes
odd GET /api/v1/nodes/a application/yaml
kube GET /api/v1/nodes
robot GET /api/v1/nodes
robot GET /api/v1/namespaces/team/configmaps/one
nobody HEAD /api/v1/nodes
wrong GET /api/v1/pods
`

// differences returns the answers that differ from those of kube-apiserver, by "modes: request".
func differences() map[string]recordedAnswer {
	all := map[string]recordedAnswer{
		// A slash that is encoded belongs to the name; see package request.
		"RBAC: alice GET /api/v1/namespaces/team/secrets/a%2Fb": {
			Code:   http.StatusForbidden,
			Header: map[string]string{"Cache-Control": "no-cache, private", "Content-Length": "276", "Content-Type": "application/json", "X-Content-Type-Options": "nosniff"},
			Body: `{"kind":"Status","apiVersion":"v1","metadata":{},"status":"Failure","message":"secrets \"a/b\" is forbidden: User \"alice\" cannot get ` +
				`resource \"secrets\" in API group \"\" in the namespace \"team\"","reason":"Forbidden","details":{"name":"a/b","kind":"secrets"},"code":403}` + "\n",
		},
	}
	// /readyz is ok for everybody also in the mode AlwaysAllow.
	for _, modes := range []string{"AlwaysAllow", "AlwaysAllow,RBAC", "RBAC,AlwaysAllow", "AlwaysAllow,AlwaysDeny", "AlwaysDeny,AlwaysAllow"} {
		all[modes+": nobody GET /readyz"] = recordedAnswer{Code: http.StatusOK}
	}
	// An invalid path is a client error. In kube-apiserver it is a server error.
	all["RBAC: alice GET /api/v1/watch"] = recordedAnswer{Code: http.StatusBadRequest}
	return all
}

// recordedAnswer is the answer to a request. The header and the body of an allowed request are not recorded.
type recordedAnswer struct {
	Request string
	Code    int
	Header  map[string]string `json:",omitempty"`
	Body    string            `json:",omitempty"`
}

type recordedAnswers struct {
	About   string
	Answers []recordedAnswer
}

// With the same modes, users, roles and bindings, the same requests are allowed as by kube-apiserver, and refusals have the same
// bytes.
func TestAnswersOfKubernetes(t *testing.T) {
	t.Parallel()
	for _, modes := range []string{
		"RBAC", "AlwaysDeny", "AlwaysAllow", "AlwaysDeny,RBAC", "RBAC,AlwaysDeny", "AlwaysAllow,RBAC", "RBAC,AlwaysAllow",
		"AlwaysAllow,AlwaysDeny", "AlwaysDeny,AlwaysAllow",
	} {
		t.Run(modes, func(t *testing.T) {
			requests := modeRequests
			if modes == "RBAC" {
				requests += strings.TrimSpace(rbacRequests)
			}
			path := filepath.Join("testdata", "authorization", strings.ReplaceAll(modes, ",", "-")+".json")
			if url := os.Getenv("KEELSON_WIRE_SERVER"); url != "" && *updateAnswers {
				about := "Answers of a kube-apiserver 1.37.1 that was started with --authorization-mode=" + modes + " --token-auth-file=testdata/users.csv."
				record(t, path, recordedAnswers{about, answersOf(t, &process{t: t, url: url}, requests)})
				return
			}
			t.Parallel()
			users, err := filepath.Abs("testdata/users.csv")
			if err != nil {
				t.Fatal(err)
			}
			var want recordedAnswers
			if err := json.Unmarshal(read(t, path), &want); err != nil {
				t.Fatal(err)
			}
			p := start(t, t.TempDir(), "--storage-file=plane.db", "--token-auth-file="+users, "--authorization-mode="+modes)
			compareAnswers(t, modes, want.Answers, answersOf(t, p, requests))
			p.stop()
		})
	}
}

func compareAnswers(t *testing.T, modes string, want, got []recordedAnswer) {
	t.Helper()
	if len(want) != len(got) || len(got) < 20 {
		t.Fatalf("%d answers, recorded are %d", len(got), len(want))
	}
	for i, w := range want {
		if d, ok := differences()[modes+": "+w.Request]; ok {
			d.Request = w.Request
			if gocmp.Equal(w, d) {
				t.Errorf("%s: the answer is that of kube-apiserver, and is listed as another", w.Request)
			}
			w = d
		}
		if diff := gocmp.Diff(w, got[i]); diff != "" {
			t.Errorf("%s: -kube-apiserver +controlplane:\n%s", w.Request, diff)
		}
	}
}

// answersOf sends the requests to a server without objects.
func answersOf(t *testing.T, p *process, requests string) []recordedAnswer {
	t.Helper()
	admin := p.client("t-admin", nil, nil)
	for line := range strings.Lines(strings.TrimSpace(policyObjects)) {
		path, body, _ := strings.Cut(strings.TrimSpace(line), " ")
		admin.want(http.StatusCreated, "", "POST", path, body)
	}
	clients := map[string]*client{"nobody": p.client("", nil, nil)}
	for _, user := range []string{"admin", "alice", "named", "lost", "posing", "outside", "odd", "kube", "robot", "wrong"} {
		clients[user] = p.client("t-"+user, nil, nil)
	}
	var all []recordedAnswer
	for line := range strings.Lines(strings.TrimSpace(requests)) {
		line = strings.TrimSpace(line)
		fields := append(strings.Fields(line), "") // a line of three fields has no Accept
		all = append(all, clients[fields[0]].answerTo(line, fields[1], fields[2], fields[3]))
	}
	return all
}

// answerTo sends a request and returns the recorded parts of its answer.
func (c *client) answerTo(request, method, path, accept string) recordedAnswer {
	c.t.Helper()
	ctx, cancel := context.WithTimeout(c.t.Context(), limit)
	defer cancel()
	req, err := http.NewRequestWithContext(ctx, method, c.url+path, http.NoBody)
	if err != nil {
		c.t.Fatal(err)
	}
	req.Header.Set("Accept", cmp.Or(accept, "*/*"))
	if c.token != "" {
		req.Header.Set("Authorization", "Bearer "+c.token)
	}
	resp, err := c.http.Do(req)
	if err != nil {
		c.t.Fatal(err)
	}
	defer resp.Body.Close()
	a := recordedAnswer{Request: request, Code: resp.StatusCode}
	if a.Code != http.StatusForbidden && a.Code != http.StatusUnauthorized {
		return a
	}
	text, err := io.ReadAll(resp.Body)
	if err != nil {
		c.t.Fatal(err)
	}
	if a.Body, a.Header = string(text), map[string]string{}; !utf8.Valid(text) {
		a.Body = fmt.Sprintf("%q", text)
	}
	for name := range resp.Header {
		switch {
		case name == "Date" || name == "Audit-Id" || strings.HasPrefix(name, "X-Kubernetes-Pf-"): // these differ in each answer or cluster
		default:
			a.Header[name] = strings.Join(resp.Header[name], "; and ")
		}
	}
	return a
}

// record writes a file of answers.
func record(t *testing.T, path string, answers recordedAnswers) {
	t.Helper()
	var text bytes.Buffer
	lines := json.NewEncoder(&text)
	lines.SetEscapeHTML(false)
	lines.SetIndent("", "  ")
	if err := lines.Encode(answers); err != nil {
		t.Fatal(err)
	}
	write(t, path, text.String())
}
