package accounts

import (
	"cmp"
	"net/http"
	"strings"

	"github.com/keelson-dev/keelson/authn/serviceaccount"
	"github.com/keelson-dev/keelson/server"
	"github.com/keelson-dev/keelson/server/response"
)

// documents are the two documents by which others verify tokens of this server: https://openid.net/specs/openid-connect-discovery-1_0.html.
type documents struct {
	keys   *serviceaccount.Keys
	issuer string
	uri    string // of the keys; "": below the URL of the server
	host   *server.Host
}

// install serves the documents.
func (d documents) install() error {
	if err := d.host.Handle(serviceaccount.ConfigurationPath, document{"application/json", d.configuration}); err != nil {
		return err
	}
	return d.host.Handle(serviceaccount.KeysPath, document{serviceaccount.KeysMediaType, d.keys.Published})
}

func (d documents) configuration() ([]byte, error) {
	return d.keys.Configuration(d.issuer, cmp.Or(d.uri, strings.TrimSuffix(cmp.Or(d.host.URL(), d.issuer), "/")+serviceaccount.KeysPath))
}

// document is a handler of GET for a document.
type document struct {
	mediaType string
	content   func() ([]byte, error)
}

// ServeHTTP implements http.Handler.
func (d document) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	if !response.Routed(w, r, []string{d.mediaType}) {
		return
	}
	content, err := d.content()
	if err != nil {
		response.Error(w, r, err)
		return
	}
	w.Header().Set("Cache-Control", "public, max-age=3600")
	w.Header().Set("Content-Type", d.mediaType)
	_, _ = w.Write(content) // the only error is that the client has gone
}
