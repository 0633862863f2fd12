package crd

import (
	"errors"
	"fmt"
	"time"

	"github.com/keelson-dev/keelson/admission"
	"github.com/keelson-dev/keelson/authz"
	"github.com/keelson-dev/keelson/runtime"
	celrules "github.com/keelson-dev/keelson/runtime/cel/rules"
	"github.com/keelson-dev/keelson/runtime/webhook"
	"github.com/keelson-dev/keelson/server"
	"github.com/keelson-dev/keelson/server/crd/conversion"
	"github.com/keelson-dev/keelson/server/crd/internal/controller"
	"github.com/keelson-dev/keelson/server/crd/internal/definition"
	"github.com/keelson-dev/keelson/server/crd/internal/serving"
	"go.uber.org/zap"
	"go.uber.org/zap/zapcore"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

// Options refines New. The zero Options is as kube-apiserver does it.
type Options struct {
	// Conversions convert between the versions of custom resources, by group and kind, in the place of whatever their
	// definitions say of conversion; webhooks that these name are never called. Without one, and without a webhook, an
	// object of another version differs in its apiVersion, and in what that version's schema prunes and defaults. See
	// runtime.ConvertUntyped for what they must do.
	Conversions map[schema.GroupKind]runtime.ConvertUntyped
	// Webhooks says how the conversion webhooks of definitions are called: where services are, and for how long a call may take.
	Webhooks webhook.Options
	// WebhookConversion bounds what is asked of conversion webhooks, and what is remembered of their answers. Its Hooks are called
	// besides those of the server's metrics.
	WebhookConversion conversion.Options
	// Rows bounds what the additionalPrinterColumns of definitions cost.
	Rows RowLimits
	// Logger gets what fails and is tried again, definitions that cannot be served, and why calls of conversion webhooks failed,
	// of which at most 10 lines a second; nil is silent.
	Logger *zap.Logger
}

// RowLimits bound what the columns of a definition show, and cost, of one object: definitions may have any number of columns, and
// their paths may lead through all of an object. A cell that is cut short ends with "...", whatever the type of its column. The
// zero RowLimits has the defaults; a negative bound is none. A quarter of Steps and of RowBytes is left to columns that need little.
type RowLimits struct {
	// Steps is how many values of the object the paths of all columns may come across, and texts may be made of; 0 is 65,536.
	Steps int
	// CellBytes is the length of one cell; 0 is 16 KiB.
	CellBytes int
	// RowBytes is the length of all cells; 0 is 128 KiB.
	RowBytes int
}

// New returns the extension. It is installed once in a server, before it serves or while it does, and ends with it.
func New(o Options) server.Extension {
	if o.Logger == nil {
		o.Logger = zap.NewNop()
	}
	return extension{o}
}

type extension struct{ opts Options }

// checkName is that of the health check.
const checkName = "customresourcedefinitions"

// firstSight bounds how long Install waits until what was defined before is served.
const firstSight = 3 * time.Second

// Install implements server.Extension. It waits some seconds at most for the definitions that are stored to be served; from
// then on the health check customresourcedefinitions tells.
func (e extension) Install(h *server.Host) error {
	for kind, convert := range e.opts.Conversions {
		if convert == nil {
			return fmt.Errorf("crd: Options.Conversions of %s is nil; leave it out, and versions differ in their apiVersion alone", kind)
		}
	}
	compiler, err := celrules.NewCompiler()
	if err != nil {
		return fmt.Errorf("crd: %w", err)
	}
	kind := definitionKind(definition.NewValidator(compiler))
	err = h.Serve(server.Group{Name: apiextensionsv1.GroupName, Versions: []server.Version{{Name: "v1", Resources: []server.Resource{kind}}}})
	if errors.Is(err, server.ErrServed) {
		return fmt.Errorf("crd: %w; install the extension once, and leave its kind to it", err)
	}
	if err != nil {
		return fmt.Errorf("crd: %w", err)
	}
	conversions := e.opts.WebhookConversion
	conversions.Hooks.Called = logCalls(e.opts.Logger, conversions.Hooks.Called)
	groups, err := serving.New(compiler, h.Metrics(), serving.Options{
		Conversions: e.opts.Conversions, Webhooks: e.opts.Webhooks, WebhookConversion: conversions, Rows: serving.RowLimits(e.opts.Rows),
	})
	if err != nil {
		return fmt.Errorf("crd: %w", err)
	}
	c, err := controller.New(h, groups, e.opts.Logger)
	if err != nil {
		groups.Close()
		return fmt.Errorf("crd: %w", err)
	}
	err = h.Admit(admission.Plugin{
		Name: "CustomResourceLifecycle", Mutator: c.Gate(),
		Handles: admission.Handles{Operations: []admission.Operation{admission.Create, admission.Delete}},
	})
	if err == nil {
		err = h.Check(server.Check{Name: checkName, ReadyOnly: true, Check: c.Check})
	}
	if err != nil {
		return fmt.Errorf("crd: %w", err)
	}
	h.Go(groups.Run)
	h.Go(c.Run)
	h.OnClose(groups.Close) // requests under way may need them
	select {
	case <-c.Synced():
	case <-time.After(firstSight):
		e.opts.Logger.Warn("the custom resources that are defined are not all served yet")
	}
	return nil
}

// logCalls returns a hook that writes why a call of a webhook failed, which clients are not told, and calls another one, which may
// be nil. Clients cause calls, and webhooks write the texts: both are bounded.
func logCalls(log *zap.Logger, besides func(conversion.Call)) func(conversion.Call) {
	log = log.WithOptions(zap.WrapCore(func(core zapcore.Core) zapcore.Core {
		return zapcore.NewSamplerWithOptions(core, time.Second, maxCallLines, 0)
	}))
	return func(c conversion.Call) {
		if c.Err != nil {
			log.Warn("a call of a conversion webhook failed", zap.String("definition", c.Definition), zap.Int("objects", c.Objects),
				zap.Duration("took", c.Took), zap.String("error", authz.Shorten(c.Err.Error())))
		}
		if besides != nil {
			besides(c)
		}
	}
}

// maxCallLines is how many lines a second there are about calls that failed.
const maxCallLines = 10
