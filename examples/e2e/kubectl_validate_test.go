package e2e_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/keelson-dev/keelson/examples/e2e/harness"
)

// --validate determines what the server does with unknown and duplicate fields: it refuses them, warns, or drops them. kubectl
// itself uses only the server's OpenAPI document.
func TestKubectlValidate(t *testing.T) {
	hello := start(t)
	const (
		unknown = `unknown field "spec.sise"`
		refused = `Widget in version "v1" cannot be handled as a Widget: strict decoding error: ` + unknown
	)
	for _, row := range []struct {
		validate, stderr string
		refused          bool
	}{
		{"strict", "", true},
		{"true", "", true},
		{"warn", "Warning: " + unknown + "\n", false},
		{"ignore", "", false},
		{"false", "", false},
	} {
		t.Run(row.validate, func(t *testing.T) {
			name := "created-" + row.validate
			run := func(action, done, name string, args ...string) {
				t.Helper()
				r := hello.KubectlWith(widget(name, "sise: 4", "size: 2"), append(args, "-f", "-", "--validate="+row.validate)...)
				if !row.refused {
					r.Want(fmt.Sprintf("widget.example.com/%s %s\n", name, done), row.stderr)
					return
				}
				if want := fmt.Sprintf("Error from server (BadRequest): error when %s \"STDIN\": %s\n", action, refused); r.Code != 1 || r.Stdout != "" || r.Stderr != want {
					t.Errorf("exit code %d, want 1 and stderr %q: %s", r.Code, want, r)
				}
			}
			run("creating", "created", name, "create")
			run("creating", "created", "applied-"+row.validate, "apply")
			if row.refused {
				hello.Kubectl("get", "widget", name).Fails("NotFound")
				create(t, hello, name)
			}
			run("replacing", "replaced", name, "replace")
			want := `{"size":2}`
			if row.refused {
				want = `{"size":1}`
			}
			if got := field(hello, name, ".spec"); got != want {
				t.Errorf("spec is %s, want %s", got, want)
			}
		})
	}

	// If an apply becomes a patch, the patch is validated.
	hello.KubectlWith(widget("alpha", "size: 1"), "apply", "-f", "-").OK()
	sise := widget("alpha", "size: 2", "sise: 3")
	hello.KubectlWith(sise, "apply", "-f", "-").Fails(`strict decoding error: ` + unknown)
	if got := field(hello, "alpha", ".spec.size"); got != "1" {
		t.Errorf("a patch that was refused made the size %s", got)
	}
	hello.KubectlWith(sise, "apply", "-f", "-", "--validate=warn").Want("widget.example.com/alpha configured\n", "Warning: "+unknown+"\n")

	// kubectl patch requests only a warning.
	for _, row := range []struct{ kind, patch string }{
		{"merge", `{"spec":{"sise":1,"color":"red"}}`},
		{"strategic", `{"spec":{"sise":1,"color":"green"}}`},
		{"json", `[{"op":"add","path":"/spec/sise","value":1},{"op":"replace","path":"/spec/color","value":"blue"}]`},
	} {
		hello.Kubectl("patch", "widget", "alpha", "--type="+row.kind, "-p", row.patch).
			Want("widget.example.com/alpha patched\n", "Warning: "+unknown+"\n")
	}
	if got := field(hello, "alpha", ".spec"); got != `{"color":"blue","size":2}` {
		t.Errorf("spec is %s", got)
	}
}

// Server-side apply refuses fields that it cannot merge, whatever kubectl requests.
func TestKubectlValidateServerSideApply(t *testing.T) {
	hello := start(t)
	apply := applier(t, hello)
	for _, validate := range []string{"strict", "warn", "ignore"} {
		for spec, want := range map[string]string{
			"sise: 1":    ".spec.sise: field not declared in schema",
			"size: many": ".spec.size: expected numeric (int or float), got string",
		} {
			apply(widget("alpha", spec), "--validate="+validate).Fails("failed to create typed patch object (default/alpha; example.com/v1, Kind=Widget): " + want)
		}
	}
	hello.Kubectl("get", "widget", "alpha").Fails("NotFound")
}

// A duplicate field reaches the server only with --raw: otherwise kubectl decodes the manifest itself, and keeps the last one.
func TestKubectlValidateDuplicates(t *testing.T) {
	hello := start(t)
	twice := `{"apiVersion":"example.com/v1","kind":"Widget","metadata":{"name":"alpha"},"spec":{"size":1,"size":2}}`
	const duplicate = `duplicate field "spec.size"`
	raw := func(args ...string) harness.Result {
		t.Helper()
		return hello.KubectlWith(twice, append(args, "-f", "-")...)
	}
	for _, verb := range []string{"create", "replace"} {
		uri := "/apis/example.com/v1/namespaces/default/widgets"
		if verb == "replace" {
			uri += "/alpha"
		}
		raw(verb, "--raw", uri+"?fieldValidation=Strict").Fails("strict decoding error: " + duplicate)
		r := raw(verb, "--raw", uri+"?fieldValidation=Warn").OK()
		if !strings.Contains(r.Stderr, "Warning: "+duplicate+"\n") || !strings.Contains(r.Stdout, `"spec":{"size":2}`) {
			t.Errorf("want a warning and the last value: %s", r)
		}
	}
	if r := raw("replace", "--raw", "/apis/example.com/v1/namespaces/default/widgets/alpha?fieldValidation=Ignore").OK(); r.Stderr != "" {
		t.Errorf("want no warning: %s", r)
	}
	raw("create", "--raw", "/apis/example.com/v1/namespaces/default/widgets?fieldValidation=Perhaps").Fails("fieldValidation: Unsupported value: \"Perhaps\"")
	hello.KubectlWith(widget("beta", "size: 1", "size: 2"), "create", "-f", "-").Want("widget.example.com/beta created\n", "")
}
