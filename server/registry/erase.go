package registry

import (
	"context"
	"reflect"

	"github.com/keelson-dev/keelson/runtime"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/validation/field"
)

// Erased is a Strategy without its type parameter, as a Registry keeps it. [Erase] makes one; the zero Erased is
// the zero Strategy.
type Erased struct {
	object reflect.Type // T; nil: any

	prepareForCreate       func(context.Context, runtime.Object)
	prepareForUpdate       func(context.Context, runtime.Object, runtime.Object)
	prepareForStatusUpdate func(context.Context, runtime.Object, runtime.Object)

	validate             func(context.Context, runtime.Object) field.ErrorList
	validateUpdate       func(context.Context, runtime.Object, runtime.Object) field.ErrorList
	validateStatusUpdate func(context.Context, runtime.Object, runtime.Object) field.ErrorList

	warnOnCreate func(context.Context, runtime.Object) []string
	warnOnUpdate func(context.Context, runtime.Object, runtime.Object) []string

	canonicalize   func(runtime.Object)
	validateName   func(name string, prefix bool) []string
	gracefulDelete func(context.Context, runtime.Object, *metav1.DeleteOptions) bool

	terminate  func(context.Context, runtime.Object, metav1.Time) bool
	finalizing func(runtime.Object) bool

	resetFields            []string
	ratcheting             bool
	statusMetadata         bool
	plainFinalizers        bool
	ownScaleChecks         bool
	terminateAlone         bool
	noGeneration           bool
	requireResourceVersion bool
	createOnUpdate         bool
	returnDeleted          bool
}

// Erase takes the type parameter off a strategy. The result is for objects of Go type T only; [New] checks that.
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
		statusMetadata:         s.StatusMetadata,
		plainFinalizers:        s.PlainFinalizers,
		ownScaleChecks:         s.OwnScaleChecks,
		terminateAlone:         s.TerminateAlone,
		noGeneration:           s.NoGeneration,
		requireResourceVersion: s.RequireResourceVersion,
		createOnUpdate:         s.CreateOnUpdate,
		returnDeleted:          s.ReturnDeleted,
	}
	if f := s.PrepareForCreate; f != nil {
		e.prepareForCreate = func(ctx context.Context, obj runtime.Object) { f(ctx, obj.(T)) }
	}
	if f := s.Terminate; f != nil {
		e.terminate = func(ctx context.Context, obj runtime.Object, now metav1.Time) bool { return f(ctx, obj.(T), now) }
	}
	if f := s.Finalizing; f != nil {
		e.finalizing = func(obj runtime.Object) bool { return f(obj.(T)) }
	}
	if f := s.Canonicalize; f != nil {
		e.canonicalize = func(obj runtime.Object) { f(obj.(T)) }
	}
	if f := s.GracefulDelete; f != nil {
		e.gracefulDelete = func(ctx context.Context, obj runtime.Object, o *metav1.DeleteOptions) bool { return f(ctx, obj.(T), o) }
	}
	return e
}

func eraseChange[T runtime.Object](f func(ctx context.Context, obj, old T)) func(context.Context, runtime.Object, runtime.Object) {
	if f == nil {
		return nil
	}
	return func(ctx context.Context, obj, old runtime.Object) { f(ctx, obj.(T), old.(T)) }
}

func eraseOne[T runtime.Object, R any](f func(context.Context, T) R) func(context.Context, runtime.Object) R {
	if f == nil {
		return nil
	}
	return func(ctx context.Context, obj runtime.Object) R { return f(ctx, obj.(T)) }
}

func eraseTwo[T runtime.Object, R any](f func(ctx context.Context, obj, old T) R) func(context.Context, runtime.Object, runtime.Object) R {
	if f == nil {
		return nil
	}
	return func(ctx context.Context, obj, old runtime.Object) R { return f(ctx, obj.(T), old.(T)) }
}
