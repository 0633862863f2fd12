package handlers

import (
	"context"
	"fmt"
	"net/http"
	"net/url"
	"strings"

	"github.com/keelson-dev/keelson/authn"
	"github.com/keelson-dev/keelson/flowcontrol"
	"github.com/keelson-dev/keelson/server/audit"
	"github.com/keelson-dev/keelson/server/registry"
	"github.com/keelson-dev/keelson/server/request"
	"github.com/keelson-dev/keelson/server/response"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
)

// call is one request to an endpoint.
type call struct {
	*endpoint
	w         http.ResponseWriter
	r         *http.Request
	ctx       *registry.Call   // what the storage receives; its context is the request's, or ends before that
	rec       *audit.Recording // nil if the request is not recorded
	info      *request.Info
	namespace string               // "" for cluster-scoped resources and for all namespaces
	name      string               // "" for a collection
	fieldless bool                 // the change is made without managedFields, because the object was too large with them
	share     *flowcontrol.Share   // of the budget; nil until the request counts something
	first     int64                // bytes of the first portion of a list, which stays in memory beside the portion that was read last
	unfit     *registry.UnfitError // why the object in the body can never be stored: see judgeKind
	fieldsErr error                // the error of updating managedFields, for the hook
}

// route finds the endpoint of a request and answers the request.
func (r *Resource) route(w http.ResponseWriter, req *http.Request) {
	ctx := req.Context()
	info := request.InfoFrom(ctx)
	if info == nil {
		var err error
		if info, err = request.Resolve(req); err != nil {
			response.Error(w, req, err)
			return
		}
		ctx = request.WithInfo(ctx, info)
	}
	if !r.owns(info) {
		r.notFound(w, req)
		return
	}
	if request.WarningsFrom(ctx) == nil {
		ctx = request.WithWarnings(ctx, request.NewWarnings(w.Header()))
	}
	if r.deprecated != "" {
		request.Warn(ctx, r.deprecated)
		request.Annotate(ctx, "k8s.io/deprecated", "true")
	}
	c := &call{endpoint: r.main, w: w, r: req, info: info, namespace: info.Namespace}
	defer c.release()
	if !r.namespaced {
		c.namespace = ""
	}
	if known := r.main.Known; c.budget != nil && known != nil && known.ConvertsAll() && info.Verb != "watch" {
		ctx = request.WithHold(ctx, c.holdConverted)
	}
	c.rec = request.RecordingFrom(ctx)
	c.ctx = newCall(ctx, info, c.namespace)
	c.ctx.Account = (*changed)(c)
	if len(info.Parts) > 1 {
		c.name = info.Parts[1]
	}
	if err := checkQuery(req.URL.RawQuery); err != nil {
		c.fail(err)
		return
	}
	if len(info.Parts) > 2 && (info.Parts[2] != "" || r.HasGoType()) {
		if c.endpoint = r.subs[info.Parts[2]]; c.endpoint == nil {
			c.endpoint = r.main
			if r.HasGoType() {
				r.notFound(w, req)
				return
			}
			c.fail(apierrors.NewNotFound(r.gvr.GroupResource(), c.name))
			return
		}
	}
	c.dispatch()
}

// HasGoType reports whether the objects have a Go type, as those of definitions do not. kube-apiserver has other words for what
// does not exist then.
func (r *Resource) HasGoType() bool { return !r.main.custom() }

// notFound answers a request whose path is not one of the resource.
func (r *Resource) notFound(w http.ResponseWriter, req *http.Request) {
	if !r.HasGoType() {
		http.NotFound(w, req)
		return
	}
	response.Refuse(w, req, http.StatusNotFound)
}

// newCall returns the registry.Call that the storage receives for a request. The user of an unauthenticated request is
// system:anonymous.
func newCall(ctx context.Context, info *request.Info, namespace string) *registry.Call {
	v := request.ValuesFrom(ctx)
	out := &registry.Call{Context: ctx, Policy: v.Policy, Attributes: info.Attributes(authn.UserFrom(ctx))}
	if out.User == nil || out.User.Name == "" {
		out.User = &authn.User{Name: authn.AnonymousUser, Groups: []string{authn.UnauthenticatedAll}}
	}
	out.Namespace = namespace
	if v.Warnings != nil {
		out.OnWarning = v.Warnings.Add
	}
	if v.Annotations != nil {
		out.OnAnnotation = v.Annotations.Add
	}
	return out
}

