package registry

import (
	"fmt"
	"strings"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
)

// Owner references are compared with a map. Comparing each with each would take quadratic time for references with the same uid.
func TestDedupOwners(t *testing.T) {
	yes, no := true, false
	ref := func(uid string, controller *bool) metav1.OwnerReference {
		return metav1.OwnerReference{APIVersion: "v1", Kind: "Pod", Name: "p", UID: types.UID(uid), Controller: controller}
	}
	for _, row := range []struct {
		refs, want []metav1.OwnerReference
		warned     string
	}{
		{nil, nil, ""},
		{[]metav1.OwnerReference{ref("a", nil)}, []metav1.OwnerReference{ref("a", nil)}, ""},
		{[]metav1.OwnerReference{ref("a", nil), ref("a", &yes), ref("a", &no), ref("b", nil)}, []metav1.OwnerReference{ref("a", nil), ref("a", &yes), ref("a", &no), ref("b", nil)}, ""},
		{[]metav1.OwnerReference{ref("a", &yes), ref("b", nil), ref("a", new(true)), ref("b", nil), ref("b", nil)}, []metav1.OwnerReference{ref("a", &yes), ref("b", nil)}, "observed: a, b, b"},
	} {
		m := &metav1.ObjectMeta{OwnerReferences: row.refs}
		warning := dedupOwners(m, "")
		if fmt.Sprint(len(m.OwnerReferences)) != fmt.Sprint(len(row.want)) || !strings.HasSuffix(warning, row.warned) || (warning == "") != (row.warned == "") {
			t.Errorf("%v: %v, %q; want %v, %q", row.refs, m.OwnerReferences, warning, row.want, row.warned)
		}
	}
	many := &metav1.ObjectMeta{}
	for i := range 3000 {
		many.OwnerReferences = append(many.OwnerReferences, metav1.OwnerReference{UID: "u", Name: fmt.Sprint(i)})
	}
	const most = 100
	if got := testing.AllocsPerRun(1, func() { dedupOwners(many, "") }); got > most {
		t.Errorf("3,000 references of one uid: %v allocations, want at most %d", got, most)
	}
}

func TestMemberOf(t *testing.T) {
	t.Parallel()
	for _, n := range []int{0, 3, 8, 9, 100} {
		list := make([]string, n)
		for i := range list {
			list[i] = fmt.Sprint(i)
		}
		known := memberOf(list)
		for i := range n + 2 {
			if got := known(fmt.Sprint(i)); got != (i < n) {
				t.Errorf("%d of %d: %v", i, n, got)
			}
		}
	}
}
