package discovery

import (
	"cmp"
	"slices"
	"sort"
)

// verbs returns the verbs of the resource in the order in which they are shown.
func (r Resource) verbs() []string {
	if !r.Custom {
		return sortedVerbs(r.Verbs)
	}
	return inOrder(r.Verbs, []string{"delete", "deletecollection", "get", "list", "patch", "create", "update", "watch"})
}

// subresources returns the subresources in the order in which they are shown. This package sorts with package sort: slices.SortFunc
// is compiled for each type of struct again, which adds about 10 kB to a program for each.
func (r Resource) subresources() []Subresource {
	subs := slices.Clone(r.Subresources)
	first := []string{"status", "scale"}
	sort.SliceStable(subs, func(i, j int) bool {
		a, b := subs[i].Name, subs[j].Name
		if r.Custom {
			return cmp.Or(cmp.Compare(place(a, first), place(b, first)), cmp.Compare(a, b)) < 0
		}
		return a < b
	})
	return subs
}

// inOrder returns names sorted by their place in order, followed by the others in alphabetical order.
func inOrder(names, order []string) []string {
	sorted := sortedVerbs(names)
	slices.SortStableFunc(sorted, func(a, b string) int { return cmp.Compare(place(a, order), place(b, order)) })
	return sorted
}

// place returns the index of a name in order. For other names it returns the length of order.
func place(name string, order []string) int {
	if i := slices.Index(order, name); i >= 0 {
		return i
	}
	return len(order)
}

func sortedVerbs(verbs []string) []string {
	sorted := append([]string{}, verbs...)
	slices.Sort(sorted)
	return sorted
}
