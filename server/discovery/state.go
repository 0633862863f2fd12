package discovery

import (
	"bytes"
	"crypto/sha512"
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"sync"

	"github.com/keelson-dev/keelson/runtime/codec"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

// state has the documents between two calls of Set. It is immutable. Its documents are encoded when they are first requested.
type state struct {
	groups      map[string]*group    // by name
	core, named *document            // aggregated documents of the core group and of all others
	versions    []string             // versions of the core group; nil if there is none
	legacy      map[string]*document // keys are paths without trailing slash
}

// document is one answer. Its forms are made when they are first requested.
type document struct {
	json     func() (body []byte, etag string)
	protobuf func() ([]byte, error)
	routed   bool // the path is one for response.Routed
}

// group is a group with all its documents. Each document is made once, when it is first requested.
type group struct {
	source     Group
	aggregated func() []byte // as an item of the aggregated list
	listed     func() []byte // as an item of the list of groups
	legacy     map[string]*document
}

func newGroup(g Group) *group {
	out := &group{source: g, legacy: map[string]*document{}}
	out.aggregated = sync.OnceValue(func() []byte { return encode(aggregateGroup(g)) })
	out.listed = sync.OnceValue(func() []byte { return encode(legacyGroup(g)) })
	if g.Name != "" {
		out.legacy[g.root()] = once(func() []byte {
			group := legacyGroup(g)
			group.TypeMeta = metav1.TypeMeta{Kind: "APIGroup", APIVersion: "v1"}
			return encode(group)
		})
	}
	for _, v := range g.Versions {
		gv := schema.GroupVersion{Group: g.Name, Version: v.Name}
		d := once(func() []byte { return encode(legacyResources(gv, v.Resources)) })
		d.routed = len(v.Resources) == 0 || slices.ContainsFunc(v.Resources, func(r Resource) bool { return !r.Custom })
		out.legacy[g.root()+"/"+v.Name] = d
	}
	return out
}

// root returns the path of a group.
func (g Group) root() string {
	if g.Name == "" {
		return "/api"
	}
	return "/apis/" + g.Name
}

// newState returns the state of groups. It uses documents of before, which may be nil, for groups that have not changed.
func newState(groups []Group, before *state) *state {
	s := &state{groups: map[string]*group{}, legacy: map[string]*document{}}
	var core, named []*group
	for _, g := range groups {
		var one *group
		if before != nil {
			one = before.groups[g.Name]
		}
		if one == nil || !one.source.equal(g) {
			one = newGroup(g.clone())
		}
		s.groups[g.Name] = one
		maps.Copy(s.legacy, one.legacy)
		if g.Name != "" {
			named = append(named, one)
			continue
		}
		core = append(core, one)
		for _, v := range byPriority(g.Versions) {
			s.versions = append(s.versions, v.Name)
		}
	}
	list := metav1.APIGroupList{TypeMeta: metav1.TypeMeta{Kind: "APIGroupList", APIVersion: "v1"}, Groups: []metav1.APIGroup{}}
	s.legacy["/apis"] = joined(list, named, func(g *group) []byte { return g.listed() })
	s.core = joined(aggregatedList(), core, func(g *group) []byte { return g.aggregated() })
	s.named = joined(aggregatedList(), named, func(g *group) []byte { return g.aggregated() })
	return s
}

// joined returns the document of a list whose items are those of groups. empty is the list without items; its items are the last
// field.
func joined(empty any, groups []*group, item func(*group) []byte) *document {
	return once(func() []byte {
		body := bytes.TrimSuffix(encode(empty), []byte("]}"))
		for i, g := range groups {
			if i > 0 {
				body = append(body, ',')
			}
			body = append(body, item(g)...)
		}
		return append(body, "]}"...)
	})
}

// once returns a document that is made once. The ETag is that of the JSON without the newline that ends a body.
func once(make func() []byte) *document {
	d := &document{json: sync.OnceValues(func() ([]byte, string) {
		body := make()
		return body, fmt.Sprintf("%q", fmt.Sprintf("%X", sha512.Sum512(body)))
	})}
	d.protobuf = sync.OnceValues(func() ([]byte, error) {
		body, _ := d.json()
		return toProtobuf(body)
	})
	return d
}

// toProtobuf returns a document in protobuf.
func toProtobuf(body []byte) ([]byte, error) {
	var meta metav1.TypeMeta
	if err := json.Unmarshal(body, &meta); err != nil {
		return nil, err
	}
	var obj runtime.Object
	switch meta.Kind {
	case "APIVersions":
		obj = &metav1.APIVersions{}
	case "APIGroupList":
		obj = &metav1.APIGroupList{}
	case "APIGroup":
		obj = &metav1.APIGroup{}
	case "APIResourceList":
		obj = &metav1.APIResourceList{}
	default:
		obj = aggregatedList()
	}
	if err := json.Unmarshal(body, obj); err != nil {
		return nil, err
	}
	return codec.Protobuf().Encode(obj, schema.FromAPIVersionAndKind(meta.APIVersion, meta.Kind))
}

// encode returns value as JSON. Encoding of API types of metav1 and apidiscovery cannot fail.
func encode(value any) []byte {
	body, err := json.Marshal(value)
	if err != nil {
		return nil
	}
	return body
}

// clone copies a group with all its slices.
func (g Group) clone() Group {
	g.Versions = slices.Clone(g.Versions)
	for i := range g.Versions {
		v := &g.Versions[i]
		v.Resources = slices.Clone(v.Resources)
		for j := range v.Resources {
			r := &v.Resources[j]
			r.ShortNames, r.Categories, r.Verbs = slices.Clone(r.ShortNames), slices.Clone(r.Categories), slices.Clone(r.Verbs)
			r.Subresources = slices.Clone(r.Subresources)
			for k := range r.Subresources {
				r.Subresources[k].Verbs = slices.Clone(r.Subresources[k].Verbs)
			}
		}
	}
	return g
}

func (g Group) equal(other Group) bool {
	return g.Name == other.Name && slices.EqualFunc(g.Versions, other.Versions, Version.equal)
}

func (v Version) equal(other Version) bool {
	return v.Name == other.Name && slices.EqualFunc(v.Resources, other.Resources, Resource.equal)
}

func (r Resource) equal(other Resource) bool {
	return r.Plural == other.Plural && r.Singular == other.Singular && r.Namespaced == other.Namespaced && r.Kind == other.Kind &&
		r.KindVersion == other.KindVersion && slices.Equal(r.ShortNames, other.ShortNames) && slices.Equal(r.Categories, other.Categories) &&
		slices.Equal(r.Verbs, other.Verbs) && r.StorageKind == other.StorageKind && r.Custom == other.Custom &&
		slices.EqualFunc(r.Subresources, other.Subresources, Subresource.equal)
}

func (s Subresource) equal(other Subresource) bool {
	return s.Name == other.Name && s.Kind == other.Kind && slices.Equal(s.Verbs, other.Verbs)
}
