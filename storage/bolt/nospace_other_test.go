//go:build !unix

package bolt_test

import "errors"

func fill(string) error { return errors.New("not on this system") }
