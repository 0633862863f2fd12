package e2e_test

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"encoding/base64"
	"encoding/json"
	"encoding/pem"
	"fmt"
	"math/big"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/keelson-dev/keelson/examples/e2e/harness"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
)

// fleetWebhook converts the number of a fleet's ships: spec.ships of v1 is spec.strength.ships of v2.
type fleetWebhook struct {
	*httptest.Server
	ca []byte
}

// newFleetWebhook serves the webhook at a port of the loopback interface, with a certificate for that and for the Service
// fleets.sea.
func newFleetWebhook(t *testing.T) fleetWebhook {
	t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	template := &x509.Certificate{
		SerialNumber: big.NewInt(1), NotBefore: time.Now().Add(-time.Hour), NotAfter: time.Now().Add(time.Hour), IsCA: true, BasicConstraintsValid: true,
		DNSNames: []string{"fleets.sea.svc"}, IPAddresses: []net.IP{net.IPv4(127, 0, 0, 1)},
		KeyUsage: x509.KeyUsageCertSign | x509.KeyUsageDigitalSignature, ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth},
	}
	cert, err := x509.CreateCertificate(rand.Reader, template, template, key.Public(), key)
	if err != nil {
		t.Fatal(err)
	}
	w := fleetWebhook{httptest.NewUnstartedServer(http.HandlerFunc(convertFleets)), pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: cert})}
	w.TLS = &tls.Config{Certificates: []tls.Certificate{{Certificate: [][]byte{cert}, PrivateKey: key}}, MinVersion: tls.VersionTLS12}
	w.StartTLS()
	t.Cleanup(w.Close)
	return w
}

func convertFleets(w http.ResponseWriter, r *http.Request) {
	var review apiextensionsv1.ConversionReview
	if err := json.NewDecoder(r.Body).Decode(&review); err != nil || review.Request == nil {
		http.Error(w, fmt.Sprint(err), http.StatusBadRequest)
		return
	}
	review.Response = &apiextensionsv1.ConversionResponse{UID: review.Request.UID, Result: metav1.Status{Status: metav1.StatusSuccess}}
	for _, raw := range review.Request.Objects {
		converted, err := convertFleet(raw.Raw, review.Request.DesiredAPIVersion)
		if err != nil {
			review.Response.Result = metav1.Status{Status: metav1.StatusFailure, Message: err.Error()}
			break
		}
		review.Response.ConvertedObjects = append(review.Response.ConvertedObjects, runtime.RawExtension{Object: converted})
	}
	review.Request = nil
	_ = json.NewEncoder(w).Encode(review)
}

func convertFleet(text []byte, to string) (*unstructured.Unstructured, error) {
	u := &unstructured.Unstructured{}
	if err := u.UnmarshalJSON(text); err != nil {
		return nil, err
	}
	if admiral, _, _ := unstructured.NestedString(u.Object, "spec", "admiral"); admiral == "nobody" {
		return nil, fmt.Errorf("nobody commands the fleet %s", u.GetName())
	}
	from, into := []string{"spec", "ships"}, []string{"spec", "strength", "ships"}
	if strings.HasSuffix(to, "/v1") {
		from, into = into, from
	}
	u.SetAPIVersion(to)
	ships, found, err := unstructured.NestedInt64(u.Object, from...)
	if err != nil || !found {
		return u, err
	}
	unstructured.RemoveNestedField(u.Object, from[:2]...)
	return u, unstructured.SetNestedField(u.Object, ships, into...)
}

// definition returns the definition of Fleets with the webhook at its URL, or at a Service.
func (w fleetWebhook) definition(t *testing.T, at string) string {
	t.Helper()
	text, err := os.ReadFile("testdata/crds/fleets.yaml")
	if err != nil {
		t.Fatal(err)
	}
	return strings.NewReplacer("url: URL", at, "BUNDLE", base64.StdEncoding.EncodeToString(w.ca)).Replace(string(text))
}

// fleet is a manifest; spec is what is in its braces.
func fleet(version, name, spec string) string {
	return "apiVersion: sea.example.com/" + version + "\nkind: Fleet\nmetadata: {name: " + name + "}\nspec: {" + spec + "}\n"
}

