package e2e_test

import (
	"encoding/base64"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/keelson-dev/keelson/examples/e2e/harness"
)

// kubectl creates service accounts and tokens of every form, and clients with such a token are the account as long as the token, the
// account and the object that the token is bound to last. The server runs on a file, and is started again with the same key.
func TestKubectlCreateToken(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	o := harness.Options{Example: "controlplane", Dir: dir, Data: filepath.Join(dir, "plane.db")}
	s := harness.Start(t, o)
	s.Kubectl("create", "serviceaccount", "robot").Want("serviceaccount/robot created\n", "")
	s.Kubectl("get", "sa", "default", "-o", "name").Want("serviceaccount/default\n", "")
	s.Kubectl("get", "configmap", "kube-root-ca.crt", "-n", "kube-public", "-o", "name").Want("configmap/kube-root-ca.crt\n", "")
	s.Kubectl("create", "secret", "generic", "lock").OK()
	token := func(flags ...string) string {
		t.Helper()
		return strings.TrimSpace(s.Kubectl(append([]string{"create", "token", "robot"}, flags...)...).OK().Stdout)
	}
	as := func(token string, args ...string) harness.Result {
		t.Helper()
		empty := filepath.Join(t.TempDir(), "kubeconfig")
		if err := os.WriteFile(empty, []byte("apiVersion: v1\nkind: Config\n"), 0o600); err != nil {
			t.Fatal(err)
		}
		trust := "--certificate-authority=" + filepath.Join(dir, "certs", "apiserver.crt")
		return harness.NewKubectl(t, empty).Run("", append(args, "--server="+s.URL, trust, "--token="+token)...)
	}
	const me = "system:serviceaccount:default:robot"
	plain, bound := token("--duration=10m"), token("--bound-object-kind=Secret", "--bound-object-name=lock")
	for what, held := range map[string]string{"plain": plain, "bound": bound, "of two audiences": token("--audience=https://kubernetes.default.svc", "--audience=vault")} {
		if got := as(held, "auth", "whoami", "-o", "jsonpath={.status.userInfo.username}").OK().Stdout; got != me {
			t.Errorf("%s: %s", what, got)
		}
	}
	as(token("--audience=vault"), "auth", "whoami").Fails("You must be logged in to the server")
	s.Kubectl("create", "token", "robot", "--duration=5m").Fails("spec.expirationSeconds: Invalid value: 300: may not specify a duration less than 10 minutes")
	s.Kubectl("create", "token", "nobody").Fails(`serviceaccounts "nobody" not found`)
	s.Kubectl("create", "token", "robot", "--bound-object-kind=Secret", "--bound-object-name=lock", "--bound-object-uid=x").Fails("the UID in the bound object reference (x) does not match the UID in record")
	s.Kubectl("create", "token", "robot", "--bound-object-kind=Secret", "--bound-object-name=none").Fails(`secrets "none" not found`)
	s.Kubectl("get", "--raw", "/.well-known/openid-configuration").Contains(`"issuer":"https://kubernetes.default.svc","jwks_uri":"` + s.URL + `/openid/v1/jwks"`)
	s.Kubectl("get", "--raw", "/openid/v1/jwks").Contains(`"alg":"ES256"`)

	s.KubectlWith(`{"apiVersion":"v1","kind":"Secret","type":"kubernetes.io/service-account-token","metadata":{"name":"robot-token","annotations":{"kubernetes.io/service-account.name":"robot"}}}`, "create", "-f", "-").OK()
	s.Kubectl("wait", "secret/robot-token", "--for=jsonpath={.data.token}", "--timeout=50s").OK()
	text, err := base64.StdEncoding.DecodeString(s.Kubectl("get", "secret", "robot-token", "-o", "jsonpath={.data.token}").OK().Stdout)
	if err != nil {
		t.Fatal(err)
	}
	if got := as(string(text), "auth", "whoami", "-o", "jsonpath={.status.userInfo.username}").OK().Stdout; got != me {
		t.Errorf("the token of a Secret: %s", got)
	}

	s.Stop()
	s = harness.Start(t, o)
	if got := as(plain, "auth", "whoami", "-o", "jsonpath={.status.userInfo.username}").OK().Stdout; got != me {
		t.Errorf("after a restart: %s", got)
	}
	s.Kubectl("delete", "secret", "lock").OK()
	as(bound, "auth", "whoami").Fails("You must be logged in to the server")
	s.Kubectl("delete", "serviceaccount", "robot").OK()
	as(string(text), "auth", "whoami").Fails("You must be logged in to the server")
	s.Kubectl("wait", "secret/robot-token", "--for=delete", "--timeout=50s").OK()
	s.Stop()
}
