package response_test

import (
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"runtime"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/keelson-dev/keelson/server/response"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
)

// The answer to any error takes some tens of KiB in any format, and a small multiple of that is allocated for it.
func TestAnswersAreBounded(t *testing.T) {
	for name, text := range map[string]string{
		"plain": strings.Repeat("x", 1<<20), "HTML": strings.Repeat("<", 900_000), "control": strings.Repeat("\x01", 900_000),
		"quotes": strings.Repeat(`"`, 1<<20), "runes": strings.Repeat("é", 1<<19), "no UTF-8": strings.Repeat("\xff", 1<<20),
	} {
		causes := make([]metav1.StatusCause, 10_000)
		for i := range causes {
			causes[i] = metav1.StatusCause{Type: "FieldValueInvalid", Message: text, Field: text}
		}
		for what, err := range map[string]error{
			"not found": apierrors.NewNotFound(schema.GroupResource{Group: text, Resource: text}, text),
			"message":   apierrors.NewBadRequest(text),
			"plain":     fmt.Errorf("because: %s", text),
			"causes": &apierrors.StatusError{ErrStatus: metav1.Status{
				Code: 409, Reason: metav1.StatusReason(text), Message: text,
				Details: &metav1.StatusDetails{Name: text, Kind: text, Group: text, UID: types.UID(text), Causes: causes},
			}},
		} {
			for _, accept := range []string{"application/json", "application/json;pretty=1", "application/yaml", "application/vnd.kubernetes.protobuf", "application/cbor"} {
				r := httptest.NewRequest(http.MethodGet, "/", nil)
				r.Header.Set("Accept", accept)
				r = r.WithContext(response.WithCBOR(r.Context()))
				w := httptest.NewRecorder()
				var before, after runtime.MemStats
				runtime.ReadMemStats(&before)
				response.Error(w, r, err)
				runtime.ReadMemStats(&after)
				if n, allocated := w.Body.Len(), after.TotalAlloc-before.TotalAlloc; n > 120<<10 || allocated > 3<<20 {
					t.Errorf("%s, %s, %s: %d bytes, made with %d", name, what, accept, n, allocated)
				}
			}
		}
		if len(causes[0].Message) != len(text) {
			t.Error("the error was changed")
		}
	}
}

// A text at the bound is unchanged. With one more byte it is cut between two runes.
func TestBoundOfMessage(t *testing.T) {
	for _, unit := range []string{"x", `\`, "<", "é", "\xff"} {
		in, _ := json.Marshal(unit)
		size := len(in) - len(`""`)
		fits := strings.Repeat(unit, response.MaxMessage/size)
		if got := response.Status(apierrors.NewBadRequest(fits)).Message; got != fits {
			t.Errorf("%q: %d of %d bytes", unit, len(got), len(fits))
		}
		got := response.Status(apierrors.NewBadRequest(fits + unit + "x")).Message
		note := fmt.Sprintf("... (truncated, %d bytes in all)", len(fits)+len(unit)+1)
		if text, _ := json.Marshal(got); !strings.HasSuffix(got, note) || len(text) > response.MaxMessage+2 || len(text) < response.MaxMessage-size-1 ||
			utf8.ValidString(unit) && !utf8.ValidString(got) {
			t.Errorf("%q: %d bytes ending in %q", unit, len(text), got[len(got)-60:])
		}
	}
}

func TestBoundOfCauses(t *testing.T) {
	of := func(n int, message string) []metav1.StatusCause {
		causes := make([]metav1.StatusCause, n)
		for i := range causes {
			causes[i] = metav1.StatusCause{Type: "T", Message: fmt.Sprint(message, i), Field: "f"}
		}
		return response.Status(&apierrors.StatusError{ErrStatus: metav1.Status{Code: 422, Details: &metav1.StatusDetails{Causes: causes}}}).Details.Causes
	}
	if got := of(response.MaxCauses, "m"); len(got) != response.MaxCauses || got[response.MaxCauses-1].Message != "m255" {
		t.Errorf("%d causes, the last %v", len(got), got[len(got)-1])
	}
	if got := of(1000, "m"); len(got) != response.MaxCauses+1 || got[response.MaxCauses] != (metav1.StatusCause{Message: "there are 744 more causes than these"}) {
		t.Errorf("%d causes, the last %v", len(got), got[len(got)-1])
	}
	if got := of(100, strings.Repeat("x", 20_000)); len(got) != 3 || !strings.Contains(got[0].Message, "... (truncated, 20001 bytes in all)") || got[2].Message != "there are 98 more causes than these" {
		t.Errorf("%d long causes, the last %v", len(got), got[len(got)-1])
	}
}
