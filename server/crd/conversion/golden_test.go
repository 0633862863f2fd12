package conversion_test

import (
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"hash/crc32"
	"os"
	"reflect"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/keelson-dev/keelson/runtime/webhook"
	"github.com/keelson-dev/keelson/server/crd/conversion"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

const group = "things.w.example.com"

var v1, v2 = schema.GroupVersion{Group: group, Version: "v1"}, schema.GroupVersion{Group: group, Version: "v2"}

// uidOf is the uid of the object of a name.
func uidOf(name string) string {
	return fmt.Sprintf("12345678-1234-1234-1234-1234%08x", crc32.ChecksumIEEE([]byte(name)))
}

// thing is an object as it is after it was created in version v2, with a uid of its own.
func thing(name string) *unstructured.Unstructured {
	return &unstructured.Unstructured{Object: map[string]any{
		"apiVersion": group + "/v2", "kind": "Thing", "spec": map[string]any{"size": int64(3)},
		"metadata": map[string]any{
			"name": name, "namespace": "default", "uid": uidOf(name), "generation": int64(1),
			"creationTimestamp": "2026-01-02T03:04:05Z", "labels": map[string]any{"old": "label"}, "annotations": map[string]any{"old": "one"},
			"managedFields": []any{map[string]any{
				"apiVersion": group + "/v2", "fieldsType": "FieldsV1", "manager": "Go-http-client", "operation": "Update",
				"time": "2026-01-02T03:04:05Z", "fieldsV1": map[string]any{
					"f:metadata": map[string]any{
						"f:annotations": map[string]any{".": map[string]any{}, "f:old": map[string]any{}},
						"f:labels":      map[string]any{".": map[string]any{}, "f:old": map[string]any{}},
					},
					"f:spec": map[string]any{".": map[string]any{}, "f:size": map[string]any{}},
				},
			}},
		},
	}}
}

// newFactory returns a factory that ends with the test.
func newFactory(t testing.TB, w webhook.Options, o conversion.Options) *conversion.Factory {
	t.Helper()
	caller := webhook.New(w)
	f := conversion.New(caller, o)
	t.Cleanup(func() {
		f.Close()
		caller.Close()
	})
	return f
}

// webhookFor returns the webhook of a definition that answers with a lie.
func webhookFor(t testing.TB, f *conversion.Factory, l lie, h *hooks) *conversion.Webhook {
	t.Helper()
	data, err := json.Marshal(definitionFor(l, h, group))
	if err != nil {
		t.Fatal(err)
	}
	crd := &apiextensionsv1.CustomResourceDefinition{}
	if err := json.Unmarshal(data, crd); err != nil {
		t.Fatal(err)
	}
	w, err := f.Webhook(crd)
	if err != nil {
		t.Fatal(err)
	}
	return w
}

// With ShowErrors, clients get the same errors as from kube-apiserver.
func TestGolden(t *testing.T) {
	t.Parallel()
	want, all := readGolden(t), lies()
	h := startHooks(t, all)
	for name := range want {
		if !slices.ContainsFunc(all, func(l lie) bool { return l.name == name }) {
			t.Errorf("nobody tells the lie %s", name)
		}
	}
	for _, l := range all {
		t.Run(l.name, func(t *testing.T) {
			t.Parallel()
			want, ok := want[l.name]
			if !ok {
				t.Fatal("kube-apiserver was not asked")
			}
			options := webhook.Options{FollowRedirects: true, ShowErrors: true}
			switch {
			case strings.Contains(l.name, "hang-amid"):
				options.Timeout = 5 * time.Second // the beginning of an answer must arrive within this time
			case strings.Contains(l.name, "hang"):
				options.Timeout = time.Second
			}
			in := thing("a")
			before := in.DeepCopy()
			out, err := webhookFor(t, newFactory(t, options, conversion.Options{}), l, h).Convert(t.Context(), []*unstructured.Unstructured{in}, v1)
			if !reflect.DeepEqual(in, before) {
				t.Errorf("the object was changed: %v", in)
			}
			if l.name == "object-list" { // kube-apiserver fails later here
				want.Write = clientAnswer{Code: 201, Object: gist(before.Object)}
			}
			got := clientAnswer{Code: 201}
			if err == nil {
				got.Object = gist(out[0].Object)
				got.Object.(map[string]any)["version"] = "v2" // in kube-apiserver it was converted back and forth
			} else {
				var status apierrors.APIStatus
				if !errors.As(err, &status) {
					t.Fatalf("%T: %v", err, err)
				}
				s := status.Status()
				got = clientAnswer{Code: int(s.Code), Reason: string(s.Reason), Message: anonymous(s.Message, group)}
			}
			if a, b := asJSON(t, got), asJSON(t, want.Write); a != b {
				t.Errorf("\n got %s\nwant %s", a, b)
			}
		})
	}
}

// By default clients get the messages of a conversion webhook, and no details of other failures, which are only in the log.
func TestErrorsReportedToClients(t *testing.T) {
	t.Parallel()
	golden, all := readGolden(t), lies()
	h := startHooks(t, all)
	for _, l := range all {
		t.Run(l.name, func(t *testing.T) {
			t.Parallel()
			var options webhook.Options
			if strings.Contains(l.name, "hang") {
				options.Timeout = 3 * time.Second
			}
			logged := make(chan conversion.Call, 1)
			f := newFactory(t, options, conversion.Options{Hooks: conversion.Hooks{Called: func(c conversion.Call) { logged <- c }}})
			_, err := webhookFor(t, f, l, h).Convert(t.Context(), []*unstructured.Unstructured{thing("a")}, v1)
			call := <-logged
			if (err == nil) != (call.Err == nil) || (err == nil) != (call.Failure == "") {
				t.Fatalf("%v, and the log has %v, %s", err, call.Err, call.Failure)
			}
			if err == nil {
				return
			}
			same := golden[l.name].Write.Message
			nothing := fmt.Sprintf("conversion webhook for %s, Kind=Thing failed: Post %q: no usable answer; the log of the server says why",
				v2, strings.ReplaceAll(h.url(l), "%2D", "-")+"?timeout="+cmp.Or(options.Timeout, 30*time.Second).String())
			if path := strings.LastIndex(l.path, "/"); path >= 0 {
				nothing, same = "", "" // the URL is replaced, which is tested elsewhere
			}
			reported := false
			for _, words := range []string{"failure", "status-none", "status-odd", "status-message", "object", "metadata", "label", "annotation"} {
				reported = reported || strings.HasPrefix(l.name, words) && l.name != "objects-object" // which cannot be decoded
			}
			got := err.Error()
			switch {
			case reported && anonymous(got, group) != same:
				t.Errorf("clients are told\n%s\nwant\n%s", anonymous(got, group), same)
			case !reported && got != nothing && nothing != "":
				t.Errorf("clients are told\n%s\nwant\n%s", got, nothing)
			case !strings.HasPrefix(l.name, "redirect") && !strings.Contains(same, anonymous(call.Err.Error(), group)) && same != "":
				t.Errorf("the log has\n%s\nwant it to be in\n%s", call.Err, same)
			}
		})
	}
}

func asJSON(t testing.TB, value any) string {
	t.Helper()
	data, err := json.Marshal(value)
	if err != nil {
		t.Fatal(err)
	}
	return string(data)
}

// The requests of this server and of kube-apiserver are equal.
func TestGoldenRequest(t *testing.T) {
	t.Parallel()
	l := lies()[0]
	h := startHooks(t, lies())
	if _, err := webhookFor(t, newFactory(t, webhook.Options{}, conversion.Options{}), l, h).Convert(t.Context(), []*unstructured.Unstructured{thing("a")}, v1); err != nil {
		t.Fatal(err)
	}
	data, err := os.ReadFile(requestFile)
	if err != nil {
		t.Fatal(err)
	}
	var want seen
	if err := json.Unmarshal(data, &want); err != nil {
		t.Fatal(err)
	}
	if got := requestSeen(t, h); !reflect.DeepEqual(got, want) {
		t.Errorf("\n got %+v\nwant %+v", got, want)
	}
}
