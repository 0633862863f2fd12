package engines

import (
	"errors"
	"fmt"
	"net/http"
	"reflect"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/util/mergepatch"
	"k8s.io/apimachinery/pkg/util/strategicpatch"
)

// Strategic applies a strategic merge patch to the JSON of a t.
func Strategic(doc, patch []byte, t reflect.Type) (result []byte, refusal *Refusal) {
	if t == nil || t.Kind() != reflect.Struct {
		return nil, &Refusal{Code: http.StatusUnsupportedMediaType, Message: fmt.Sprintf("strategic merge patches need a Go struct, not %v", t)}
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
			result, refusal = nil, inapplicable(fmt.Errorf("%v", p))
		}
	}()
	meta, err := strategicpatch.NewPatchMetaFromStruct(reflect.New(t).Interface())
	if err != nil {
		return nil, inapplicable(err)
	}
	if refusal := checkLists(object, changes, meta); refusal != nil {
		return nil, refusal
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

// checkLists refuses a patch that would take too long.
func checkLists(object, changes map[string]any, meta strategicpatch.LookupPatchMeta) *Refusal {
	cost := listCost{longest: longestList(object)}
	cost.add(changes, meta)
	if cost.sum <= 2*MaxListItems*MaxListItems {
		return nil
	}
	return &Refusal{
		Code:    http.StatusRequestEntityTooLarge,
		Message: fmt.Sprintf("a strategic merge patch can merge lists of some %d items; a merge patch replaces lists of any length", MaxListItems),
	}
}

// listCost counts the comparisons that merging lists takes: of each item of the patch with those of patch and document.
type listCost struct{ sum, longest int }

func (c *listCost) add(changes map[string]any, meta strategicpatch.LookupPatchMeta) {
	for key, v := range changes {
		switch v := v.(type) {
		case map[string]any:
			if inner, _, err := meta.LookupPatchMetadataForStruct(key); err == nil {
				c.add(v, inner)
			}
		case []any:
			if strings.HasPrefix(key, "$") {
				c.sum += len(v) * (len(v) + c.longest)
				continue
			}
			inner, how, err := meta.LookupPatchMetadataForSlice(key)
			if err != nil || !slices.Contains(how.GetPatchStrategies(), "merge") {
				continue
			}
			c.sum += len(v) * (len(v) + c.longest)
			for _, item := range v {
				if item, ok := item.(map[string]any); ok && inner != nil {
					c.add(item, inner)
				}
			}
		}
	}
}

// longestList is the length of the longest list in a JSON value.
func longestList(v any) int {
	longest := 0
	switch v := v.(type) {
	case map[string]any:
		for _, member := range v {
			longest = max(longest, longestList(member))
		}
	case []any:
		longest = len(v)
		for _, item := range v {
			longest = max(longest, longestList(item))
		}
	}
	return longest
}

// decodeStrategic reads a JSON object with whole numbers as int64, by which merge keys are compared. Larger ones stay
// texts, and so what they are.
func decodeStrategic(text []byte) (map[string]any, error) {
	object, err := DecodeObject(text)
	if err != nil {
		return nil, err
	}
	if _, bad := WithNumbers(object, true); bad != nil {
		return nil, fmt.Errorf("%s: %s is larger than a number of 64 bits can be", bad.Path(), bad.Number)
	}
	return object, nil
}

// strategicError tells a patch that does not fit the document from one that is none. kube-apiserver answers some of the
// latter, such as an unknown directive, with 500.
func strategicError(err error) *Refusal {
	if errors.Is(err, mergepatch.ErrNoListOfLists) {
		return inapplicable(err)
	}
	return &Refusal{Code: http.StatusBadRequest, Message: err.Error()}
}
