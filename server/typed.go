package server

import (
	"reflect"

	"github.com/keelson-dev/keelson/authn"
	"github.com/keelson-dev/keelson/runtime"
	"github.com/keelson-dev/keelson/server/registry"
)

// Typed returns a registry.Typed, by which the program itself reads, writes and watches the stored objects of one kind. The kind
// is the one whose hub has the Go type T: Typed[*Widget](srv, user). Writes follow the rules of the kind, and admission, as over
// HTTP, but the permissions of user are not checked. For the work of the program, user can be authn.System() or an
// authn.ServiceAccount. The result can be used until the resource is withdrawn or replaced; after that its methods return errors.
// Typed returns an error if several resources have the type, or if no stored resource has it. It therefore cannot be used for
// kinds without a Go type, nor for kinds whose KindOptions.Storage is not a *registry.Registry. For a kind without a Go type, and
// for a type of several resources, use [Host.Registry].
func Typed[P runtime.Pointer[T], T any](s *Server, user *authn.User) (*registry.Typed[P], error) {
	reg, err := s.set.RegistryOfType(reflect.TypeFor[T]())
	if err != nil {
		return nil, err
	}
	return registry.For[P](reg, user)
}
