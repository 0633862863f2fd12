package openapi

import (
	"crypto/sha256"
	"crypto/sha512"
	"encoding/json"
	"fmt"
	"reflect"
	"strings"

	apischema "k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/keelson-dev/keelson/runtime/schema"
)

// A Digester is a Describer that tells what it says apart without saying it. The hashes of documents of such objects are known
// before the documents are made, so that the list of a thousand documents costs what it is long.
type Digester interface {
	schema.Describer
	// Digest is the same for two objects, also of different processes, only if OpenAPI returns the same for both.
	Digest() [sha256.Size]byte
}

// digestible is all that a document is made of.
type digestible struct {
	Program, Key string
	Title        string
	Version      string
	MediaTypes   []string
	StreamTypes  []string
	Group, Name  string // of the group version
	Resources    []digestibleResource
}

type digestibleResource struct {
	Plural, ListKind, Description                                       string
	Kind                                                                apischema.GroupVersionKind
	Namespaced, ReturnsDeleted                                          bool
	Verbs, SelectableFields, MediaTypes, StreamTypes, PatchTypes, Types []string
	Object                                                              [sha256.Size]byte
	Subresources                                                        []digestibleSubresource
}

type digestibleSubresource struct {
	Name, Type                        string
	Kind                              apischema.GroupVersionKind
	Verbs, PatchTypes, ConnectMethods []string
}

// foresee returns the hash of a document that is yet to be made, of all that it is made of, the program included; "" if that
// cannot be told apart but by making the document.
func foresee(o Options, program, key string, gv GroupVersion) string {
	if program == "" {
		return ""
	}
	d := digestible{
		Program: program, Key: key, Title: o.Title, Version: o.Version, MediaTypes: o.MediaTypes, StreamTypes: o.StreamTypes,
		Group: gv.Group, Name: gv.Version,
	}
	for _, r := range gv.Resources {
		one, ok := r.digestible()
		if !ok {
			return ""
		}
		d.Resources = append(d.Resources, one)
	}
	text, err := json.Marshal(d)
	if err != nil {
		return ""
	}
	return fmt.Sprintf("%X", sha512.Sum512(text))
}

// digestible returns what is said of a resource without a Go type.
func (r Resource) digestible() (digestibleResource, bool) {
	object, ok := r.Object.(Digester)
	if !ok || !isLibrary(r.Type) || !isLibrary(r.ListType) {
		return digestibleResource{}, false
	}
	out := digestibleResource{
		Plural: r.Plural, ListKind: r.ListKind, Description: r.Description, Kind: r.Kind, Namespaced: r.Namespaced,
		ReturnsDeleted: r.ReturnsDeleted, Verbs: r.Verbs, SelectableFields: r.SelectableFields, MediaTypes: r.MediaTypes,
		StreamTypes: r.StreamTypes, PatchTypes: r.PatchTypes, Types: []string{nameOf(r.Type), nameOf(r.ListType)}, Object: object.Digest(),
	}
	for _, s := range r.Subresources {
		if !isLibrary(s.Type) {
			return digestibleResource{}, false
		}
		out.Subresources = append(out.Subresources, digestibleSubresource{
			Name: s.Name, Type: nameOf(s.Type), Kind: s.Kind, Verbs: s.Verbs, PatchTypes: s.PatchTypes, ConnectMethods: s.ConnectMethods,
		})
	}
	return out, true
}

// isLibrary reports whether a type is declared in the modules of Kubernetes or in this one, or there is none. Others are the
// program's own, of which its modules do not tell.
func isLibrary(t reflect.Type) bool {
	return t == nil || strings.HasPrefix(t.PkgPath(), "k8s.io/") || strings.HasPrefix(t.PkgPath(), modulePath()+"/runtime")
}

func nameOf(t reflect.Type) string {
	if t == nil {
		return ""
	}
	return t.PkgPath() + "." + t.Name()
}
