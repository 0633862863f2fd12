package main

import (
	"crypto/tls"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

// usersFlags are the flags of all methods of authentication that have files.
const usersFlags = `--storage-file=plane.db --authorization-mode=RBAC --token-auth-file=tokens.csv --client-ca-file=ca.crt --requestheader-client-ca-file=front.crt
	--requestheader-allowed-names=front --requestheader-username-headers=X-Remote-User --requestheader-group-headers=X-Remote-Group
	--requestheader-uid-headers=X-Remote-Uid --requestheader-extra-headers-prefix=X-Remote-Extra- --enable-bootstrap-token-auth --api-audiences=plane
	--authentication-token-webhook-config-file=hook.yaml --authentication-token-webhook-version=v1 --authentication-token-webhook-cache-ttl=1h`

// userFileChecks are the checks of the files that usersFlags name.
func userFileChecks() []string {
	return []string{"token_auth-config", "client_ca-config", "requestheader_client_ca-config", "token_webhook-config"}
}

// asked is a user of one method of authentication.
type asked struct {
	client *client
	header http.Header
}

// who returns the code of the answer, and the user that it names: name, UID and groups.
func (a asked) who() (code int, user string) {
	a.client.t.Helper()
	req, err := http.NewRequestWithContext(a.client.t.Context(), "POST", a.client.url+"/apis/authentication.k8s.io/v1/selfsubjectreviews", strings.NewReader("{}"))
	if err != nil {
		a.client.t.Fatal(err)
	}
	if a.header != nil {
		req.Header = a.header.Clone()
	}
	req.Header.Set("Content-Type", "application/json")
	if a.client.token != "" {
		req.Header.Set("Authorization", "Bearer "+a.client.token)
	}
	resp, err := a.client.http.Do(req)
	if err != nil {
		a.client.t.Fatal(err)
	}
	defer resp.Body.Close()
	text, err := io.ReadAll(resp.Body)
	var review struct {
		Status struct {
			UserInfo struct {
				Username, UID string
				Groups        []string
				Extra         map[string][]string
			}
		}
	}
	if err == nil && resp.StatusCode == http.StatusCreated {
		err = json.Unmarshal(text, &review)
	}
	if err != nil {
		a.client.t.Fatal(err)
	}
	u := review.Status.UserInfo
	return resp.StatusCode, strings.TrimSpace(fmt.Sprint(u.Username, " ", u.UID, " ", u.Groups, " ", u.Extra["scopes"]))
}

// is checks who is authenticated; "" is nobody.
func (a asked) is(want string) {
	a.client.t.Helper()
	code, got := a.who()
	if want == "" && code != http.StatusUnauthorized || want != "" && (code != http.StatusCreated || got != want) {
		a.client.t.Errorf("%d for %q, want %q", code, got, want)
	}
}

// becomes waits until the user is authenticated.
func (a asked) becomes(want string) {
	a.client.t.Helper()
	for begin := time.Now(); ; time.Sleep(20 * time.Millisecond) {
		if code, got := a.who(); code == http.StatusCreated && got == want {
			return
		}
		if time.Since(begin) > limit {
			a.client.t.Fatalf("%s is not authenticated", want)
		}
	}
}

// tokenHook returns the kubeconfig of a webhook that knows one token, which is the name of its user.
func tokenHook(t *testing.T, token string) string {
	hook := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		body, _ := io.ReadAll(r.Body)
		status := "{}"
		if strings.Contains(string(body), `"`+token+`"`) && strings.Contains(string(body), `"audiences":["plane"]`) {
			status = `{"authenticated":true,"user":{"username":"` + token + `"}}`
		}
		_, _ = fmt.Fprintf(w, `{"apiVersion":"authentication.k8s.io/v1","kind":"TokenReview","status":%s}`, status)
	}))
	t.Cleanup(hook.Close)
	return fmt.Sprintf("clusters: [{name: a, cluster: {server: %q}}]\ncontexts: [{name: a, context: {cluster: a}}]\ncurrent-context: a\n", hook.URL)
}

