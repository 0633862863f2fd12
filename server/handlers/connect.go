package handlers

import (
	"fmt"
	"strings"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
)

// connect calls the handler that the connecter returns for the request.
func (c *call) connect() {
	if len(c.r.URL.Query()["dryRun"]) > 0 {
		c.fail(apierrors.NewBadRequest("dryRun is not supported"))
		return
	}
	if err := c.checkPath(); err != nil {
		c.fail(err)
		return
	}
	h, err := c.connecter.Connect(c.ctx, c.name, c.subpath(), c.r)
	if err != nil {
		c.fail(err)
		return
	}
	if h == nil {
		c.fail(fmt.Errorf("the storage of %s returned neither a handler nor an error", c.Path))
		return
	}
	h.ServeHTTP(c.w, c.r)
}

// subpath returns the path after the subresource, with its leading slash and, if it has one, its trailing slash.
func (c *call) subpath() string {
	var b strings.Builder
	if len(c.info.Parts) > 3 {
		for _, part := range c.info.Parts[3:] {
			b.WriteString("/" + part)
		}
	}
	if strings.HasSuffix(c.info.Path, "/") {
		b.WriteByte('/')
	}
	return b.String()
}
