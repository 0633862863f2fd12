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

// Digester is a Describer with a digest of its description. If the Object of every resource of a group version is a Digester, and
// no resource has a Go type of the program, the hash of the document is known before the document is made. So /openapi/v3 can
// list a thousand documents before any of them is made.
//
// Such a hash is computed from everything that the document is made from, including the program. The program is identified by its
// modules, if all of them are published modules with a checksum, or else by its build ID. Therefore two servers that are built
// from the same modules have the same hashes, and programs that could make different documents have different hashes.
type Digester interface {
	schema.Describer
	// Digest returns a digest. It may be equal for two objects, also in different processes, only if OpenAPI returns the same for
	// both.
	Digest() [sha256.Size]byte
}

// digestible is everything that a document is made from, for the hash.
type digestible struct {
	Program, Key string
	Title        string
	Version      string
	MediaTypes   []string
	StreamTypes  []string
	Group, Name  string // of the group version; Name is the version
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

// foresee returns the hash of a document that is not made yet. The hash is computed from everything that the document is made
// from, including the program. It returns "" if the document must be made to get its hash.
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

// digestible returns the description of a resource without a Go type. It returns false if the resource has types of the program.
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

// isLibrary reports whether a type is declared in the modules of Kubernetes or in this one, or is nil. Other types belong to the
// program itself, and the checksums of modules do not cover them.
func isLibrary(t reflect.Type) bool {
	return t == nil || strings.HasPrefix(t.PkgPath(), "k8s.io/") || strings.HasPrefix(t.PkgPath(), modulePath()+"/runtime")
}

func nameOf(t reflect.Type) string {
	if t == nil {
		return ""
	}
	return t.PkgPath() + "." + t.Name()
}