// The users of all files change with the files, without a restart: those that a file no longer has end at once, also on open
// connections and in the caches. While a file cannot be used its users from before stay, and the log, a check and a metric say so.
func TestFilesOfUsersChange(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	clients, proxies, otherClients, otherProxies := newAuthority(t), newAuthority(t), newAuthority(t), newAuthority(t)
	put := func(tokens, ca, front, hook string) {
		for name, content := range map[string]string{"tokens.csv": tokens, "ca.crt": ca, "front.crt": front, "hook.yaml": hook} {
			write(t, filepath.Join(dir, name), content)
		}
	}
	const admin = "t-admin,root,0,system:masters\n"
	put(admin+"t-old,old,1,\"a,b\"\n", string(clients.pem), string(proxies.pem), tokenHook(t, "hook-eve"))
	p := start(t, dir, strings.Fields(usersFlags)...)
	root := p.client("t-admin", nil, nil)
	forwarded := http.Header{"X-Remote-User": {"dora"}, "X-Remote-Group": {"g", "h"}, "X-Remote-Uid": {"9"}, "X-Remote-Extra-Scopes": {"x"}}
	byToken := func(token string) asked { return asked{p.client(token, nil, nil), nil} }
	byCert := func(of *authority) asked { return asked{p.client("", of.issue(t, "carol", "ops"), nil), nil} }
	byProxy := func(of *authority, name string) asked {
		return asked{p.client("", of.issue(t, name), nil), forwarded}
	}
	old, carol, dora, eve := byToken("t-old"), byCert(clients), byProxy(proxies, "front"), byToken("hook-eve")
	const isOld, isCarol, isDora, isEve = "old 1 [a b system:authenticated] []", "carol  [ops system:authenticated] []",
		"dora 9 [g h system:authenticated] [x]", "hook-eve  [system:authenticated] []"
	old.is(isOld)
	carol.is(isCarol)
	dora.is(isDora)
	eve.is(isEve)
	asked{old.client, forwarded}.is(isOld) // no proxy's certificate
	asked{carol.client, forwarded}.is(isCarol)
	byProxy(proxies, "back").is("") // not in --requestheader-allowed-names
	byCert(otherClients).is("")
	byCert(proxies).is("")
	byToken("hook-fay").is("")
	root.want(201, `"audiences":["plane"]`, "POST", "/apis/authentication.k8s.io/v1/tokenreviews", `{"spec":{"token":"t-old"}}`)
	root.want(201, `"error":"invalid bearer token"`, "POST", "/apis/authentication.k8s.io/v1/tokenreviews", `{"spec":{"token":"t-old","audiences":["x"]}}`)

	byToken("abcdef.0123456789abcdef").is("") // not yet
	root.want(201, "", "POST", "/api/v1/namespaces/kube-system/secrets", `{"metadata":{"name":"bootstrap-token-abcdef"},"type":"bootstrap.kubernetes.io/token",
		"stringData":{"token-id":"abcdef","token-secret":"0123456789abcdef","usage-bootstrap-authentication":"true"}}`)
	byToken("abcdef.0123456789abcdef").is("system:bootstrap:abcdef  [system:bootstrappers system:authenticated] []")

	put(admin+"t-new,new,1\n", string(otherClients.pem), string(otherProxies.pem), tokenHook(t, "hook-fay"))
	fresh, fay := byToken("t-new"), byToken("hook-fay")
	newCarol, newDora := byCert(otherClients), byProxy(otherProxies, "front")
	const isNew, isFay = "new 1 [system:authenticated] []", "hook-fay  [system:authenticated] []"
	fresh.becomes(isNew)
	old.is("")
	newCarol.becomes(isCarol)
	carol.is("")
	newDora.becomes(isDora)
	dora.is("")
	fay.becomes(isFay)
	eve.is("")

	put("t-new\n", "no PEM", "no PEM either", "clusters: [")
	for _, check := range userFileChecks() {
		for begin := time.Now(); ; time.Sleep(20 * time.Millisecond) {
			if code, _ := root.ask("GET", "/readyz/"+check, ""); code == 500 {
				break
			}
			if time.Since(begin) > limit {
				t.Fatalf("%s does not fail", check)
			}
		}
	}
	root.want(200, "ok", "GET", "/readyz", "")
	fresh.is(isNew)
	newCarol.is(isCarol)
	newDora.is(isDora)
	fay.is(isFay)
	metrics := root.want(200, "", "GET", "/metrics", "")
	for _, check := range userFileChecks() {
		name := strings.TrimSuffix(check, "-config")
		for _, want := range []string{
			"\napiserver_" + name + "_config_controller_automatic_reloads_total{status=\"success\"} 1\n",
			"\napiserver_" + name + "_config_controller_automatic_reloads_total{status=\"failure\"} ",
		} {
			if !strings.Contains(metrics, want) {
				t.Errorf("the metrics lack %q", want)
			}
		}
		if text := p.stderr.String(); !strings.Contains(text, `a changed configuration file cannot be used, and what it had before stays in use	{"name": "`+name+`"`) {
			t.Errorf("the log lacks a line about %s", name)
		}
	}

	put(admin, string(clients.pem), string(proxies.pem), tokenHook(t, "hook-eve"))
	byCert(clients).becomes(isCarol)
	byProxy(proxies, "front").becomes(isDora)
	eve.becomes(isEve)
	for begin := time.Now(); time.Since(begin) < limit; time.Sleep(20 * time.Millisecond) {
		if code, _ := fresh.who(); code == http.StatusUnauthorized {
			break
		}
	}
	fresh.is("")
	fay.is("")
	for _, check := range userFileChecks() {
		root.want(200, "ok", "GET", "/readyz/"+check, "")
	}
	p.stop()
	if text := p.stderr.String(); strings.Contains(text, "t-new") || strings.Contains(text, "hook-fay") || strings.Contains(text, "t-admin") {
		t.Errorf("the log has a token: %s", text)
	}
}

// Without a header for the name of the user no proxy can name one, as in kube-apiserver, and the log says so. A user whom nobody may
// create is not missed: with bootstrap tokens alone there is the administrator.
func TestProxiesWithoutHeaders(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	proxies := newAuthority(t)
	write(t, filepath.Join(dir, "front.crt"), string(proxies.pem))
	write(t, filepath.Join(dir, "tokens.csv"), "t,mary,1\n")
	p := start(t, dir, "--storage-file=plane.db", "--requestheader-client-ca-file=front.crt", "--token-auth-file=tokens.csv", "--authorization-mode=AlwaysDeny")
	p.client("t", nil, nil).want(403, `User \"mary\" cannot create resource \"selfsubjectreviews\"`, "POST", "/apis/authentication.k8s.io/v1/selfsubjectreviews", "{}")
	named := asked{p.client("t", &tls.Certificate{}, nil), http.Header{"X-Remote-User": {"dora"}}}
	if code, _ := named.who(); code != 403 {
		t.Errorf("a header of nobody: %d", code)
	}
	p.stop()
	if !strings.Contains(p.stderr.String(), "no proxy can name a user") {
		t.Error("the log has no line about it")
	}
	p = start(t, dir, "--storage-file=plane.db", "--enable-bootstrap-token-auth")
	if p.kubeconfig == "" {
		t.Error("bootstrap tokens alone leave nobody who could create one")
	}
	p.stop()
}
