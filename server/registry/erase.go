package registry

import (
	"reflect"

	"github.com/keelson-dev/keelson/runtime"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/validation/field"
)

// Erased is a Strategy without its type parameter, for Options.Strategy. [Erase] makes one. The zero Erased is equivalent to the
// zero Strategy.
type Erased struct {
	object reflect.Type // T; nil is any

	permit func(call *Call, obj, old runtime.Object) error

	prepareForCreate       func(*Call, runtime.Object)
	prepareForUpdate       func(*Call, runtime.Object, runtime.Object)
	prepareForStatusUpdate func(*Call, runtime.Object, runtime.Object)

	validate             func(*Call, runtime.Object) field.ErrorList
	validateUpdate       func(*Call, runtime.Object, runtime.Object) field.ErrorList
	validateStatusUpdate func(*Call, runtime.Object, runtime.Object) field.ErrorList

	warnOnCreate func(*Call, runtime.Object) []string
	warnOnUpdate func(*Call, runtime.Object, runtime.Object) []string

	canonicalize   func(runtime.Object)
	validateName   func(name string, prefix bool) []string
	gracefulDelete func(*Call, runtime.Object, *metav1.DeleteOptions) bool

	terminate  func(*Call, runtime.Object, metav1.Time) bool
	finalizing func(runtime.Object) bool

	resetFields            []string
	ratcheting             bool
	hubFieldNames          bool
	statusMetadata         bool
	plainFinalizers        bool
	limitAtAny             bool
	metadataLast           bool
	noDependents           bool
	ownScaleChecks         bool
	terminateAlone         bool
	noGeneration           bool
	requireResourceVersion bool
	createOnUpdate         bool
	returnDeleted          bool
}

// Erase returns a strategy without its type parameter. It is for objects of Go type T only; [New] checks that.
func Erase[T runtime.Object](s Strategy[T]) Erased {
	e := Erased{
		object:                 reflect.TypeFor[T](),
		prepareForUpdate:       eraseChange(s.PrepareForUpdate),
		prepareForStatusUpdate: eraseChange(s.PrepareForStatusUpdate),
		validate:               eraseOne(s.Validate),
		validateUpdate:         eraseTwo(s.ValidateUpdate),
		validateStatusUpdate:   eraseTwo(s.ValidateStatusUpdate),
		warnOnCreate:           eraseOne(s.WarnOnCreate),
		warnOnUpdate:           eraseTwo(s.WarnOnUpdate),
		validateName:           s.ValidateName,
		resetFields:            s.ResetFields,
		ratcheting:             s.Ratcheting,
		hubFieldNames:          s.HubFieldNames,
		statusMetadata:         s.StatusMetadata,
		plainFinalizers:        s.PlainFinalizers,
		limitAtAny:             s.LimitAtAny,
		metadataLast:           s.MetadataLast,
		noDependents:           s.NoDependents,
		ownScaleChecks:         s.OwnScaleChecks,
		terminateAlone:         s.TerminateAlone,
		noGeneration:           s.NoGeneration,
		requireResourceVersion: s.RequireResourceVersion,
		createOnUpdate:         s.CreateOnUpdate,
		returnDeleted:          s.ReturnDeleted,
	}
	if f := s.Permit; f != nil {
		e.permit = func(call *Call, obj, old runtime.Object) error {
			was, _ := old.(T) // the zero T on create
			return f(call, obj.(T), was)
		}
	}
	if f := s.PrepareForCreate; f != nil {
		e.prepareForCreate = func(call *Call, obj runtime.Object) { f(call, obj.(T)) }
	}
	if f := s.Terminate; f != nil {
		e.terminate = func(call *Call, obj runtime.Object, now metav1.Time) bool { return f(call, obj.(T), now) }
	}
	if f := s.Finalizing; f != nil {
		e.finalizing = func(obj runtime.Object) bool { return f(obj.(T)) }
	}
	if f := s.Canonicalize; f != nil {
		e.canonicalize = func(obj runtime.Object) { f(obj.(T)) }
	}
	if f := s.GracefulDelete; f != nil {
		e.gracefulDelete = func(call *Call, obj runtime.Object, o *metav1.DeleteOptions) bool { return f(call, obj.(T), o) }
	}
	return e
}

func eraseChange[T runtime.Object](f func(call *Call, obj, old T)) func(*Call, runtime.Object, runtime.Object) {
	if f == nil {
		return nil
	}
	return func(call *Call, obj, old runtime.Object) { f(call, obj.(T), old.(T)) }
}

func eraseOne[T runtime.Object, R any](f func(*Call, T) R) func(*Call, runtime.Object) R {
	if f == nil {
		return nil
	}
	return func(call *Call, obj runtime.Object) R { return f(call, obj.(T)) }
}

func eraseTwo[T runtime.Object, R any](f func(call *Call, obj, old T) R) func(*Call, runtime.Object, runtime.Object) R {
	if f == nil {
		return nil
	}
	return func(call *Call, obj, old runtime.Object) R { return f(call, obj.(T), old.(T)) }
}
