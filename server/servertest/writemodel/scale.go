package writemodel

import (
	"encoding/json"
	"errors"
	"net/http"
	"strings"

	jsonpatch "gopkg.in/evanphx/json-patch.v4"
	autoscalingv1 "k8s.io/api/autoscaling/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	apiruntime "k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/managedfields"
	kjson "sigs.k8s.io/json"
	"sigs.k8s.io/structured-merge-diff/v6/fieldpath"
	"sigs.k8s.io/yaml"
)

var scaleKind = autoscalingv1.SchemeGroupVersion.WithKind("Scale")

// scaler computes the results of requests to /scale.
type scaler struct {
	*model
	fields *managedfields.FieldManager
}

func newScaler(m *model, ours managedfields.TypeConverter) (*scaler, error) {
	manager, err := managedfields.NewDefaultFieldManager(ours, m.scheme, m.scheme, m.scheme, scaleKind, scaleKind.GroupVersion(), "scale", nil)
	return &scaler{m, manager}, err
}

// predict returns the expected result of a request to the Scale of a stored object. The object in it is the stored one, not the
// answer.
func (s *scaler) predict(r request, live map[string]any) (outcome, error) {
	if live == nil {
		return outcome{code: http.StatusNotFound}, nil
	}
	was, err := s.decode(live)
	if err != nil {
		return outcome{}, err
	}
	replicas := strings.Split(strings.TrimPrefix(s.kind.scale.SpecReplicas, "."), ".")
	path := fieldpath.Path{}
	for _, name := range replicas {
		path = append(path, fieldpath.PathElement{FieldName: &name})
	}
	gv := s.kind.gvk.GroupVersion()
	handler := managedfields.NewScaleHandler(was.(metav1.Object).GetManagedFields(), gv, managedfields.ResourcePathMappings{gv.String(): path})
	old := s.scale(was, live)
	if old.ManagedFields, err = handler.ToSubresource(); err != nil {
		return outcome{}, err
	}
	changed, refused := s.change(r, old)
	if refused != nil {
		return *refused, nil
	}
	if conflicts(changed, was) {
		return outcome{code: http.StatusConflict}, nil
	}
	entries, err := handler.ToParent(changed.GetManagedFields())
	if err != nil {
		return outcome{}, err
	}
	made, err := s.encode(was)
	if err != nil {
		return outcome{}, err
	}
	if err := unstructured.SetNestedField(made, int64(changed.Spec.Replicas), replicas...); err != nil {
		return outcome{}, err
	}
	obj, err := s.decode(made)
	if err != nil {
		return outcome{}, err
	}
	obj.(metav1.Object).SetManagedFields(entries)
	return s.settle(obj, live, false)
}

// scale returns the Scale of an object.
func (s *scaler) scale(was apiruntime.Object, live map[string]any) *autoscalingv1.Scale {
	m := was.(metav1.Object)
	out := &autoscalingv1.Scale{ObjectMeta: metav1.ObjectMeta{
		Name: m.GetName(), Namespace: m.GetNamespace(), UID: m.GetUID(), ResourceVersion: m.GetResourceVersion(), CreationTimestamp: m.GetCreationTimestamp(),
	}}
	out.SetGroupVersionKind(scaleKind)
	number := func(path string) int32 {
		n, _, _ := unstructured.NestedInt64(live, strings.Split(strings.TrimPrefix(path, "."), ".")...)
		return int32(n)
	}
	out.Spec.Replicas, out.Status.Replicas = number(s.kind.scale.SpecReplicas), number(s.kind.scale.StatusReplicas)
	return out
}

// change returns the new Scale, or the refusal of the request.
func (s *scaler) change(r request, old *autoscalingv1.Scale) (*autoscalingv1.Scale, *outcome) {
	if r.contentType == string(types.ApplyPatchType) {
		return s.apply(r, old)
	}
	text := r.body
	if r.contentType != "" {
		body, err := json.Marshal(old)
		if err != nil {
			return nil, &outcome{}
		}
		patch := jsonpatch.MergePatch
		if r.contentType == string(types.JSONPatchType) {
			patch = jsonPatch
		}
		if text, err = patch(body, r.body); err != nil {
			return nil, &outcome{}
		}
	}
	obj := &autoscalingv1.Scale{}
	if err := kjson.UnmarshalCaseSensitivePreserveInts(text, obj); err != nil {
		return nil, &outcome{}
	}
	tracked, err := s.fields.Update(old, obj, r.managerName())
	if err != nil {
		return nil, &outcome{}
	}
	return tracked.(*autoscalingv1.Scale), nil
}

func (s *scaler) apply(r request, old *autoscalingv1.Scale) (*autoscalingv1.Scale, *outcome) {
	config := map[string]any{}
	text, err := yaml.YAMLToJSON(r.body)
	if err == nil {
		err = kjson.UnmarshalCaseSensitivePreserveInts(text, &config)
	}
	if err != nil {
		return nil, &outcome{}
	}
	obj, err := s.fields.Apply(old, &unstructured.Unstructured{Object: config}, r.managerName(), r.force)
	var refused apierrors.APIStatus
	switch {
	case errors.As(err, &refused) && refused.Status().Code == http.StatusConflict:
		status := refused.Status()
		return nil, &outcome{code: http.StatusConflict, conflict: &status}
	case err != nil:
		return nil, &outcome{}
	}
	return obj.(*autoscalingv1.Scale), nil
}
