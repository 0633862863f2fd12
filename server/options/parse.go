package options

import (
	"cmp"
	"errors"
	"fmt"
	"io"
	"maps"
	"net"
	"slices"
	"strings"
	"time"

	"github.com/spf13/pflag"
)

// parse sets the fields of o, and returns the flags that were given, by name.
func parse(p Program, o *Options, args []string) (map[string]flag, error) {
	fs := newFlagSet(p.Name)
	all := map[string]flag{}
	for _, s := range sections() {
		for _, f := range s.flags {
			all[f.name] = f
			f.declare(fs, o)
		}
	}
	if err := fs.Parse(args); err != nil {
		return nil, unknown(err)
	}
	if fs.NArg() > 0 {
		return nil, fmt.Errorf("%s does not take any arguments, got %q", p.Name, fs.Args())
	}
	set := map[string]flag{}
	fs.Visit(func(f *pflag.Flag) { set[f.Name] = all[f.Name] })
	return set, nil
}

// newFlagSet returns a set that prints nothing. Names may have _ in place of -, as in kube-apiserver.
func newFlagSet(name string) *pflag.FlagSet {
	fs := pflag.NewFlagSet(name, pflag.ContinueOnError)
	fs.SetOutput(io.Discard)
	fs.Usage = func() {}
	fs.SetNormalizeFunc(func(_ *pflag.FlagSet, name string) pflag.NormalizedName {
		return pflag.NormalizedName(strings.ReplaceAll(name, "_", "-"))
	})
	return fs
}

// target returns the variable that a flag of type T sets.
func target[T any](f flag, o *Options) *T {
	if f.effect == nil {
		return new(T)
	}
	return f.effect(o).(*T)
}

// declare adds the flag to a set. The default is the value in o.
func (f flag) declare(fs *pflag.FlagSet, o *Options) {
	switch f.kind {
	case "bool":
		v := target[bool](f, o)
		fs.BoolVarP(v, f.name, f.short, *v, f.text())
	case "string":
		v := target[string](f, o)
		fs.StringVarP(v, f.name, f.short, *v, f.text())
	case "int":
		v := target[int](f, o)
		fs.IntVarP(v, f.name, f.short, *v, f.text())
	case "uint":
		fs.UintVarP(new(uint), f.name, f.short, 0, f.text())
	case "ip":
		v := target[net.IP](f, o)
		fs.IPVarP(v, f.name, f.short, *v, f.text())
	case "strings":
		v := target[[]string](f, o)
		fs.StringSliceVarP(v, f.name, f.short, *v, f.text())
	case "stringArray":
		v := target[[]string](f, o)
		fs.StringArrayVarP(v, f.name, f.short, *v, f.text())
	case "duration":
		v := target[time.Duration](f, o)
		fs.DurationVarP(v, f.name, f.short, *v, f.text())
	case "float":
		v := target[float64](f, o)
		fs.Float64VarP(v, f.name, f.short, *v, f.text())
	case "float32":
		v := target[float32](f, o)
		fs.Float32VarP(v, f.name, f.short, *v, f.text())
	case "int32Slice":
		fs.Int32SliceVarP(new([]int32), f.name, f.short, nil, f.text())
	case "stringToString":
		fs.StringToStringVarP(new(map[string]string), f.name, f.short, nil, f.text())
	case "version":
		fs.VarPF(target[versionValue](f, o), f.name, f.short, f.text()).NoOptDefVal = "true"
	case "mapStringString":
		if f.effect != nil {
			fs.VarP((*mapValue)(target[map[string]string](f, o)), f.name, f.short, f.text())
			break
		}
		fallthrough
	default:
		fs.VarP(&checkedValue{kind: f.kind, check: checks()[f.kind]}, f.name, f.short, f.text())
	}
}

// text returns the help of the flag.
func (f flag) text() string {
	switch {
	case f.refused != "":
		return f.help + " (an error: not available yet)"
	case f.effect == nil:
		return f.help + " (no effect yet)"
	case f.partly:
		return f.help + " (no other effect yet)"
	}
	return f.help
}

// usage returns the text of --help.
func usage(p Program) string {
	var b strings.Builder
	fmt.Fprintf(&b, "%s serves the Kubernetes API. It has the flags of kube-apiserver.\n\nUsage:\n  %s [flags]\n", p.Name, p.Name)
	o := defaults()
	for _, s := range sections() {
		fs := newFlagSet(p.Name)
		for _, f := range s.flags {
			f.declare(fs, o)
		}
		fmt.Fprintf(&b, "\n%s flags:\n\n%s", s.title, fs.FlagUsagesWrapped(120))
	}
	fmt.Fprintf(&b, "\nAuthorization modes: %s.\nAdmission plug-ins: %s.\n", listed(p.AuthorizationModes), listed(p.AdmissionPlugins))
	return b.String()
}

// listed returns names in one line.
func listed(names []string) string { return cmp.Or(strings.Join(names, ", "), "none") }

// withoutEffect returns the names of the flags that lack an effect.
func withoutEffect(set map[string]flag) []string {
	var names []string
	for _, f := range set {
		if f.effect == nil || f.partly {
			names = append(names, "--"+f.name)
		}
	}
	slices.Sort(names)
	return names
}

// refused returns the error of flags that must not be given.
func refused(set map[string]flag) error {
	var all []error
	for _, name := range slices.Sorted(maps.Keys(set)) {
		if why := set[name].refused; why != "" {
			all = append(all, fmt.Errorf("--%s: %s", name, why))
		}
	}
	return errors.Join(all...)
}

// defaults returns the Options without any flag.
func defaults() *Options {
	return &Options{
		SecurePort: 6443, BindAddress: net.IPv4zero, CertDir: "/var/run/kubernetes", EtcdPrefix: "/registry",
		Authentication: defaultAuthentication(), Authorization: defaultAuthorization(), ServiceAccounts: ServiceAccounts{Extend: true, Lookup: true}, Audit: defaultAudit(),
	}
}
