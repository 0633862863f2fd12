package handlers

import (
	"net/http"

	"github.com/keelson-dev/keelson/server/handlers/internal/wire"
	"github.com/keelson-dev/keelson/server/registry"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// get answers GET of one object.
func (c *call) get() error {
	f, err := c.forms.Negotiate(c.r, wire.OneObject)
	if err != nil {
		return err
	}
	opts, err := c.getOptions()
	if err != nil {
		return err
	}
	if err := c.checkPath(); err != nil {
		return err
	}
	it, err := c.fetch(opts)
	if err != nil {
		return err
	}
	if err := c.holdAnswer(it, f); err != nil {
		return err
	}
	return c.respondOne(http.StatusOK, it, f)
}

// getOptions returns the options of the request. Most requests have no options, or only resourceVersion=0.
func (c *call) getOptions() (*metav1.GetOptions, error) {
	switch c.r.URL.RawQuery {
	case "":
		return &metav1.GetOptions{}, nil
	case "resourceVersion=0":
		return &metav1.GetOptions{ResourceVersion: "0"}, nil
	}
	return getOptions(c.r.URL.Query())
}

func (c *call) fetch(opts *metav1.GetOptions) (wire.Item, error) {
	if c.Records == nil {
		obj, err := c.getter.Get(c.ctx, c.name, opts)
		return wire.Item{Object: obj}, err
	}
	at, err := registry.ReadAt(opts.ResourceVersion)
	if err != nil {
		return wire.Item{}, err
	}
	rec, err := c.Records.GetRecord(c.ctx, c.name, at)
	return wire.Item{Record: rec}, err
}
