package discovery

import (
	"fmt"
	"testing"
)

// manyGroups are groups of some custom resources each.
func manyGroups(groups, each int) []Group {
	var out []Group
	for g := range groups {
		v := Version{Name: "v1"}
		for r := range each {
			v.Resources = append(v.Resources, Resource{
				Plural: fmt.Sprintf("kinds%d", r), Singular: fmt.Sprintf("kind%d", r), Kind: fmt.Sprintf("Kind%d", r), Namespaced: true, Custom: true,
				Verbs:        []string{"delete", "deletecollection", "get", "list", "patch", "create", "update", "watch"},
				Subresources: []Subresource{{Name: "status", Verbs: []string{"get", "patch", "update"}}},
			})
		}
		out = append(out, Group{Name: fmt.Sprintf("g%d.example.com", g), Versions: []Version{v}})
	}
	return out
}

// After a change of one group, all documents of the other groups are kept, and are not made again.
func TestWhatHasNotChangedIsKept(t *testing.T) {
	t.Parallel()
	s := New(Options{})
	s.Set(manyGroups(5, 3))
	before := s.state.Load()
	for name, change := range map[string]func(r *Resource){
		"nothing":     func(*Resource) {},
		"plural":      func(r *Resource) { r.Plural = "x" },
		"singular":    func(r *Resource) { r.Singular = "x" },
		"scope":       func(r *Resource) { r.Namespaced = false },
		"kind":        func(r *Resource) { r.Kind = "X" },
		"version":     func(r *Resource) { r.KindVersion.Version = "v2" },
		"short names": func(r *Resource) { r.ShortNames = []string{"x"} },
		"categories":  func(r *Resource) { r.Categories = []string{"x"} },
		"verbs":       func(r *Resource) { r.Verbs = r.Verbs[1:] },
		"storage":     func(r *Resource) { r.StorageKind.Kind = "X" },
		"order":       func(r *Resource) { r.Custom = false },
		"sub name":    func(r *Resource) { r.Subresources[0].Name = "scale" },
		"sub kind":    func(r *Resource) { r.Subresources[0].Kind.Kind = "X" },
		"sub verbs":   func(r *Resource) { r.Subresources[0].Verbs = nil },
		"no sub":      func(r *Resource) { r.Subresources = nil },
	} {
		now := manyGroups(5, 3)
		change(&now[2].Versions[0].Resources[1])
		s.Set(now)
		after := s.state.Load()
		for g, one := range after.groups {
			if same := one == before.groups[g]; same != (g != "g2.example.com" || name == "nothing") {
				t.Errorf("%s: of %s the same is said: %v", name, g, same)
			}
		}
		s.Set(manyGroups(5, 3))
		before = s.state.Load()
	}
}

func BenchmarkChangeOneOf1000(b *testing.B) {
	s := New(Options{})
	for _, path := range []string{"", "/apis", "/apis/g7.example.com/v1"} {
		b.Run("then"+path, func(b *testing.B) {
			b.ReportAllocs()
			for i := 0; b.Loop(); i++ {
				b.StopTimer()
				groups := manyGroups(100, 10)
				groups[7].Versions[0].Resources[3].ShortNames = []string{fmt.Sprint("x", i)}
				b.StartTimer()
				s.Set(groups)
				switch path {
				case "":
				case "/apis":
					s.state.Load().named.json()
				default:
					s.state.Load().legacy[path].json()
				}
			}
		})
	}
}
