package handlers

import (
	"fmt"
	"strings"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/validate/content"
)

// checkPath returns an error for a name or namespace that no object can have. It is called before they become part of a storage
// key, after the body of the request is checked.
func (c *call) checkPath() error { return checkSegments(c.name, c.namespace) }

func checkSegments(name, namespace string) error {
	if msgs := content.IsPathSegmentName(name); len(msgs) > 0 {
		return apierrors.NewBadRequest(fmt.Sprintf("Name parameter invalid: %q: %s", name, strings.Join(msgs, ";")))
	}
	if msgs := content.IsPathSegmentName(namespace); len(msgs) > 0 {
		return apierrors.NewBadRequest(fmt.Sprintf("Namespace parameter invalid: %q: %s", namespace, strings.Join(msgs, ";")))
	}
	return nil
}