// owns reports whether a path belongs to this resource: it has the group, version and plural name of the resource, and a
// namespace if and only if the resource needs one.
func (r *Resource) owns(info *request.Info) bool {
	if !info.ResourceRequest || len(info.Parts) == 0 || info.Parts[0] != r.gvr.Resource ||
		info.APIGroup != r.gvr.Group || info.APIVersion != r.gvr.Version {
		return false
	}
	if len(info.Parts) > 3 && r.HasGoType() && (r.subs[info.Parts[2]] == nil || r.subs[info.Parts[2]].connecter == nil) {
		return false // below a subresource without a Go type the path is not read
	}
	if info.Verb == "proxy" { // the deprecated proxy path is parsed, so that it is not mistaken for another request, but not served
		return false
	}
	if info.DeprecatedWatch && len(info.Parts) > 2 || len(info.Parts) > 1 && info.Parts[1] == "" {
		return false
	}
	switch {
	case !r.namespaced:
		// In the path of a namespace object, its name is parsed as the namespace, too.
		return info.Namespace == "" || r.gvr.Resource == "namespaces" && len(info.Parts) > 1 && info.Namespace == info.Parts[1]
	case info.Namespace == "": // across all namespaces
		return len(info.Parts) == 1 && (r.HasGoType() || info.Verb == "list" || info.Verb == "watch")
	}
	return true
}

// checkQuery returns an error if a part of the query cannot be parsed. net/url would silently drop that part, which could be the
// selector of a deletecollection, or a dryRun.
func checkQuery(raw string) error {
	if !strings.ContainsAny(raw, ";%") { // without these characters, the query can be parsed
		return nil
	}
	if _, err := url.ParseQuery(raw); err != nil {
		return apierrors.NewBadRequest(fmt.Sprintf("the query of the request cannot be read: %v", err))
	}
	return nil
}

// dispatch calls the method for the verb of the request, if the endpoint has that verb.
func (c *call) dispatch() {
	method := c.r.Method
	switch {
	case c.info.DeprecatedWatch:
		if verb := request.MethodVerb(method); verb != "get" {
			c.refuse(verb)
			return
		}
		c.serve(c.canWatch(), "watch", c.watchOrList)
	case c.name == "":
		c.dispatchCollection(request.MethodVerb(method))
	case c.connects(method):
		c.r = c.r.WithContext(c.ctx.Context)
		c.connect()
	case len(c.info.Parts) > 3 && c.connecter != nil:
		c.refuse(request.MethodVerb(method))
	default:
		c.dispatchItem(request.MethodVerb(method))
	}
}

func (c *call) dispatchItem(verb string) {
	switch verb {
	case "get":
		c.serve(c.canGet(), verb, c.get)
	case "update":
		c.serve(c.canUpdate(), verb, c.update)
	case "patch":
		c.serve(c.canPatch(), verb, c.patch)
	case "delete":
		c.serve(c.canDelete(), verb, c.delete)
	case "create":
		// A subresource's objects are created at the path of the item: POST .../pods/x/binding. So are objects without a Go type, as
		// in kube-apiserver.
		c.serve((c.sub != "" || !c.HasGoType()) && c.canCreate(), verb, c.create)
	default:
		c.refuse("")
	}
}

func (c *call) dispatchCollection(verb string) {
	everywhere := c.namespaced && c.namespace == "" // across all namespaces only reads are possible
	switch verb {
	case "get":
		c.serve(c.canList() || c.canWatch(), "list", c.watchOrList)
	case "create":
		c.serve(!everywhere && c.canCreate(), verb, c.create)
	case "delete":
		c.serve(!everywhere && c.canDeleteCollection(), "deletecollection", c.deleteCollection)
	case "update", "patch":
		c.serve(!c.HasGoType(), verb, c.withoutName)
	default:
		c.refuse("")
	}
}

// withoutName returns the error for a change of an object without a name in the path, if the kind has no Go type.
func (c *call) withoutName() error {
	if c.info.Verb == "patch" {
		if _, err := c.patchType(); err != nil {
			return err
		}
	}
	return apierrors.NewBadRequest("name must be provided")
}

// serve runs f, if the endpoint has the verb, and answers with its error.
func (c *call) serve(has bool, verb string, f func() error) {
	if !has || c.r.Method == http.MethodHead && c.HasGoType() {
		c.refuse(verb)
		return
	}
	err := c.checkTypes(verb)
	if err == nil {
		err = f()
	}
	if err != nil {
		c.fail(err)
	}
}

// checkTypes checks the media types of a request for a kind with a Go type. In kube-apiserver the router does that, before anything
// else in the request is read.
func (c *call) checkTypes(verb string) error {
	if !c.HasGoType() {
		return nil
	}
	if verb == "patch" {
		if _, err := c.patchType(); err != nil {
			return err
		}
	}
	return c.forms.CheckNames(c.r, verb == "list" || verb == "watch")
}

func (c *call) refuse(verb string) {
	c.fail(apierrors.NewMethodNotSupported(c.gvr.GroupResource(), verb))
}
