package engines

import (
	"context"
	"errors"
	"fmt"
	"math"
	"net/http"
	"reflect"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/util/mergepatch"
	"k8s.io/apimachinery/pkg/util/strategicpatch"
)

// Strategic applies a strategic merge patch to the JSON of a value of type t.
func (b Bounds) Strategic(ctx context.Context, doc, patch []byte, t reflect.Type) (result []byte, refusal *Refusal) {
	if t == nil || t.Kind() != reflect.Struct {
		return nil, &Refusal{Code: http.StatusUnsupportedMediaType, Message: fmt.Sprintf("strategic merge patches need a Go struct, not %v", t)}
	}
	if refusal := b.checkValues(doc, patch); refusal != nil {
		return nil, refusal
	}
	changes, err := decodeStrategic(patch)
	if err != nil {
		return nil, undecodable(err)
	}
	object, err := decodeStrategic(doc)
	if err != nil {
		return nil, inapplicable(fmt.Errorf("document: %w", err))
	}
	defer func() { // the library panics for some directives of a wrong type
		if p := recover(); p != nil {
			result, refusal = nil, inapplicable(fmt.Errorf("%v", p))
		}
	}()
	meta, err := strategicpatch.NewPatchMetaFromStruct(reflect.New(t).Interface())
	if err != nil {
		return nil, inapplicable(err)
	}
	if refusal := b.checkLists(object, changes, meta); refusal != nil {
		return nil, refusal
	}
	if refusal := givenUp(ctx); refusal != nil {
		return nil, refusal
	}
	merged, err := strategicpatch.StrategicMergeMapPatchUsingLookupPatchMeta(object, changes, meta)
	if err != nil {
		return nil, strategicError(err)
	}
	if refusal := givenUp(ctx); refusal != nil {
		return nil, refusal
	}
	if len(merged) == 0 { // {"$patch": "delete"} of the whole object
		return []byte("{}"), nil
	}
	return encode(map[string]any(merged))
}

// checkLists refuses a patch that would take too long.
func (b Bounds) checkLists(object, changes map[string]any, meta strategicpatch.LookupPatchMeta) *Refusal {
	cost := listCost{}
	cost.add(object, changes, meta)
	if cost.sum <= square(min(b.MergedItems, math.MaxInt32)) { // the square of a greater number is not an int64
		return nil
	}
	return tooLarge("a strategic merge patch can merge lists of some %d items; a merge patch replaces lists of any length", (b.MergedItems+1)/2)
}

// listCost counts the comparisons for merging lists. The library compares each item of the patch and of the document with all
// others to find the order.
type listCost struct{ sum int64 }

func square(n int) int64 { return int64(n) * int64(n) }

// add counts the comparisons for applying changes to object.
func (c *listCost) add(object, changes map[string]any, meta strategicpatch.LookupPatchMeta) {
	for key, v := range changes {
		name := key
		if strings.HasPrefix(key, "$") { // a directive for the list that it names, or for the object
			_, name, _ = strings.Cut(key, "/")
		}
		there, _ := object[name].([]any)
		switch v := v.(type) {
		case map[string]any:
			if inner, _, err := meta.LookupPatchMetadataForStruct(key); err == nil {
				of, _ := object[key].(map[string]any)
				c.add(of, v, inner)
			}
		case []any:
			if strings.HasPrefix(key, "$") {
				c.sum += square(len(v)+len(there)) + int64(len(v))*int64(len(object))
				continue
			}
			inner, how, err := meta.LookupPatchMetadataForSlice(key)
			if err != nil || !slices.Contains(how.GetPatchStrategies(), "merge") {
				continue
			}
			c.sum += square(len(v) + len(there))
			if inner == nil {
				continue
			}
			of := byKey(there, how.GetPatchMergeKey())
			for _, item := range v {
				if item, ok := item.(map[string]any); ok {
					c.add(of[keyOf(item, how.GetPatchMergeKey())], item, inner)
				}
			}
		}
	}
}

// byKey returns the items of a list by the text of a member.
func byKey(items []any, key string) map[string]map[string]any {
	out := make(map[string]map[string]any, len(items))
	for _, item := range items {
		if item, ok := item.(map[string]any); ok {
			out[keyOf(item, key)] = item
		}
	}
	return out
}

// keyOf returns the text of a scalar member.
func keyOf(item map[string]any, key string) string {
	switch v := item[key].(type) {
	case map[string]any, []any:
		return ""
	default:
		return fmt.Sprint(v)
	}
}

// decodeStrategic decodes a JSON object with whole numbers as int64, because merge keys are compared in this form. Larger numbers
// remain texts, so that they do not change.
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

// strategicError distinguishes a patch that does not fit the document from an invalid patch. For some invalid patches, such as an
// unknown directive, kube-apiserver responds with 500.
func strategicError(err error) *Refusal {
	if errors.Is(err, mergepatch.ErrNoListOfLists) {
		return inapplicable(err)
	}
	return &Refusal{Code: http.StatusBadRequest, Message: err.Error()}
}
