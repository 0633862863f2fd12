// Package options parses the flags of kube-apiserver, for programs that are started like kube-apiserver:
//
//	o, err := options.Parse(options.Program{Name: "controlplane", ...}, os.Args[1:])
//
// All flags of kube-apiserver 1.37 are accepted, and the types of their values are checked. Flags that have an effect set the
// fields of [Options]. [Options.WithoutEffect] lists the other flags that were given; a program should print them when it starts.
// Among the flags without effect are --runtime-config, those of TLS versions and encryption at rest, and admission plug-ins that
// the program does not have. Do not rely on these.
//
// --authorization-mode with a mode that the program does not have is an error, since a server that ignored it would allow other requests
// than it should. --service-account-signing-endpoint is one, since tokens would be signed with another key than its. A flag that kube-apiserver does not have is an error, too, except
// --storage-file and --explain-authorization, which this package adds.
//
// To change this package so that another flag has an effect, add a field to Options, name the field in the entry of the flag in
// the table of this package, and use it in the program.
package options

import (
	"errors"
	"fmt"
	"net"
	"strconv"
	"time"
)

// Program describes the program that is started. Name is required.
type Program struct {
	// Name is the name of the program, for help and errors.
	Name string
	// Version is the text that --version prints.
	Version string
	// AuthorizationModes and AdmissionPlugins are the modes and plug-ins that the program has, by their names in kube-apiserver.
	AuthorizationModes, AdmissionPlugins []string
}

// Options are the values of the flags that have effect.
type Options struct {
	// Print, unless empty, is the text for --help or --version. The program should print it to standard output and end with exit
	// code 0. All other fields are then zero.
	Print string
	// WithoutEffect are the flags that were given and have no effect, such as "--runtime-config", sorted. If only some values
	// of a flag have no effect, it has these values, as in "--enable-admission-plugins=PodSecurity".
	WithoutEffect []string

	// SecurePort is the port to listen on: 6443 by default, and 0 for any free port. See Listen.
	SecurePort int
	// BindAddress is the IP address to listen on: 0.0.0.0 by default.
	BindAddress net.IP
	// CertDir is the directory of the serving certificate: /var/run/kubernetes by default.
	CertDir string
	// TLSCertFile and TLSPrivateKeyFile are the files of the serving certificate and its key. Both are given or both are empty.
	TLSCertFile, TLSPrivateKeyFile string

	// CORSAllowedOrigins are regular expressions of origins; see AllowOrigin. HSTS are directives for server.Serving.HSTS.
	CORSAllowedOrigins, HSTS []string
	// GoAwayChance, LivezGrace, ShutdownDelay, ShutdownRetryAfter and ShutdownWatchGrace are for the fields of these names of
	// server.Serving.
	GoAwayChance                                  float64
	LivezGrace, ShutdownDelay, ShutdownWatchGrace time.Duration
	ShutdownRetryAfter                            bool

	// Audit says what is recorded, and where.
	Audit Audit

	// Authentication says which users there are.
	Authentication Authentication
	// ServiceAccounts says how the tokens of service accounts are issued and verified.
	ServiceAccounts ServiceAccounts
	// AuthorizationModes are the authorizers in their order: AlwaysAllow by default. Each is one of Program.AuthorizationModes. There are none
	// if and only if Authorization has a ConfigFile.
	AuthorizationModes []string
	// Authorization configures the authorizers.
	Authorization Authorization
	// AdmissionPlugins are the plug-ins of Program.AdmissionPlugins that the flags enable, or that kube-apiserver enables by
	// default, without those that the flags disable. They are in the order in which kube-apiserver runs them.
	AdmissionPlugins []string

	// StorageFile is the file of --storage-file, for the objects. It is empty if and only if there are EtcdServers.
	StorageFile string
	// EtcdServers are the URLs of etcd servers for the objects.
	EtcdServers []string
	// EtcdPrefix is the prefix of all keys in etcd: /registry by default.
	EtcdPrefix string
	// EtcdCAFile is the file of the authorities of etcd. EtcdCertFile and EtcdKeyFile are the files of the client certificate and
	// its key for etcd; both are given or both are empty.
	EtcdCAFile, EtcdCertFile, EtcdKeyFile string

	enable, disable []string // admission plug-ins
	help            bool
	version         versionValue
}

// Listen returns the TCP address to listen on.
func (o *Options) Listen() string {
	return net.JoinHostPort(o.BindAddress.String(), strconv.Itoa(o.SecurePort))
}

// Parse parses args, the arguments without the name of the program. A flag that cannot be parsed ends Parse at once, and the
// error names only that flag. Otherwise the error names every flag that is wrong.
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
	o.Authentication.complete(set, o.ServiceAccounts.Issuers)
	if err := errors.Join(refused(set), o.check(), o.checkAuthorization(p, set), o.checkPlugins(p)); err != nil {
		return nil, err
	}
	return o, nil
}

// check refuses values that do not fit together.
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
	bad(!(o.GoAwayChance >= 0 && o.GoAwayChance <= 0.02), "--goaway-chance %v must be between 0 and 0.02", o.GoAwayChance)
	bad(o.LivezGrace < 0, "--livez-grace-period must not be negative")
	bad(o.ShutdownDelay < 0, "--shutdown-delay-duration must not be negative")
	bad(o.ShutdownWatchGrace < 0, "--shutdown-watch-termination-grace-period must not be negative")
	return errors.Join(append(all, o.checkBrowsers(), o.Authentication.check(), o.ServiceAccounts.check(), o.Audit.check())...)
}
