package handlers

import (
	"fmt"
	"net/url"

	"github.com/keelson-dev/keelson/runtime/codec"
	"github.com/keelson-dev/keelson/runtime/excerpt"
	"github.com/keelson-dev/keelson/runtime/selector"
	"github.com/keelson-dev/keelson/server/registry"
	"github.com/keelson-dev/keelson/storage"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/apis/meta/internalversion"
	internalvalidation "k8s.io/apimachinery/pkg/apis/meta/internalversion/validation"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	metav1validation "k8s.io/apimachinery/pkg/apis/meta/v1/validation"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/labels"
	apiruntime "k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/validation/field"
)

// invalidOptions returns the error for query parameters that can be parsed but are invalid. It returns nil if errs is empty.
func invalidOptions(kind string, errs field.ErrorList) error {
	if len(errs) == 0 {
		return nil
	}
	return excerpt.Invalid(schema.GroupKind{Group: metav1.GroupName, Kind: kind}, "", errs)
}

func optionsKind(kind string) metav1.TypeMeta {
	return metav1.TypeMeta{APIVersion: metav1.SchemeGroupVersion.String(), Kind: kind}
}

func createOptions(q url.Values) (*metav1.CreateOptions, error) {
	o := &metav1.CreateOptions{}
	if err := metav1.Convert_url_Values_To_v1_CreateOptions(&q, o, nil); err != nil {
		return nil, apierrors.NewBadRequest(excerpt.Of(err.Error(), excerpt.Text))
	}
	o.TypeMeta = optionsKind("CreateOptions")
	o.FieldManager = excerpt.Of(o.FieldManager, excerpt.Text) // a longer one is refused anyway, with one error for each bad character
	return o, invalidOptions("CreateOptions", metav1validation.ValidateCreateOptions(o))
}

func updateOptions(q url.Values) (*metav1.UpdateOptions, error) {
	o := &metav1.UpdateOptions{}
	if err := metav1.Convert_url_Values_To_v1_UpdateOptions(&q, o, nil); err != nil {
		return nil, apierrors.NewBadRequest(excerpt.Of(err.Error(), excerpt.Text))
	}
	o.TypeMeta = optionsKind("UpdateOptions")
	o.FieldManager = excerpt.Of(o.FieldManager, excerpt.Text) // a longer one is refused anyway, with one error for each bad character
	return o, invalidOptions("UpdateOptions", metav1validation.ValidateUpdateOptions(o))
}

func patchOptions(q url.Values, t types.PatchType) (*metav1.PatchOptions, error) {
	o := &metav1.PatchOptions{}
	if err := metav1.Convert_url_Values_To_v1_PatchOptions(&q, o, nil); err != nil {
		return nil, apierrors.NewBadRequest(excerpt.Of(err.Error(), excerpt.Text))
	}
	o.TypeMeta = optionsKind("PatchOptions")
	o.FieldManager = excerpt.Of(o.FieldManager, excerpt.Text) // a longer one is refused anyway, with one error for each bad character
	return o, invalidOptions("PatchOptions", metav1validation.ValidatePatchOptions(o, t))
}

// fieldValidation returns the Validation for the field validation of valid options.
func fieldValidation(s string) codec.Validation {
	switch s {
	case metav1.FieldValidationStrict:
		return codec.Strict
	case metav1.FieldValidationIgnore:
		return codec.Ignore
	}
	return codec.Warn
}

// getOptions reads the options of a GET of one object.
func getOptions(q url.Values) (*metav1.GetOptions, error) {
	if export := q["export"]; len(export) > 0 {
		on := true
		if err := apiruntime.Convert_Slice_string_To_bool(&export, &on, nil); err != nil {
			return nil, apierrors.NewBadRequest(fmt.Sprintf("the export parameter cannot be parsed: %v", err))
		}
		if on {
			return nil, apierrors.NewBadRequest("the export parameter, deprecated since v1.14, is no longer supported")
		}
	}
	o := &metav1.GetOptions{}
	if err := metav1.Convert_url_Values_To_v1_GetOptions(&q, o, nil); err != nil {
		return nil, apierrors.NewBadRequest(excerpt.Of(err.Error(), excerpt.Text))
	}
	return o, nil
}

// listRequest is the checked options of a list, watch or deletecollection.
type listRequest struct {
	metav1.ListOptions
	labels  labels.Selector // nil selects all
	fields  fields.Selector // nil selects all; the labels of the URL's version are converted
	unended bool            // a watch sends no bookmark at the end of its initial events
}

// listOptions reads and checks the options of a request for a collection. watch says that the path requests a watch, even if the
// options do not: then, as in kube-apiserver, the options are checked as those of a list unless they request a watch themselves.
// name is the object that the path names, or "".
func (c *call) listOptions(q url.Values, watch bool, name string) (*listRequest, error) {
	l := &listRequest{}
	if err := metav1.Convert_url_Values_To_v1_ListOptions(&q, &l.ListOptions, nil); err != nil {
		return nil, apierrors.NewBadRequest(excerpt.Of(err.Error(), excerpt.Text))
	}
	l.TypeMeta = optionsKind("ListOptions")
	if err := l.parseSelectors(c.selectors); err != nil {
		return nil, err
	}
	in := &internalversion.ListOptions{
		Watch: l.Watch, ResourceVersion: l.ResourceVersion, ResourceVersionMatch: l.ResourceVersionMatch,
		SendInitialEvents: l.SendInitialEvents, Continue: l.Continue,
	}
	internalversion.SetListOptionsDefaults(in, true)
	if err := invalidOptions("ListOptions", internalvalidation.ValidateListOptions(in, true)); err != nil {
		return nil, err
	}
	l.SendInitialEvents, l.ResourceVersionMatch = in.SendInitialEvents, in.ResourceVersionMatch
	if watch {
		l.watchByPath()
	}
	if l.ShardSelector != "" {
		return nil, apierrors.NewBadRequest("shardSelector is not supported by this server")
	}
	return l, c.selectFields(l, name)
}