// A webhook converts the versions of a kind. The definition names it by its URL or as a Service. The texts are those that kubectl
// shows with kube-apiserver 1.37.
func TestKubectlConversionWebhook(t *testing.T) {
	t.Parallel()
	for name, at := range map[string]string{"URL": "", "Service": "service: {namespace: sea, name: fleets, path: /convert}"} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			hook := newFleetWebhook(t)
			crds := harness.Start(t, harness.Options{Example: "crds", Flags: []string{"-services=sea/fleets=" + hook.Listener.Addr().String()}})
			if at == "" {
				at = "url: " + hook.URL + "/convert"
			}
			leadFleets(t, crds.Kubeconfig, hook, hook.definition(t, at))
		})
	}
}

func leadFleets(t *testing.T, kubeconfig string, hook fleetWebhook, definition string) {
	kubectl := harness.NewKubectl(t, kubeconfig)
	const v1, v2 = "fleets.v1.sea.example.com", "fleets.v2.sea.example.com"
	run := func(args ...string) harness.Result { t.Helper(); return kubectl.Run("", args...) }
	kubectl.Run(definition, "apply", "-f", "-").Want("customresourcedefinition.apiextensions.k8s.io/fleets.sea.example.com created\n", "")
	for range 100 {
		if run("wait", "--for=condition=Established", "--timeout=60s", "crd/fleets.sea.example.com").Code == 0 {
			break
		}
	}
	spec := func(resource, name, want string) {
		t.Helper()
		run("get", resource, name, "-o", "jsonpath={.apiVersion} {.spec}").Want("sea.example.com/"+strings.Split(resource, ".")[1]+" "+want, "")
	}

	// Written in one version, and read in both.
	kubectl.Run(fleet("v1", "north", "ships: 3, admiral: ann"), "apply", "-f", "-").Want("fleet.sea.example.com/north created\n", "")
	kubectl.Run(fleet("v2", "south", "strength: {ships: 4}"), "apply", "-f", "-").Want("fleet.sea.example.com/south created\n", "")
	spec(v1, "north", `{"admiral":"ann","ships":3}`)
	spec(v2, "north", `{"admiral":"ann","strength":{"ships":3}}`)
	spec(v1, "south", `{"ships":4}`)
	spec(v2, "south", `{"strength":{"ships":4}}`)
	run("get", "fleets").Want("NAME    STRENGTH\nnorth   3\nsouth   4\n", "")
	run("get", v1).Want("NAME    SHIPS\nnorth   3\nsouth   4\n", "")
	run("explain", "fleets", "--api-version=sea.example.com/v1").Contains("VERSION:    v1\n", "told by their number")
	run("explain", "fleets.spec.strength").Contains("VERSION:    v2\n", "FIELD: strength <Object>", "Strength is what there is.")

	// Applied, by both kinds of apply and in both versions.
	kubectl.Run(fleet("v2", "south", "strength: {ships: 4}"), "apply", "-f", "-").Want("fleet.sea.example.com/south unchanged\n", "")
	kubectl.Run(fleet("v2", "south", "strength: {ships: 5}, admiral: bob"), "apply", "-f", "-").Want("fleet.sea.example.com/south configured\n", "")
	spec(v1, "south", `{"admiral":"bob","ships":5}`)
	kubectl.Run(fleet("v1", "west", "ships: 1"), "apply", "--server-side", "-f", "-").Want("fleet.sea.example.com/west serverside-applied\n", "")
	kubectl.Run(fleet("v2", "west", "strength: {ships: 2}"), "apply", "--server-side", "--field-manager=mate", "-f", "-").
		Fails("Apply failed with 1 conflict: conflict with \"kubectl\": .spec.ships\n")
	kubectl.Run(fleet("v2", "west", "strength: {ships: 2}"), "apply", "--server-side", "-f", "-").OK()
	spec(v1, "west", `{"ships":2}`)
	kubectl.Run(fleet("v1", "west", "admiral: cem"), "apply", "--server-side", "-f", "-").OK()
	spec(v1, "west", `{"admiral":"cem"}`)

	// Scaled and patched, and validated by the schema of the requested version.
	run("scale", "fleet", "north", "--replicas=5").Want("fleet.sea.example.com/north scaled\n", "")
	spec(v1, "north", `{"admiral":"ann","ships":5}`)
	run("scale", v1, "north", "--replicas=6", "--current-replicas=5").Want("fleet.sea.example.com/north scaled\n", "")
	run("patch", v2, "north", "--type=json", "-p", `[{"op":"test","path":"/spec/strength/ships","value":6},{"op":"replace","path":"/spec/strength/ships","value":7}]`).OK()
	run("patch", v1, "north", "--type=merge", "-p", `{"spec":{"admiral":null}}`).OK()
	spec(v1, "north", `{"ships":7}`)
	run("patch", v2, "north", "--type=merge", "-p", `{"spec":{"strength":{"ships":10}}}`).
		Fails(`The Fleet "north" is invalid: spec.strength.ships: Invalid value: 10: spec.strength.ships in body should be less than or equal to 9`)
	run("patch", v1, "north", "--type=merge", "-p", `{"spec":{"ships":10}}`).Fails(`spec.ships: Invalid value: 10: spec.ships in body should be less than or equal to 9`)
	const script = "#!/bin/sh\nsed 's/ships: 8/ships: 6/;s/ships: 7/ships: 8/' \"$1\" > \"$1.new\" && cat \"$1.new\" > \"$1\" && rm \"$1.new\"\n"
	editing := harness.NewKubectl(t, kubeconfig, "EDITOR="+kubectl.File("edit.sh", script, 0o700))
	editing.Run("", "edit", v2, "north").Want("fleet.sea.example.com/north edited\n", "")
	spec(v1, "north", `{"ships":8}`)
	editing.Run("", "edit", v1, "north").Want("fleet.sea.example.com/north edited\n", "")
	spec(v2, "north", `{"strength":{"ships":6}}`)
	run("label", v2, "north", "a=b").OK()
	kubectl.Run(fleet("v2", "south", "strength: {ships: 6}, admiral: bob"), "apply", "--dry-run=server", "-f", "-").Want("fleet.sea.example.com/south configured (server dry run)\n", "")
	if r := kubectl.Run(fleet("v2", "south", "strength: {ships: 6}, admiral: bob"), "diff", "-f", "-"); r.Code != 1 || !strings.Contains(r.Stdout, "-    ships: 5\n+    ships: 6\n") {
		t.Errorf("the difference is %s", r)
	}
	spec(v1, "south", `{"admiral":"bob","ships":5}`)
	run("get", v1, "-l", "a=b", "-o", "name").Want("fleet.sea.example.com/north\n", "")

	// If the webhook refuses an object, the request is refused, and other objects are not affected.
	kubectl.Run(fleet("v2", "east", "admiral: nobody"), "create", "-f", "-").
		Fails(`conversion webhook for sea.example.com/v2, Kind=Fleet failed: nobody commands the fleet east`)
	run("get", v1, "-o", "name").Want("fleet.sea.example.com/north\nfleet.sea.example.com/south\nfleet.sea.example.com/west\n", "")
	kubectl.Run(fleet("v1", "east", "admiral: nobody"), "create", "-f", "-").OK()
	run("get", v1, "east", "-o", "name").OK()
	run("get", v2, "east").Fails("conversion webhook for sea.example.com/v1, Kind=Fleet failed: nobody commands the fleet east")
	run("get", v2, "north", "-o", "name").OK()
	run("delete", v1, "east").OK()
	hook.CloseClientConnections()
	hook.Close()
	kubectl.Run(fleet("v2", "gone", "strength: {ships: 1}"), "create", "-f", "-").Fails("conversion webhook for sea.example.com/v2, Kind=Fleet failed: Post \"https://")
	spec(v1, "north", `{"ships":6}`)
	run("delete", "crd", "fleets.sea.example.com").OK()
	run("get", v1).Fails("the server could not find the requested resource")
}
