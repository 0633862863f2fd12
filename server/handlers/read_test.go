package handlers_test

import (
	"net/http"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

func TestGetWritesTheRecord(t *testing.T) {
	h := newHouse(t, tune{})
	h.make(t, "a")
	w := h.ask("GET", base+"/a", "")
	wantBody(t, w, http.StatusOK, h.whole(t, "a")+"\n")
	if got := w.Header().Get("Content-Type"); got != "application/json" {
		t.Errorf("Content-Type %q", got)
	}
}

func TestGetNotFound(t *testing.T) {
	h := newHouse(t, tune{})
	s := wantStatus(t, h.ask("GET", base+"/none", ""), http.StatusNotFound, metav1.StatusReasonNotFound, `widgets.example.com "none" not found`)
	if s.Details == nil || s.Details.Kind != "widgets" || s.Details.Group != "example.com" || s.Details.Name != "none" {
		t.Errorf("details %+v", s.Details)
	}
}

func TestListBytes(t *testing.T) {
	h := newHouse(t, tune{})
	wantBody(t, h.ask("GET", base, ""), 200, `{"kind":"WidgetList","apiVersion":"example.com/v1","metadata":{"resourceVersion":"`+h.now(t)+`"},"items":[]}`+"\n")
	h.make(t, "a", "b", "c")
	head := `{"kind":"WidgetList","apiVersion":"example.com/v1","metadata":{"resourceVersion":"` + h.now(t) + `"`
	wantBody(t, h.ask("GET", all, ""), 200, head+`},"items":[`+h.listed(t, "a")+","+h.listed(t, "b")+","+h.listed(t, "c")+"]}\n")

	w := h.ask("GET", base+"?limit=1", "")
	token := decodeList(t, w).Continue
	wantBody(t, w, 200, head+`,"continue":"`+token+`","remainingItemCount":2},"items":[`+h.listed(t, "a")+"]}\n")
	h.make(t, "d")
	wantBody(t, h.ask("GET", base+"?limit=2&continue="+token, ""), 200, head+`},"items":[`+h.listed(t, "b")+","+h.listed(t, "c")+"]}\n")
}
