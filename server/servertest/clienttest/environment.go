package clienttest

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"slices"
	"strings"

	keelson "github.com/keelson-dev/keelson/runtime"
	"github.com/keelson-dev/keelson/server"
	"github.com/keelson-dev/keelson/server/builtin"
	"github.com/keelson-dev/keelson/server/servertest"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/kubernetes/scheme"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"
)

// Environment is a server for a whole test suite, with the API of controller-runtime's envtest.Environment:
//
//	testEnv := &clienttest.Environment{
//		Scheme:                scheme,
//		CRDDirectoryPaths:     []string{filepath.Join("..", "config", "crd", "bases")},
//		ErrorIfCRDPathMissing: true,
//	}
//	cfg, err := testEnv.Start() // milliseconds
//	...
//	err = testEnv.Stop()
//
// The zero Environment is ready to Start. Call Start and Stop in one goroutine. Between them, any goroutine may read the fields
// that they set, and call AddUser.
//
// The fields and methods that envtest has too mean the same. Fields that would have no meaning do not exist, so that the compiler
// reports their uses: remove BinaryAssetsDirectory, DownloadBinaryAssets*, ControlPlane*, and AttachControlPlaneOutput. In place
// of CRDInstallOptions, use CRDDirectoryPaths for its Paths and ErrorIfCRDPathMissing for its ErrorIfPathMissing. There is no
// WebhookInstallOptions: there are no admission webhooks, and conversion needs no webhook server.
//
// Kinds with CustomResourceDefinitions are served as their definitions say, with their defaults, rules, printer columns and
// scale. If the Scheme has types with the Hub and ConvertTo of controller-runtime, or if Conversions has a function, these
// convert the objects instead of a webhook, whether the definition names a webhook or not. (A project's kustomization may add
// one.)
//
// Other kinds of the Scheme are served by their Go types, so that a suite needs no definitions. The Scheme must have them before
// Start.
//
// A suite can still be run against a cluster, as with envtest: set USE_EXISTING_CLUSTER=true or UseExistingCluster.
//
// # Differences from envtest
//
//   - The server has the kinds of the Scheme, of package builtin of server and of the CRDs, not those of kube-apiserver. If the
//     Scheme has no apps/v1, there are no Deployments.
//   - Kinds of k8s.io/api that builtin does not serve have no defaults, validation and allocation of kube-apiserver (a Service's
//     clusterIP, a Pod's service account). Their status is a subresource, as in kube-apiserver. Nothing runs Pods; envtest does
//     not run them either.
//   - Kinds without a definition follow their Go types. Markers for a CRD, such as defaults, validation rules, printer columns
//     and scale, have no effect. /status is served if the type has a field status. Use Types for a kind without /status, a
//     cluster-scoped kind, or one with an irregular plural.
//   - A cluster-scoped kind that is missing in Types.ClusterScoped is namespaced: client-go then refuses to create its objects
//     with "an empty namespace may not be set during creation".
//   - The only subresources are status, and scale if Types.Scales has the kind, also for Deployments. pods/eviction,
//     pods/binding, serviceaccounts/token and the like are not served, and neither are reviews such as SelfSubjectAccessReview.
//   - There are no admission webhooks. If a kind without a definition has several versions, those are served that the Scheme can
//     convert.
//   - A definition that occurs twice is an error, and so is an unknown field in it. envtest takes the last one, and drops the
//     field. CustomResourceDefinitions are served if there are definitions, or if Parts has the extension of package server/crd.
//   - Controllers run that envtest does not have: objects whose owners are gone are deleted, and the deletion of a namespace
//     deletes its content. NoControllers leaves them out.
//   - There is no RBAC. A user in the group system:masters may do everything. For others, Policy.Authorizer of the server
//     decides; without it they may use discovery only. Impersonation is refused.
//   - Clients do not throttle themselves, and connect in memory.
type Environment struct {
	// Scheme has the kinds to serve; nil means the scheme.Scheme of client-go. Add everything to it before Start. It must not be
	// changed until Stop.
	Scheme *runtime.Scheme
	// Config is a configuration for clients as the administrator. Start sets it. With an existing cluster Start sets it only if
	// it is nil.
	Config *rest.Config
	// KubeConfig is the content of a kubeconfig file for the same user, also for other processes such as kubectl. Start sets it.
	KubeConfig []byte
	// UseExistingCluster makes Start use the cluster that kubectl uses, by $KUBECONFIG, ~/.kube/config or as a Pod, and start no
	// server. nil means true if the environment variable USE_EXISTING_CLUSTER is "true".
	UseExistingCluster *bool

	// CRDDirectoryPaths are files, and folders with files, of CustomResourceDefinitions. Start creates the definitions and waits
	// until they are served. They take precedence over the Go types of the Scheme. Other objects in the files are ignored.
	CRDDirectoryPaths []string
	// ErrorIfCRDPathMissing makes Start fail if one of CRDDirectoryPaths does not exist. Otherwise a missing path is ignored.
	ErrorIfCRDPathMissing bool
	// CRDFS is a file system with more definitions, in .yaml, .yml and .json files at any depth, such as an embed.FS.
	CRDFS fs.FS
	// CRDs are more definitions.
	CRDs []*apiextensionsv1.CustomResourceDefinition
	// Conversions are functions that convert between the versions of kinds with definitions. They are used instead of a webhook,
	// whatever strategy the definition names; see ConvertWith. The conversions that controller-runtime's webhook would make with
	// the Scheme's types are added automatically: see the function Conversions. Conversions is ignored with an existing cluster.
	Conversions map[schema.GroupKind]keelson.ConvertUntyped

	// Types has the options for kinds of the Scheme that their types do not show, such as that a kind is cluster-scoped. Its
	// Scheme and AddToScheme must be empty.
	Types servertest.Types
	// Parts are served in addition to the kinds of the Scheme. A kind that a part serves is not served by its Go type.
	Parts []server.Extension
	// Options are the options of the server, such as Observe.Logger and Policy.Authorizer.
	Options server.Options
	// NoControllers leaves out the garbage collector and the deletion of the content of namespaces, as in envtest: objects stay
	// when their owners are deleted, and a deleted namespace stays Terminating.
	NoControllers bool

	// Server is the server that Start started, for example for Inject and Record. It is nil before Start, after Stop, and with an
	// existing cluster.
	Server *servertest.Server
}

