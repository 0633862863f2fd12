package e2e_test

import (
	"strings"
	"testing"
)

// TestKubectlConstraints checks the output of kubectl for violated rules of struct tags.
func TestKubectlConstraints(t *testing.T) {
	hello := start(t)
	small := "spec.size: Invalid value: -1: spec.size in body should be greater than or equal to 0"
	long := "spec.color: Too long: may not be more than 32 bytes"
	hello.KubectlWith(widget("alpha", "size: -1"), "create", "-f", "-").Fails(`The Widget "alpha" is invalid: ` + small)
	hello.KubectlWith(widget("alpha", "size: -1", "color: "+strings.Repeat("x", 33)), "create", "-f", "-").
		Fails("The Widget \"alpha\" is invalid: \n* " + small + "\n* " + long)
	hello.KubectlWith(widget("alpha", "size: -1"), "apply", "--server-side", "-f", "-").Fails(`The Widget "alpha" is invalid: ` + small)

	create(t, hello, "alpha")
	hello.Kubectl("patch", "widget", "alpha", "--type=merge", "-p", `{"spec":{"size":-1}}`).Fails(small)
	hello.Kubectl("patch", "widget", "alpha", "--type=json", "-p", `[{"op":"replace","path":"/spec/size","value":1000001}]`).
		Fails("spec.size: Invalid value: 1000001: spec.size in body should be less than or equal to 1000000")
	hello.KubectlWith(widget("alpha", "size: -1"), "replace", "-f", "-").Fails(small)
	if got := field(hello, "alpha", ".spec"); got != `{"size":1}` {
		t.Errorf("a refused change left %s", got)
	}

	for _, output := range []string{"plaintext", "plaintext-openapiv2"} {
		explain := hello.Kubectl("explain", "widgets.spec", "--output="+output)
		explain.Contains("Size of the widget, in millimetres.", "Minimum 0, maximum 1000000.", "At most 32 characters.")
	}
	hello.Kubectl("explain", "widgets.spec.size").Contains("FIELD: size <integer>", "    Minimum 0, maximum 1000000.\n")
	hello.Kubectl("get", "--raw", "/openapi/v3/apis/example.com/v1").Contains(`"maximum":1000000`, `"minimum":0`, `"maxLength":32`)
}
