package filters

import (
	"context"
	"errors"
	"net/http"
	"net/url"
	"time"

	"github.com/keelson-dev/keelson/authz"
	"github.com/keelson-dev/keelson/server/request"
	"github.com/keelson-dev/keelson/server/response"
	"go.uber.org/zap"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// Log writes a line for each answer with a code of 500 or more, and no line for any other. It also writes no line if the client
// has closed the connection, or has asked for a resourceVersion that is not there yet, which is answered with 504, and none for a
// panic, which [Recover] logs. The line has the error, method, URI, code, duration, audit ID and user agent. A long text is cut to
// its first KiB, and the URI has no value of a parameter that the API does not have. A nil log writes nothing.
func Log(log *zap.Logger) Filter {
	if log == nil {
		return func(next http.Handler) http.Handler { return next }
	}
	return func(next http.Handler) http.Handler { return &logged{log, next} }
}

type logged struct {
	log  *zap.Logger
	next http.Handler
}

// ServeHTTP implements http.Handler.
func (l *logged) ServeHTTP(w http.ResponseWriter, r *http.Request) { l.serve(begin(w, r)) }

func (l *logged) serve(p *passage) {
	rw := p.watch()
	start := time.Now()
	ctx, method, url, header := p.r.Context(), p.r.Method, p.r.URL, p.r.Header
	p.to(l.next)
	if seen := rw.seen(); seen.code >= 500 && !errors.Is(ctx.Err(), context.Canceled) && !ofClient(seen.cause) {
		l.failure(ctx, method, url, header, seen.code, seen.cause, time.Since(start))
	}
}

// ofClient reports whether the client is to blame for an answer with a code of 500 or more.
func ofClient(cause error) bool {
	return cause != nil && apierrors.HasStatusCause(&apierrors.StatusError{ErrStatus: response.Status(cause)}, metav1.CauseTypeResourceVersionTooLarge)
}

// failure is a separate function, so that the fields of the line take no space on the stack of every request.
func (l *logged) failure(ctx context.Context, method string, url *url.URL, header http.Header, code int, cause error, took time.Duration) {
	why := zap.Skip()
	if cause != nil {
		why = zap.String("error", authz.Shorten(cause.Error()))
	}
	l.log.Error("a request failed", why, zap.String("method", authz.Shorten(method)), zap.String("uri", authz.Shorten(shownURI(url))), zap.Int("code", code),
		zap.Duration("duration", took), zap.String("auditID", request.AuditIDFrom(ctx)), zap.String("userAgent", authz.Shorten(header.Get("User-Agent"))))
}
