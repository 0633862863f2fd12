// Command controlplane is a control plane without nodes that is started as kube-apiserver is: it has the flags of kube-apiserver,
// and serves the kinds of k8s.io/api and what CustomResourceDefinitions define.
//
//	controlplane --storage-file=plane.db --cert-dir=certs --bind-address=127.0.0.1
//	kubectl --kubeconfig=certs/admin.kubeconfig get namespaces
//
// # Flags
//
// Flags of kube-apiserver that have no effect yet are accepted and named in one line at start; --help says which these are. Two
// things are different: --storage-file keeps the objects in a file instead of an etcd, and --secure-port=0 is any free port.
//
// # Users
//
// Users are those of --token-auth-file and of the client certificates of --client-ca-file. If neither is given there is one
// user, an administrator in system:masters, whose certificate, token and kubeconfig (admin.kubeconfig) are in --cert-dir; the
// certificate and token there are nobody's if users are given. Requests without credentials are those of system:anonymous; with
// the mode AlwaysAllow, the default, they are so at the health paths only, and refused elsewhere.
//
// # Serving certificate
//
// It is that of --tls-cert-file, or else apiserver.crt and apiserver.key of --cert-dir. If they are missing they are made: for
// localhost, 127.0.0.1, ::1 and --bind-address, by an authority in --cert-dir whose certificate is the second of apiserver.crt.
//
// # Start and end
//
// When /readyz is ok the program prints "ready URL kubeconfig=PATH" to standard output, where PATH is empty if there is no
// kubeconfig. It logs to standard error. SIGTERM and SIGINT end it with exit code 0 when the requests under way are answered; a
// second signal ends it at once.
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

// program says what the flags may ask for.
func program() options.Program {
	version := "unknown"
	if build, ok := debug.ReadBuildInfo(); ok && build.Main.Version != "" {
		version = build.Main.Version
	}
	return options.Program{
		Name: "controlplane", Version: version,
		AuthorizationModes: []string{"AlwaysAllow", "AlwaysDeny", "RBAC"},
		AdmissionPlugins:   []string{namespaceLifecycle},
	}
}
