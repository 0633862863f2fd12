package patch

import (
	"context"
	"math"
	"reflect"

	"github.com/keelson-dev/keelson/runtime/patch/internal/engines"
)

// Bounds bound what patches other than applied configurations cost; beyond one of them a patch is refused with an [*Error] of code
// 413. In each field 0 is the default, and a negative number is no bound. Values are those of JSON: scalars, arrays and objects.
type Bounds struct {
	// Operations are those of a JSON patch; 0 is [DefaultOperations].
	Operations int
	// MovedItems are the items of arrays that the operations "add", "remove" and "move" of a JSON patch move aside, each as often as it
	// is moved; 0 is [DefaultMovedItems].
	MovedItems int
	// Values are those in a patch; 0 is [DefaultValues].
	Values int
	// DocumentValues are those in a patch and the document that it is for, together; 0 is [DefaultDocumentValues].
	DocumentValues int
	// MergedItems are the items of a list that a strategic merge patch merges, those of the patch and those of the document together; 0
	// is [DefaultMergedItems]. The time for a list grows with the square of its items: of several lists these are added up, and the sum
	// may be as large as for one of MergedItems.
	MergedItems int
}

// Defaults of Bounds.
const (
	DefaultOperations     = 10_000
	DefaultMovedItems     = 100_000_000 // 10,000 operations at the beginning of an array of 10,000
	DefaultValues         = 100_000
	DefaultDocumentValues = 300_000
	DefaultMergedItems    = 3000
)

// MaxCopied is how many bytes of JSON the "copy" operations of a JSON patch may add in all. It is 3 MiB.
const MaxCopied = engines.MaxCopied

// engines fills in the defaults.
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

// Check refuses, with an [*Error], a patch in JSON with too many values or, if it is an array, operations. It reads the text once and
// decodes nothing. Those who apply a patch need not call it: it is for who decodes one before.
func (b Bounds) Check(patch []byte) error {
	_, err := result(nil, b.engines().Check(patch))
	return err
}

// JSONPatch is the function of that name within b. It stops with the error of ctx when that is done.
func (b Bounds) JSONPatch(ctx context.Context, doc, patch []byte) ([]byte, error) {
	return result(b.engines().JSON(ctx, doc, patch))
}

// MergePatch is the function of that name within b. It stops with the error of ctx when that is done.
func (b Bounds) MergePatch(ctx context.Context, doc, patch []byte) ([]byte, error) {
	return result(b.engines().Merge(ctx, doc, patch))
}

// StrategicMergePatch is the function of that name within b. It stops with the error of ctx when that is done.
func (b Bounds) StrategicMergePatch(ctx context.Context, doc, patch []byte, t reflect.Type) ([]byte, error) {
	return result(b.engines().Strategic(ctx, doc, patch, t))
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
