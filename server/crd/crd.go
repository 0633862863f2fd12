package crd

import (
	"cmp"
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

// Options are the options of New. With the zero Options the extension behaves as kube-apiserver, except for the
// differences that New lists.
type Options struct {
	// Conversions are functions that convert between the versions of custom resources, by group and kind. The function of a kind
	// replaces the conversion that the definition specifies: the webhook of such a definition is never called. If a kind has
	// neither a function nor a webhook, the conversion to another version changes only the apiVersion. The schema of that version
	// then prunes and defaults the object. See runtime.ConvertUntyped for what the functions must do. No function may be nil.
	//
	// The functions receive objects that are not validated yet. If a function fails and the object is invalid by its schema, the
	// client receives the validation errors.
	Conversions map[schema.GroupKind]runtime.ConvertUntyped
	// Webhooks specifies how the conversion webhooks of definitions are called: at which address a Service is reached, which
	// addresses are allowed, and how long a call may take.
	Webhooks webhook.Options
	// WebhookConversion bounds the calls to conversion webhooks and the memory for their answers. If its MaxDecodedBytes is 0,
	// Limits.MaxDecodedBytes of the server holds. If its MaxObjectBytes is 0, Limits.MaxBodyBytes holds. If its Budget is nil,
	// Limits.Bytes holds. Its Hooks are called in addition to those of the server's metrics.
	WebhookConversion conversion.Options
	// Rows bounds the costs of the additionalPrinterColumns of definitions.
	Rows RowLimits
	// Logger receives failures that are tried again, definitions that cannot be served, and the causes of failed calls to
	// conversion webhooks. Of the failed calls it receives at most 10 lines a second. With nil nothing is logged.
	Logger *zap.Logger
}

// RowLimits bounds the size and the cost of the table columns of one object. Definitions may have any number of columns, and the
// paths of columns may visit all values of an object. A cell that is cut short ends with "...", whatever the type of its column.
// The zero RowLimits has the defaults. A negative field means no bound. A quarter of Steps and of RowBytes is reserved for
// columns that need few steps and have short cells, so that one expensive column does not leave the others empty.
type RowLimits struct {
	// Steps is the maximum number of steps for all cells together; 0 means 65,536. Each value that a path visits is one step, and so
	// is each value that is printed into a cell. Each 64 bytes of a text that is read are also one step: when names of members are
	// sorted or found, and when texts are compared, printed as JSON or read as dates.
	Steps int
	// CellBytes is the maximum length of one cell; 0 means 16 KiB.
	CellBytes int
	// RowBytes is the maximum length of all cells together; 0 means 128 KiB.
	RowBytes int
}

// New returns the extension. Install it once in a server, before or while the server serves. Its controllers end with the server.
//
// The health check customresourcedefinitions of /readyz fails until the definitions that were stored before are served.
//
// # The life of a definition
//
// A definition is created with an empty status. Its names are accepted when they are free, which means that neither another
// definition nor a kind of the program has them in the same group. Then its API is served, and after that the definition is
// established. A client that sees the condition Established can use the API. If a name is taken, the condition NamesAccepted is
// False and names it, and the definition waits until the name is free. A definition that is already established keeps its
// accepted names.
//
// A change of the spec or of the accepted names changes the API. It ends the watches of the definition's own objects, whose
// clients then list again. No other watch ends, and requests in flight finish with the old state. If several changes are served
// in one step, the caches and watches of the old API end only once.
//
// A DELETE marks a definition as Terminating. From then on none of its objects can be created, and the existing objects are
// deleted. The definition is removed after the last object; finalizers of objects may delay that. Then its names are free, and
// the next definition of the same name begins without objects. A definition that was never served is removed at once. If a client
// removes the finalizer customresourcecleanup.apiextensions.k8s.io itself, the objects are kept, and the next definition of that
// name has them.
//
// # Several servers
//
// All servers that share a storage watch the definitions and do the same work; there is no leader. Work that one server has done
// is not repeated by the others. Install the extension in all of them. When one server establishes a definition, the other
// servers already serve its API, unless they are slower than a quarter of a second. If another server creates an object while the
// last object is being deleted, that server deletes the object when it sees that the definition is gone. A server may end at any
// point: another server, or the server that is started next, continues its work.
//
// # Differences from kube-apiserver
//
//   - The writes of the controller to the status have no manager: metadata.managedFields has no entry kube-apiserver.
//   - A definition's own names never conflict with each other. NamesAccepted becomes True when the spec no longer has the
//     conflicting name. In kube-apiserver, whether they conflict, and whether NamesAccepted then becomes True, depend on the
//     order in which definitions requested the names.
//   - Kinds with Go types conflict with definitions and take precedence. A definition that was established before the program
//     served such a kind is not served, and its deletion leaves the objects of the kind alone.
//   - Before a definition is removed, a separate write sets the reason InstanceDeletionCompleted, which a watch may see. If
//     objects are held for more than a minute, the reason InstanceDeletionCheck is set once; in kube-apiserver the condition
//     alternates.
//   - The deletion of objects passes admission as the user system:apiserver, so that a plug-in can refuse it. The condition
//     Terminating has the refusal, and the deletion is tried again. In kube-apiserver the deletion does not pass admission.
//   - Definitions are stored as v1, and their storageVersionHash in discovery is that of v1. kube-apiserver stores them as v1beta1.
//   - A Table of no definitions has an empty list of rows, and not null, and the status of a definition can be read as a Table.
//   - A DELETE of the collection of definitions deletes each of them. In kube-apiserver it leaves the objects stored.
//   - A create of an object in the first two seconds after its definition was established is not delayed, as it is in
//     kube-apiserver.
//   - Creates are refused, and discovery shows that, as long as a definition has a deletionTimestamp. This includes the time in
//     which its objects are gone and only a finalizer of another program keeps the definition. In that time, kube-apiserver shows
//     all verbs again.
//   - A server-side apply with an unknown field or a value of a wrong type is answered with 400; kube-apiserver answers with 500
//     and no reason. managedFields are also updated when the schemas of two versions differ in a field; in kube-apiserver such a
//     difference keeps them from being updated. If they cannot be updated because the object has values that do not fit its
//     schema, which has changed since, the client receives a warning.
//   - The generation and managedFields refer to the stored object. A default of another version that the conversion drops has no
//     manager and does not raise the generation with each write.
//   - An object that cannot be converted is an error with code 500 and no reason, and nothing more. In kube-apiserver reads also
//     report the object as corrupt, with the reasons InternalError and StorageReadError, and the object can be deleted as
//     corrupt, although it is not.
//   - While a webhook is unreachable, lists and watches that convert no object are answered. A watch that converts objects ends
//     with the error of the webhook, not with "resourceVersion too large". An update of an object that does not exist, and a
//     create with an invalid name, are answered with 500; kube-apiserver answers with 404 and 422. If the object of a create
//     violates its schema or rules, both programs report that error first.
//   - A definition whose CABundle is invalid is not served before it is established (404). If another server has established it,
//     only the stored version is served. kube-apiserver answers all of its requests with 500.
//   - Label selectors match the stored labels, even if a conversion changes them. In kube-apiserver they match the labels that the
//     version of the request shows.
//   - The values that a column finds by a wildcard among the members of an object are sorted by name. In kube-apiserver they are
//     in random order.
//
// # Limits
//
//   - A definition whose spec uses something that the extension cannot serve is refused with 422, and the error names the field.
//     The only such case is a path of a scale that leads nowhere. If another program stored such a definition, it is not served.
//     Its condition Established then has the reason NotServed. If the condition was True before, it stays True, and only the log
//     reports the problem. A DELETE of the definition waits until the definition is corrected, or its finalizer is removed. The
//     latter keeps the objects in the storage.
//   - Two servers of one storage may run different programs, of which one serves a Go type for a kind that the other serves by a
//     definition. Each then serves its own kind from the same keys of the storage. If the definition is not established yet, the
//     servers disagree on its names, and its conditions alternate, at growing intervals of up to ten minutes.
//   - The costs of definitions and objects have bounds where kube-apiserver works for minutes or runs out of memory: see the
//     sections on bounds in the documentation of packages runtime/structural and runtime/cel/rules. An object whose defaults make
//     it larger than the storage allows is answered with 413. Series of request metrics with the resource of a definition stay
//     when the definition is gone, as in kube-apiserver: a client that may create definitions can add series without a bound. The
//     series of conversion webhooks are removed.
//   - A column whose JSONPath does not parse is not refused. This column and those after it are left out, as in kube-apiserver.
//   - Readers in the process (server.Server.Readers) compare fields as they are stored: an object that is stored in an earlier
//     version by its fields in that version, until the object is migrated (server.Server.MigrateStorage).
//   - If a webhook is unreachable, objects that are stored in an earlier version can only be read in that version and in JSON:
//     kubectl get -o yaml shows them, and kubectl get, which asks for a Table, reports the error. They cannot be changed or
//     deleted. A definition that has such objects cannot be deleted: its condition Terminating has the reason
//     InstanceDeletionFailed and the errors.
func New(o Options) server.Extension {
	if o.Logger == nil {
		o.Logger = zap.NewNop()
	}
	return extension{o}
}

type extension struct{ opts Options }

// checkName is the name of the health check.
const checkName = "customresourcedefinitions"

// firstSight is the maximum time that Install waits until the stored definitions are served.
const firstSight = 3 * time.Second

// Install implements server.Extension. It waits some seconds at most until the stored definitions are served. After that the
// health check customresourcedefinitions reports whether they are.
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
	limits := h.Limits()
	conversions.MaxDecodedBytes = cmp.Or(conversions.MaxDecodedBytes, limits.MaxDecodedBytes)
	conversions.MaxObjectBytes = cmp.Or(conversions.MaxObjectBytes, int(limits.MaxBodyBytes))
	if conversions.Budget == nil {
		conversions.Budget = h.Bytes()
	}
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
	h.OnClose(groups.Close) // requests in flight may need the groups
	select {
	case <-c.Synced():
	case <-time.After(firstSight):
		e.opts.Logger.Warn("the custom resources that are defined are not all served yet")
	}
	return nil
}

// logCalls returns a hook that logs why a call to a webhook failed, which clients do not learn. Then the hook calls besides,
// which may be nil. The number of lines and their length are bounded, because clients cause the calls and webhooks write the
// texts.
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

// maxCallLines is the maximum number of lines per second about calls that failed.
const maxCallLines = 10
