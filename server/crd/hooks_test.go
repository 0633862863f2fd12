package crd_test

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/json"
	"encoding/pem"
	"fmt"
	"io"
	"log"
	"math/big"
	"net/http"
	"net/http/httptest"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
)

// hooks is a server with the conversion webhooks for crates. The webhook of a definition is at /<its group>. Each group has a
// mode, which is goodHook at first.
type hooks struct {
	*httptest.Server
	bundle []byte

	mu    sync.Mutex // guards all below
	modes map[string]string
	calls map[string]int           // by group
	held  map[string]chan struct{} // by group: closed when hanging calls may continue
}

// These are the modes of a webhook that are not names of hookLies.
const (
	goodHook  = ""
	hungHook  = "hangs"
	downHook  = "answers 500"
	busyHook  = "answers 429"
	crashHook = "closes the connection"
	noiseHook = "answers noise"
	emptyHook = "answers nothing"
)

// hookLies returns functions that make wrong answers from right ones, by mode.
func hookLies() map[string]func(response map[string]any) {
	object := func(response map[string]any, i int) map[string]any {
		return response["convertedObjects"].([]any)[i].(map[string]any)
	}
	each := func(change func(object, metadata map[string]any)) func(map[string]any) {
		return func(response map[string]any) {
			for i := range response["convertedObjects"].([]any) {
				metadata, _ := object(response, i)["metadata"].(map[string]any)
				change(object(response, i), metadata)
			}
		}
	}
	spec := func(object map[string]any) map[string]any {
		spec, _ := object["spec"].(map[string]any)
		return spec
	}
	return map[string]func(map[string]any){
		"fails": func(r map[string]any) {
			r["result"] = map[string]any{"status": "Failure", "message": "no paint", "reason": "Conflict", "code": 409}
		},
		"fails silently": func(r map[string]any) { r["result"] = map[string]any{"status": "Failure"} },
		"wrong uid":      func(r map[string]any) { r["uid"] = "other" },
		"fewer":          func(r map[string]any) { r["convertedObjects"] = r["convertedObjects"].([]any)[1:] },
		"more":           func(r map[string]any) { r["convertedObjects"] = append(r["convertedObjects"].([]any), object(r, 0)) },
		"reordered":      func(r map[string]any) { slices.Reverse(r["convertedObjects"].([]any)) },
		"unconverted":    each(func(o, _ map[string]any) { o["apiVersion"] = "hooks.example.com/v3" }),
		"kind":           each(func(o, _ map[string]any) { o["kind"] = "Barrel" }),
		"name":           each(func(_, m map[string]any) { m["name"] = "other" }),
		"namespace":      each(func(_, m map[string]any) { m["namespace"] = "other" }),
		"uid":            each(func(_, m map[string]any) { m["uid"] = "other" }),
		"metadata": each(func(_, m map[string]any) {
			m["finalizers"], m["generation"], m["resourceVersion"] = []any{"hooks.example.com/x"}, 77, "1"
			m["ownerReferences"] = []any{map[string]any{"apiVersion": "v1", "kind": "Pod", "name": "x", "uid": "y"}}
			delete(m, "managedFields")
			delete(m, "creationTimestamp")
		}),
		"labels": each(func(o, m map[string]any) {
			_, version, _ := strings.Cut(o["apiVersion"].(string), "/")
			m["labels"], m["annotations"] = map[string]any{"shown-in": version}, map[string]any{"shown-in": version}
		}),
		"bad labels":  each(func(_, m map[string]any) { m["labels"] = map[string]any{"a b": "c"} }),
		"no metadata": each(func(o, _ map[string]any) { delete(o, "metadata") }),
		"unknown":     each(func(o, _ map[string]any) { spec(o)["strange"], o["odd"] = 1, true }),
		"missing":     each(func(o, _ map[string]any) { delete(spec(o), "box") }),
		"mistyped":    each(func(o, _ map[string]any) { spec(o)["note"] = 5 }),
		"null":        each(func(o, _ map[string]any) { spec(o)["note"] = nil }),
	}
}

// newBundle returns the certificate of an authority that has issued no certificate.
func newBundle(t testing.TB) []byte {
	t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	ca := &x509.Certificate{
		SerialNumber: big.NewInt(1), Subject: pkix.Name{CommonName: "nobody"}, IsCA: true, BasicConstraintsValid: true,
		NotAfter: time.Date(2100, 1, 1, 0, 0, 0, 0, time.UTC),
	}
	der, err := x509.CreateCertificate(rand.Reader, ca, ca, &key.PublicKey, key)
	if err != nil {
		t.Fatal(err)
	}
	return pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: der})
}

func startHooks(t testing.TB) *hooks {
	t.Helper()
	h := &hooks{modes: map[string]string{}, calls: map[string]int{}, held: map[string]chan struct{}{}}
	h.Server = httptest.NewUnstartedServer(h)
	h.Config.ErrorLog = log.New(io.Discard, "", 0)
	h.StartTLS()
	h.bundle = pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: h.Certificate().Raw})
	t.Cleanup(func() {
		h.mu.Lock()
		for group := range h.held {
			h.release(group)
		}
		h.mu.Unlock()
		h.Close()
	})
	return h
}

// set sets the mode of a group's webhook. Hanging calls continue in the new mode.
func (h *hooks) set(group, mode string) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.modes[group] = mode
	h.release(group)
}

// release lets hanging calls of a group continue. h.mu must be held.
func (h *hooks) release(group string) {
	if held := h.held[group]; held != nil {
		close(held)
		delete(h.held, group)
	}
}

