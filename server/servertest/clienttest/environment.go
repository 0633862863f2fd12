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

// Environment is a server for a whole test suite, in the shape of controller-runtime's envtest.Environment: see the package
// comment for what differs. The zero Environment is ready to Start. Start and Stop are called from one goroutine; what they
// set may be read by all in between, and AddUser be called by all.
type Environment struct {
	// Scheme knows the kinds to serve; nil becomes the scheme.Scheme of client-go. Add everything to it before Start: it
	// must not be changed until Stop.
	Scheme *runtime.Scheme
	// Config reaches the server as its administrator. Start sets it; with an existing cluster only if it is nil.
	Config *rest.Config
	// KubeConfig is the content of a kubeconfig file that says the same, by which other processes reach the server, kubectl
	// among them. Start sets it.
	KubeConfig []byte
	// UseExistingCluster has Start start nothing, and Config be the one of the cluster that kubectl talks to: by
	// $KUBECONFIG, ~/.kube/config or as a Pod. nil: if the environment variable USE_EXISTING_CLUSTER is "true".
	UseExistingCluster *bool

	// CRDDirectoryPaths are files, and folders with files, of CustomResourceDefinitions: Start makes them, and waits until what
	// they define is served. Kinds of the Scheme that they define are served as they say, and the others by their Go
	// types. What is in the files besides CustomResourceDefinitions is left out.
	CRDDirectoryPaths []string
	// ErrorIfCRDPathMissing has Start fail if one of CRDDirectoryPaths does not exist; otherwise it is left out.
	ErrorIfCRDPathMissing bool
	// CRDFS has more definitions, in .yaml, .yml and .json files at any depth: such as an embed.FS.
	CRDFS fs.FS
	// CRDs are more definitions.
	CRDs []*apiextensionsv1.CustomResourceDefinition
	// Conversions convert between the versions of kinds that are defined so, instead of a webhook, whatever strategy the
	// definition names; see ConvertWith. Those of the Scheme's types that controller-runtime's webhook would convert with are
	// there already: see the function Conversions. An existing cluster has no use for them.
	Conversions map[schema.GroupKind]keelson.ConvertUntyped

	// Types says what the Scheme does not tell of its kinds, such as that one is cluster scoped. Its Scheme and AddToScheme
	// stay empty.
	Types servertest.Types
	// Parts are served beside the kinds of the Scheme, and instead of those that they serve themselves.
	Parts []server.Extension
	// Options are those of the server, such as Logger and Authorizer.
	Options server.Options
	// NoControllers leaves out the garbage collector and the deletion of the content of namespaces, as in envtest: objects
	// stay when their owners go, and a namespace that is deleted stays Terminating.
	NoControllers bool

	// Server is what Start started, to Inject faults into and to Record requests of. It is nil before Start, after Stop, and
	// with an existing cluster.
	Server *servertest.Server
}

// Start starts the server, with nothing in it but the namespaces that every cluster has and the definitions that are asked for,
// and returns Config. An
// Environment that was stopped may be started again, anew.
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
	if sources != nil { // the kinds come last: those that are defined are not among them
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

// find takes an existing cluster.
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

// Stop ends the server and waits for it. An existing cluster stays as it is. The error says how the server ended
// otherwise, or which goroutines it left. Before Start, and a second time, there is nothing to stop.
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