// watchByPath makes a watch of a list whose path requests a watch. If it has no other options, the watch begins with initial events,
// but no bookmark ends them.
func (l *listRequest) watchByPath() {
	l.Watch = true
	if l.SendInitialEvents == nil && (l.ResourceVersion == "" || l.ResourceVersion == "0") {
		l.SendInitialEvents, l.unended = new(true), true
	}
}

// hasOwnSelectors reports whether the kind defines its field selectors. As in kube-apiserver, metadata.namespace is then one of them
// only if the objects are in namespaces. For all other kinds it is one, even if no object has a namespace.
func (c *call) hasOwnSelectors() bool {
	return c.Untyped() || c.Known != nil && len(c.Known.Fields) > 0
}

func (l *listRequest) parseSelectors(limit selector.Limit) error {
	var err error
	if l.LabelSelector != "" {
		if l.labels, err = limit.ParseLabels(l.LabelSelector); err != nil {
			return apierrors.NewBadRequest(excerpt.Of(err.Error(), excerpt.Text))
		}
	}
	if l.FieldSelector != "" {
		if l.fields, err = limit.ParseFields(l.FieldSelector); err != nil {
			return apierrors.NewBadRequest(excerpt.Of(err.Error(), excerpt.Text))
		}
	}
	return nil
}

// selectFields converts the labels of the field selector to the names that the storage uses. If name is not "", the selector then
// selects that name, too.
func (c *call) selectFields(l *listRequest, name string) error {
	if l.fields != nil {
		sel, err := l.fields.Transform(func(label, value string) (string, string, error) {
			if label == "metadata.namespace" && !c.namespaced && c.hasOwnSelectors() {
				return "", "", fmt.Errorf("field label not supported: %s", label)
			}
			return c.scheme.ConvertFieldLabel(c.Kind, label, value)
		})
		if err != nil {
			return apierrors.NewBadRequest(excerpt.Of(err.Error(), excerpt.Text))
		}
		l.fields = sel
	}
	if name != "" {
		if l.fields == nil || l.fields.Empty() {
			l.fields = fields.OneTermEqualSelector(metav1.ObjectNameField, name)
		} else if selected, ok := l.fields.RequiresExactMatch(metav1.ObjectNameField); !ok || selected != name {
			return apierrors.NewBadRequest("fieldSelector metadata.name doesn't match requested name")
		}
	}
	l.FieldSelector = ""
	if l.fields != nil {
		l.FieldSelector = l.fields.String()
	}
	return nil
}

// selection returns the selection of a request, for a storage. A field selector with one exact name selects one key.
func (c *call) selection(l *listRequest) storage.Selection {
	s := storage.Selection{Namespace: c.namespace, Labels: selector.Labels(l.labels), Fields: selector.Fields(l.fields)}
	if c.selectsShown(l.fields) {
		s.Fields, s.Chooser = selector.Fields(keySelector(l.fields)), &shownFields{c.endpoint, s.Fields}
	}
	if l.fields != nil && (!c.namespaced || c.namespace != "") {
		if name, ok := l.fields.RequiresExactMatch(metav1.ObjectNameField); ok && checkSegments(name, "") == nil {
			s.Name = name
		}
	}
	return s
}

// storageList returns the options of a list for a storage, with the state to read at. The rules are those of the table in
// https://kubernetes.io/docs/reference/using-api/api-concepts/#semantics-for-get-and-list.
func (c *call) storageList(l *listRequest) (storage.ListOptions, error) {
	o := storage.ListOptions{Selection: c.selection(l), Limit: max(l.Limit, 0), Continue: l.Continue}
	if l.Continue != "" {
		return o, l.checkContinued()
	}
	at, err := registry.ReadAt(l.ResourceVersion)
	if err != nil {
		return o, err
	}
	exact := l.ResourceVersionMatch == metav1.ResourceVersionMatchExact || l.ResourceVersionMatch == "" && o.Limit > 0
	if exact && at.Match == storage.NotOlderThan {
		at.Match = storage.Exact
	}
	o.At = at
	return o, nil
}

// checkContinued returns an error if a request with a continue token has a resourceVersion, too, of whatever form. The storage reads
// the token, and refuses one that it cannot read. That error comes first.
func (l *listRequest) checkContinued() error {
	if l.ResourceVersion == "" || l.ResourceVersion == "0" {
		return nil
	}
	if _, err := (storage.Scope{}).Continue(l.Continue); err != nil {
		return nil
	}
	return apierrors.NewBadRequest("specifying resource version is not allowed when using continue")
}

// storageWatch returns the options of a watch for a storage.
func (c *call) storageWatch(l *listRequest) (storage.WatchOptions, error) {
	o := storage.WatchOptions{Selection: c.selection(l), Bookmarks: l.AllowWatchBookmarks}
	at, err := registry.ReadAt(l.ResourceVersion)
	if err != nil {
		return o, err
	}
	if l.SendInitialEvents != nil && *l.SendInitialEvents {
		o.Initial, o.At = true, at
	} else {
		o.From = at.Revision
	}
	return o, nil
}
