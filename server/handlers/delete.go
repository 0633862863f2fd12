package handlers

import (
	"iter"
	"net/http"
	"net/url"
	"slices"

	"github.com/keelson-dev/keelson/runtime/codec"
	"github.com/keelson-dev/keelson/server/handlers/internal/wire"
	"github.com/keelson-dev/keelson/server/registry"
	"github.com/keelson-dev/keelson/storage"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	metav1validation "k8s.io/apimachinery/pkg/apis/meta/v1/validation"
	apiruntime "k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/validation/field"
)

// delete answers DELETE of one object.
func (c *call) delete() error {
	defer c.limit()()
	f, err := c.forms.Negotiate(c.r, wire.OneObject)
	if err != nil {
		return err
	}
	opts, err := c.deleteOptions()
	if err != nil {
		return err
	}
	if err := c.checkPath(); err != nil {
		return err
	}
	if unsafe(opts) {
		if err := c.mayDeleteUnsafely(); err != nil {
			return err
		}
	}
	if err := c.canShow(opts); err != nil {
		return err
	}
	it, deleted, err := c.remove(opts)
	if err != nil {
		return err
	}
	code := http.StatusOK
	if !deleted && opts.OrphanDependents != nil && !*opts.OrphanDependents { //nolint:staticcheck // deprecated, still honoured
		code = http.StatusAccepted
	}
	return c.respondOne(code, it, f)
}

// canShow returns an error if the object to delete cannot be converted to the URL's version, in the case that another program
// converts it. The answer may have to show the object. When the object is deleted, it would be too late for this error.
func (c *call) canShow(opts *metav1.DeleteOptions) error {
	if c.many == nil || c.recordDeleter == nil || unsafe(opts) {
		return nil
	}
	rec, err := c.Records.GetRecord(c.ctx, c.name, storage.Read{})
	if err != nil {
		return err
	}
	return c.canShowAll(slices.Values([]storage.Record{rec}))
}

// canShowAll is canShow for many records.
func (c *call) canShowAll(records iter.Seq[storage.Record]) error {
	for it := range c.inRuns(c.ctx, eachRecord(records)) {
		if it.Made == nil {
			continue
		}
		if _, err := it.Made(); err != nil {
			return err
		}
	}
	return nil
}

// remove deletes the object in the storage, and returns the item to answer with. That is the object if it still exists, or if the
// storage returns deleted objects. Otherwise it is a Status.
func (c *call) remove(opts *metav1.DeleteOptions) (wire.Item, bool, error) {
	if c.recordDeleter == nil {
		return c.removeObject(opts)
	}
	rec, deleted, err := c.recordDeleter.DeleteRecord(c.ctx, c.name, opts)
	switch {
	case err == nil && unsafe(opts): // the object could not be read, so its record is not available
		return wire.Item{Object: success(http.StatusOK, &metav1.StatusDetails{Name: c.name, Kind: c.Kind.Kind})}, true, nil
	case err != nil || !deleted || returnsDeleted(c.recordDeleter):
		return wire.Item{Record: rec}, deleted, err
	}
	return wire.Item{Object: c.deletedStatus(types.UID(rec.Body.Field("metadata.uid")))}, true, nil
}

func (c *call) removeObject(opts *metav1.DeleteOptions) (wire.Item, bool, error) {
	obj, deleted, err := c.deleter.Delete(c.ctx, c.name, opts)
	if err != nil {
		return wire.Item{}, false, err
	}
	if _, isStatus := obj.(*metav1.Status); isStatus || obj != nil && (!deleted || returnsDeleted(c.deleter)) {
		return wire.Item{Object: obj}, deleted, nil
	}
	var uid types.UID
	if m, err := meta.Accessor(obj); err == nil {
		uid = m.GetUID()
	}
	return wire.Item{Object: c.deletedStatus(uid)}, deleted, nil
}

// deletedStatus returns the Status that answers the deletion of an object.
func (c *call) deletedStatus(uid types.UID) *metav1.Status {
	return success(0, &metav1.StatusDetails{Name: c.name, Group: c.gvr.Group, Kind: c.gvr.Resource, UID: uid})
}

func returnsDeleted(deleter any) bool {
	r, ok := deleter.(registry.DeletedReturner)
	return ok && r.ReturnsDeleted()
}

// ReturnsDeleted reports whether DELETE of one object answers with the deleted object, instead of a Status.
func (r *Resource) ReturnsDeleted() bool {
	if r.main.recordDeleter != nil {
		return returnsDeleted(r.main.recordDeleter)
	}
	return r.main.canDelete() && returnsDeleted(r.main.deleter)
}

