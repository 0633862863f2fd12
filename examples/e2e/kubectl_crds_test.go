package e2e_test

import (
	"path/filepath"
	"regexp"
	"testing"

	"github.com/keelson-dev/keelson/examples/e2e/harness"
)

// The life of a definition with kubectl.
func TestKubectlCRDs(t *testing.T) {
	onFileAndEtcd(t, func(t *testing.T, crds *harness.Server) {
		defineBoats(t, crds)
		crds.Kubectl("get", "crds", "--no-headers", "-o", "custom-columns=N:.metadata.name,V:.status.storedVersions[0],K:.status.acceptedNames.kind").
			Contains("boats.sea.example.com   v1    Boat\n")
		crds.Kubectl("api-resources", "--api-group=sea.example.com", "--no-headers", "-o", "wide").
			Contains("boats", "bt", "sea.example.com/v1", "true", "Boat", "delete,deletecollection,get,list,patch,create,update,watch", "all")
		crds.Kubectl("explain", "boats").Contains("GROUP:      sea.example.com\nKIND:       Boat\nVERSION:    v1\n", "Boat is a vessel with sails.", "spec\t<Object> -required-", "status\t<Object>")
		crds.Kubectl("explain", "boats.spec.color").Contains("FIELD: color <string>\nENUM:\n    red\n    white\n    blue\n", "Color of the hull.")
		crds.Kubectl("explain", "boats", "--recursive").Contains("crew\t<[]Object>", "rank\t<string>")

		// Written in all ways.
		crds.KubectlWith(boat("a", "color: red"), "create", "-f", "-").Want("boat.sea.example.com/a created\n", "")
		crds.KubectlWith(boat("a", "color: blue", "crew: [{name: ann, rank: captain}]"), "apply", "-f", "-").OK()
		crds.KubectlWith(boat("a", "color: blue", "crew: [{name: ann, rank: captain}]"), "apply", "-f", "-").Want("boat.sea.example.com/a unchanged\n", "")
		crds.KubectlWith(boat("a", "color: white"), "apply", "--server-side", "--field-manager=mate", "-f", "-").
			Fails(`Apply failed with 1 conflict: conflict with "kubectl-client-side-apply" using sea.example.com/v1: .spec.color`)
		crds.KubectlWith(boat("s", "color: white", "crew: [{name: ann}]"), "apply", "--server-side", "-f", "-").Want("boat.sea.example.com/s serverside-applied\n", "")
		crds.KubectlWith(boat("s", "color: white", "crew: [{name: bob}]"), "apply", "--server-side", "--field-manager=mate", "-f", "-").OK()
		crds.Kubectl("get", "boat", "s", "-o", "jsonpath={.spec.crew[*].name} {.spec.sails}").Want("ann bob 1", "")
		crds.Kubectl("patch", "boat", "s", "--type=merge", "-p", `{"spec":{"sails":3}}`).Want("boat.sea.example.com/s patched\n", "")
		crds.Kubectl("patch", "boat", "s", "--type=json", "-p", `[{"op":"replace","path":"/spec/port","value":"away"}]`).OK()
		crds.Kubectl("patch", "boat", "s", "-p", `{"spec":{"sails":4}}`).Fails("application/strategic-merge-patch+json is not supported by sea.example.com/v1, Kind=Boat: ")
		crds.Kubectl("scale", "boat", "s", "--replicas=5").Want("boat.sea.example.com/s scaled\n", "")
		crds.Kubectl("patch", "boat", "s", "--subresource=status", "--type=merge", "-p", `{"status":{"conditions":[{"type":"Ready","status":"True"}]}}`).OK()
		crds.Kubectl("wait", "--for=condition=Ready", "--timeout=60s", "boat/s").OK()
		crds.Kubectl("label", "boat", "s", "a=b").OK()

		// Refused.
		crds.KubectlWith(boat("b", "color: green"), "create", "-f", "-").Fails(`The Boat "b" is invalid: spec.color: Unsupported value: "green": supported values: "red", "white", "blue"`)
		crds.KubectlWith(boat("b", "colour: red"), "create", "-f", "-").Fails(`strict decoding error: unknown field "spec.colour"`)
		crds.Kubectl("scale", "boat", "s", "--replicas=10").Fails("spec.sails: Invalid value: 10")

		// Read in all ways.
		table := func(want string, args ...string) {
			t.Helper()
			if r := crds.Kubectl(args...).OK(); !regexp.MustCompile(want).MatchString(r.Stdout) {
				t.Errorf("want %s: %s", want, r)
			}
		}
		table(`^NAME   COLOR   SAILS\na      blue    1\ns      white   5\n$`, "get", "boats")
		table(`^NAME   COLOR   SAILS   PORT\na      blue    1       home\ns      white   5       away\n$`, "get", "bt", "-o", "wide")
		table(`^NAME   COLOR   SAILS\ns      white   5\n$`, "get", "boat.sea.example.com/s")
		table(`^NAME   COLOR   SAILS\ns      white   5\n$`, "get", "all", "-l", "a=b")
		crds.Kubectl("get", "boats", "--field-selector=spec.color=white", "-o", "name").Want("boat.sea.example.com/s\n", "")
		crds.Kubectl("get", "boats", "--field-selector=spec.port=home").Fails("field label not supported: spec.port")
		crds.Kubectl("get", "crd", "boats.sea.example.com").Contains("boats.sea.example.com")

		// Gone, with its objects.
		crds.Kubectl("delete", "crd", "boats.sea.example.com").Contains(`customresourcedefinition.apiextensions.k8s.io "boats.sea.example.com" deleted`)
		crds.Kubectl("get", "boats").Fails("the server could not find the requested resource")
		defineBoats(t, crds)
		crds.Kubectl("get", "boats").Want("", "No resources found in default namespace.\n")
	})
}

