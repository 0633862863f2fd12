package crd_test

import (
	"encoding/json"
	"encoding/pem"
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync/atomic"
	"testing"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
)

// corpusWebhook converts the objects of the corpus like webhooks that use the conversion functions of Cluster API. A conversion
// from the stored version adds an annotation with the stored object. A conversion to the stored version restores from it the
// fields that the other version lacks.
type corpusWebhook struct {
	*httptest.Server
	storage map[string]string // the stored version, by group and kind; complete before the first call
	objects atomic.Int64      // number of converted objects
}

const corpusData = "corpus.example.com/conversion-data"

// newCorpusWebhook serves the webhook at a port of the loopback interface, with a certificate, until the test ends.
func newCorpusWebhook(t *testing.T) *corpusWebhook {
	t.Helper()
	h := &corpusWebhook{storage: map[string]string{}}
	h.Server = httptest.NewTLSServer(http.HandlerFunc(h.serve))
	t.Cleanup(h.Close)
	return h
}

// ca returns the authority of the webhook's certificate.
func (h *corpusWebhook) ca() []byte {
	return pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: h.Certificate().Raw})
}

// stored records the stored version of a definition.
func (h *corpusWebhook) stored(d *apiextensionsv1.CustomResourceDefinition) {
	for _, v := range d.Spec.Versions {
		if v.Storage {
			h.storage[d.Spec.Group+"/"+d.Spec.Names.Kind] = v.Name
		}
	}
}

// serve answers a ConversionReview in the version that it came in.
func (h *corpusWebhook) serve(w http.ResponseWriter, r *http.Request) {
	var review struct {
		APIVersion string          `json:"apiVersion"`
		Kind       string          `json:"kind"`
		Request    json.RawMessage `json:"request,omitempty"`
		Response   map[string]any  `json:"response"`
	}
	var request struct {
		UID               string           `json:"uid"`
		DesiredAPIVersion string           `json:"desiredAPIVersion"`
		Objects           []map[string]any `json:"objects"`
	}
	err := json.NewDecoder(r.Body).Decode(&review)
	if err == nil {
		err = json.Unmarshal(review.Request, &request)
	}
	if err != nil || r.URL.Path != "/convert" {
		http.Error(w, fmt.Sprintf("%s: %v", r.URL.Path, err), http.StatusBadRequest)
		return
	}
	result := map[string]any{"status": "Success"}
	for _, o := range request.Objects {
		if err := h.convert(o, request.DesiredAPIVersion); err != nil {
			result = map[string]any{"status": "Failure", "message": err.Error()}
		}
		h.objects.Add(1)
	}
	review.Request = nil
	review.Response = map[string]any{"uid": request.UID, "result": result, "convertedObjects": request.Objects}
	w.Header().Set("Content-Type", "application/json")
	_ = json.NewEncoder(w).Encode(review)
}

// convert converts an object to another version, in place.
func (h *corpusWebhook) convert(o map[string]any, desired string) error {
	group, version, _ := strings.Cut(desired, "/")
	kind, _ := o["kind"].(string)
	meta, ok := o["metadata"].(map[string]any)
	if !ok { // not an object, but part of managed fields
		meta = map[string]any{}
	}
	annotations, _ := meta["annotations"].(map[string]any)
	storage := h.storage[group+"/"+kind]
	switch {
	case version != storage && o["apiVersion"] == group+"/"+storage:
		data, err := json.Marshal(map[string]any{"spec": o["spec"], "status": o["status"]})
		if err != nil {
			return err
		}
		if annotations == nil {
			annotations = map[string]any{}
			meta["annotations"], o["metadata"] = annotations, meta
		}
		annotations[corpusData] = string(data)
	case version == storage && annotations[corpusData] != nil:
		var data map[string]any
		text, _ := annotations[corpusData].(string)
		if err := json.Unmarshal([]byte(text), &data); err != nil {
			return err
		}
		delete(annotations, corpusData)
		if len(annotations) == 0 {
			delete(meta, "annotations")
		}
		for name, value := range data {
			if value != nil && o[name] != nil {
				restore(o[name], value)
			}
		}
	}
	o["apiVersion"] = desired
	return nil
}

// restore adds members of from that value lacks.
func restore(value, from any) {
	members, ok := value.(map[string]any)
	others, both := from.(map[string]any)
	if !ok || !both {
		return
	}
	for name, other := range others {
		if own, has := members[name]; has {
			restore(own, other)
		} else {
			members[name] = other
		}
	}
}
