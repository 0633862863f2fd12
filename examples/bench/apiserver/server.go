package main

import (
	"context"
	"fmt"
	"net"
	"slices"
	"time"

	"github.com/keelson-dev/keelson/examples/bench/internal/program"
	"github.com/keelson-dev/keelson/examples/bench/internal/widget"
	autoscalingv1 "k8s.io/api/autoscaling/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/runtime/serializer"
	"k8s.io/apiserver/pkg/apis/apiserver"
	"k8s.io/apiserver/pkg/authentication/authenticator"
	"k8s.io/apiserver/pkg/authentication/request/anonymous"
	"k8s.io/apiserver/pkg/authentication/request/union"
	"k8s.io/apiserver/pkg/authorization/authorizer"
	"k8s.io/apiserver/pkg/authorization/path"
	"k8s.io/apiserver/pkg/endpoints/openapi"
	"k8s.io/apiserver/pkg/registry/rest"
	genericapiserver "k8s.io/apiserver/pkg/server"
	"k8s.io/apiserver/pkg/server/dynamiccertificates"
	"k8s.io/apiserver/pkg/server/options"
	"k8s.io/apiserver/pkg/storage/storagebackend"
	"k8s.io/apiserver/pkg/util/compatibility"
)

// benchUser is the name of the user with the token, and of the group that may do everything.
const benchUser = "bench"

// shutdownTimeout is how long connections may last at the end. With the default, a watch would delay the end by a minute.
const shutdownTimeout = time.Second

// groupVersion returns the group version that is served and stored.
func groupVersion() schema.GroupVersion {
	return schema.GroupVersion{Group: widget.Group, Version: widget.Version}
}

// newScheme returns a scheme with the kind. There is one version, and its Go type is also the internal one. So objects need no
// conversion, and no copy for a conversion.
func newScheme() (*runtime.Scheme, error) {
	scheme := runtime.NewScheme()
	for _, version := range []string{widget.Version, runtime.APIVersionInternal} {
		scheme.AddKnownTypes(schema.GroupVersion{Group: widget.Group, Version: version}, &widget.Widget{}, &widget.WidgetList{})
		scheme.AddKnownTypes(schema.GroupVersion{Group: autoscalingv1.GroupName, Version: version}, &autoscalingv1.Scale{})
	}
	core := schema.GroupVersion{Version: "v1"}
	metav1.AddToGroupVersion(scheme, groupVersion())
	metav1.AddToGroupVersion(scheme, core)
	scheme.AddUnversionedTypes(core, &metav1.Status{}, &metav1.APIVersions{}, &metav1.APIGroupList{}, &metav1.APIGroup{}, &metav1.APIResourceList{})
	return scheme, scheme.SetVersionPriority(groupVersion())
}

// newServer returns a server that will serve on ln, with its objects in etcd. With an empty token and without other identities no
// client is authenticated.
func newServer(ln net.Listener, cert, key []byte, etcd []string, token string, id program.Identities) (*genericapiserver.GenericAPIServer, error) {
	scheme, err := newScheme()
	if err != nil {
		return nil, err
	}
	codecs := serializer.NewCodecFactory(scheme)
	config := genericapiserver.NewConfig(codecs)
	config.EffectiveVersion = compatibility.DefaultBuildEffectiveVersion()
	config.Authentication.Authenticator = newAuthenticator(token)
	if config.Authorization.Authorizer, err = newAuthorizer(); err != nil {
		return nil, err
	}
	names := openapi.NewDefinitionNamer(scheme)
	config.OpenAPIConfig = genericapiserver.DefaultOpenAPIConfig(definitions, names)
	config.OpenAPIV3Config = genericapiserver.DefaultOpenAPIV3Config(definitions, names)

	serving := options.NewSecureServingOptions()
	serving.Listener = ln
	if serving.ServerCert.GeneratedCert, err = dynamiccertificates.NewStaticCertKeyContent("serving", cert, key); err != nil {
		return nil, fmt.Errorf("-cert and -key: %w", err)
	}
	if err := serving.WithLoopback().ApplyToConfig(config); err != nil {
		return nil, err
	}
	if err := applyIdentities(config, token, id); err != nil {
		return nil, err
	}
	storage := options.NewEtcdOptions(storagebackend.NewDefaultConfig("/registry", codecs.LegacyCodec(groupVersion())))
	storage.StorageConfig.Transport.ServerList = etcd
	if err := storage.ApplyTo(config); err != nil {
		return nil, err
	}
	informers, err := applyFlowControl(config)
	if err != nil {
		return nil, err
	}

	server, err := config.Complete(informers).New("bench", genericapiserver.NewEmptyDelegate())
	if err != nil {
		return nil, err
	}
	server.ShutdownTimeout = shutdownTimeout
	resources, err := newStorage(scheme, config.RESTOptionsGetter)
	if err != nil {
		return nil, err
	}
	group := genericapiserver.NewDefaultAPIGroupInfo(widget.Group, scheme, runtime.NewParameterCodec(scheme), codecs)
	group.VersionedResourcesStorageMap = map[string]map[string]rest.Storage{widget.Version: resources}
	return server, server.InstallAPIGroup(&group)
}

// newAuthenticator returns an authenticator for the token's user. All other clients are anonymous.
func newAuthenticator(token string) authenticator.Request {
	nobody := anonymous.NewAuthenticator([]apiserver.AnonymousAuthCondition(nil))
	if token == "" {
		return nobody
	}
	return union.NewFailOnError(newTokens(token), nobody)
}

// newAuthorizer returns an authorizer that allows the group of benchUser everything, and everybody the server's health and
// version.
func newAuthorizer() (authorizer.Authorizer, error) {
	public, err := path.NewAuthorizer([]string{"/healthz", "/healthz/*", "/livez", "/livez/*", "/readyz", "/readyz/*", "/version", "/version/"})
	if err != nil {
		return nil, err
	}
	return authorizer.AuthorizerFunc(func(ctx context.Context, a authorizer.Attributes) (authorizer.Decision, string, error) {
		if slices.Contains(a.GetUser().GetGroups(), benchUser) {
			return authorizer.DecisionAllow, "", nil
		}
		return public.Authorize(ctx, a)
	}), nil
}