// kubectl apply of a definition that changes, and of a folder with a definition.
func TestKubectlApplyCRDs(t *testing.T) {
	crds := startCRDs(t)
	path, err := filepath.Abs(boats)
	if err != nil {
		t.Fatal(err)
	}
	crds.Kubectl("apply", "-f", path).OK()
	crds.Kubectl("apply", "-f", path).Want("customresourcedefinition.apiextensions.k8s.io/boats.sea.example.com unchanged\n", "")
	awaitEstablished(crds, "-f", path).OK()
	crds.Kubectl("apply", "--server-side", "--force-conflicts", "-f", path).OK()
	crds.Kubectl("diff", "-f", path).Want("", "")
	crds.Kubectl("patch", "crd", "boats.sea.example.com", "--type=json", "-p", `[{"op":"replace","path":"/spec/scope","value":"Cluster"}]`).
		Fails(`spec.scope: Invalid value: "Cluster": field is immutable`)
	crds.Kubectl("replace", "-f", path).OK()
}

// A definition whose objects are held by finalizers stays, until the finalizers are removed.
func TestKubectlDeleteCRDs(t *testing.T) {
	crds := startCRDs(t)
	defineBoats(t, crds)
	crds.KubectlWith(boat("a"), "create", "-f", "-").OK()
	crds.Kubectl("patch", "boat", "a", "--type=merge", "-p", `{"metadata":{"finalizers":["example.com/hold"]}}`).OK()
	crds.Kubectl("delete", "crd", "boats.sea.example.com", "--wait=false").OK()
	crds.Kubectl("wait", "--for=condition=Terminating", "--timeout=60s", "crd/boats.sea.example.com").OK()
	crds.KubectlWith(boat("b"), "create", "-f", "-").Fails("create not allowed while custom resource definition is terminating")
	crds.Kubectl("patch", "boat", "a", "--type=merge", "-p", `{"metadata":{"finalizers":null}}`).OK()
	crds.Kubectl("wait", "--for=delete", "--timeout=60s", "crd/boats.sea.example.com").OK()
}
