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

// unmarshalMessage decodes a message into obj, which is new. A panic of a type's method becomes an error.
func unmarshalMessage(m *protobuf.Message, message []byte, obj runtime.Object) (err error) {
	defer caught(&err)
	return m.Unmarshal(message, obj)
}

// fillMessage decodes the message of a request into obj, and then decodes obj's JSON into it. A message may contain strings that
// are not UTF-8, which would be stored as other strings, and raw values that are not JSON, which could not be stored.
func (f *ProtobufFormat) fillMessage(obj runtime.Object, message []byte) (err error) {
	m, err := messageOf(&f.types, obj)
	if err != nil {
		return fmt.Errorf("%T cannot be read from protobuf: %w", obj, err)
	}
	if err := unmarshalMessage(m, message, obj); err != nil {
		return err
	}
	defer caught(&err) // a MarshalJSON method of the type may panic too
	text, err := json.Marshal(obj)
	if err != nil {
		return err
	}
	v := reflect.ValueOf(obj).Elem()
	v.SetZero()
	_, err = Unmarshal(text, obj, Ignore)
	return err
}

// caught turns a panic into an error: the decoding, defaulting, conversion or encoding functions of a type may panic, and stored
// bytes must not be able to stop a server. It is deferred.
func caught(err *error) {
	if p := recover(); p != nil {
		*err = fmt.Errorf("decoding panicked: %v", p)
	}
}
