package patch

import (
	"fmt"
	"net/http"

	"github.com/keelson-dev/keelson/runtime/patch/internal/engines"
)

// Configuration decodes a JSON object for [FieldManager.Apply]. A whole number beyond int64, which Apply would change, is an
// [*Error].
func Configuration(text []byte) (map[string]any, error) { return mergeable(text) }

// mergeable decodes an object for structured-merge-diff, which has whole numbers as int64 and would change a larger one.
func mergeable(text []byte) (map[string]any, error) {
	fields, err := engines.DecodeObject(text)
	if err != nil {
		return nil, err
	}
	if _, bad := engines.WithNumbers(fields, false); bad != nil {
		return nil, &Error{Code: http.StatusBadRequest,
			Message: fmt.Sprintf("%s: %s is larger than the numbers that can be merged, whole ones of 64 bits with a sign", bad.Path(), bad.Number)}
	}
	return fields, nil
}
