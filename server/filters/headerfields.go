package filters

import (
	"fmt"
	"net/http"

	"github.com/keelson-dev/keelson/server/response"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// HeaderFields bounds the number of different fields that the header of a request has, and answers those beyond with 431
// (https://www.rfc-editor.org/rfc/rfc6585#section-5). How many bytes a header has is for http.Server.MaxHeaderBytes, which
// bounds the fields of one name, too.
func HeaderFields(most int) Filter {
	return steps(func(p *passage, _ http.Handler) bool {
		if len(p.r.Header) <= most {
			return true
		}
		response.Error(p.w, p.r, &apierrors.StatusError{ErrStatus: metav1.Status{
			Status: metav1.StatusFailure, Code: http.StatusRequestHeaderFieldsTooLarge,
			Message: fmt.Sprintf("the request has %d header fields: limit is %d", len(p.r.Header), most),
		}})
		return false
	})
}
