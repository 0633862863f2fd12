// Package options is the flags of kube-apiserver, for programs that are started as kube-apiserver is:
//
//	o, err := options.Parse(options.Program{Name: "controlplane", ...}, os.Args[1:])
//
// All flags of kube-apiserver 1.37 are accepted, and their values are checked for their types. Some of them have effect: their
// values are the fields of [Options]. The others have none yet, and [Options.WithoutEffect] names those that were given: a
// program should print them when it starts. What is not available of authorization (--authorization-config, and modes of
// --authorization-mode) is an error instead, for without it requests would pass that are to be stopped. Admission plug-ins,
// --runtime-config, TLS versions, encryption at rest and audit are among the flags without effect: do not rely on them. A flag that kube-apiserver does not have is an error, but for --storage-file, which is ours.
//
// A flag gets its effect in the table of this package, by a field of Options, and in the program.
package options

import (
	"errors"
	"fmt"
	"net"
	"strconv"
)

// Program is what the flags are for. Name is required.
type Program struct {
	Name string
	// Version is what --version prints.
	Version string
	// AuthorizationModes and AdmissionPlugins are those that the program has, by kube-apiserver's names.
	AuthorizationModes, AdmissionPlugins []string
}

// Options are the values of the flags that have effect.
type Options struct {
	// Print, unless empty, is what the program was started for by --help or --version: it should be printed to standard output,
	// and the program should end with exit code 0. All other fields are then zero.
	Print string
	// WithoutEffect are the flags that were given and have no effect, such as "--audit-policy-file", sorted. Where only some
	// values have none it has those, as in "--enable-admission-plugins=PodSecurity".
	WithoutEffect []string

	// SecurePort is 6443 by default, and 0 for any free port; BindAddress is 0.0.0.0 by default. See Listen.
	SecurePort  int
	BindAddress net.IP
	// CertDir is /var/run/kubernetes by default.
	CertDir string
	// TLSCertFile and TLSPrivateKeyFile are both given or both empty.
	TLSCertFile, TLSPrivateKeyFile string

	// AnonymousAuth is true by default.
	AnonymousAuth               bool
	ClientCAFile, TokenAuthFile string
	// AuthorizationModes is AlwaysAllow by default. Each is one of Program.AuthorizationModes.
	AuthorizationModes []string
	// AdmissionPlugins are those of Program.AdmissionPlugins that are on: kube-apiserver has them on by default or they were
	// enabled, and they were not disabled. They are in the order in which kube-apiserver runs them.
	AdmissionPlugins []string

	// StorageFile is empty if and only if there are EtcdServers.
	StorageFile string
	EtcdServers []string
	// EtcdPrefix is /registry by default.
	EtcdPrefix                            string
	EtcdCAFile, EtcdCertFile, EtcdKeyFile string

	enable, disable []string // admission plug-ins
	help            bool
	version         versionValue
}

// Listen is the TCP address to listen on.
func (o *Options) Listen() string {
	return net.JoinHostPort(o.BindAddress.String(), strconv.Itoa(o.SecurePort))
}

// Parse reads arguments, without the program's name. An error names every flag that is wrong, as far as the arguments could be
// read.
func Parse(p Program, args []string) (*Options, error) {
	o := defaults()
	set, err := parse(p, o, args)
	switch {
	case err != nil:
		return nil, err
	case o.help:
		return &Options{Print: usage(p)}, nil
	case o.version != "":
		return &Options{Print: o.version.text(p)}, nil
	}
	o.WithoutEffect = withoutEffect(set)
	if err := errors.Join(refused(set), o.check(), o.checkModes(p), o.checkPlugins(p)); err != nil {
		return nil, err
	}
	return o, nil
}

// check refuses what does not fit together.
func (o *Options) check() error {
	var all []error
	bad := func(is bool, format string, args ...any) {
		if is {
			all = append(all, fmt.Errorf(format, args...))
		}
	}
	bad(o.SecurePort < 0 || o.SecurePort > 65535, "--secure-port %d must be between 0 and 65535; 0 is any free port", o.SecurePort)
	bad((o.TLSCertFile == "") != (o.TLSPrivateKeyFile == ""), "--tls-cert-file and --tls-private-key-file must be given together")
	bad(o.CertDir == "", "--cert-dir must not be empty")
	bad(len(o.EtcdServers) == 0 && o.StorageFile == "", "--etcd-servers or --storage-file must be specified")
	bad(len(o.EtcdServers) > 0 && o.StorageFile != "", "--etcd-servers and --storage-file must not be given together: objects are kept in one of them")
	bad((o.EtcdCertFile == "") != (o.EtcdKeyFile == ""), "--etcd-certfile and --etcd-keyfile must be given together")
	return errors.Join(all...)
}