// mode returns the mode of a group's webhook, and a channel that is closed when the mode changes.
func (h *hooks) mode(group string) (mode string, released <-chan struct{}) {
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.modes[group] == hungHook && h.held[group] == nil {
		h.held[group] = make(chan struct{})
	}
	return h.modes[group], h.held[group]
}

// spent returns the number of calls for a group since the last call of spent.
func (h *hooks) spent(group string) int {
	h.mu.Lock()
	defer h.mu.Unlock()
	n := h.calls[group]
	delete(h.calls, group)
	return n
}

func (h *hooks) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	body, err := io.ReadAll(r.Body)
	if err != nil {
		panic(http.ErrAbortHandler)
	}
	group := strings.Trim(r.URL.Path, "/")
	h.mu.Lock()
	h.calls[group]++
	h.mu.Unlock()
	mode, released := h.mode(group)
	for mode == hungHook {
		select {
		case <-released:
		case <-r.Context().Done():
			return
		}
		mode, released = h.mode(group)
	}
	switch mode {
	case downHook:
		http.Error(w, "boom", http.StatusInternalServerError)
		return
	case busyHook:
		http.Error(w, "later", http.StatusTooManyRequests)
		return
	case crashHook:
		panic(http.ErrAbortHandler)
	case noiseHook:
		_, _ = io.WriteString(w, "<html>")
		return
	case emptyHook:
		return
	}
	answer, err := reviewed(body)
	if err != nil {
		http.Error(w, err.Error(), http.StatusBadRequest)
		return
	}
	if lie := hookLies()[mode]; lie != nil {
		lie(answer["response"].(map[string]any))
	}
	w.Header().Set("Content-Type", "application/json")
	_ = json.NewEncoder(w).Encode(answer)
}

// reviewed returns the right answer to a ConversionReview.
func reviewed(body []byte) (map[string]any, error) {
	var review struct {
		APIVersion string `json:"apiVersion"`
		Kind       string `json:"kind"`
		Request    struct {
			UID               string           `json:"uid"`
			DesiredAPIVersion string           `json:"desiredAPIVersion"`
			Objects           []map[string]any `json:"objects"`
		} `json:"request"`
	}
	if err := json.Unmarshal(body, &review); err != nil {
		return nil, err
	}
	converted := []any{}
	for _, object := range review.Request.Objects {
		if err := convertCrate(object, review.Request.DesiredAPIVersion); err != nil {
			return nil, err
		}
		converted = append(converted, object)
	}
	return map[string]any{"apiVersion": review.APIVersion, "kind": review.Kind, "response": map[string]any{
		"uid": review.Request.UID, "result": map[string]any{"status": "Success"}, "convertedObjects": converted,
	}}, nil
}

// convertCrate converts a crate to a version, in place. v1 has no height; one that is not the default is kept in an annotation.
func convertCrate(object map[string]any, apiVersion string) error {
	if object["apiVersion"] == apiVersion {
		return fmt.Errorf("%s was not to be converted", apiVersion)
	}
	object["apiVersion"] = apiVersion
	move := func(in any, from, to string) {
		if members, ok := in.(map[string]any); ok {
			if v, ok := members[from]; ok {
				delete(members, from)
				members[to] = v
			}
		}
	}
	spec, _ := object["spec"].(map[string]any)
	metadata, _ := object["metadata"].(map[string]any)
	annotations, _ := metadata["annotations"].(map[string]any)
	const height = "hooks.example.com/height"
	switch {
	case strings.HasSuffix(apiVersion, "/v2"):
		move(spec, "color", "shade")
		move(spec, "replicas", "copies")
		move(object["status"], "replicas", "copies")
		if spec == nil {
			return nil
		}
		box := map[string]any{}
		if size, ok := spec["size"]; ok {
			box["width"] = size
			delete(spec, "size")
		}
		if text, ok := annotations[height].(string); ok {
			n, err := strconv.Atoi(text)
			if err != nil {
				return err
			}
			box["height"] = n
			delete(annotations, height)
		}
		spec["box"] = box
	default:
		move(spec, "shade", "color")
		move(spec, "copies", "replicas")
		move(object["status"], "copies", "replicas")
		box, _ := spec["box"].(map[string]any)
		if spec == nil {
			return nil
		}
		delete(spec, "box")
		if width, ok := box["width"]; ok {
			spec["size"] = width
		}
		if n, ok := box["height"].(float64); ok && n != 7 && metadata != nil {
			if annotations == nil {
				annotations = map[string]any{}
				metadata["annotations"] = annotations
			}
			annotations[height] = strconv.Itoa(int(n))
		}
	}
	return nil
}

// crates returns the definition of crates in a group with the webhook of that group.
func (h *hooks) crates(t testing.TB, group string, change ...func(*apiextensionsv1.CustomResourceDefinition)) *apiextensionsv1.CustomResourceDefinition {
	t.Helper()
	d := definitionFile(t, "crates.yaml")
	d.Kind, d.APIVersion = "CustomResourceDefinition", "apiextensions.k8s.io/v1"
	d.Spec.Group = group
	d.Name = d.Spec.Names.Plural + "." + group
	d.Status = apiextensionsv1.CustomResourceDefinitionStatus{}
	url := h.URL + "/" + group
	d.Spec.Conversion = &apiextensionsv1.CustomResourceConversion{
		Strategy: apiextensionsv1.WebhookConverter,
		Webhook: &apiextensionsv1.WebhookConversion{
			ClientConfig:             &apiextensionsv1.WebhookClientConfig{URL: &url, CABundle: h.bundle},
			ConversionReviewVersions: []string{"v1"},
		},
	}
	for _, f := range change {
		f(d)
	}
	return d
}
