// Package serving makes server groups from definitions: one resource in all its versions, with schemas, rules, columns,
// subresources and conversions.
//
//	groups, err := serving.New(compiler, host.Metrics(), serving.Options{})
//	group, err := groups.Of(crd)         // with the names that its status accepts
//	err = host.Replace(gone, group)
//	groups.Forget(crd.Name)              // when it is served no longer
//
// The definitions themselves are not kept. All versions and definitions with an equal schema share one, stored as compressed
// text. It is compiled when the first object needs it; [Groups.Run] drops compiled schemas that are not used. The object in a
// request is validated by the schema and rules of its version, as it was sent. It is converted to the stored version by the
// program's function, by the webhook that the definition names, or by a change of its apiVersion alone.
package serving

import (
	"context"
	"fmt"

	"github.com/keelson-dev/keelson/runtime"
	celrules "github.com/keelson-dev/keelson/runtime/cel/rules"
	"github.com/keelson-dev/keelson/runtime/webhook"
	"github.com/keelson-dev/keelson/server"
	"github.com/keelson-dev/keelson/server/crd/conversion"
	"github.com/prometheus/client_golang/prometheus"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

// Options specifies how objects are converted and shown in tables, like the Options of package crd. The zero Options has no
// functions and calls webhooks as kube-apiserver does.
type Options struct {
	Conversions       map[schema.GroupKind]runtime.ConvertUntyped // by group and kind; no function is nil
	Webhooks          webhook.Options                             // how webhooks are called
	WebhookConversion conversion.Options                          // bounds of calls and of their memory
	Rows              RowLimits                                   // bounds of table columns
}

// Groups makes the groups of all definitions of one server. All methods may be called concurrently.
type Groups struct {
	conversions map[schema.GroupKind]runtime.ConvertUntyped
	webhooks    *webhooks
	schemas     *library
	rows        RowLimits
}

// New returns Groups that compile rules with compiler and register their metrics in metrics. The owner must call Run, and Close
// at the end.
func New(compiler *celrules.Compiler, metrics prometheus.Registerer, o Options) (*Groups, error) {
	hooks, err := newWebhooks(metrics, o)
	if err != nil {
		return nil, err
	}
	return &Groups{conversions: o.Conversions, webhooks: hooks, schemas: newLibrary(compiler), rows: o.Rows}, nil
}

// Of returns what a definition defines: a group in a scheme of its own, with one resource under the accepted names. The resource
// has all versions, also those that are not served. Objects are stored in the storage version of the definition. Of does not keep
// crd, but it keeps its webhook until Forget.
//
// Of returns an error if the definition cannot be served. This server never stores such a definition, but another program may
// have done so.
func (g *Groups) Of(crd *apiextensionsv1.CustomResourceDefinition) (server.Group, error) {
	convert, err := g.converterOf(crd)
	var group server.Group
	if err == nil {
		group, err = groupOf(crd, convert, g.schemas, g.rows)
	}
	if err != nil {
		return server.Group{}, fmt.Errorf("definition %s cannot be served: %w", crd.Name, err)
	}
	return group, nil
}

// Forget drops what is kept for the definition with a name.
func (g *Groups) Forget(name string) { g.webhooks.forget(name) }

// Run drops compiled schemas that are not used, until ctx ends.
func (g *Groups) Run(ctx context.Context) { g.schemas.run(ctx) }

// Close cancels the webhook calls in flight and waits for them. Do not call it before the last request has ended. It may be
// called again.
func (g *Groups) Close() { g.webhooks.close() }
