package patch

import (
	"context"
	"fmt"
	"math"
	"net/http"
	"reflect"

	"github.com/keelson-dev/keelson/runtime/patch/internal/engines"
	"k8s.io/apimachinery/pkg/types"
)

// Bounds are the limits of what a patch may cost, except for applied configurations. A patch that exceeds one of them is refused
// with an [*Error] of code 413. In each field, 0 means the default, and a negative number means no limit. Values are JSON values:
// scalars, arrays and objects.
type Bounds struct {
	// Operations is the maximum number of operations of a JSON patch; 0 means [DefaultOperations].
	Operations int
	// MovedItems is the maximum number of array items that the operations "add", "remove" and "move" of a JSON patch shift. An
	// item counts each time it is shifted. 0 means [DefaultMovedItems].
	MovedItems int
	// Values is the maximum number of values in a patch; 0 means [DefaultValues].
	Values int
	// DocumentValues is the maximum number of values in a patch and its document together; 0 means [DefaultDocumentValues].
	DocumentValues int
	// MergedItems is the maximum number of items of a list that a strategic merge patch merges, counting the items of the patch
	// and of the document; 0 means [DefaultMergedItems]. The time for a list grows with the square of its items. If there are
	// several lists, the sum of their squares must not exceed the square of MergedItems.
	MergedItems int
}

// The defaults of Bounds.
const (
	DefaultOperations     = 10_000      // of Bounds.Operations
	DefaultMovedItems     = 100_000_000 // of Bounds.MovedItems: 10,000 operations at the beginning of an array of 10,000 items
	DefaultValues         = 100_000     // of Bounds.Values
	DefaultDocumentValues = 300_000     // of Bounds.DocumentValues
	DefaultMergedItems    = 3000        // of Bounds.MergedItems
)

// MaxCopied is the maximum number of bytes of JSON that the "copy" operations of a JSON patch may add in total. It is 3 MiB.
const MaxCopied = engines.MaxCopied

// engines returns the bounds with the defaults filled in.
func (b Bounds) engines() engines.Bounds {
	return engines.Bounds{
		Operations:     bound(b.Operations, DefaultOperations),
		MovedItems:     bound(b.MovedItems, DefaultMovedItems),
		Values:         bound(b.Values, DefaultValues),
		DocumentValues: bound(b.DocumentValues, DefaultDocumentValues),
		MergedItems:    bound(b.MergedItems, DefaultMergedItems),
	}
}

func bound(n, standard int) int {
	switch {
	case n == 0:
		return standard
	case n < 0:
		return math.MaxInt
	}
	return n
}

// Check refuses, with an [*Error], a JSON text that has too many values for a patch or, if it is an array, too many operations.
// It reads the text once and decodes nothing. The functions that apply a patch check the same; Check is for a caller that decodes
// a patch first.
func (b Bounds) Check(patch []byte) error {
	_, err := result(nil, b.engines().Check(patch))
	return err
}

// JSONPatch is like the function [JSONPatch], within b. It stops with the error of ctx when ctx is done.
func (b Bounds) JSONPatch(ctx context.Context, doc, patch []byte) ([]byte, error) {
	return result(b.engines().JSON(ctx, doc, patch))
}

// MergePatch is like the function [MergePatch], within b. It stops with the error of ctx when ctx is done.
func (b Bounds) MergePatch(ctx context.Context, doc, patch []byte) ([]byte, error) {
	return result(b.engines().Merge(ctx, doc, patch))
}

// StrategicMergePatch is like the function [StrategicMergePatch], within b. It stops with the error of ctx when ctx is done.
func (b Bounds) StrategicMergePatch(ctx context.Context, doc, patch []byte, t reflect.Type) ([]byte, error) {
	return result(b.engines().Strategic(ctx, doc, patch, t))
}

// Patch applies a patch of a type to doc: a JSON patch, a JSON merge patch or a strategic merge patch. It stops with the error of ctx
// when ctx is done. t is the Go struct type of doc; nil refuses strategic merge patches. Any other type of patch is refused too, with
// an [*Error] of code 400.
func (b Bounds) Patch(ctx context.Context, kind types.PatchType, doc, patch []byte, t reflect.Type) ([]byte, error) {
	switch kind {
	case types.JSONPatchType:
		return b.JSONPatch(ctx, doc, patch)
	case types.MergePatchType:
		return b.MergePatch(ctx, doc, patch)
	case types.StrategicMergePatchType:
		if t == nil {
			return nil, &Error{Code: http.StatusBadRequest, Message: "a strategic merge patch needs a kind with a Go type, and this one has none"}
		}
		return b.StrategicMergePatch(ctx, doc, patch, t)
	}
	return nil, &Error{Code: http.StatusBadRequest, Message: fmt.Sprintf("there is no patch type %q; want one of %s, %s and %s", kind,
		types.JSONPatchType, types.MergePatchType, types.StrategicMergePatchType)}
}

func result(text []byte, refusal *engines.Refusal) ([]byte, error) {
	switch {
	case refusal == nil:
	case refusal.Code == 0:
		return nil, refusal.Err
	default:
		return nil, (*Error)(refusal)
	}
	return text, nil
}
