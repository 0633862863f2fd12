package patch

import (
	"errors"
	"fmt"
	"net/http"
	"reflect"

	"k8s.io/apimachinery/pkg/util/json"
	"k8s.io/apimachinery/pkg/util/mergepatch"
	"k8s.io/apimachinery/pkg/util/strategicpatch"
)

// StrategicMergePatch applies a strategic merge patch to doc, a JSON object, and returns the result. t is the Go
// struct that doc is the JSON of: the tags patchStrategy and patchMergeKey of its fields say which lists are merged, and
// by which key; all others are replaced. The directives are those of
// https://github.com/kubernetes/community/blob/main/contributors/devel/sig-api-machinery/strategic-merge-patch.md.
func StrategicMergePatch(doc, patch []byte, t reflect.Type) (result []byte, err error) {
	if t == nil || t.Kind() != reflect.Struct {
		return nil, &Error{Code: http.StatusUnsupportedMediaType, Message: fmt.Sprintf("strategic merge patches need a Go struct, not %v", t)}
	}
	changes, err := decodeStrategic(patch)
	if err != nil {
		return nil, undecodable(err)
	}
	object, err := decodeStrategic(doc)
	if err != nil {
		return nil, inapplicable(fmt.Errorf("document: %w", err))
	}
	defer func() { // directives of a wrong type are not all found before they are used
		if p := recover(); p != nil {
			result, err = nil, inapplicable(fmt.Errorf("%v", p))
		}
	}()
	meta, err := strategicpatch.NewPatchMetaFromStruct(reflect.New(t).Interface())
	if err != nil {
		return nil, inapplicable(err)
	}
	merged, err := strategicpatch.StrategicMergeMapPatchUsingLookupPatchMeta(object, changes, meta)
	if err != nil {
		return nil, strategicError(err)
	}
	if len(merged) == 0 { // {"$patch": "delete"} of the whole object
		return []byte("{}"), nil
	}
	return encode(map[string]any(merged))
}

// decodeStrategic reads a JSON object with whole numbers as int64, by which merge keys are compared.
func decodeStrategic(text []byte) (map[string]any, error) {
	if _, err := decode(text); err != nil { // one value, and no more
		return nil, err
	}
	var object map[string]any
	if err := json.Unmarshal(text, &object); err != nil {
		return nil, err
	}
	if object == nil {
		return nil, errors.New("not a JSON object")
	}
	return object, nil
}

// strategicError tells a patch that does not fit the document from one that is none. kube-apiserver answers some of the
// latter, such as an unknown directive, with 500.
func strategicError(err error) error {
	if errors.Is(err, mergepatch.ErrNoListOfLists) {
		return inapplicable(err)
	}
	return &Error{Code: http.StatusBadRequest, Message: err.Error()}
}
