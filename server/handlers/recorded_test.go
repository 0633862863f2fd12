package handlers_test

import (
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/keelson-dev/keelson/authn"
	"github.com/keelson-dev/keelson/authz"
	"github.com/keelson-dev/keelson/flowcontrol"
	"github.com/keelson-dev/keelson/server/audit"
	"github.com/keelson-dev/keelson/server/internal/audittest"
	"github.com/keelson-dev/keelson/server/request"
)

// recorded asks and returns the answer, the event, and how many bytes of the budget are held when the event is made.
func recorded(t *testing.T, h http.Handler, budget *flowcontrol.Budget, target, accept string) (*httptest.ResponseRecorder, *audit.Event, int64) {
	t.Helper()
	var live audit.Live
	var log audittest.Log
	must(t, live.Set(audit.Backend{Name: "log", Policy: &audit.Policy{Rules: []audit.Rule{{Level: audit.RequestResponse}}}, Sink: &log}))
	facts := new(request.Annotations)
	rec := live.Now().Begin(audit.Arrival{Attributes: &authz.Attributes{User: &authn.User{Name: "anna"}}, SourceIPs: func() []string { return nil }, Annotations: facts.All})
	r := httptest.NewRequestWithContext(t.Context(), "GET", target, http.NoBody)
	r.Header.Set("Accept", accept)
	r = r.WithContext(request.WithAnnotations(request.WithRecording(r.Context(), rec), facts))
	w := httptest.NewRecorder()
	h.ServeHTTP(w, r)
	held := budget.Held()
	if err := rec.Reached(t.Context(), audit.ResponseComplete, time.Now(), w.Code); err != nil {
		t.Fatal(err)
	}
	return w, log.Events()[0], held
}

// An answer is the same whether there is room for the copy in its event or not, and the bytes of a copy are counted as long as it is kept.
func TestRecordingChangesNoAnswer(t *testing.T) {
	budget := flowcontrol.NewBudget("bytes", flowcontrol.Bounds{All: 16 << 20, User: -1, Address: -1})
	h, _, _ := largeHouse(t, 20, 100<<10, budget)
	for _, accept := range []string{"application/json", "application/yaml", "application/json;pretty=1"} {
		for _, target := range []string{base, base + "/w00001"} {
			w, e, held := recorded(t, h, budget, target, accept)
			plain := h.ask("GET", target, "", "Accept: application/json").Body.String()
			if w.Code != 200 || string(e.ResponseObject) != strings.TrimSuffix(plain, "\n") || held < int64(len(e.ResponseObject)) || budget.Held() != 0 {
				t.Errorf("%s %s: %d, %d bytes are recorded, %d and then %d are held", target, accept, w.Code, len(e.ResponseObject), held, budget.Held())
			}
		}
	}
	most := int64(16 << 20)
	for _, free := range []int64{1800 << 10, 900 << 10} {
		share, err := budget.Take(flowcontrol.Holder{}, most-free)
		must(t, err)
		for _, accept := range []string{"application/json", "application/json;pretty=1"} {
			want := h.ask("GET", base, "", "Accept: "+accept)
			w, e, _ := recorded(t, h, budget, base, accept)
			if w.Code != want.Code || w.Body.String() != want.Body.String() {
				t.Errorf("%s, %d: %d, want %d", accept, free, w.Code, want.Code)
			}
			if w.Code == 200 && (e.ResponseObject != nil || e.Annotations[audit.TruncatedAnnotation] != "true") {
				t.Errorf("%s, %d: %d bytes are recorded, %v", accept, free, len(e.ResponseObject), e.Annotations)
			}
		}
		share.Release()
	}
}
