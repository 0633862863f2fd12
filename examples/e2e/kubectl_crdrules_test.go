package e2e_test

import (
	"path/filepath"
	"strings"
	"testing"

	"github.com/keelson-dev/keelson/examples/e2e/harness"
)

// ship is a manifest; spec is lines such as "line: hansa".
func ship(name string, spec ...string) string {
	return "apiVersion: sea.example.com/v1\nkind: Ship\nmetadata: {name: " + name + "}\nspec:\n  " + strings.Join(spec, "\n  ") + "\n"
}

// Rules in CEL, and kubectl's output for violations. The texts are those with kube-apiserver 1.37.
func TestKubectlCRDRules(t *testing.T) {
	onFileAndEtcd(t, func(t *testing.T, crds *harness.Server) {
		path, err := filepath.Abs("testdata/crds/ships.yaml")
		if err != nil {
			t.Fatal(err)
		}
		crds.Kubectl("apply", "-f", path).Want("customresourcedefinition.apiextensions.k8s.io/ships.sea.example.com created\n", "")
		awaitEstablished(crds, "-f", path).OK()
		const sails, line = "spec: Invalid value: a mast carries three sails", "spec.line: Invalid value: "

		// Created and applied.
		crds.KubectlWith(ship("hansa-a", "line: hansa"), "create", "-f", "-").Want("ship.sea.example.com/hansa-a created\n", "")
		crds.KubectlWith(ship("a", "line: hansa"), "create", "-f", "-").
			Fails(`The Ship "a" is invalid: ` + line + "the name of a ship of the line hansa begins with it\n")
		crds.KubectlWith(ship("hansa-b", "line: hansa", "sails: 9", "masts: 0", "flag: red"), "create", "-f", "-").
			Fails("The Ship \"hansa-b\" is invalid: \n* " + sails + "\n* spec.flag: Forbidden: a flag needs a mast\n")
		crds.KubectlWith(ship("hansa-b", "line: hansa", "sails: 9", `ports: [{name: kiel}, {name: kiel, until: "1999-01-01"}]`), "apply", "-f", "-").
			Fails("* "+sails, "* spec.ports: Duplicate value\n", `* spec.ports[1].until: Invalid value: "1999-01-01": failed rule: self > timestamp('2000-01-01T00:00:00Z')`)
		crds.KubectlWith(ship("hansa-b", "line: hansa", "sails: [1]"), "apply", "-f", "-").Fails(
			`* spec.sails: Invalid value: "array": spec.sails in body must be of type integer: "array"`,
			"* <nil>: Invalid value: null: some validation rules were not checked because the object was invalid; correct the existing errors to complete validation\n")
		crds.KubectlWith(ship("hansa-b", "line: hansa", "sails: 9"), "apply", "--server-side", "-f", "-").Fails(sails)
		crds.KubectlWith(ship("hansa-b", "line: hansa", "sails: 9"), "apply", "--dry-run=server", "-f", "-").Fails(sails)

		// Changed, in the ways that there are.
		crds.KubectlWith(ship("hansa-a", "line: hans", "sails: 4"), "apply", "-f", "-").
			Fails("* "+sails, "* "+line+`"hans": a ship stays with its line`)
		crds.KubectlWith(ship("hansa-a", "line: hans"), "apply", "--server-side", "--force-conflicts", "-f", "-").Fails(`"hans": a ship stays with its line`)
		crds.KubectlWith(ship("hansa-a", "line: hans"), "replace", "-f", "-").Fails(`"hans": a ship stays with its line`)
		crds.Kubectl("patch", "ship", "hansa-a", "--type=merge", "-p", `{"spec":{"line":"other"}}`).
			Fails("* "+line+"the name of a ship of the line other begins with it\n", "* "+line+"\"other\": a ship stays with its line\n")
		crds.Kubectl("patch", "ship", "hansa-a", "--type=json", "-p", `[{"op":"add","path":"/spec/ports","value":[{"name":"kiel","until":"1999-01-01"}]}]`).
			Fails("The Ship \"hansa-a\" is invalid: spec.ports[0].until: Invalid value: \"1999-01-01\": failed rule: self > timestamp('2000-01-01T00:00:00Z')\n")
		crds.Kubectl("scale", "ship", "hansa-a", "--replicas=4").Fails(`The Ship "hansa-a" is invalid: ` + sails + "\n")
		crds.Kubectl("scale", "ship", "hansa-a", "--replicas=3").Want("ship.sea.example.com/hansa-a scaled\n", "")
		crds.KubectlEnv(sed(crds, "s/sails: 3/sails: 7/"), "edit", "ship", "hansa-a").
			Fails(`error: ships.sea.example.com "hansa-a" is invalid`, "A copy of your changes has been stored to ", "error: Edit cancelled, no valid changes were saved.\n")
		crds.KubectlEnv(sed(crds, "s/masts: 1/masts: 3/;s/sails: 3/sails: 7/"), "edit", "ship", "hansa-a").Want("ship.sea.example.com/hansa-a edited\n", "")
		crds.Kubectl("get", "ship", "hansa-a", "-o", "jsonpath={.spec}").Want(`{"line":"hansa","masts":3,"sails":7}`, "")

		// Explained, and the rules themselves changed.
		crds.Kubectl("explain", "ship.spec").Contains("DESCRIPTION:\n    What the owner asks for.\n", "  line\t<string> -required-\n    Line is whose ship it is, for ever.\n", "  ports\t<[]Object>\n")
		crds.Kubectl("explain", "ships.spec.ports", "--recursive").Contains("FIELD: ports <[]Object>\n", "  name\t<string> -required-\n  until\t<string>\n")
		crds.Kubectl("apply", "-f", path).Want("customresourcedefinition.apiextensions.k8s.io/ships.sea.example.com unchanged\n", "")
		crds.Kubectl("patch", "crd", "ships.sea.example.com", "--type=json", "-p",
			`[{"op":"replace","path":"/spec/versions/0/schema/openAPIV3Schema/properties/spec/x-kubernetes-validations/0/rule","value":"self.sail <= 3"}]`).
			Fails("spec.validation.openAPIV3Schema.properties[spec].x-kubernetes-validations[0].rule: Invalid value: ",
				"compilation failed: ERROR: <input>:1:5: undefined field 'sail'\n | self.sail <= 3\n | ....^\n")
	})
}
