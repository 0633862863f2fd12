package openapi

import (
	"bytes"
	"net/http"
	"net/url"
	"strconv"
	"strings"
	"time"

	"github.com/munnerz/goautoneg"
	apierrors "k8s.io/apimachinery/pkg/api/errors"

	"github.com/keelson-dev/keelson/server/request"
	"github.com/keelson-dev/keelson/server/response"
)

const (
	mediaTypeJSON       = "application/json"
	mediaTypeV2Protobuf = "application/com.github.proto-openapi.spec.v2.v1.0+protobuf"
	mediaTypeV3Protobuf = "application/com.github.proto-openapi.spec.v3.v1.0+protobuf"
)

// ServeHTTP answers requests for /openapi/v2, /openapi/v3 and the documents below it; any other path is 404. The method of a request
// makes no difference, as in kube-apiserver.
func (s *Service) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	st := s.state.Load()
	switch path := strings.TrimSuffix(r.URL.Path, "/"); path {
	case "/openapi/v2":
		s.serveDocument(w, r, st.v2(), mediaTypeV2Protobuf)
	case "/openapi/v3":
		s.serveIndex(w, r, st.index())
	default:
		key, ok := strings.CutPrefix(path, "/openapi/v3/")
		d := st.documents[key]
		if !ok || d == nil {
			switch {
			case s.opts.NotFound != nil && s.opts.NotFound(w, r):
			case ok:
				response.Refuse(w, r, http.StatusNotFound) // kube-openapi answers without a body
			default:
				http.NotFound(w, r)
			}
			return
		}
		s.serveV3(w, r, d.get())
	}
}

func (s *Service) serveIndex(w http.ResponseWriter, r *http.Request, e *encoded) {
	if e.err != nil {
		response.Error(w, r, apierrors.NewInternalError(e.err))
		return
	}
	s.write(w, r, e, e.json, mediaTypeJSON)
}

// serveV3 answers with a document. The address with the right hash never changes. A wrong hash is redirected to it, by a relative
// reference: this one stays right where a router or a proxy serves the path of the document below a prefix. The Location of
// kube-apiserver begins with /openapi/v3 (kube-openapi, pkg/handler3), and leads out of such a prefix.
func (s *Service) serveV3(w http.ResponseWriter, r *http.Request, e *encoded) {
	if hash := r.URL.Query().Get("hash"); hash != "" && e.err == nil {
		if hash != e.hash {
			w.Header().Set("Vary", "Accept")
			w.Header().Set("Etag", strconv.Quote(e.hash))
			w.Header().Set("Location", "?"+query(e.hash))
			w.WriteHeader(http.StatusMovedPermanently)
			return
		}
		w.Header().Set("Cache-Control", "public, immutable")
		w.Header().Set("Expires", time.Now().AddDate(1, 0, 0).UTC().Format(http.TimeFormat))
	}
	s.serveDocument(w, r, e, mediaTypeV3Protobuf)
}

// serveDocument answers with a document as JSON or protobuf.
func (s *Service) serveDocument(w http.ResponseWriter, r *http.Request, e *encoded, protobuf string) {
	w.Header().Set("Vary", "Accept")
	mediaType, ok := negotiate(r, protobuf)
	switch {
	case e.err != nil:
		response.Error(w, r, apierrors.NewInternalError(e.err))
	case !ok:
		w.Header().Del("Cache-Control")
		w.Header().Del("Expires")
		response.Refuse(w, r, http.StatusNotAcceptable)
	case mediaType == protobuf:
		s.write(w, r, e, e.protobuf, mediaType)
	default:
		s.write(w, r, e, e.json, mediaType)
	}
}

// write answers with one form of a document, compressed if the client accepts that. http.ServeContent handles If-None-Match, HEAD
// and ranges.
func (s *Service) write(w http.ResponseWriter, r *http.Request, e *encoded, p packed, mediaType string) {
	text := p.gzip
	w.Header().Add("Vary", "Accept-Encoding")
	if request.AcceptsGzip(r) {
		w.Header().Set("Content-Encoding", "gzip")
		w.Header().Set("Content-Length", strconv.Itoa(len(text)))
		r = r.Clone(r.Context())
		r.Header.Del("Range") // all forms have the same ETag, so ranges of different forms could be mixed
		// These would be answered with 412 and no body, but with this Content-Length. They are for writes and for ranges.
		r.Header.Del("If-Match")
		r.Header.Del("If-Unmodified-Since")
	} else {
		var err error
		if text, err = p.text(); err != nil {
			response.Error(w, r, apierrors.NewInternalError(err))
			return
		}
	}
	w.Header().Set("Content-Type", mediaType)
	w.Header().Set("Etag", strconv.Quote(e.hash))
	if r.Method != http.MethodGet && r.Method != http.MethodHead { // conditions and ranges are for reads
		r = &http.Request{Method: http.MethodGet}
	}
	http.ServeContent(w, r, "", e.modified, bytes.NewReader(text))
}

// negotiate selects JSON or protobuf by the Accept header. The old spelling of the protobuf type has an @ before its version.
func negotiate(r *http.Request, protobuf string) (string, bool) {
	accept := strings.Join(r.Header.Values("Accept"), ",")
	if accept == "" {
		return mediaTypeJSON, true
	}
	old := strings.Replace(protobuf, ".v1.0", "@v1.0", 1)
	for _, clause := range goautoneg.ParseAccept(accept) {
		for _, offer := range [][2]string{{mediaTypeJSON, mediaTypeJSON}, {protobuf, protobuf}, {old, protobuf}} {
			kind, subtype, _ := strings.Cut(offer[0], "/")
			if (clause.Type == kind || clause.Type == "*") && (clause.SubType == subtype || clause.SubType == "*") {
				return offer[1], true
			}
		}
	}
	return "", false
}

// address returns the address of a document, with its hash if it has one. Clients take it relative to the URL of the server, which
// may have a path (client-go, openapi/client.go, and https://issue.k8s.io/117463).
func address(key, hash string) string {
	u := url.URL{Path: "/openapi/v3/" + key}
	if hash != "" {
		u.RawQuery = query(hash)
	}
	return u.String()
}

// query returns the query of an address with a hash.
func query(hash string) string { return url.Values{"hash": {hash}}.Encode() }
