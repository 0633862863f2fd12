package options_test

import (
	"fmt"

	"github.com/keelson-dev/keelson/server/options"
)

// A program reads the flags of kube-apiserver. It prints the flags that have no effect, because a user may rely on them.
func ExampleParse() {
	args := []string{ // os.Args[1:] in a program
		"--storage-file=objects.db", "--bind-address=127.0.0.1", "--secure-port=8443", "--authorization-mode=RBAC",
		"--enable-admission-plugins=PodSecurity", "--encryption-provider-config=keys.yaml",
	}
	program := options.Program{
		Name: "controlplane", Version: "v1.0.0",
		AuthorizationModes: []string{"AlwaysAllow", "RBAC"},
		AdmissionPlugins:   []string{"NamespaceLifecycle"},
	}
	o, err := options.Parse(program, args)
	if err != nil {
		fmt.Println(err)
		return
	}
	if o.Print != "" { // --help or --version was given
		fmt.Println(o.Print)
		return
	}
	for _, flag := range o.WithoutEffect {
		fmt.Println("without effect:", flag)
	}
	fmt.Println("listen on", o.Listen())
	fmt.Println("objects are in", o.StorageFile)
	fmt.Println("authorization by", o.AuthorizationModes)
	fmt.Println("admission by", o.AdmissionPlugins)

	// A mode that the program does not have is an error: requests would pass that must not.
	_, err = options.Parse(program, []string{"--storage-file=objects.db", "--authorization-mode=Webhook"})
	fmt.Println(err)
	// Output:
	// without effect: --enable-admission-plugins=PodSecurity
	// without effect: --encryption-provider-config
	// listen on 127.0.0.1:8443
	// objects are in objects.db
	// authorization by [RBAC]
	// admission by [NamespaceLifecycle]
	// --authorization-mode: the mode Webhook is not available yet; available are AlwaysAllow, RBAC
}