// deleteCollection answers DELETE of a collection.
func (c *call) deleteCollection() error {
	f, err := c.forms.Negotiate(c.r, wire.ManyObjects)
	if err != nil {
		return err
	}
	l, err := c.listOptions(c.r.URL.Query(), false, "")
	if err != nil {
		return err
	}
	opts, err := c.deleteOptions()
	if err != nil {
		return err
	}
	if unsafe(opts) {
		return invalidOptions("DeleteOptions", field.ErrorList{field.Invalid(
			field.NewPath(unsafeOption), true, "is not allowed with DELETECOLLECTION, try again after removing the option")})
	}
	if err := c.checkPath(); err != nil {
		return err
	}
	if c.recordDeleter == nil {
		list := l.ListOptions
		obj, err := c.collectionDeleter.DeleteCollection(c.ctx, opts, &list)
		if err != nil {
			return err
		}
		if obj == nil {
			obj = success(http.StatusOK, &metav1.StatusDetails{Kind: c.Kind.Kind})
		}
		return c.respondListObject(obj, f)
	}
	list, err := c.storageList(l)
	if err != nil {
		return err
	}
	list.Portion, list.Account = portionBytes, (*account)(c)
	if c.many != nil && c.recordLister != nil {
		page, err := c.recordLister.ListRecords(c.ctx, list)
		if err != nil {
			return err
		}
		all := &portions{ctx: c.ctx.Context, first: page}
		if err := c.canShowAll(all.records); err != nil {
			return err
		}
		if all.err != nil {
			return all.err
		}
	}
	page, err := c.recordDeleter.DeleteRecords(c.ctx, opts, list)
	if err != nil {
		return err
	}
	if page.Next == nil {
		return c.respondPage(page, f)
	}
	c.first = page.Bytes
	if err = c.respondPage(page, f); apierrors.IsResourceExpired(err) { // the remaining deleted records cannot be read any more
		return c.respondOne(http.StatusOK, wire.Item{Object: success(http.StatusOK, &metav1.StatusDetails{Kind: c.Kind.Kind})}, f)
	}
	return err
}

// deleteOptions reads the options of a delete from the body, or from the query if there is no body. A dryRun in the query counts
// even if there is a body. In that case kube-apiserver does not read the query, and really deletes the objects.
func (c *call) deleteOptions() (*metav1.DeleteOptions, error) {
	body, err := c.readBody()
	if err != nil {
		return nil, err
	}
	var opts *metav1.DeleteOptions
	if len(body) > 0 {
		if opts, err = c.decodeDeleteOptions(body); err == nil {
			c.recordOptions(opts)
		}
	} else {
		opts, err = queryDeleteOptions(c.r.URL.Query(), c.name == "")
	}
	if err != nil {
		return nil, err
	}
	if len(opts.DryRun) == 0 {
		opts.DryRun = c.r.URL.Query()["dryRun"]
	}
	opts.TypeMeta = optionsKind("DeleteOptions")
	return opts, invalidOptions("DeleteOptions", metav1validation.ValidateDeleteOptions(opts))
}

func queryDeleteOptions(q url.Values, collection bool) (*metav1.DeleteOptions, error) {
	opts := &metav1.DeleteOptions{}
	if err := metav1.Convert_url_Values_To_v1_DeleteOptions(&q, opts, nil); err != nil {
		return nil, apierrors.NewBadRequest(err.Error())
	}
	if collection && opts.Preconditions != nil {
		opts.Preconditions.ResourceVersion = nil // for a collection, it is the resourceVersion of the list
	}
	return opts, nil
}

// decodeDeleteOptions decodes a body with DeleteOptions. It may have any apiVersion, as in kube-apiserver.
func (c *call) decodeDeleteOptions(body []byte) (*metav1.DeleteOptions, error) {
	format, err := c.deleteFormat()
	if err != nil {
		return nil, err
	}
	opts := &metav1.DeleteOptions{}
	err = codec.DecodeIntoWithin(format, body, opts, c.limits())
	if over := c.beyondLimit(err); over != nil {
		return nil, over
	}
	if kind := opts.GroupVersionKind(); kind.Kind != "" && kind.Kind != "DeleteOptions" {
		if kind.GroupVersion().Empty() {
			kind = metav1.SchemeGroupVersion.WithKind(kind.Kind)
		}
		err = apiruntime.NewNotRegisteredErrForKind("keelson", kind)
	}
	if err != nil {
		return nil, apierrors.NewBadRequest(err.Error())
	}
	return opts, nil
}
