package wire

import (
	"encoding/json"
	"fmt"
	"strconv"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

// ResourceVersion returns a revision as the resourceVersion of an object. It returns "" for 0, which is no revision of a stored
// object.
func ResourceVersion(revision int64) string {
	if revision == 0 {
		return ""
	}
	return strconv.FormatInt(revision, 10)
}

// appendHead begins an object of the kind gvk, up to the value of its metadata.
func appendHead(dst []byte, gvk schema.GroupVersionKind) []byte {
	dst = appendString(append(dst, `{"kind":`...), gvk.Kind)
	dst = appendString(append(dst, `,"apiVersion":`...), gvk.GroupVersion().String())
	return append(dst, `,"metadata":`...)
}

// appendString appends s as a JSON string, escaped as encoding/json does.
func appendString(dst []byte, s string) []byte {
	for i := range len(s) {
		if c := s[i]; c < ' ' || c >= 0x7f || c == '"' || c == '\\' || c == '<' || c == '>' || c == '&' {
			text, _ := json.Marshal(s) // a string always has a JSON form
			return append(dst, text...)
		}
	}
	return append(append(append(dst, '"'), s...), '"')
}

// appendListMeta appends the metadata of a list. The fields are in order, and empty fields are left out.
func appendListMeta(dst []byte, lm metav1.ListMeta) []byte {
	dst = append(dst, '{')
	comma := func() {
		if dst[len(dst)-1] != '{' {
			dst = append(dst, ',')
		}
	}
	if lm.ResourceVersion != "" {
		dst = appendString(append(dst, `"resourceVersion":`...), lm.ResourceVersion)
	}
	if lm.Continue != "" {
		comma()
		dst = appendString(append(dst, `"continue":`...), lm.Continue)
	}
	if lm.RemainingItemCount != nil {
		comma()
		dst = strconv.AppendInt(append(dst, `"remainingItemCount":`...), *lm.RemainingItemCount, 10)
	}
	return append(dst, '}')
}

// appendUntypedListMeta is appendListMeta for a kind without a Go type. kube-apiserver always writes the continue field for
// these.
func appendUntypedListMeta(dst []byte, lm metav1.ListMeta) []byte {
	dst = appendString(append(dst, `{"continue":`...), lm.Continue)
	if lm.RemainingItemCount != nil {
		dst = fmt.Appendf(dst, `,"remainingItemCount":%d`, *lm.RemainingItemCount)
	}
	if lm.ResourceVersion != "" {
		dst = appendString(append(dst, `,"resourceVersion":`...), lm.ResourceVersion)
	}
	return append(dst, '}')
}
