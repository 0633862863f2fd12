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
	opts, err := c.getOptions()
	if err != nil {
		return err
	}
	it, err := c.fetch(opts)
	if err != nil {
		return err
	}
	return c.respondOne(http.StatusOK, it, f)
}

// getOptions are those of the request. Most have none, or the one that asks for what is in memory.
func (c *call) getOptions() (*metav1.GetOptions, error) {
	switch c.r.URL.RawQuery {
	case "":
		return &metav1.GetOptions{}, nil
	case "resourceVersion=0":
		return &metav1.GetOptions{ResourceVersion: "0"}, nil
	}
	return getOptions(c.r.URL.Query())
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
