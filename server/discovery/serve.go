package discovery

import (
	"net"
	"net/http"
	"slices"
	"strings"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/keelson-dev/keelson/runtime/codec"
	"github.com/keelson-dev/keelson/server/audit"
	"github.com/keelson-dev/keelson/server/request"
	"github.com/keelson-dev/keelson/server/response"
)

// ServeHTTP answers requests for /api, /apis and the roots of groups and versions; any other path is 404. As in kube-apiserver, /api
// and the versions with kinds that have Go types are only for GET, and the method makes no difference for the other paths.
func (s *Service) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	st, path := s.state.Load(), strings.TrimSuffix(r.URL.Path, "/")
	root := path == "/apis" || path == "/api" && st.versions != nil
	doc, found := st.legacy[path]
	if path == "/api" && root {
		doc, found = once(func() []byte { return encode(s.apiVersions(st, r)) }), true
		doc.routed = true
	}
	if !found {
		if s.opts.NotFound == nil || !s.opts.NotFound(w, r) {
			response.Refuse(w, r, http.StatusNotFound)
		}
		return
	}
	if doc.routed && !response.Routed(w, r, codec.MediaTypes(s.formats)) {
		return
	}
	w.Header().Add("Vary", "Accept")
	accept, ok := negotiate(r, s.formats, root)
	if !ok {
		response.Error(w, r, codec.NotAcceptable(s.formats, false))
		return
	}
	if accept.As.Empty() {
		s.write(w, r, doc, accept, accept.Format.MediaType())
		return
	}
	doc = st.named
	if path == "/api" {
		doc = st.core
	}
	_, etag := doc.json()
	w.Header().Set("ETag", etag)
	w.Header().Set("Cache-Control", "public")
	if matches(r.Header.Values("If-None-Match"), etag) {
		w.WriteHeader(http.StatusNotModified)
		return
	}
	as := accept.As
	s.write(w, r, doc, accept, accept.Format.MediaType()+";g="+as.Group+";v="+as.Version+";as="+as.Kind)
}

// IsAggregated reports whether a server that serves CBOR would answer the request with an aggregated document: that of /api or of
// /apis.
func IsAggregated(r *http.Request) bool {
	path := strings.TrimSuffix(r.URL.Path, "/")
	if r.Method != http.MethodGet || path != "/api" && path != "/apis" {
		return false
	}
	accept, ok := negotiate(r, formats(Options{CBOR: true}), true)
	return ok && !accept.As.Empty()
}

func formats(o Options) []codec.Format {
	all := []codec.Format{codec.JSON(), codec.YAML(), codec.Protobuf()}
	if o.CBOR {
		all = append(all, codec.CBOR())
	}
	return all
}

// negotiate evaluates the Accept header. aggregated is true if the path has an aggregated form.
func negotiate(r *http.Request, among []codec.Format, aggregated bool) (codec.Accept, bool) {
	limits := codec.Limits{As: func(gvk schema.GroupVersionKind, _ string) bool {
		return aggregated && gvk == aggregatedKind()
	}}
	return codec.NegotiateResponse(strings.Join(r.Header.Values("Accept"), ","), among, limits)
}

func (s *Service) write(w http.ResponseWriter, r *http.Request, doc *document, accept codec.Accept, contentType string) {
	var body []byte
	var err error
	if _, is := accept.Format.(*codec.ProtobufFormat); is {
		body, err = doc.protobuf()
	} else {
		value, _ := doc.json()
		body, err = accept.Format.FromJSON(value, request.Pretty(r, accept.Pretty))
	}
	if err != nil {
		response.Error(w, r, apierrors.NewInternalError(err))
		return
	}
	if rec := request.RecordingFrom(r.Context()); rec.Wants(audit.RequestResponse) {
		value, _ := doc.json()
		rec.Response(value)
	}
	w.Header().Set("Content-Type", contentType)
	_, _ = w.Write(body) // the only error is that the client has gone
}

// apiVersions returns the document of /api, the only document that depends on the request: it has the address of the server.
func (s *Service) apiVersions(st *state, r *http.Request) *metav1.APIVersions {
	address := s.opts.ServerAddress
	if address == "" {
		address = r.Host
		if local, ok := r.Context().Value(http.LocalAddrContextKey).(net.Addr); ok && address == "" {
			address = local.String()
		}
	}
	return &metav1.APIVersions{
		TypeMeta:                   metav1.TypeMeta{Kind: "APIVersions"},
		Versions:                   slices.Clone(st.versions),
		ServerAddressByClientCIDRs: []metav1.ServerAddressByClientCIDR{{ClientCIDR: "0.0.0.0/0", ServerAddress: address}},
	}
}

// matches reports whether an If-None-Match header has etag, by the weak comparison of RFC 9110 section 13.1.2.
func matches(header []string, etag string) bool {
	for _, value := range strings.Split(strings.Join(header, ","), ",") {
		value = strings.TrimSpace(value)
		if value == "*" || strings.TrimPrefix(value, "W/") == etag {
			return true
		}
	}
	return false
}
