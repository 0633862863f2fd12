package codec

import (
	"fmt"
	"mime"
	"net/http"
	"strings"

	"github.com/munnerz/goautoneg"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

// Accept is what a client and a resource agreed on for a response.
type Accept struct {
	Format Format
	Pretty bool                    // the client asked for pretty=1
	As     schema.GroupVersionKind // the form asked for, such as meta.k8s.io/v1 Table; zero: the kind's own
}

// Limits says what a response can be. The zero Limits allows the kind's own form only, as a single response.
type Limits struct {
	// As tells whether the response can be given in another form. nil: in none.
	As func(gvk schema.GroupVersionKind, mediaType string) bool
	// Own tells whether the response can be given in the kind's own form in a media type. nil: in all.
	Own func(mediaType string) bool
	// Stream asks for a format that can be streamed.
	Stream bool
}

// NegotiateResponse chooses among formats, best first, by an Accept header: the first clause, in the order of
// their q-values and precision, whose parameters can be honoured. An absent header accepts the first format. A
// stream is refused when what was chosen cannot be streamed. false is answered with NotAcceptable.
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

// acceptParams reads the parameters of a clause; false says that one of them cannot be honoured.
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

// NegotiateBody returns the format of a request body by its Content-Type; an absent one is the first format.
// Parameters are ignored. false is answered with UnsupportedMediaType.
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

// StreamTypes returns the media types of watches in those of formats that stream, in their order.
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

// NotAcceptable returns the 406 that names the formats which are served; for a stream, those that stream.
func NotAcceptable(formats []Format, stream bool) error {
	types := MediaTypes(formats)
	if stream {
		types = StreamTypes(formats)
	}
	return statusError(http.StatusNotAcceptable, metav1.StatusReasonNotAcceptable,
		fmt.Sprintf("only the following media types are accepted: %s", strings.Join(types, ", ")))
}

// UnsupportedMediaType returns the 415 that names the accepted media types of a body.
func UnsupportedMediaType(accepted []string) error {
	return statusError(http.StatusUnsupportedMediaType, metav1.StatusReasonUnsupportedMediaType,
		fmt.Sprintf("the body of the request was in an unknown format - accepted media types include: %s", strings.Join(accepted, ", ")))
}

func statusError(code int32, reason metav1.StatusReason, message string) error {
	return &apierrors.StatusError{ErrStatus: metav1.Status{Status: metav1.StatusFailure, Code: code, Reason: reason, Message: message}}
}
