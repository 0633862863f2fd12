// Package serving makes of definitions what a server serves: groups with one resource in all versions, with schemas, rules,
// columns, subresources and conversions.
//
//	groups, err := serving.New(compiler, host.Metrics(), serving.Options{})
//	group, err := groups.Of(crd)         // with the names that its status accepts
//	err = host.Replace(gone, group)
//	groups.Forget(crd.Name)              // when it is served no longer
//
// Nothing of a definition is kept. All versions and definitions with the same schema share one, as compressed text, which is
// compiled when the first object needs it; [Groups.Run] drops what is compiled and not used. What a request sends is judged by
// the schema and the rules of its version, as it was sent, and is converted to the stored version by the program's function, by
// the webhook that the definition names, or by its apiVersion alone.
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

// Options says how objects are converted and shown in tables, as those of package crd do. The zero Options has no functions, and
// calls webhooks as kube-apiserver does.
type Options struct {
	Conversions       map[schema.GroupKind]runtime.ConvertUntyped // none is nil
	Webhooks          webhook.Options
	WebhookConversion conversion.Options
	Rows              RowLimits
}

// Groups makes the groups of all definitions of one server. All methods may be called concurrently.
type Groups struct {
	conversions map[schema.GroupKind]runtime.ConvertUntyped
	webhooks    *webhooks
	schemas     *library
	rows        RowLimits
}

// New returns Groups whose rules are compiled by compiler, and whose metrics are registered in metrics. Its owner calls Run, and
// Close in the end.
func New(compiler *celrules.Compiler, metrics prometheus.Registerer, o Options) (*Groups, error) {
	hooks, err := newWebhooks(metrics, o)
	if err != nil {
		return nil, err
	}
	return &Groups{conversions: o.Conversions, webhooks: hooks, schemas: newLibrary(compiler), rows: o.Rows}, nil
}

// Of makes what a definition defines: a group of one resource in all its versions, those that are stored and not served
// included, in a scheme of its own, under the names that were accepted. Objects are stored in the version that the definition
// says. Nothing of crd is kept; its webhook is, until it is forgotten.
//
// Of returns an error for a definition that cannot be served. This server stores no such definition; another program may have
// written it to the storage.
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

// Forget drops what is kept of the definition of a name.
func (g *Groups) Forget(name string) { g.webhooks.forget(name) }

// Run drops what is compiled and not used, until ctx ends.
func (g *Groups) Run(ctx context.Context) { g.schemas.run(ctx) }

// Close ends the calls of webhooks that are under way, and waits for them. Requests under way may need them. It may be called
// again.
func (g *Groups) Close() { g.webhooks.close() }
