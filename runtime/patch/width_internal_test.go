package patch

import (
	"encoding/json"
	"fmt"
	"reflect"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// hidden encodes its unexported fields as JSON.
type hidden struct{ fields map[string]string }

func (h hidden) MarshalJSON() ([]byte, error) { return json.Marshal(h.fields) }

// TestWidthIsNotGuessed checks that a type with hidden data is not read, and is not taken for small.
func TestWidthIsNotGuessed(t *testing.T) {
	members := make([]string, MaxMembers+1)
	for i := range members {
		members[i] = fmt.Sprintf(`"k%d":1`, i)
	}
	wide := json.RawMessage("{" + strings.Join(members, ",") + "}")
	for name, c := range map[string]struct {
		v    any
		want bool
	}{
		"times and quantities": {&corev1.Pod{
			ObjectMeta: metav1.ObjectMeta{CreationTimestamp: metav1.NewTime(time.Now()), ManagedFields: []metav1.ManagedFieldsEntry{{FieldsV1: metav1.NewFieldsV1("{}")}}},
			Spec: corev1.PodSpec{Containers: []corev1.Container{{Resources: corev1.ResourceRequirements{
				Limits: corev1.ResourceList{"cpu": resource.MustParse("1")},
			}}}},
		}, true},
		"many bytes":       {struct{ Key []byte }{make([]byte, 1<<20)}, true},
		"small JSON":       {struct{ Any json.RawMessage }{json.RawMessage(`{"a":1}`)}, true},
		"wide JSON":        {struct{ Any json.RawMessage }{wide}, false},
		"what is hidden":   {struct{ Any hidden }{}, false},
		"a hidden pointer": {struct{ Any *hidden }{&hidden{}}, false},
	} {
		w := &widthOf{}
		if got := w.of(reflect.ValueOf(c.v)); got != c.want {
			t.Errorf("%s: %v", name, got)
		}
	}
}
