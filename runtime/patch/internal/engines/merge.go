package engines

import (
	"errors"
	"net/http"
)

// Merge applies a JSON Merge Patch.
func Merge(doc, patch []byte) ([]byte, *Refusal) {
	p, err := decode(patch)
	if err != nil {
		return nil, undecodable(err)
	}
	members, ok := p.(map[string]any)
	if !ok {
		return nil, noObject(p)
	}
	object, refusal := decodeDocument(doc)
	if refusal != nil {
		return nil, refusal
	}
	merge(object, members)
	return encode(object)
}

// noObject is the error for a merge patch of another type, of which kube-apiserver notices null last.
func noObject(patch any) *Refusal {
	if patch == nil {
		return &Refusal{Code: http.StatusBadRequest, Message: "Invalid JSON Patch"}
	}
	return undecodable(errors.New("a merge patch must be a JSON object"))
}

// merge changes object as patch says. It recurses as deep as the decoder lets patch be.
func merge(object, patch map[string]any) {
	for key, value := range patch {
		if value == nil {
			delete(object, key)
			continue
		}
		current, isObject := object[key].(map[string]any)
		members, ok := value.(map[string]any)
		switch {
		case isObject && ok:
			merge(current, members)
		case isObject:
			object[key] = value
		default:
			prune(value)
			object[key] = value
		}
	}
}

// prune removes the members that are null: in a merge patch they delete what is not there. kube-apiserver looks
// for them inside arrays as well.
func prune(v any) {
	switch v := v.(type) {
	case map[string]any:
		for key, member := range v {
			if member == nil {
				delete(v, key)
			} else {
				prune(member)
			}
		}
	case []any:
		for _, item := range v {
			prune(item)
		}
	}
}
