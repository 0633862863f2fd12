package handlers

import (
	"net/http"

	"github.com/keelson-dev/keelson/server/registry"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// get answers GET of one object.
func (c *call) get() error {
	f, err := c.negotiate(oneObject)
	if err != nil {
		return err
	}
	opts, err := getOptions(c.r.URL.Query())
	if err != nil {
		return err
	}
	it, err := c.fetch(opts)
	if err != nil {
		return err
	}
	return c.respondOne(http.StatusOK, it, f)
}

func (c *call) fetch(opts *metav1.GetOptions) (item, error) {
	if c.records == nil {
		obj, err := c.getter.Get(c.ctx, c.name, opts)
		return item{obj: obj}, err
	}
	at, err := registry.ReadAt(opts.ResourceVersion)
	if err != nil {
		return item{}, err
	}
	rec, err := c.records.GetRecord(c.ctx, c.name, at)
	return item{rec: rec}, err
}
