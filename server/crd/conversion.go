package crd

import (
	"github.com/keelson-dev/keelson/runtime"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

// explained is a conversion of the program's that, where it fails or panics, says what is wrong with the object by the schema of
// its version, if anything is. A request's object is converted before it is validated, and the program may stumble over
// what is not valid.
func explained(kind schema.GroupKind, convert runtime.ConvertUntyped, schemas map[string]*objectSchema) runtime.ConvertUntyped {
	return func(in *unstructured.Unstructured, to schema.GroupVersion) (out *unstructured.Unstructured, err error) {
		before := in.DeepCopy()
		returned := false
		defer func() {
			if returned && err == nil {
				return
			}
			s := schemas[before.GroupVersionKind().Version]
			if s == nil {
				return
			}
			if errs := s.structure().Validate(nil, before.Object); len(errs) > 0 {
				_ = recover() // the object is to blame
				out, err = nil, apierrors.NewInvalid(kind, before.GetName(), errs)
			}
		}()
		out, err = convert(in, to)
		returned = true
		return out, err
	}
}
