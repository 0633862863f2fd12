package server_test

import (
	"bytes"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"strings"

	"k8s.io/apimachinery/pkg/runtime/serializer/cbor"
	"k8s.io/apimachinery/pkg/runtime/serializer/cbor/direct"
	kjson "k8s.io/apimachinery/pkg/util/json"
)

// headerOf returns a header of a step, or "".
func headerOf(header [][2]string, name string) string {
	for _, h := range header {
		if h[0] == name {
			return h[1]
		}
	}
	return ""
}

// cborMagic begins all CBOR of a server: https://www.rfc-editor.org/rfc/rfc8949#self-describe.
const cborMagic = "\xd9\xd9\xf7"

// cborBody returns a body of a file, which is JSON or bytes in hexadecimal, as apimachinery writes it.
func cborBody(text string) (string, error) {
	if digits, ok := strings.CutPrefix(text, "h'"); ok {
		body, err := hex.DecodeString(strings.TrimSuffix(digits, "'"))
		return string(body), err
	}
	var v any
	if err := kjson.Unmarshal([]byte(text), &v); err != nil {
		return "", fmt.Errorf("a body of CBOR, which stands as JSON in the file: %w", err)
	}
	item, err := direct.Marshal(v)
	return cborMagic + string(item), err
}

// readCBOR returns an answer, or an event, as JSON.
func readCBOR(item []byte) ([]byte, error) {
	if !bytes.HasPrefix(item, []byte(cborMagic)) {
		return nil, fmt.Errorf("%x does not describe itself as CBOR", item)
	}
	var v any
	if err := direct.Unmarshal(item, &v); err != nil {
		return nil, err
	}
	return json.Marshal(v)
}

// eventReader reads the events of a watch as JSON.
func eventReader(resp *http.Response) interface{ Decode(v any) error } {
	if resp.Header.Get("Content-Type") == "application/cbor-seq" {
		e := &cborEvents{}
		e.frames = cbor.NewFramer().NewFrameReader(io.NopCloser(io.TeeReader(resp.Body, &e.all)))
		return e
	}
	return json.NewDecoder(resp.Body)
}

type cborEvents struct {
	frames io.Reader
	all    bytes.Buffer // frames without their first tag
}

func (e *cborEvents) Decode(v any) error {
	frame := make([]byte, 1<<20)
	n, err := e.frames.Read(frame)
	if err != nil {
		return err
	}
	event := append([]byte(cborMagic), frame[:n]...)
	text, err := readCBOR(event)
	if err != nil {
		return err
	}
	if !bytes.Contains(e.all.Bytes(), event) {
		return fmt.Errorf("the event %s does not describe itself as CBOR", text)
	}
	if !bytes.Contains(frame[:n], []byte(cborMagic)) {
		return fmt.Errorf("the object of the event %s does not describe itself as CBOR", text)
	}
	return json.Unmarshal(text, v)
}
