package filters

import (
	"fmt"
	"net/http"

	"github.com/keelson-dev/keelson/server/response"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// HeaderFields bounds the number of different fields in the header of a request. It answers requests above the bound with 431
// (https://www.rfc-editor.org/rfc/rfc6585#section-5). The bytes of a header, and with them the number of fields of one name, are
// bounded by http.Server.MaxHeaderBytes.
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
