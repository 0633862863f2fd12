package handlers

import (
	"fmt"
	"net/http"
	"slices"

	"github.com/keelson-dev/keelson/runtime"
	"github.com/keelson-dev/keelson/server/handlers/internal/wire"
	"github.com/keelson-dev/keelson/server/registry"
	"github.com/keelson-dev/keelson/storage"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// watchOrList answers GET of a collection.
func (c *call) watchOrList() error {
	if err := c.forms.Check(c.r); err != nil {
		return err
	}
	l, err := c.listOptions(c.r.URL.Query(), c.info.DeprecatedWatch, c.name)
	if err != nil {
		return err
	}
	if err := c.checkPath(); err != nil {
		return err
	}
	switch {
	case l.Watch && !c.canWatch():
		return apierrors.NewMethodNotSupported(c.gvr.GroupResource(), "watch")
	case l.Watch:
		c.r = c.r.WithContext(c.ctx.Context)
		return c.watch(l)
	case !c.canList():
		return apierrors.NewMethodNotSupported(c.gvr.GroupResource(), "list")
	}
	return c.list(l)
}

func (c *call) list(l *listRequest) error {
	f, err := c.forms.Negotiate(c.r, wire.ManyObjects)
	if err != nil {
		return err
	}
	if c.recordLister == nil {
		opts := l.ListOptions
		obj, err := c.lister.List(c.ctx, &opts)
		if err != nil {
			return err
		}
		return c.respondChosen(obj, &opts, f)
	}
	opts, err := c.storageList(l)
	if err != nil {
		return err
	}
	opts.Portion, opts.Account = portionBytes, (*account)(c)
	page, err := c.recordLister.ListRecords(c.ctx, opts)
	if err != nil {
		return err
	}
	if page.Next != nil {
		c.first = page.Bytes
	}
	return c.respondPage(page, f)
}

// respondPage answers with a page of records.
func (c *call) respondPage(page storage.Page, f wire.Form) error {
	lm := metav1.ListMeta{
		ResourceVersion:    wire.ResourceVersion(page.Revision),
		Continue:           page.Continue,
		RemainingItemCount: page.Remaining,
	}
	return c.respondList(lm, c.pageSource(c.ctx, page), f)
}

// respondChosen answers with the objects of a list that match the request's namespace and selectors. The list comes from a
// Lister, which may ignore both. A list with a continue token, or for a request with one, is not filtered, because its pages and
// counts would then be wrong.
func (c *call) respondChosen(list runtime.Object, opts *metav1.ListOptions, f wire.Form) error {
	chosen, err := registry.Selects(opts)
	if err != nil {
		return err
	}
	if lm, err := meta.ListAccessor(list); err != nil || lm.GetContinue() != "" || opts.Continue != "" {
		return c.respondListed(list, nil, f)
	}
	return c.respondListed(list, func(obj runtime.Object) bool {
		m, err := meta.Accessor(obj)
		return err != nil || (c.namespace == "" || m.GetNamespace() == "" || m.GetNamespace() == c.namespace) && chosen(m)
	}, f)
}

// respondListObject answers with all items of a list object that the storage returned.
func (c *call) respondListObject(list runtime.Object, f wire.Form) error {
	return c.respondListed(list, nil, f)
}

// respondListed answers with the items of a list object for which keep returns true. A nil keep keeps all of them.
func (c *call) respondListed(list runtime.Object, keep func(obj runtime.Object) bool, f wire.Form) error {
	if status, ok := list.(*metav1.Status); ok {
		return c.respondOne(http.StatusOK, wire.Item{Object: status}, f)
	}
	lm, err := meta.ListAccessor(list)
	if err != nil {
		return fmt.Errorf("the list of %s is a %T: %w", c.Path, list, err)
	}
	items, err := meta.ExtractList(list)
	if err != nil {
		return fmt.Errorf("the list of %s is a %T: %w", c.Path, list, err)
	}
	if keep != nil {
		items = slices.DeleteFunc(items, func(obj runtime.Object) bool { return !keep(obj) })
	}
	return c.respondList(metav1.ListMeta{
		ResourceVersion:    lm.GetResourceVersion(),
		Continue:           lm.GetContinue(),
		RemainingItemCount: lm.GetRemainingItemCount(),
	}, objectSource(items), f)
}
