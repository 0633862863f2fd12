package apiset

import (
	"fmt"
	"reflect"
	"regexp"
	"slices"
	"strings"

	apischema "github.com/keelson-dev/keelson/runtime/schema"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/validation"
)

// orderedVersion is the form of the versions that Kubernetes orders: v2, v1, v1beta1, v1alpha1.
var orderedVersion = regexp.MustCompile(`^v[1-9][0-9]*((alpha|beta)[1-9][0-9]*)?$`)

// checkDeclared refuses what is legal for the clients of a server but most likely a mistake of its program, in a kind that the
// program declares by a Go type of its own.
func (r Resource) checkDeclared(gv schema.GroupVersion) error {
	switch {
	case !r.Declared:
		return nil
	case !kubernetesGroup(gv.Group) && !strings.Contains(gv.Group, "."):
		return fmt.Errorf("the group %q has no dot; name it after a domain of yours, such as widgets.example.com", gv.Group)
	case !orderedVersion.MatchString(gv.Version):
		return fmt.Errorf("the version %q has no order among others; name it like v1, v1beta1 or v2alpha3", gv.Version)
	case r.Kind[0] < 'A' || r.Kind[0] > 'Z':
		return fmt.Errorf("the kind %q must begin with a capital letter, such as %s", r.Kind, strings.ToUpper(r.Kind[:1])+r.Kind[1:])
	}
	for _, list := range []struct {
		option string
		names  []string
	}{{"ShortNames", r.ShortNames}, {"Categories", r.Categories}} {
		for _, name := range list.names {
			if len(validation.IsDNS1035Label(name)) > 0 {
				return fmt.Errorf("%s: %q must consist of lower case letters, digits and '-', such as wd", list.option, name)
			}
		}
	}
	if p := r.StoragePath; p != "" && slices.ContainsFunc(strings.Split(p, "/"), func(part string) bool { return part == "" || part == "." || part == ".." }) {
		return fmt.Errorf("StoragePath %q must consist of names joined by '/', such as example.com/widgets", p)
	}
	return apischema.CheckFields(r.GoType)
}

// kubernetesGroup reports whether a group without a dot is one of Kubernetes.
func kubernetesGroup(name string) bool {
	return slices.Contains([]string{"", "apps", "autoscaling", "batch", "extensions", "policy"}, name)
}

// IsNil reports whether an interface is nil, or has a nil pointer, map, slice, channel or function.
func IsNil(v any) bool {
	switch r := reflect.ValueOf(v); r.Kind() {
	case reflect.Pointer, reflect.Map, reflect.Func, reflect.Chan, reflect.Slice:
		return r.IsNil()
	}
	return v == nil
}
