package lifecycle

import (
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

func TestConditionsSayWhatIsLeft(t *testing.T) {
	t.Parallel()
	content := &left{}
	texts := func() string {
		var lines []string
		for _, c := range content.conditions() {
			lines = append(lines, string(c.Type)+" "+string(c.Status)+" "+c.Reason+": "+c.Message)
		}
		return strings.Join(lines, "\n")
	}
	want := `NamespaceDeletionDiscoveryFailure False ResourcesDiscovered: All resources successfully discovered
NamespaceDeletionGroupVersionParsingFailure False ParsedGroupVersions: All legacy kube types successfully parsed
NamespaceDeletionContentFailure False ContentDeleted: All content successfully deleted, may be waiting on finalization
NamespaceContentRemaining False ContentRemoved: All content successfully removed
NamespaceFinalizersRemaining False ContentHasNoFinalizers: All content-preserving finalizers finished`
	if diff := cmp.Diff(want, texts()); diff != "" {
		t.Errorf("nothing is left: %s", diff)
	}
	content.add(schema.GroupResource{Group: "example.com", Resource: "widgets"}, &metav1.ObjectMeta{Finalizers: []string{"b.c/d", "a.b/c"}})
	content.add(schema.GroupResource{Group: "example.com", Resource: "widgets"}, &metav1.ObjectMeta{Finalizers: []string{"a.b/c"}})
	content.add(schema.GroupResource{Resource: "configmaps"}, &metav1.ObjectMeta{})
	content.failures = []error{errors.New("one"), errors.New("two")}
	want = `NamespaceDeletionDiscoveryFailure False ResourcesDiscovered: All resources successfully discovered
NamespaceDeletionGroupVersionParsingFailure False ParsedGroupVersions: All legacy kube types successfully parsed
NamespaceDeletionContentFailure True ContentDeletionFailed: Failed to delete all resource types, 2 remaining: [one, two]
NamespaceContentRemaining True SomeResourcesRemain: Some resources are remaining: configmaps. has 1 resource instances, widgets.example.com has 2 resource instances
NamespaceFinalizersRemaining True SomeFinalizersRemain: Some content in the namespace has finalizers remaining: a.b/c in 2 resource instances, b.c/d in 1 resource instances`
	if diff := cmp.Diff(want, texts()); diff != "" {
		t.Errorf("objects are left: %s", diff)
	}
}

func TestConditionsChangeTheirTimeWithTheirStatus(t *testing.T) {
	t.Parallel()
	at := func(s int64) metav1.Time { return metav1.NewTime(time.Unix(s, 0)) }
	own := corev1.NamespaceCondition{Type: "example.com/Mine", Status: corev1.ConditionTrue}
	status := corev1.NamespaceStatus{Conditions: []corev1.NamespaceCondition{own}}
	content := &left{}
	if !settle(&status, content.conditions(), at(1)) || len(status.Conditions) != 6 || status.Conditions[0] != own {
		t.Fatalf("the first: %+v", status.Conditions)
	}
	if settle(&status, content.conditions(), at(2)) {
		t.Error("the same is a change")
	}
	content.add(schema.GroupResource{Resource: "a"}, &metav1.ObjectMeta{})
	if !settle(&status, content.conditions(), at(3)) {
		t.Error("a new status is no change")
	}
	content.add(schema.GroupResource{Resource: "b"}, &metav1.ObjectMeta{})
	if !settle(&status, content.conditions(), at(4)) {
		t.Error("a new message is no change")
	}
	remaining := status.Conditions[4]
	if remaining.Type != corev1.NamespaceContentRemaining || remaining.LastTransitionTime != at(3) || !strings.Contains(remaining.Message, "b. has 1") {
		t.Errorf("%+v", remaining)
	}
	if last := status.Conditions[5]; last.LastTransitionTime != at(1) {
		t.Errorf("%+v", last)
	}
}
