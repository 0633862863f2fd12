package conversion_test

import (
	"context"
	"encoding/json"
	"encoding/pem"
	"fmt"
	"net/http"
	"net/http/httptest"

	"github.com/keelson-dev/keelson/runtime/webhook"
	"github.com/keelson-dev/keelson/server/crd/conversion"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

// convertBoats answers a ConversionReview. It changes the apiVersion of each object and nothing else.
func convertBoats(w http.ResponseWriter, r *http.Request) {
	var review apiextensionsv1.ConversionReview
	if err := json.NewDecoder(r.Body).Decode(&review); err != nil {
		http.Error(w, err.Error(), http.StatusBadRequest)
		return
	}
	answer := &apiextensionsv1.ConversionResponse{UID: review.Request.UID, Result: metav1.Status{Status: metav1.StatusSuccess}}
	for _, o := range review.Request.Objects {
		boat := &unstructured.Unstructured{}
		if err := boat.UnmarshalJSON(o.Raw); err != nil {
			http.Error(w, err.Error(), http.StatusBadRequest)
			return
		}
		boat.SetAPIVersion(review.Request.DesiredAPIVersion)
		answer.ConvertedObjects = append(answer.ConvertedObjects, runtime.RawExtension{Object: boat})
	}
	review.Request, review.Response = nil, answer
	w.Header().Set("Content-Type", "application/json")
	_ = json.NewEncoder(w).Encode(review)
}

// A webhook converts an object of a definition to another version. The second time the result is remembered. A server with the
// extension of package crd calls the webhooks of its definitions by itself.
func Example() {
	hook := httptest.NewTLSServer(http.HandlerFunc(convertBoats))
	defer hook.Close()
	definition := &apiextensionsv1.CustomResourceDefinition{}
	definition.Name, definition.Spec.Group = "boats.example.com", "example.com"
	definition.Spec.Names = apiextensionsv1.CustomResourceDefinitionNames{Plural: "boats", Kind: "Boat"}
	definition.Spec.Conversion = &apiextensionsv1.CustomResourceConversion{
		Strategy: apiextensionsv1.WebhookConverter,
		Webhook: &apiextensionsv1.WebhookConversion{
			ConversionReviewVersions: []string{"v1"},
			ClientConfig: &apiextensionsv1.WebhookClientConfig{
				URL: &hook.URL, CABundle: pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: hook.Certificate().Raw}),
			},
		},
	}

	caller := webhook.New(webhook.Options{})
	defer caller.Close()
	factory := conversion.New(caller, conversion.Options{Hooks: conversion.Hooks{Converted: func(c conversion.Conversion) {
		fmt.Printf("%s to %s: %d sent, %d remembered\n", c.From, c.To, c.Sent, c.Remembered)
	}}})
	defer factory.Close()
	boats, err := factory.Webhook(definition)
	if err != nil {
		fmt.Println(err)
		return
	}
	boat := &unstructured.Unstructured{Object: map[string]any{
		"apiVersion": "example.com/v1", "kind": "Boat",
		"metadata": map[string]any{"name": "dinghy", "namespace": "harbour", "uid": "1"},
	}}
	for range 2 {
		out, err := boats.Convert(context.Background(), []*unstructured.Unstructured{boat}, schema.GroupVersion{Group: "example.com", Version: "v2"})
		if err != nil {
			fmt.Println(err)
			return
		}
		fmt.Println(out[0].GetAPIVersion(), out[0].GetName())
	}
	// Output:
	// v1 to v2: 1 sent, 0 remembered
	// example.com/v2 dinghy
	// v1 to v2: 0 sent, 1 remembered
	// example.com/v2 dinghy
}
