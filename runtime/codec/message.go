package codec

import (
	"encoding/json"
	"errors"
	"fmt"
	"reflect"

	"github.com/keelson-dev/keelson/runtime"
	"github.com/keelson-dev/keelson/runtime/internal/protobuf"
)

func messageOf(types *protobuf.Compiler, obj runtime.Object) (*protobuf.Message, error) {
	t := reflect.TypeOf(obj)
	if t == nil || t.Kind() != reflect.Pointer {
		return nil, errors.New("it is no pointer to a struct")
	}
	return types.Of(t.Elem())
}

// unmarshalMessage reads a message into obj, which is new. A method of a type that panics is an error.
func unmarshalMessage(m *protobuf.Message, message []byte, obj runtime.Object) (err error) {
	defer caught(&err)
	return m.Unmarshal(message, obj)
}

// fillMessage makes obj what a message of a request says. What goes on is what the object's JSON has: a message may
// have strings that are no UTF-8, and raw values that are no JSON, of which the one would be stored as another and
// the other not at all.
func (f *ProtobufFormat) fillMessage(obj runtime.Object, message []byte) (err error) {
	m, err := messageOf(&f.types, obj)
	if err != nil {
		return fmt.Errorf("%T cannot be read from protobuf: %w", obj, err)
	}
	if err := unmarshalMessage(m, message, obj); err != nil {
		return err
	}
	defer caught(&err) // also a type's MarshalJSON may panic
	text, err := json.Marshal(obj)
	if err != nil {
		return err
	}
	v := reflect.ValueOf(obj).Elem()
	v.SetZero()
	_, err = Unmarshal(text, obj, Ignore)
	return err
}

// caught makes an error of a panic of a type's own decoding, defaulting, conversion or encoding: stored bytes must not
// be able to stop a server. It is deferred.
func caught(err *error) {
	if p := recover(); p != nil {
		*err = fmt.Errorf("decoding panicked: %v", p)
	}
}
