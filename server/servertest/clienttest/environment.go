package clienttest

import (
	"errors"
	"fmt"
	"os"
	"slices"
	"strings"

	"github.com/keelson-dev/keelson/server"
	"github.com/keelson-dev/keelson/server/builtin"
	"github.com/keelson-dev/keelson/server/servertest"
	"k8s.io/apimachinery/pkg/runtime"
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

// Start starts the server, with nothing in it but the namespaces that every cluster has, and returns Config. An
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
	if e.useExistingCluster() {
		return e.find()
	}
	switch {
	case e.Server != nil:
		return errors.New("the Environment is running; Stop it first")
	case e.Types.Scheme != nil || e.Types.AddToScheme != nil:
		return errors.New("the kinds are those of the Environment's Scheme; leave Types.Scheme and Types.AddToScheme empty")
	}
	kinds := e.Types
	kinds.Scheme = e.Scheme
	wing := builtin.New(builtin.Options{Logger: e.Options.Logger, NoControllers: e.NoControllers})
	s, err := servertest.Run(e.Options, slices.Concat([]server.Extension{wing}, e.Parts, []server.Extension{kinds})...)
	if err != nil {
		return err
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
