//go:build !linux

package bolt_test

import "errors"

func fillAndLeave(string) error { return errors.New("not on this system") }
