package jwt_test

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"net"
	"os"
	"strings"
	"testing"

	"github.com/keelson-dev/keelson/authn/jwt"
)

// TestConfigurations compares the errors of configurations with those of kube-apiserver, which was started with each file.
func TestConfigurations(t *testing.T) {
	text, err := os.ReadFile("testdata/configurations.json")
	if err != nil {
		t.Fatal(err)
	}
	var all []struct{ Name, File, Error string }
	if err := json.Unmarshal(text, &all); err != nil {
		t.Fatal(err)
	}
	for _, c := range all {
		got := ""
		switch conf, err := jwt.Parse([]byte(c.File)); {
		case err != nil:
			got = `failed to load authentication configuration from file "FILE": ` + err.Error()
		default:
			if err := jwt.Validate(conf); err != nil {
				got = err.Error()
				break
			}
			a, err := jwt.New(conf, jwt.Options{ReservedIssuers: []string{"https://kubernetes.default.svc"}, Dial: noNetwork})
			if err != nil {
				got = err.Error()
				break
			}
			a.Close()
		}
		if strings.TrimSpace(got) != strings.TrimSpace(c.Error) {
			t.Errorf("%s:\n got %s\nwant %s", c.Name, got, c.Error)
		}
	}
}

func TestMaxFile(t *testing.T) {
	file := []byte(`{"apiVersion":"apiserver.config.k8s.io/v1","kind":"AuthenticationConfiguration"}`)
	file = append(file, bytes.Repeat([]byte(" "), jwt.MaxFile-len(file))...)
	if _, err := jwt.Parse(file); err != nil {
		t.Error(err)
	}
	if _, err := jwt.Parse(append(file, ' ')); err == nil || !strings.Contains(err.Error(), "at most 3145728 are allowed") {
		t.Errorf("the error is %v", err)
	}
}

// noNetwork is a Dial that connects to nothing.
func noNetwork(context.Context, string, string) (net.Conn, error) {
	return nil, errors.New("there is no network")
}

// The file of the package documentation is valid.
func TestDocumentedFile(t *testing.T) {
	t.Parallel()
	doc, err := os.ReadFile("doc.go")
	if err != nil {
		t.Fatal(err)
	}
	_, text, _ := strings.Cut(string(doc), "//\tapiVersion:")
	text, _, found := strings.Cut("//\tapiVersion:"+text, "//\n")
	c, err := jwt.Parse([]byte(strings.ReplaceAll(text, "//\t", "")))
	if err != nil || !found {
		t.Fatalf("%v\n%s", err, text)
	}
	if err := jwt.Validate(c); err != nil || len(c.JWT) != 1 {
		t.Errorf("%v\n%s", err, text)
	}
}
