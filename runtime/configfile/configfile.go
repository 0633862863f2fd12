// Package configfile reads the files of the flags of kube-apiserver whose names end in -config: a kind of the group
// apiserver.config.k8s.io in YAML or JSON.
//
//	var c Configuration
//	err := configfile.Decode(content, "AuthorizationConfiguration", &c)
package configfile

import (
	"bytes"
	"fmt"
	"slices"

	"github.com/keelson-dev/keelson/runtime/codec"
	apiruntime "k8s.io/apimachinery/pkg/runtime"
	apijson "k8s.io/apimachinery/pkg/runtime/serializer/json"
)

// MaxBytes is the size of the largest file, in bytes.
const MaxBytes = 3 << 20

const (
	group = "apiserver.config.k8s.io"
	// scheme stands in the message about kinds that are not known.
	scheme = "pkg/runtime/scheme.go:111"
)

// versions returns the versions of a kind; nil if the group does not have it. It has all kinds of the group, because the message about a
// kind that is not the one that is read says whether the group has it.
func versions(kind string) []string {
	switch kind {
	case "AuthenticationConfiguration", "AuthorizationConfiguration", "TracingConfiguration":
		return []string{"v1", "v1beta1", "v1alpha1"}
	case "AdmissionConfiguration":
		return []string{"v1"}
	}
	return nil
}

// Decode decodes a file of a kind into a value, whose fields are those of all versions. It is strict: fields that are not known, or twice,
// are errors. The error has the words of kube-apiserver.
func Decode(file []byte, kind string, into any) error {
	if len(file) > MaxBytes {
		return fmt.Errorf("the file has %d bytes, at most %d are allowed", len(file), MaxBytes)
	}
	text := file
	var problems []error
	if !bytes.HasPrefix(bytes.TrimSpace(file), []byte("{")) {
		var err error
		if text, problems, err = codec.YAML().ToJSON(file, codec.Strict); err != nil {
			return err
		}
	}
	if err := check(text, file, kind); err != nil {
		return err
	}
	more, err := codec.Unmarshal(text, into, codec.Strict)
	if err != nil {
		return err
	}
	if problems = slices.Concat(problems, more); len(problems) > 0 {
		return codec.StrictError(problems)
	}
	return nil
}

// check checks the version and the kind of a file, which is JSON in text.
func check(text, file []byte, want string) error {
	is, err := apijson.DefaultMetaFactory.Interpret(text)
	switch {
	case err != nil:
		return err
	case is.Kind == "":
		return apiruntime.NewMissingKindErr(string(file))
	case is.Version == "":
		return apiruntime.NewMissingVersionErr(string(file))
	case is.Group != group || !slices.Contains(versions(is.Kind), is.Version):
		return apiruntime.NewNotRegisteredErrForKind(scheme, *is)
	case is.Kind != want:
		return fmt.Errorf("expected %s, got *apiserver.%s", want, is.Kind)
	}
	return nil
}
