package options

import (
	"errors"
	"fmt"
	"maps"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"k8s.io/apimachinery/pkg/api/resource"
	utilnet "k8s.io/apimachinery/pkg/util/net"
)

// checkedValue is the value of a flag without effect. It checks the syntax of the flag's type.
type checkedValue struct {
	kind  string
	check func(string) error
	last  string
}

// Set implements pflag.Value.
func (v *checkedValue) Set(s string) error {
	if v.check == nil {
		return fmt.Errorf("the flag is of the unknown type %s", v.kind)
	}
	if err := v.check(s); err != nil {
		return err
	}
	v.last = s
	return nil
}

// String implements pflag.Value.
func (v *checkedValue) String() string { return v.last }

// Type implements pflag.Value.
func (v *checkedValue) Type() string { return v.kind }

// checks returns functions that check the syntax of types that package pflag does not have.
func checks() map[string]func(string) error {
	return map[string]func(string) error{
		"Level": func(s string) error {
			_, err := strconv.ParseUint(s, 10, 32)
			return err
		},
		"pattern=N,...": each(func(part string) error {
			_, level, ok := strings.Cut(part, "=")
			if !ok {
				return fmt.Errorf("%q does not have the pattern=N format", part)
			}
			_, err := strconv.ParseUint(level, 10, 32)
			return err
		}),
		"mapStringString": each(func(part string) error {
			if key, _, _ := strings.Cut(part, "="); key == "" {
				return fmt.Errorf("malformed pair %q, expect string=string", part)
			}
			return nil
		}),
		"colonSeparatedMultimapStringString": each(func(part string) error {
			key, value, ok := strings.Cut(part, "=")
			if !ok || key == "" || strings.HasSuffix(key, ":") {
				return fmt.Errorf("malformed pair %q, expect feature=bool or component:feature=bool", part)
			}
			_, err := strconv.ParseBool(value)
			return err
		}),
		"namedCertKey": func(s string) error {
			files, _, _ := strings.Cut(s, ":")
			if cert, key, _ := strings.Cut(files, ","); cert == "" || key == "" || strings.Contains(key, ",") {
				return errors.New("expected comma separated certificate and key file paths")
			}
			return nil
		},
		"portRange": func(s string) error {
			_, err := utilnet.ParsePortRange(s)
			return err
		},
		"quantity": func(s string) error {
			_, err := resource.ParseQuantity(s)
			return err
		},
	}
}

// each returns a function that checks the parts of a comma separated list, except empty ones.
func each(check func(part string) error) func(string) error {
	return func(s string) error {
		for part := range strings.SplitSeq(s, ",") {
			if part = strings.TrimSpace(part); part == "" {
				continue
			}
			if err := check(part); err != nil {
				return err
			}
		}
		return nil
	}
}

// mapValue is the value of a flag that is repeated, each time with a key and a value: key=value. The last value of a key counts.
type mapValue map[string]string

// Set implements pflag.Value.
func (v *mapValue) Set(s string) error {
	key, value, ok := strings.Cut(s, "=")
	if !ok {
		return errors.New("malformed pair, expect string=string")
	}
	if *v == nil {
		*v = mapValue{}
	}
	(*v)[strings.TrimSpace(key)] = strings.TrimSpace(value)
	return nil
}

// String implements pflag.Value.
func (v *mapValue) String() string {
	pairs := make([]string, 0, len(*v))
	for _, key := range slices.Sorted(maps.Keys(*v)) {
		pairs = append(pairs, key+"="+(*v)[key])
	}
	return strings.Join(pairs, ",")
}

// Type implements pflag.Value.
func (v *mapValue) Type() string { return "mapStringString" }

// versionValue is the value of --version: "true" and "raw" print the version of the program, and vX.Y.Z is refused.
type versionValue string

// Set implements pflag.Value.
func (v *versionValue) Set(s string) error {
	on, err := strconv.ParseBool(s)
	switch {
	case s == "raw" || err == nil && on:
		*v = versionValue(s)
	case err == nil:
		*v = ""
	case regexp.MustCompile(`^v\d+\.\d+\.\d+`).MatchString(s):
		return errors.New("the version that is reported cannot be set")
	default:
		return errors.New("want true, false or raw")
	}
	return nil
}

// String implements pflag.Value.
func (v *versionValue) String() string { return string(*v) }

// Type implements pflag.Value.
func (v *versionValue) Type() string { return "version" }

// text returns the text that the flag prints.
func (v *versionValue) text(p Program) string {
	if *v == "raw" {
		return p.Version + "\n"
	}
	return p.Name + " " + p.Version + "\n"
}
