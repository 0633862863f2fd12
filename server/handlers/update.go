package handlers

import (
	"net/http"

	"github.com/keelson-dev/keelson/authz"
	"github.com/keelson-dev/keelson/runtime"
	"github.com/keelson-dev/keelson/runtime/codec"
	"github.com/keelson-dev/keelson/server/handlers/internal/wire"
	"github.com/keelson-dev/keelson/server/registry"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// update answers PUT.
func (c *call) update() error {
	defer c.limit()()
	f, err := c.forms.Negotiate(c.r, wire.OneObject)
	if err != nil {
		return err
	}
	body, err := c.readBody()
	if err != nil {
		return err
	}
	opts, err := updateOptions(c.r.URL.Query())
	if err != nil {
		return err
	}
	format, err := c.bodyFormat()
	if err != nil {
		return err
	}
	c.keepSent()
	obj, err := c.replacement(format, body, opts)
	if err != nil {
		return err
	}
	// The storage may call replace more than once, in rare cases. The registry may have changed the first object, so it is
	// decoded again.
	replace := func(ctx *registry.Call, current runtime.Object) (runtime.Object, error) {
		if current == nil {
			if err := c.mayCreate(ctx); err != nil {
				return nil, err
			}
		}
		out := obj
		if obj = nil; out == nil {
			var err error
			if out, err = c.replacement(format, body, opts); err != nil {
				return nil, err
			}
		}
		if c.unfit != nil {
			return nil, c.unfit
		}
		return out, c.track(current, out, opts.FieldManager)
	}
	return c.withoutFields(func() error { return c.change(replace, opts, f) })
}

// replacement decodes a body into the object, in the hub version, that is to replace the one at the URL.
func (c *call) replacement(format codec.Format, body []byte, opts *metav1.UpdateOptions) (runtime.Object, error) {
	obj, err := c.decode(format, body, fieldValidation(opts.FieldValidation))
	if err != nil {
		return nil, err
	}
	if err := c.matchURL(obj); err != nil {
		return nil, err
	}
	if c.unfit != nil {
		return obj, nil
	}
	if obj, err = c.inHub(c.ctx, obj); err != nil {
		return nil, c.decodeError(err, c.Kind, body)
	}
	return obj, nil
}

// mayCreate checks that the user of an update or apply may create the object, when it does not exist.
func (c *call) mayCreate(ctx *registry.Call) error {
	who := c.decides(ctx)
	if who == nil {
		return nil
	}
	a := ctx.Attributes
	a.Namespace, a.Verb = c.info.Namespace, "create"
	verdict, reason, err := who.Authorize(ctx.Context, a)
	switch {
	case verdict == authz.Allow:
		return nil
	case err != nil:
		return apierrors.NewInternalError(err)
	}
	return authz.Forbidden(a, reason)
}

// decides returns the authorizer of the request's policy, or else that of the resource; nil if there is none.
func (c *call) decides(ctx *registry.Call) authz.Authorizer {
	if p := ctx.Policy; p != nil && p.Authorizer != nil {
		return p.Authorizer
	}
	return c.authorizer
}

// matchURL sets the namespace of an object to that of the URL if the object has none. It returns an error if the namespace or the
// name is not that of the URL.
func (c *call) matchURL(obj runtime.Object) error {
	m, err := accessor(obj)
	if err != nil {
		return err
	}
	if err := c.matchNamespace(m); err != nil {
		return err
	}
	return c.matchName(m)
}

// change calls the storage to make a change, and answers with the result.
func (c *call) change(change registry.ObjectUpdate, opts *metav1.UpdateOptions, f wire.Form) error {
	if err := c.checkPath(); err != nil {
		return err
	}
	var it wire.Item
	var created bool
	var err error
	if c.recordUpdater != nil {
		it.Record, created, err = c.recordUpdater.UpdateRecord(c.ctx, c.name, change, opts)
	} else {
		it.Object, created, err = c.updater.Update(c.ctx, c.name, change, opts)
	}
	if err != nil {
		return err
	}
	c.tellFields()
	code := http.StatusOK
	if created {
		code = http.StatusCreated
	}
	return c.respondOne(code, it, f)
}
