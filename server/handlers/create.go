package handlers

import (
	"context"
	"net/http"
	"time"

	"github.com/keelson-dev/keelson/runtime"
	"github.com/keelson-dev/keelson/server/handlers/internal/wire"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// changeTime limits the time of one create, update, patch or delete. A request's own deadline may be earlier.
const changeTime = 34 * time.Second

// limit gives the call the deadline of a write. The returned function releases the context.
func (c *call) limit() context.CancelFunc {
	ctx, cancel := context.WithTimeout(c.ctx.Context, changeTime)
	c.ctx.Context, c.r = ctx, c.r.WithContext(ctx)
	return cancel
}

// create answers POST.
func (c *call) create() error {
	defer c.limit()()
	f, err := c.forms.Negotiate(c.r, wire.OneObject)
	if err != nil {
		return err
	}
	format, err := c.bodyFormat()
	if err != nil {
		return err
	}
	body, err := c.readBody()
	if err != nil {
		return err
	}
	opts, err := createOptions(c.r.URL.Query())
	if err != nil {
		return err
	}
	c.keepSent()
	if err := c.checkPath(); err != nil {
		return err
	}
	obj, err := c.decode(format, body, fieldValidation(opts.FieldValidation))
	if err != nil {
		return err
	}
	if err := c.prepareNew(obj); err != nil {
		return err
	}
	if c.unfit != nil { // kube-apiserver generates the name of the object first, for the message
		return c.unfit
	}
	if obj, err = c.inHub(c.ctx, obj); err != nil {
		return c.decodeError(err, c.Kind, body)
	}
	if err := c.track(nil, obj, opts.FieldManager); err != nil {
		return err
	}
	it, err := c.insert(obj, opts)
	if err != nil {
		return err
	}
	c.tellFields()
	return c.respondOne(http.StatusCreated, it, f)
}

// keepSent makes the call keep the objects that the request sends, for admission, if other versions may have other fields.
func (c *call) keepSent() {
	if c.differs() {
		c.ctx.KeepsSent()
	}
	if hub, ok := c.scheme.Hub(c.Kind.GroupKind()); ok && hub != c.Kind {
		c.ctx.KeepsForms()
	}
}

// prepareNew clears the fields of a new object that only the server sets, and sets its namespace and name to those of the URL.
func (c *call) prepareNew(obj runtime.Object) error {
	m, err := accessor(obj)
	if err != nil {
		return err
	}
	m.SetCreationTimestamp(metav1.Time{})
	if !c.identifying {
		m.SetUID("")
	}
	m.SetDeletionTimestamp(nil)
	m.SetDeletionGracePeriodSeconds(nil)
	m.SetSelfLink("")
	if err := c.matchNamespace(m); err != nil || c.name == "" {
		return err
	}
	if m.GetName() == "" {
		m.SetName(c.name)
	}
	if c.identifying {
		return nil
	}
	return c.matchName(m)
}

func (c *call) insert(obj runtime.Object, opts *metav1.CreateOptions) (wire.Item, error) {
	if c.recordWriter != nil {
		rec, err := c.recordWriter.CreateRecord(c.ctx, obj, opts)
		return wire.Item{Record: rec}, err
	}
	made, err := c.creater.Create(c.ctx, obj, opts)
	if err == nil && made == nil {
		made = success(http.StatusCreated, &metav1.StatusDetails{Name: c.name, Kind: c.Kind.Kind})
	}
	return wire.Item{Object: made}, err
}

// success returns the Status for a verb that has no object to show. Code 0 leaves the code out.
func success(code int32, details *metav1.StatusDetails) *metav1.Status {
	return &metav1.Status{
		TypeMeta: metav1.TypeMeta{Kind: "Status", APIVersion: "v1"},
		Status:   metav1.StatusSuccess,
		Code:     code,
		Details:  details,
	}
}
