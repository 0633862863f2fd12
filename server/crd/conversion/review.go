package conversion

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	apiextensionsv1beta1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1beta1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/runtime/serializer"
	"k8s.io/apimachinery/pkg/types"
)

// reviewKind is the kind of requests and answers.
const reviewKind = "ConversionReview"

// errNoReview is the error of conversions if this package supports no version of ConversionReview that the webhook accepts.
var errNoReview = errors.New("no supported conversion review versions")

// reviewVersion returns the first of a webhook's versions of ConversionReview that this package supports, or "".
func reviewVersion(knows []string) string {
	for _, v := range knows {
		if v == apiextensionsv1.SchemeGroupVersion.Version || v == apiextensionsv1beta1.SchemeGroupVersion.Version {
			return v
		}
	}
	return ""
}

// maxYAML is the maximum length of an answer in YAML. Decoding YAML takes many times its length.
const maxYAML = 256 << 10

// reviews encodes and decodes ConversionReviews.
type reviews struct{ codec runtime.Decoder }

func newReviews() (*reviews, error) {
	scheme := runtime.NewScheme()
	if err := errors.Join(apiextensionsv1beta1.AddToScheme(scheme), apiextensionsv1.AddToScheme(scheme)); err != nil {
		return nil, err
	}
	known := serializer.NewCodecFactory(scheme)
	return &reviews{known.LegacyCodec(apiextensionsv1.SchemeGroupVersion, apiextensionsv1beta1.SchemeGroupVersion)}, nil
}

// request returns a review in JSON that asks for objects in another version.
func (*reviews) request(version string, uid types.UID, to schema.GroupVersion, objects []*item) []byte {
	size := 512
	for _, o := range objects {
		size += len(o.sent) + 1
	}
	var b bytes.Buffer
	b.Grow(size)
	text := func(s string) {
		quoted, _ := json.Marshal(s) // strings cannot fail
		b.Write(quoted)
	}
	b.WriteString(`{"kind":"` + reviewKind + `","apiVersion":`)
	text(schema.GroupVersion{Group: apiextensionsv1.GroupName, Version: version}.String())
	b.WriteString(`,"request":{"uid":`)
	text(string(uid))
	b.WriteString(`,"desiredAPIVersion":`)
	text(to.String())
	b.WriteString(`,"objects":[`)
	for i, o := range objects {
		if i > 0 {
			b.WriteByte(',')
		}
		b.Write(o.sent)
	}
	b.WriteString(`]},"response":{"uid":"","convertedObjects":null,"result":{"metadata":{}}}}` + "\n")
	return b.Bytes()
}

// unreadError is the error of an answer that cannot be decoded, in contrast to one that is decoded and wrong.
type unreadError struct{ error }

// reportedError is the message with which a conversion webhook refuses to convert. Other errors describe what is wrong with the
// answer.
type reportedError struct{ error }

// crowd returns about how many objects an answer has: the largest number of values in an array of the response.
func crowd(answer []byte) int {
	const inResponse = 3 // the review, the response and the array are open
	depth, n, most := 0, 0, 0
	text, escaped := false, false
	for _, b := range answer {
		switch {
		case escaped:
			escaped = false
		case text:
			escaped, text = b == '\\', b != '"'
		case b == '"':
			text = true
		case b == '{' || b == '[':
			if depth++; depth == inResponse {
				n = 1
			}
		case b == '}' || b == ']':
			if depth == inResponse && b == ']' {
				most = max(most, n)
			}
			depth--
		case b == ',' && depth == inResponse:
			n++
		}
	}
	return most
}

// converted returns the objects in an answer, in JSON. No object is nil, but any may be empty. Only a reportedError certainly has
// the words of a conversion webhook: the answer had the uid of the request or, in v1beta1, a result.
func (r *reviews) converted(version string, uid types.UID, answer []byte) ([]runtime.RawExtension, error) {
	if first := bytes.TrimLeft(answer, " \t\r\n"); len(answer) > maxYAML && (len(first) == 0 || first[0] != '{') {
		return nil, unreadError{errors.New("the answer is not JSON")}
	}
	if version == apiextensionsv1beta1.SchemeGroupVersion.Version {
		review := &apiextensionsv1beta1.ConversionReview{}
		if _, _, err := r.codec.Decode(answer, nil, review); err != nil {
			return nil, unreadError{err}
		}
		if review.Response == nil {
			return nil, errors.New("no response provided")
		}
		err := resultError(review.Response.Result)
		if err != nil && (review.Response.Result.Status != "" || review.Response.Result.Message != "") {
			err = reportedError{err}
		}
		return review.Response.ConvertedObjects, err
	}
	review := &apiextensionsv1.ConversionReview{}
	if _, _, err := r.codec.Decode(answer, nil, review); err != nil {
		return nil, unreadError{err}
	}
	want := apiextensionsv1.SchemeGroupVersion.WithKind(reviewKind)
	if got := review.GroupVersionKind(); got != want {
		return nil, fmt.Errorf("expected webhook response of %v, got %v", want, got)
	}
	if review.Response == nil {
		return nil, errors.New("no response provided")
	}
	if review.Response.UID != uid {
		return nil, fmt.Errorf("expected response.uid=%q, got %q", uid, review.Response.UID)
	}
	if err := resultError(review.Response.Result); err != nil {
		return nil, reportedError{err}
	}
	return review.Response.ConvertedObjects, nil
}

// resultError returns the error that a webhook reports, nil for success.
func resultError(result metav1.Status) error {
	switch {
	case result.Status == metav1.StatusSuccess:
		return nil
	case result.Message != "":
		return errors.New(result.Message)
	}
	return fmt.Errorf("response.result.status was '%s', not 'Success'", result.Status)
}
