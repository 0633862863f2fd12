package serving

import (
	"context"
	"fmt"
	"net/http"

	"github.com/keelson-dev/keelson/runtime"
	"github.com/keelson-dev/keelson/runtime/excerpt"
	"github.com/keelson-dev/keelson/runtime/webhook"
	"github.com/keelson-dev/keelson/server/crd/conversion"
	"github.com/keelson-dev/keelson/server/crd/internal/definition"
	"github.com/keelson-dev/keelson/server/request"
	"github.com/prometheus/client_golang/prometheus"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

// webhooks are the conversion webhooks of one server. All methods may be called concurrently.
type webhooks struct {
	*conversion.Factory
	caller  *webhook.Caller
	metrics *webhookMetrics
}

// newWebhooks returns webhooks whose metrics are registered in in.
func newWebhooks(in prometheus.Registerer, o Options) (*webhooks, error) {
	m, err := newWebhookMetrics(in)
	if err != nil {
		return nil, err
	}
	options := o.WebhookConversion
	options.Hooks = m.hooks(options.Hooks)
	caller := webhook.New(o.Webhooks)
	return &webhooks{conversion.New(caller, options), caller, m}, nil
}

// serve returns the webhook of a definition, which has metrics until forget.
func (w *webhooks) serve(crd *apiextensionsv1.CustomResourceDefinition) (*conversion.Webhook, error) {
	hook, err := w.Webhook(crd)
	if err == nil {
		w.metrics.serve(crd.Name)
	}
	return hook, err
}

// forget drops the webhook and the metrics of the definition with a name.
func (w *webhooks) forget(name string) {
	w.Forget(name)
	w.metrics.forget(name)
}

// close cancels the calls in flight and waits for them. It may be called again.
func (w *webhooks) close() {
	w.Close()
	w.caller.Close()
}

// converter converts objects between versions of a custom resource. At most one of its functions is set. Without a function
// objects of two versions differ only in their apiVersion.
type converter struct {
	one runtime.ConvertUntyped    // a function of the program
	all runtime.ConvertAllUntyped // a webhook
}

func (c converter) converts() bool { return c.one != nil || c.all != nil }

// converterOf returns the converter for the objects of a definition. If the program has a function for the kind, the function
// takes precedence over the definition.
//
// If the definition's description of its webhook is invalid, converterOf returns an error as long as the definition is not
// established. If another server has established it nevertheless, the objects are served only in their stored version: each
// conversion fails.
func (g *Groups) converterOf(crd *apiextensionsv1.CustomResourceDefinition) (converter, error) {
	kind := schema.GroupKind{Group: crd.Spec.Group, Kind: crd.Status.AcceptedNames.Kind}
	if convert := g.conversions[kind]; convert != nil {
		g.webhooks.forget(crd.Name)
		return converter{one: convert}, nil
	}
	if crd.Spec.Conversion == nil || crd.Spec.Conversion.Strategy != apiextensionsv1.WebhookConverter {
		g.webhooks.forget(crd.Name)
		return converter{}, nil
	}
	hook, err := g.webhooks.serve(crd)
	switch {
	case err == nil:
		return converter{all: hook.Convert}, nil
	case definition.IsTrue(crd, apiextensionsv1.Established):
		return converter{all: failing(fmt.Sprintf("conversion webhook for %s cannot be called: %v", kind, err))}, nil
	}
	return converter{}, fmt.Errorf("its conversion webhook cannot be called: %w", err)
}

// failing returns a conversion that always fails with a message for clients.
func failing(message string) runtime.ConvertAllUntyped {
	err := &apierrors.StatusError{ErrStatus: metav1.Status{Status: metav1.StatusFailure, Message: message, Code: http.StatusInternalServerError}}
	return func(context.Context, []*unstructured.Unstructured, schema.GroupVersion) ([]*unstructured.Unstructured, error) {
		return nil, err
	}
}

// explained returns a converter that, if the conversion fails or panics, returns the validation errors of the object in its own
// version instead, if there are any. The reason is that the object of a request is converted before it is validated, and a
// conversion may fail because the object is invalid.
func (c converter) explained(kind schema.GroupKind, r *rules) converter {
	if c.one != nil {
		c.one = explainedOne(kind, c.one, r)
	}
	if c.all != nil {
		c.all = explainedAll(kind, c.all, r)
	}
	return c
}

func explainedOne(kind schema.GroupKind, convert runtime.ConvertUntyped, r *rules) runtime.ConvertUntyped {
	return func(in *unstructured.Unstructured, to schema.GroupVersion) (out *unstructured.Unstructured, err error) {
		before := in.DeepCopy()
		returned := false
		defer func() {
			if returned && err == nil {
				return
			}
			s := r.versions[before.GroupVersionKind().Version].schema
			if s == nil {
				return
			}
			if errs := s.structure().Validate(nil, before.Object); len(errs) > 0 {
				_ = recover() // the invalid object caused the panic
				out, err = nil, excerpt.Invalid(kind, before.GetName(), errs)
			}
		}()
		if out, err = convert(in, to); err == nil && out != nil {
			err = r.conform([]*unstructured.Unstructured{out}, to)
		}
		returned = true
		return out, err
	}
}

// explainedAll is explained for a webhook. It explains only failures for objects that are being created: to validate an update,
// the stored object is needed, which needs the webhook too.
func explainedAll(kind schema.GroupKind, convert runtime.ConvertAllUntyped, r *rules) runtime.ConvertAllUntyped {
	return func(ctx context.Context, in []*unstructured.Unstructured, to schema.GroupVersion) ([]*unstructured.Unstructured, error) {
		out, err := convert(ctx, in, to)
		if err == nil {
			return out, r.conform(out, to)
		}
		if to.Version != r.hub || !r.creates(ctx) || ctx.Err() != nil {
			return nil, err
		}
		for _, obj := range in {
			version := obj.GroupVersionKind().Version
			if _, ok := r.versions[version]; !ok {
				continue
			}
			if errs := r.judge(ctx, version, obj, nil); len(errs) > 0 {
				return nil, excerpt.Invalid(kind, obj.GetName(), errs)
			}
		}
		return nil, err
	}
}

// conform prunes objects in the hub version by its schema. The other versions are pruned elsewhere.
func (r *rules) conform(all []*unstructured.Unstructured, to schema.GroupVersion) error {
	hub, ok := r.versions[r.hub]
	if !ok || to.Version != r.hub {
		return nil
	}
	for _, obj := range all {
		if err := runtime.Normalize(obj); err != nil {
			return err
		}
		if _, err := hub.schema.Conform(obj.Object, false, 0); err != nil {
			return err
		}
	}
	return nil
}

// creates reports whether ctx is that of a request that creates an object of this resource.
func (r *rules) creates(ctx context.Context) bool {
	info := request.InfoFrom(ctx)
	return info != nil && info.Verb == "create" && info.APIGroup == r.resource.Group && info.Resource == r.resource.Resource
}
