package codec_test

import (
	"net/http"
	"strings"
	"testing"

	"github.com/keelson-dev/keelson/runtime/codec"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

func formats() []codec.Format { return []codec.Format{codec.JSON(), codec.YAML()} }

// tables allows the forms of a stored resource.
func tables(gvk schema.GroupVersionKind, mediaType string) bool {
	return gvk.Group == "meta.k8s.io" && (gvk.Version == "v1" || gvk.Version == "v1beta1") && (gvk.Kind == "Table" || gvk.Kind == "PartialObjectMetadata")
}

func TestNegotiateResponse(t *testing.T) {
	const kubectl = "application/json;as=Table;v=v1;g=meta.k8s.io,application/json;as=Table;v=v1beta1;g=meta.k8s.io,application/json"
	both, stream, plain := codec.Limits{As: tables}, codec.Limits{As: tables, Stream: true}, codec.Limits{}
	for _, c := range []struct {
		accept string
		limits codec.Limits
		want   string // media type, form, pretty; "" means a 406
	}{
		{"", both, "application/json"},
		{"", stream, "application/json"},
		{"application/json", both, "application/json"},
		{"application/yaml", both, "application/yaml"},
		{"*/*", both, "application/json"},
		{"*", both, "application/json"},
		{"application/*", both, "application/json"},
		{"text/*", both, ""},
		{"text/html", both, ""},
		{"text/html, */*;q=0.1", both, "application/json"},
		{"text/html,application/xhtml+xml,application/xml;q=0.9,*/*;q=0.8", both, "application/json"},
		{"application/json;q=0.5, application/yaml", both, "application/yaml"},
		{"application/json;q=0.5, application/yaml;q=0.4", both, "application/json"},
		{"*/*, application/yaml", both, "application/yaml"},
		{"application/vnd.kubernetes.protobuf, application/json", both, "application/json"},
		{"application/vnd.kubernetes.protobuf", both, ""},
		{"application/cbor", both, ""},
		{"application/json;charset=utf-8", both, "application/json"},
		{"application/json;profile=x;export=1;sv=v1;unknown", both, "application/json"},
		{"application/json;sv=v2", both, ""},
		{"application/json;pretty=1", both, "application/json pretty"},
		{"application/json;pretty=0", both, "application/json"},
		{kubectl, both, "application/json meta.k8s.io/v1, Kind=Table"},
		{kubectl, plain, "application/json"},
		{kubectl, stream, "application/json meta.k8s.io/v1, Kind=Table"},
		{"application/yaml;as=Table;v=v1;g=meta.k8s.io", both, "application/yaml meta.k8s.io/v1, Kind=Table"},
		{"application/json;g=meta.k8s.io;v=v1;as=Other,application/yaml", both, "application/yaml"},
		{"application/json;as=Table;g=meta.k8s.io;v=v2", both, ""},
		{"application/json;g=meta.k8s.io", both, ""},
		{"application/json;as=PartialObjectMetadata;g=meta.k8s.io;v=v1", both, "application/json meta.k8s.io/v1, Kind=PartialObjectMetadata"},
		{"application/json;stream=watch", both, "application/json"},
		{"application/json;stream=watch", stream, "application/json"},
		{"application/json;stream=other", stream, ""},
		{"application/yaml;stream=watch", both, ""},
		{"application/yaml", stream, ""},
		{"application/yaml;q=0.5, application/json", stream, "application/json"},
		{"application/vnd.kubernetes.protobuf;stream=watch,application/json;stream=watch", stream, "application/json"},
		{";;;,,,=/=/", both, ""},
		{"json", both, ""},
	} {
		got := ""
		if a, ok := codec.NegotiateResponse(c.accept, formats(), c.limits); ok {
			got = a.Format.MediaType()
			if !a.As.Empty() {
				got += " " + a.As.String()
			}
			if a.Pretty {
				got += " pretty"
			}
		}
		if got != c.want {
			t.Errorf("Accept: %s (stream %v) gives %q, want %q", c.accept, c.limits.Stream, got, c.want)
		}
	}
}

func TestNegotiateBody(t *testing.T) {
	for contentType, want := range map[string]string{
		"": "application/json", "application/json": "application/json", "application/json; charset=utf-8": "application/json", "Application/YAML": "application/yaml",
		"text/plain": "", "application/vnd.kubernetes.protobuf": "", "application/json, application/yaml": "", "application/*": "", "application/json;=": "", "*/*": "", ";": "",
	} {
		got := ""
		if f, ok := codec.NegotiateBody(contentType, formats()); ok {
			got = f.MediaType()
		}
		if got != want {
			t.Errorf("Content-Type: %s gives %q, want %q", contentType, got, want)
		}
	}
}

func TestNegotiationErrors(t *testing.T) {
	for _, c := range []struct {
		err     error
		code    int32
		reason  metav1.StatusReason
		message string
	}{
		{codec.NotAcceptable(formats(), false), http.StatusNotAcceptable, metav1.StatusReasonNotAcceptable,
			"only the following media types are accepted: application/json, application/yaml"},
		{codec.NotAcceptable(formats(), true), http.StatusNotAcceptable, metav1.StatusReasonNotAcceptable,
			"only the following media types are accepted: application/json;stream=watch"},
		{codec.UnsupportedMediaType(codec.MediaTypes(formats())), http.StatusUnsupportedMediaType, metav1.StatusReasonUnsupportedMediaType,
			"the body of the request was in an unknown format - accepted media types include: application/json, application/yaml"},
	} {
		status, ok := c.err.(apierrors.APIStatus)
		if !ok {
			t.Fatalf("%T is no status", c.err)
		}
		want := metav1.Status{Status: "Failure", Code: c.code, Reason: c.reason, Message: c.message}
		if got := status.Status(); got.String() != want.String() || c.err.Error() != c.message {
			t.Errorf("%v, want %v", got, want)
		}
	}
}

func FuzzNegotiate(f *testing.F) {
	for _, accept := range []string{"", "*/*;q=0.1,text/html", "application/json;as=Table;v=v1;g=meta.k8s.io", "application/yaml;stream=watch;q=x", "a/b/c;=;=;q=NaN", strings.Repeat("*/*;q=0.1,a,", 40)} {
		f.Add(accept, true)
	}
	f.Fuzz(func(t *testing.T, accept string, stream bool) {
		codec.NegotiateBody(accept, formats())
		a, ok := codec.NegotiateResponse(accept, formats(), codec.Limits{As: tables, Stream: stream})
		switch {
		case !ok && a != (codec.Accept{}), ok && a.Format == nil:
			t.Fatalf("%q gives %+v, %v", accept, a, ok)
		case ok && stream && !a.Format.Streams():
			t.Fatalf("%q streams %s", accept, a.Format.MediaType())
		case ok && !a.As.Empty() && !tables(a.As, a.Format.MediaType()):
			t.Fatalf("%q gives %v", accept, a.As)
		}
	})
}
