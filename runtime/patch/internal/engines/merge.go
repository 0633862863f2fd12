package engines

import (
	"context"
	"errors"
	"net/http"
)

// Merge applies a JSON Merge Patch.
func (b Bounds) Merge(ctx context.Context, doc, patch []byte) ([]byte, *Refusal) {
	if refusal := b.checkValues(doc, patch); refusal != nil {
		return nil, refusal
	}
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
	merge(object, members, &budget{done: ctx.Done()})
	if refusal := givenUp(ctx); refusal != nil {
		return nil, refusal
	}
	return encode(object)
}

// noObject returns the error for a merge patch that is not an object. kube-apiserver has a different error for null.
func noObject(patch any) *Refusal {
	if patch == nil {
		return &Refusal{Code: http.StatusBadRequest, Message: "Invalid JSON Patch"}
	}
	return undecodable(errors.New("a merge patch must be a JSON object"))
}

// merge changes object as patch says. If b is over, it changes only a part. The recursion is as deep as the decoder allows for
// patch.
func merge(object, patch map[string]any, b *budget) {
	for key, value := range patch {
		if b.over(1) {
			return
		}
		if value == nil {
			delete(object, key)
			continue
		}
		current, isObject := object[key].(map[string]any)
		members, ok := value.(map[string]any)
		switch {
		case isObject && ok:
			merge(current, members, b)
		case isObject:
			object[key] = value
		default:
			prune(value, b)
			object[key] = value
		}
	}
}

// prune removes the null members of a value in a patch, which would delete members that do not exist. As in kube-apiserver, it
// also looks inside arrays.
func prune(v any, b *budget) {
	switch v := v.(type) {
	case map[string]any:
		for key, member := range v {
			if b.over(1) {
				return
			}
			if member == nil {
				delete(v, key)
			} else {
				prune(member, b)
			}
		}
	case []any:
		for _, item := range v {
			if b.over(1) {
				return
			}
			prune(item, b)
		}
	}
}
