package configfile_test

import (
	"bytes"
	"fmt"
	"strings"
	"testing"

	"github.com/keelson-dev/keelson/runtime/configfile"
)

type configuration struct {
	Kind       string `json:"kind"`
	APIVersion string `json:"apiVersion"`
	Level      int    `json:"level"`
}

// The errors of the two kinds that are used are compared with those of kube-apiserver in packages authn/jwt and authz/config.
func TestDecode(t *testing.T) {
	const head = "apiVersion: apiserver.config.k8s.io/v1beta1\nkind: TracingConfiguration\n"
	for text, want := range map[string]string{
		head + "level: 1": "",
		`{"apiVersion":"apiserver.config.k8s.io/v1alpha1","kind":"TracingConfiguration","level":1}`: "",
		head + "level: 1\nlevel: 1":       "strict decoding error: ",
		head + "Level: 1":                 `strict decoding error: unknown field "Level"`,
		head + "level: x":                 "json: cannot unmarshal string",
		head + "---\n" + head:             "more than one document",
		"kind: TracingConfiguration":      "Object 'apiVersion' is missing",
		"apiVersion: v1\nkind: ConfigMap": `no kind "ConfigMap" is registered`,
		"apiVersion: apiserver.config.k8s.io/v1\nkind: AuthenticationConfiguration":   "expected TracingConfiguration, got *apiserver.AuthenticationConfiguration",
		"apiVersion: apiserver.config.k8s.io/v1beta1\nkind: AdmissionConfiguration":   `no kind "AdmissionConfiguration" is registered for version "apiserver.config.k8s.io/v1beta1"`,
		"apiVersion: apiserver.config.k8s.io/v1\nkind: EgressSelectorConfiguration\n": "no kind",
		"": "Object 'Kind' is missing",
	} {
		var c configuration
		err := configfile.Decode([]byte(text), "TracingConfiguration", &c)
		if want == "" && (err != nil || c.Level != 1) || want != "" && (err == nil || !strings.Contains(err.Error(), want)) {
			t.Errorf("%q: %+v, %v, want %s", text, c, err, want)
		}
	}
}

func TestMaxBytes(t *testing.T) {
	text := []byte(`{"apiVersion":"apiserver.config.k8s.io/v1","kind":"TracingConfiguration","level":1}`)
	text = append(text, bytes.Repeat([]byte(" "), configfile.MaxBytes-len(text))...)
	var c configuration
	if err := configfile.Decode(text, "TracingConfiguration", &c); err != nil {
		t.Error(err)
	}
	if err := configfile.Decode(append(text, ' '), "TracingConfiguration", &c); err == nil || err.Error() != "the file has 3145729 bytes, at most 3145728 are allowed" {
		t.Error(err)
	}
}

func Example() {
	var c configuration
	for _, text := range []string{"level: 2", "levels: 2"} {
		err := configfile.Decode([]byte("apiVersion: apiserver.config.k8s.io/v1\nkind: TracingConfiguration\n"+text), "TracingConfiguration", &c)
		fmt.Println(c.Level, err)
	}
	// Output:
	// 2 <nil>
	// 2 strict decoding error: unknown field "levels"
}