// Start starts the server and returns Config. The server has only the namespaces that every cluster has, and the definitions.
// After Stop, an Environment may be started again, with a new server.
func (e *Environment) Start() (*rest.Config, error) {
	if e.Scheme == nil {
		e.Scheme = scheme.Scheme
	}
	if err := e.start(); err != nil {
		return nil, fmt.Errorf("clienttest: Start: %w", err)
	}
	return e.Config, nil
}

func (e *Environment) start() error {
	sources := e.sources()
	if e.useExistingCluster() {
		if err := e.find(); err != nil || sources == nil {
			return err
		}
		return e.defineIn(e.Config, sources)
	}
	switch {
	case e.Server != nil:
		return errors.New("the Environment is running; Stop it first")
	case e.Types.Scheme != nil || e.Types.AddToScheme != nil:
		return errors.New("the kinds are those of the Environment's Scheme; leave Types.Scheme and Types.AddToScheme empty")
	}
	kinds := e.Types
	kinds.Scheme = e.Scheme
	builtins := builtin.New(builtin.Options{Logger: e.Options.Observe.Logger, NoControllers: e.NoControllers})
	parts := slices.Concat([]server.Extension{builtins}, e.Parts)
	if sources == nil {
		parts = append(parts, kinds)
	}
	s, err := servertest.Run(e.Options, parts...)
	if err != nil {
		return err
	}
	if sources != nil { // kinds come last, so that those with definitions are left out
		if err := e.define(s, sources); err != nil {
			return errors.Join(err, s.Close())
		}
		if hasLists(e.Scheme) {
			err = s.Install(kinds)
		}
		if err != nil {
			return errors.Join(err, s.Close())
		}
	}
	c, err := networkConfig(s, s.Token)
	if err != nil {
		return errors.Join(err, s.Close())
	}
	text, err := kubeConfig(c)
	if err != nil {
		return errors.Join(err, s.Close())
	}
	e.Server, e.Config, e.KubeConfig = s, c, text
	return nil
}

// find uses an existing cluster.
func (e *Environment) find() (err error) {
	if e.Config == nil {
		found := clientcmd.NewNonInteractiveDeferredLoadingClientConfig(clientcmd.NewDefaultClientConfigLoadingRules(), nil)
		if e.Config, err = found.ClientConfig(); err != nil {
			return fmt.Errorf("existing cluster: %w", err)
		}
	}
	e.KubeConfig, err = kubeConfig(e.Config)
	return err
}

// Stop ends the server and waits for it. An existing cluster is not changed. The error is that of the server, or lists the
// remaining goroutines. Stop does nothing before Start and after Stop.
func (e *Environment) Stop() error {
	s := e.Server
	if s == nil {
		return nil
	}
	e.Server = nil
	if err := s.Close(); err != nil {
		return fmt.Errorf("clienttest: Stop: %w", err)
	}
	return nil
}

func (e *Environment) useExistingCluster() bool {
	if e.UseExistingCluster != nil {
		return *e.UseExistingCluster
	}
	return strings.EqualFold(os.Getenv("USE_EXISTING_CLUSTER"), "true")
}
