package crd_test

import (
	"encoding/json"
	"encoding/pem"
	"fmt"
	"io"
	"log"
	"net/http"
	"net/http/httptest"
	goruntime "runtime"
	"strings"
	"testing"

	"github.com/keelson-dev/keelson/flowcontrol"
	"github.com/keelson-dev/keelson/server"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
)

// mostAllocated is the bound on what one request may allocate, in bytes: see package server/internal/bodycost.
const mostAllocated = 150 << 20

// allocated returns how many bytes the process has allocated while do ran.
func allocated(do func()) uint64 {
	var before, after goruntime.MemStats
	goruntime.ReadMemStats(&before)
	do()
	goruntime.ReadMemStats(&after)
	return after.TotalAlloc - before.TotalAlloc
}

// startFiller starts a webhook that converts crates and gives each the field spec.filling, which is a JSON text.
func startFiller(t *testing.T, filling func() string) (url string, bundle []byte) {
	t.Helper()
	hook := httptest.NewUnstartedServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		var asked struct {
			APIVersion string
			Request    struct {
				UID               string
				DesiredAPIVersion string
				Objects           []struct{ Metadata json.RawMessage }
			}
		}
		if err := json.NewDecoder(r.Body).Decode(&asked); err != nil {
			http.Error(w, err.Error(), http.StatusBadRequest)
			return
		}
		_, _ = fmt.Fprintf(w, `{"kind":"ConversionReview","apiVersion":%q,"response":{"uid":%q,"result":{"status":"Success"},"convertedObjects":[`,
			asked.APIVersion, asked.Request.UID)
		for i, o := range asked.Request.Objects {
			if i > 0 {
				_, _ = io.WriteString(w, ",")
			}
			_, _ = fmt.Fprintf(w, `{"apiVersion":%q,"kind":"Crate","metadata":%s,"spec":{"filling":`, asked.Request.DesiredAPIVersion, o.Metadata)
			_, _ = io.WriteString(w, filling())
			_, _ = io.WriteString(w, "}}")
		}
		_, _ = io.WriteString(w, "]}}")
	}))
	hook.Config.ErrorLog = log.New(io.Discard, "", 0)
	hook.StartTLS()
	t.Cleanup(hook.Close)
	return hook.URL, pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: hook.Certificate().Raw})
}

// newFilled starts a server that serves crates with the field spec.filling, which the webhook of startFiller converts.
func newFilled(t *testing.T, filling func() string) *site {
	t.Helper()
	url, bundle := startFiller(t, filling)
	keeps := true
	return newHooked(t, startHooks(t), nil, func(d *apiextensionsv1.CustomResourceDefinition) {
		d.Spec.Conversion.Webhook.ClientConfig = &apiextensionsv1.WebhookClientConfig{URL: &url, CABundle: bundle}
		for i := range d.Spec.Versions {
			d.Spec.Versions[i].AdditionalPrinterColumns, d.Spec.Versions[i].SelectableFields = nil, nil
			d.Spec.Versions[i].Schema.OpenAPIV3Schema = &apiextensionsv1.JSONSchemaProps{Type: "object", XPreserveUnknownFields: &keeps}
		}
	})
}

// TestLargeAnswersAreNotDecoded checks that the answer of a webhook costs no more than the body of a client: an answer with many
// values, in one object or in all, is refused before it is decoded. It must not run in parallel with other tests.
func TestLargeAnswersAreNotDecoded(t *testing.T) {
	filling := "[]"
	s := newFilled(t, func() string { return filling })
	list := func(n int) string { return "[" + strings.Repeat("{},", n-1) + "{}]" }
	for i := range 10 {
		s.want(http.StatusCreated, "POST", cratesIn(hooked, "v1"), crate(hooked, "v1", fmt.Sprint("c", i), ""))
	}
	for _, c := range []struct{ name, filling, path, want string }{
		{"ten objects of many values", list(550_000), "", "longer than"},
		{"ten objects of some values", list(30_000), "", "the values of the answer to "},
		{"one object of many values", list(550_000), "/c1", "the values of the answer to "},
		{"ten long strings", `"` + strings.Repeat("x", 1_600_000) + `"`, "", "longer than"},
	} {
		filling = c.filling
		var text string
		used := allocated(func() { text = s.want(http.StatusInternalServerError, "GET", cratesIn(hooked, "v2")+c.path, "") })
		t.Logf("%s: %d MiB", c.name, used>>20)
		if used > mostAllocated {
			t.Errorf("%s: %d MiB are allocated", c.name, used>>20)
		}
		if !strings.Contains(text, "conversion webhook for hooks.example.com/v1, Kind=Crate returned too much: ") || !strings.Contains(text, c.want) {
			t.Errorf("%s: %s", c.name, text)
		}
	}
}

// TestAnswersCountForTheRequest checks that what a webhook returned counts in Limits.Bytes.
func TestAnswersCountForTheRequest(t *testing.T) {
	filling := "[" + strings.Repeat("{},", 100_000) + "{}]" // 6.4 MB in memory
	s := newFilled(t, func() string { return filling })
	s.want(http.StatusCreated, "POST", cratesIn(hooked, "v1"), crate(hooked, "v1", "c", ""))
	var budget *flowcontrol.Budget
	if err := s.srv.Install(server.ExtensionFunc(func(h *server.Host) error {
		budget = h.Bytes()
		return nil
	})); err != nil {
		t.Fatal(err)
	}
	for _, path := range []string{"", "/c"} {
		_ = budget.Peak() // it begins again
		s.want(http.StatusOK, "GET", cratesIn(hooked, "v2")+path, "")
		if peak := budget.Peak(); peak < 12_000_000 || peak > 60_000_000 {
			t.Errorf("%q: %d bytes count", path, peak)
		}
		eventually(t, func() bool { return budget.Held() == 0 }, func() string { return fmt.Sprint(budget.Held(), " bytes are held") })
	}
}

// TestUsualAnswersAreDecoded converts a list of 500 objects of 30 KB with many small values.
func TestUsualAnswersAreDecoded(t *testing.T) {
	var b strings.Builder
	for i := range 600 {
		_, _ = fmt.Fprintf(&b, `,{"name":"n%d","ok":true,"size":%d,"x":[1,2,3]}`, i, i)
	}
	filling := "[" + b.String()[1:] + "]"
	s := newFilled(t, func() string { return filling })
	count := 500
	if testing.Short() { // the race detector on a busy machine needs more than the time of a request for 500
		count = 100
	}
	for i := range count {
		s.want(http.StatusCreated, "POST", cratesIn(hooked, "v1"), crate(hooked, "v1", fmt.Sprint("c", i), `,"spec":{"filling":`+filling+`}`))
	}
	var list struct {
		Items []struct{ Spec struct{ Filling []any } }
	}
	var code int
	used := allocated(func() { code = s.do("GET", cratesIn(hooked, "v2"), "", &list) })
	t.Logf("%d objects of %d bytes: %d MiB", count, len(filling), used>>20)
	if code != http.StatusOK || len(list.Items) != count || len(list.Items[7].Spec.Filling) != 600 {
		t.Errorf("the answer has code %d and %d objects", code, len(list.Items))
	}
}
