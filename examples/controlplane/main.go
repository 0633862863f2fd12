// Command controlplane is a control plane without nodes. It has the flags of kube-apiserver, and serves the kinds of k8s.io/api
// and those that CustomResourceDefinitions define. Start it at the root of the repository:
//
//	go run ./examples/controlplane --storage-file=plane.db --cert-dir=certs --bind-address=127.0.0.1
//
// When it has printed a line that begins with ready, use it in another terminal, at the root too:
//
//	kubectl --kubeconfig=certs/admin.kubeconfig get namespaces
//
// # Flags
//
// Flags of kube-apiserver that have no effect yet are accepted and listed in one line at start; --help marks them. Three flags
// differ: --storage-file stores the objects in a file instead of an etcd, --secure-port=0 means any free port, and
// --explain-authorization tells administrators why a user may do something or not: see package server/builtin/reviews.
//
// # Users
//
// Users are those of the client certificates of --client-ca-file, of --token-auth-file, of the webhook of
// --authentication-token-webhook-config-file, those that proxies with certificates of --requestheader-client-ca-file name in headers,
// and, with --enable-bootstrap-token-auth, those of the tokens in Secrets. If none of the four files is given, there is an
// administrator in system:masters, whose certificate, token and kubeconfig (admin.kubeconfig) are in --cert-dir. If one is given, this
// certificate and this token are not valid.
//
// The four files are used again within a few seconds after they change. If one cannot be used, its users from before stay; the log,
// /readyz?verbose and /metrics say so (see server.Host.Follow).
//
// The issuers of JSON web tokens are those of --authentication-config, which is used again when it changes, or the one of the flags
// --oidc-*: see package authn/jwt. These flags define users too. If the file says which requests without credentials are accepted, it
// decides in place of --anonymous-auth, which then must not be given, and it cannot change that while the program runs.
//
// The user of a request without credentials is system:anonymous. In the mode AlwaysAllow, the default, that applies only to the
// health paths, and other requests without credentials are refused. With --anonymous-auth=false all requests without credentials
// are refused.
//
// # Authorization
//
// Members of system:masters may do everything. Other requests are authorized by the modes of --authorization-mode, or by the authorizers of
// --authorization-config, a file that is used again when it changes: see package authz/config. With a file, AlwaysAllow is for requests
// without credentials too. The mode Node does not exist yet. The policy file of ABAC and the kubeconfig of
// --authorization-webhook-config-file are read at start only.
//
// # Serving certificate
//
// The serving certificate is that of --tls-cert-file, or else apiserver.crt and apiserver.key of --cert-dir. If these are missing
// they are created for localhost, 127.0.0.1, ::1 and --bind-address. The certificate authority is in --cert-dir, and its
// certificate is the second one in apiserver.crt.
//
// # Start and end
//
// When /readyz is ok the program prints "ready URL kubeconfig=PATH" to standard output. PATH is empty if there is no kubeconfig.
// The program logs to standard error. After SIGTERM or SIGINT it answers the requests in flight and exits with code 0. A second
// signal ends it at once.
package main

import (
	"context"
	"fmt"
	"os"
	"os/signal"
	"runtime/debug"
	"strings"
	"syscall"

	"github.com/keelson-dev/keelson/server/options"
)

func main() {
	o, err := options.Parse(program(), os.Args[1:])
	if err != nil {
		fail(err)
	}
	if o.Print != "" {
		fmt.Print(o.Print)
		return
	}
	if list := o.WithoutEffect; len(list) > 0 {
		fmt.Fprintln(os.Stderr, "controlplane: without effect yet:", strings.Join(list, " "))
	}
	ctx, cancel := context.WithCancel(context.Background())
	signals := make(chan os.Signal, 2)
	signal.Notify(signals, os.Interrupt, syscall.SIGTERM)
	go func() { <-signals; cancel(); <-signals; os.Exit(1) }() // a second signal ends the program at once
	if err := serve(ctx, o); err != nil {
		fail(err)
	}
}

func fail(err error) {
	fmt.Fprintln(os.Stderr, "controlplane:", err)
	os.Exit(1)
}

// program returns the features of this program, which determine the flags that have an effect.
func program() options.Program {
	version := "unknown"
	if build, ok := debug.ReadBuildInfo(); ok && build.Main.Version != "" {
		version = build.Main.Version
	}
	return options.Program{
		Name: "controlplane", Version: version,
		AuthorizationModes: []string{"AlwaysAllow", "AlwaysDeny", "RBAC", "ABAC", "Webhook"},
		AdmissionPlugins:   []string{namespaceLifecycle},
	}
}
