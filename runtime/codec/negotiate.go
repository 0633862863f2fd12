package codec

import (
	"fmt"
	"mime"
	"net/http"
	"slices"
	"strings"

	"github.com/munnerz/goautoneg"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

// Accept is the result of content negotiation for a response.
type Accept struct {
	Format Format                  // the format of the response
	Pretty bool                    // the client asked for pretty=1
	As     schema.GroupVersionKind // the requested form, such as meta.k8s.io/v1 Table; zero: the kind's own
}

// Limits describes the responses that a resource can give. The zero Limits allows only the kind's own form, as a single response.
type Limits struct {
	// As reports whether the response can be given in another form. nil allows no other form.
	As func(gvk schema.GroupVersionKind, mediaType string) bool
	// Own reports whether the response can be given in the kind's own form in a media type. nil allows every media type.
	Own func(mediaType string) bool
	// Stream requires a format that can be streamed.
	Stream bool
}

// NegotiateResponse selects one of formats, which are in order of preference, by an Accept header. It takes the first clause, in
// the order of q-values and precision, whose parameters are supported. Without a header it takes the first format. The result is
// false if no clause fits, or if l.Stream is set and the selected format cannot be streamed. Then answer the request with
// NotAcceptable.
func NegotiateResponse(accept string, formats []Format, l Limits) (Accept, bool) {
	chosen, ok := negotiate(accept, formats, l)
	if !ok || l.Stream && !chosen.Format.Streams() {
		return Accept{}, false
	}
	return chosen, true
}

func negotiate(accept string, formats []Format, l Limits) (Accept, bool) {
	if accept == "" {
		return Accept{Format: formats[0]}, true
	}
	for _, clause := range goautoneg.ParseAccept(accept) {
		for _, f := range formats {
			kind, subtype, _ := strings.Cut(f.MediaType(), "/")
			switch {
			case clause.Type == "*" && clause.SubType == "*":
			case clause.Type == kind && (clause.SubType == subtype || clause.SubType == "*"):
			default:
				continue
			}
			if a, ok := acceptParams(clause.Params, f, l); ok {
				return a, true
			}
		}
	}
	return Accept{}, false
}

// acceptParams reads the parameters of a clause. It returns false if one of them is not supported.
func acceptParams(params map[string]string, f Format, l Limits) (Accept, bool) {
	a := Accept{Format: f}
	transform := false
	for name, value := range params {
		switch name {
		case "as":
			a.As.Kind, transform = value, true
		case "g":
			a.As.Group, transform = value, true
		case "v":
			a.As.Version, transform = value, true
		case "stream":
			if value != "" && (value != "watch" || !f.Streams()) {
				return Accept{}, false
			}
		case "sv":
			if value != "" && value != "v1" {
				return Accept{}, false
			}
		case "pretty":
			a.Pretty = value == "1"
		}
	}
	switch {
	case transform && (l.As == nil || !l.As(a.As, f.MediaType())), !transform && l.Own != nil && !l.Own(f.MediaType()):
		return Accept{}, false
	}
	return a, true
}

// NegotiateBody returns the format of a request body by its Content-Type; without one it is the first format. Parameters are
// ignored. If the result is false, answer the request with UnsupportedMediaType.
func NegotiateBody(contentType string, formats []Format) (Format, bool) {
	if contentType == "" {
		return formats[0], true
	}
	mediaType, _, err := mime.ParseMediaType(contentType)
	if err != nil {
		return nil, false
	}
	for _, f := range formats {
		if f.MediaType() == mediaType {
			return f, true
		}
	}
	return nil, false
}

// MediaTypes returns the media types of formats, in their order.
func MediaTypes(formats []Format) []string {
	types := make([]string, len(formats))
	for i, f := range formats {
		types[i] = f.MediaType()
	}
	return types
}

// StreamTypes returns the media types of watches for those formats that can be streamed, in their order.
func StreamTypes(formats []Format) []string {
	var types []string
	for _, f := range formats {
		switch {
		case !f.Streams():
		case IsCBOR(f):
			types = append(types, CBORSequence)
		default:
			types = append(types, f.MediaType()+";stream=watch")
		}
	}
	return types
}

// NotAcceptable returns the error with code 406 that lists the served formats; for a stream, those that can be streamed.
func NotAcceptable(formats []Format, stream bool) error {
	types := MediaTypes(formats)
	if stream {
		types = StreamTypes(formats)
	}
	return statusError(http.StatusNotAcceptable, metav1.StatusReasonNotAcceptable,
		fmt.Sprintf("only the following media types are accepted: %s", strings.Join(types, ", ")))
}

// Names reports whether an Accept header names */* or one of types, with whatever parameters. A range such as application/* does not
// count. kube-apiserver requires that of requests for kinds with a Go type and for discovery, before it negotiates. If the result is
// false, answer the request with Unnamed.
func Names(accept string, types []string) bool {
	if accept == "" {
		return true
	}
	for clause := range strings.SplitSeq(accept, ",") {
		name, _, _ := strings.Cut(clause, ";")
		name = strings.TrimSpace(name)
		if name == "*/*" || slices.Contains(types, name) {
			return true
		}
	}
	return false
}

// Unnamed returns the error with code 406 for a request whose Accept header names none of types.
func Unnamed(types []string) error {
	return apierrors.NewGenericServerResponse(http.StatusNotAcceptable, "", schema.GroupResource{}, "",
		"406: Not Acceptable\n\nAvailable representations: "+strings.Join(types, ", "), 0, false)
}

// UnsupportedMediaType returns the error with code 415 that lists the accepted media types of a body.
func UnsupportedMediaType(accepted []string) error {
	return statusError(http.StatusUnsupportedMediaType, metav1.StatusReasonUnsupportedMediaType,
		fmt.Sprintf("the body of the request was in an unknown format - accepted media types include: %s", strings.Join(accepted, ", ")))
}

func statusError(code int32, reason metav1.StatusReason, message string) error {
	return &apierrors.StatusError{ErrStatus: metav1.Status{Status: metav1.StatusFailure, Code: code, Reason: reason, Message: message}}
}
