package rbac_test

import (
	"net/http"
	"strings"
	"testing"

	"github.com/keelson-dev/keelson/authn"
	"github.com/keelson-dev/keelson/server"
	"github.com/keelson-dev/keelson/server/builtin/rbac"
	"github.com/keelson-dev/keelson/server/servertest"
)

// attempt is a request by which a user wants more permissions.
type attempt struct {
	what, method, path, body string
	code                     int
	header                   [2]string
}

// A user who may write roles and bindings cannot get more permissions by it. server/testdata/wire/rbac has the answers of
// kube-apiserver to most of these requests.
func TestAttemptsToEscalate(t *testing.T) {
	t.Parallel()
	srv := servertest.Start(t, server.Options{}, mapsOnly(), rbac.New(rbac.Options{NoControllers: true}))
	admin, url := srv.Client(), srv.URL+group
	rules := func(verbs, resources string) string {
		return `{"verbs":["` + strings.ReplaceAll(verbs, " ", `","`) + `"],"apiGroups":[""],"resources":["` + strings.ReplaceAll(resources, " ", `","`) + `"]}`
	}
	const all = `{"verbs":["*"],"apiGroups":["*"],"resources":["*"]}`
	writes := `{"verbs":["get","create","update","patch","deletecollection"],"apiGroups":["rbac.authorization.k8s.io"],"resources":["*"]}`
	role := func(name, rules string) string { return `{"metadata":{"name":"` + name + `"},"rules":[` + rules + `]}` }
	bind := func(name, kind, role string) string {
		return `{"metadata":{"name":"` + name + `"},"roleRef":{"kind":"` + kind + `","name":"` + role + `"},"subjects":[{"kind":"User","name":"eve"},{"kind":"Group","name":"eves"}]}`
	}
	for path, body := range map[string]string{
		"/clusterroles":                      role("writes", writes),
		"/clusterrolebindings":               bind("writes", "ClusterRole", "writes"),
		"/namespaces/own/roles":              role("own", all),
		"/namespaces/own/rolebindings":       bind("own", "Role", "own"),
		"/namespaces/other/roles":            role("all", all),
		"/namespaces/other/rolebindings":     strings.ReplaceAll(bind("all", "Role", "all"), "eve", "bob"),
		"/namespaces/kube-system/roles":      role("low", rules("get", "configmaps")),
		"/clusterroles?":                     role("low", ""),
		"/clusterrolebindings?":              bind("low", "ClusterRole", "low"),
		"/clusterrolebindings?fieldManager=": strings.ReplaceAll(bind("bobs", "ClusterRole", "cluster-admin"), "eve", "bob"),
	} {
		must(t, admin, "POST", url+path, body)
	}
	eve := srv.ClientOf(srv.AddUser(authn.User{Name: "eve", Groups: []string{"eves"}}))
	apply := func(kind, body string) string {
		return `{"apiVersion":"rbac.authorization.k8s.io/v1","kind":"` + kind + `",` + body[1:]
	}
	maps := rules("list", "configmaps")
	aggregated := func(label string) string {
		return `{"metadata":{"name":"part","labels":{"rbac.authorization.k8s.io/aggregate-to-` + label + `":"true"}},"rules":[` + all + `]}`
	}
	const cr, crb, other = "/clusterroles", "/clusterrolebindings", "/namespaces/other"
	none := [2]string{}
	for _, a := range []attempt{
		{"a role above", "POST", cr, role("new", maps), 403, none},
		{"a role with everything", "POST", cr, role("new", all), 403, none},
		{"paths", "POST", cr, role("new", `{"verbs":["get"],"nonResourceURLs":["/metrics"]}`), 403, none},
		{"by PUT", "PUT", cr + "/new", role("new", maps), 403, none},
		{"by apply", "PATCH-apply", cr + "/new?fieldManager=eve&force=true", apply("ClusterRole", role("new", maps)), 403, none},
		{"more in a role that the user has", "PUT", cr + "/writes", role("writes", writes+","+maps), 403, none},
		{"by a merge patch", "PATCH-merge", cr + "/low", `{"rules":[` + maps + `]}`, 403, none},
		{"by a JSON patch", "PATCH-json", cr + "/writes", `[{"op":"add","path":"/rules/0/verbs/-","value":"escalate"}]`, 403, none},
		{"by a strategic patch", "PATCH-strategic-merge", cr + "/low", `{"rules":[` + maps + `]}`, 403, none},
		{"by an apply of a bound role", "PATCH-apply", cr + "/low?fieldManager=eve&force=true", apply("ClusterRole", role("low", maps)), 403, none},
		{"by the status", "PUT", cr + "/low/status", role("low", maps), 404, none},
		{"by a patch of the status", "PATCH-merge", cr + "/low/status", `{"rules":[` + maps + `]}`, 404, none},
		{"by the scale", "PUT", cr + "/low/scale", `{}`, 404, none},
		{"the verb escalate", "POST", cr, role("new", `{"verbs":["escalate"],"apiGroups":["rbac.authorization.k8s.io"],"resources":["clusterroles"]}`), 403, none},
		{"the verb bind", "POST", cr, role("new", `{"verbs":["bind"],"apiGroups":["rbac.authorization.k8s.io"],"resources":["*"]}`), 403, none},
		{"the verb impersonate", "POST", cr, role("new", rules("impersonate", "users groups")), 403, none},
		{"verbs with a star", "POST", cr, role("new", `{"verbs":["*"],"apiGroups":["rbac.authorization.k8s.io"],"resources":["roles"]}`), 403, none},
		{"groups with a star", "POST", cr, role("new", `{"verbs":["get"],"apiGroups":["*"],"resources":["roles"]}`), 403, none},
		{"a subresource of all", "POST", cr, role("new", rules("get", "*/status")), 403, none},
		{"another case of the field", "POST", cr + "?fieldValidation=Ignore", `{"metadata":{"name":"new"},"Rules":[` + all + `]}`, 201, none}, // the field is ignored
		{"rules twice", "POST", cr + "?fieldValidation=Ignore", `{"metadata":{"name":"new2"},"rules":[],"rules":[` + all + `]}`, 403, none},
		{"another case of the verb", "POST", cr, role("new3", rules("LIST", "configmaps")), 403, none},
		{"part of the role admin", "POST", cr, aggregated("admin"), 403, none},
		{"part of the role view", "POST", cr, aggregated("view"), 403, none},
		{"an aggregationRule", "POST", cr, `{"metadata":{"name":"new4"},"aggregationRule":{"clusterRoleSelectors":[{}]}}`, 403, none},
		{"another aggregationRule of a role", "PATCH-merge", cr + "/view", `{"aggregationRule":{"clusterRoleSelectors":[{}]}}`, 403, none},
		{"an aggregationRule by apply", "PATCH-apply", cr + "/low?fieldManager=eve", apply("ClusterRole", `{"metadata":{"name":"low"},"aggregationRule":{"clusterRoleSelectors":[{}]}}`), 403, none},
		{"cluster-admin", "POST", crb, bind("new", "ClusterRole", "cluster-admin"), 403, none},
		{"cluster-admin in a namespace", "POST", other + "/rolebindings", bind("new", "ClusterRole", "cluster-admin"), 403, none},
		{"by PUT", "PUT", crb + "/new", bind("new", "ClusterRole", "cluster-admin"), 403, none},
		{"by apply", "PATCH-apply", crb + "/new?fieldManager=eve", apply("ClusterRoleBinding", bind("new", "ClusterRole", "cluster-admin")), 403, none},
		{"one of the subjects of a binding above", "PATCH-merge", crb + "/bobs", `{"subjects":[{"kind":"User","name":"eve"}]}`, 403, none},
		{"a role that does not exist yet", "POST", crb, bind("new", "ClusterRole", "later"), 404, none},
		{"another role of a binding", "PATCH-merge", crb + "/low", `{"roleRef":{"name":"cluster-admin"}}`, 403, none},
		{"a kind in another case", "POST", crb, bind("new", "clusterrole", "cluster-admin"), 422, none},
		{"a role of another group", "POST", crb, strings.Replace(bind("new", "ClusterRole", "cluster-admin"), `"roleRef":{`, `"roleRef":{"apiGroup":"x",`, 1), 403, none},
		{"the Role of another namespace", "POST", other + "/rolebindings", bind("new", "Role", "all"), 403, none},
		{"a Role of the own namespace elsewhere", "POST", other + "/rolebindings", bind("new", "Role", "own"), 404, none},
		{"a Role elsewhere with what the user may do in the own namespace", "POST", other + "/roles", role("new", maps), 403, none},
		{"another namespace in the body", "POST", "/namespaces/own/roles", strings.Replace(role("new", maps), `"name"`, `"namespace":"other","name"`, 1), 400, none},
		{"another namespace in the body of a binding", "PUT", "/namespaces/own/rolebindings/own", strings.Replace(bind("own", "Role", "own"), `"name"`, `"namespace":"other","name"`, 1), 400, none},
		{"a ClusterRole in a namespace", "POST", "/namespaces/own/clusterroles", role("new", maps), 404, none},
		{"a Role by ClusterRoleBinding", "POST", crb, bind("new", "Role", "own"), 400, none},
		{"as administrator", "POST", crb, bind("new", "ClusterRole", "cluster-admin"), 403, [2]string{"Impersonate-User", "admin"}},
		{"as eve in system:masters", "POST", crb, bind("new", "ClusterRole", "cluster-admin"), 403, [2]string{"Impersonate-Group", "system:masters"}},
		{"the first roles", "DELETE", cr, "", 200, none}, // deleting takes permissions away
	} {
		t.Run(a.what, func(t *testing.T) {
			client := eve
			if a.header != none {
				client = &http.Client{Transport: headed{eve.Transport, a.header}}
			}
			if got := ask(t, client, a.method, url+a.path, a.body); got.code != a.code {
				t.Errorf("%s %s %s: %d %s, want %d", a.method, a.path, a.body, got.code, got.message, a.code)
			}
			if got := ask(t, eve, "GET", srv.URL+"/api/v1/namespaces/other/configmaps", ""); got.code != 403 {
				t.Errorf("eve has got the permission: %d", got.code)
			}
		})
	}
}

// headed adds a header to requests.
type headed struct {
	next   http.RoundTripper
	header [2]string
}

func (h headed) RoundTrip(r *http.Request) (*http.Response, error) {
	r = r.Clone(r.Context())
	r.Header.Set(h.header[0], h.header[1])
	if h.header[0] == "Impersonate-Group" {
		r.Header.Set("Impersonate-User", "eve")
	}
	return h.next.RoundTrip(r)
}
